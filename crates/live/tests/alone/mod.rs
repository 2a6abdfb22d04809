//! Tests that need a process of their own: they count all mappings, or move a range elsewhere, since the next mapping
//! takes the place that was left.

use std::sync::atomic::{AtomicBool, Ordering};

use live::{Error, Lock, Others, Placing, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, assert_colored, config, engine, open, running, set};

const MIB: usize = 1 << 20;

#[test]
fn moving_elsewhere_takes_the_content_along() {
    if !harness::alone("alone::moving_elsewhere_takes_the_content_along", &[]) {
        return;
    }
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    for round in 0..60 {
        let memory = Memory::alone(2 * MIB);
        let elsewhere = Memory::alone(2 * MIB);
        memory.number();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(50 * (round % 8)));
                // SAFETY: both are ours and as large; what is moved is used at the new place only.
                let at = unsafe {
                    libc::mremap(
                        memory.start as *mut _,
                        memory.bytes,
                        memory.bytes,
                        libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                        elsewhere.start as *mut libc::c_void,
                    )
                };
                over.store(true, Ordering::Relaxed);
                assert_eq!(at as usize, elsewhere.start, "{}", std::io::Error::last_os_error());
                elsewhere.assert_numbered();
            });
            let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
            for chosen in sets.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                match engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Running) {
                    Ok(done) => assert!(done.left.iter().all(|left| left.why != Why::Own), "{done:?}"),
                    // No longer there.
                    Err(Error::Unfit { .. } | Error::System { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            mover.join().unwrap();
        });
        elsewhere.assert_numbered();
        // Its place may be another's by now.
        std::mem::forget(memory);
    }
}

#[test]
fn the_process_has_no_more_mappings_than_before() {
    if !harness::alone("alone::the_process_has_no_more_mappings_than_before", &[]) {
        return;
    }
    for (reserve_bytes, lock) in [(0, Lock::Never), (0, Lock::Free), (8 << 20, Lock::Free)] {
        let mut config = config(5);
        (config.reserve_bytes, config.lock) = (reserve_bytes, lock);
        let Some(mut engine) = open(config) else { return };
        if engine.means().placing != Some(Placing::Move) {
            harness::not_in_this_kernel((6, 8), engine.means().reasons.join("; "));
            return;
        }
        let (touched, untouched) = (Memory::alone(8 * MIB), Memory::alone(8 * MIB));
        touched.number();
        // Allocates what this thread needs from the C library, once.
        let count = || sys::mappings::count().unwrap();
        count();
        let before = count();
        for turn in 0..4u32 {
            let chosen = set(&[turn, turn + 8]);
            for memory in [&touched, &untouched] {
                let done = engine
                    .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
                    .unwrap();
                assert!(done.left.len() < 100, "{:?}", done.left);
                assert_colored(memory.pages(), 5, &chosen);
            }
            // The reserve lies in a few areas of its own, however often colors change. The thread that runs the
            // tests may need something of the C library meanwhile; eight calls that each left one would show.
            let reserve = if reserve_bytes == 0 { 2 } else { 8 };
            assert!(count() <= before + reserve, "{} mappings were {before} before", count());
        }
        touched.assert_numbered();
        untouched.assert_zero();
    }
}

/// While this lives, the process locks its new mappings, and may lock only so many bytes.
struct Future(libc::rlimit);

impl Future {
    fn begin(bytes: u64) -> Future {
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit has its place.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut before) }, 0);
        let less = libc::rlimit {
            rlim_cur: bytes.min(before.rlim_max),
            ..before
        };
        // SAFETY: a limit for this process, which `drop` puts back; no content changes.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &less), 0);
            assert_eq!(libc::mlockall(libc::MCL_FUTURE), 0);
        }
        Future(before)
    }
}

impl Drop for Future {
    fn drop(&mut self) {
        // SAFETY: as `begin` found it.
        unsafe {
            libc::munlockall();
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &self.0);
        }
    }
}

/// Takes the right to lock beyond the limit from this thread, for good.
fn obey_the_limit() {
    const CAP_IPC_LOCK: u32 = 14;
    let mut header = [0x2008_0522u32, 0];
    let mut sets = [0u32; 6];
    // SAFETY: version 3 of the structures, which have two words for each of three sets.
    unsafe {
        assert_eq!(
            libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()),
            0
        );
        sets[0] &= !(1 << CAP_IPC_LOCK);
        assert_eq!(
            libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_mut_ptr()),
            0
        );
    }
}

#[test]
fn where_all_future_memory_is_locked_pages_are_colored_all_the_same() {
    const PAGES: usize = 2 * MIB / live::PAGE_BYTES;
    if !harness::alone(
        "alone::where_all_future_memory_is_locked_pages_are_colored_all_the_same",
        &[],
    ) {
        return;
    }
    if !harness::root() {
        return harness::not_allowed("this user may not lock 64 MiB");
    }
    std::thread::spawn(|| {
        obey_the_limit();
        // Less than the areas that frames are collected in.
        let _future = Future::begin(8 << 20);
        let Some(mut engine) = open(live::Config::new(crate::engine::memory::colors(4))) else {
            return;
        };
        let memory = Memory::alone(2 * MIB);
        memory.number();
        for (round, others) in [Others::Absent, Others::Running, Others::Absent]
            .into_iter()
            .enumerate()
        {
            let chosen = set(&[round as u32, 9]);
            let done = engine
                .color_own(memory.pages(), &Wish::Set(chosen.clone()), others)
                .unwrap();
            assert!(done.complete() && done.kept + done.exchanged == PAGES, "{done:?}");
            memory.assert_numbered();
            assert_colored(memory.pages(), 4, &chosen);
        }
        let details = sys::mappings::details(memory.span()).unwrap();
        let locked = details.iter().all(|details| details.has("lo"));
        assert!(locked, "the program's own lock stays: {details:?}");
        // SAFETY: the test's own numbers.
        unsafe { engine.empty(memory.pages()) }.unwrap();
        memory.assert_zero();
    })
    .join()
    .unwrap();
}
