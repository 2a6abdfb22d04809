//! Coloring does not restrict the program's use of its memory afterwards: nothing is locked without a
//! request.

use live::{Config, Lock, Others, Wish};
use sys::mappings;

use crate::engine::memory::{ColorOwn, Memory, colors, open, set};

const MIB: usize = 1 << 20;

/// Memory colored by default settings.
fn colored() -> Option<Memory> {
    let mut engine = open(Config::new(colors(4)))?;
    let memory = Memory::alone(MIB);
    memory.number();
    let done = engine.color_own(memory.pages(), &Wish::Set(set(&[1, 2])), Others::Absent);
    let done = done.unwrap();
    assert!(!done.locked && done.exchanged + done.kept > 200, "{done:?}");
    memory.assert_numbered();
    Some(memory)
}

fn advise(memory: &Memory, advice: i32) {
    // SAFETY: the test's own numbers, which may go.
    let done = unsafe { libc::madvise(memory.start as *mut _, memory.bytes, advice) };
    assert_eq!(done, 0, "advice {advice}: {}", std::io::Error::last_os_error());
}

#[test]
fn a_colored_range_can_be_emptied_as_before() {
    let Some(memory) = colored() else { return };
    advise(&memory, libc::MADV_DONTNEED);
    memory.assert_zero();
}

#[test]
fn a_colored_range_can_be_given_up_as_before() {
    let Some(memory) = colored() else { return };
    advise(&memory, libc::MADV_FREE);
    // Written again, it is the program's as ever.
    memory.number();
    memory.assert_numbered();
}

#[test]
fn coloring_uses_nothing_of_the_programs_limit_of_locked_memory() {
    let Some(memory) = colored() else { return };
    let details = mappings::details(memory.span()).unwrap();
    assert!(details.iter().all(|details| !details.has("lo")), "{details:?}");
}

#[test]
fn who_asks_for_it_gets_the_range_locked() {
    let mut config = Config::new(colors(4));
    config.lock = Lock::Allowed;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(MIB);
    let done = engine.color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent);
    let details = mappings::details(memory.span()).unwrap();
    let locked = details.iter().all(|details| details.has("lo"));
    assert_eq!(locked, done.unwrap().locked);
    assert!(locked || !sys::memory::may_lock_all());
    let emptied = {
        // SAFETY: the test's own zeros.
        unsafe { sys::memory::discard(memory.span()) }
    };
    // Locked or not, our own pages can be emptied (MADV_DONTNEED_LOCKED, Linux 5.18).
    emptied.unwrap();
    memory.assert_zero();
}

#[test]
fn what_is_locked_on_fault_stays_so() {
    let Some(mut engine) = open(Config::new(colors(4))) else {
        return;
    };
    let memory = Memory::alone(MIB);
    // SAFETY: locks the test's own memory as it is touched.
    let locked = unsafe { libc::mlock2(memory.start as *const _, memory.bytes, libc::MLOCK_ONFAULT as _) };
    if locked != 0 {
        return harness::not_allowed("this user may not lock a mebibyte");
    }
    memory.number();
    let done = engine.color_own(memory.pages(), &Wish::Set(set(&[5])), Others::Absent);
    assert!(done.unwrap().exchanged > 0);
    memory.assert_numbered();
    let details = mappings::details(memory.span()).unwrap();
    assert!(details.iter().all(|details| details.has("lo")), "{details:?}");
    // SAFETY: the test's own numbers.
    unsafe { sys::memory::discard(memory.span()) }.unwrap();
    let entries = sys::frames::Pagemap::own().unwrap().entries(memory.span()).unwrap();
    assert!(entries.iter().all(|entry| !entry.present()), "locked as a whole");
    memory.assert_zero();
}
