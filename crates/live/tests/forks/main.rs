//! Forks before, during and after; exec. In a process of their own, and one after the other: after a
//! fork, pages that are written get other frames, those of other tests too.

#[allow(dead_code)]
#[path = "../engine/memory.rs"]
mod memory;
#[path = "../engine/ordinary.rs"]
mod ordinary;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use live::{Others, Why, Wish};

use memory::{ColorOwn, Memory, assert_colored, engine, running, set};

/// The tests of this file run one after the other.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

const MIB: usize = 1 << 20;

/// Address of a page that each fork empties and writes before it goes on; 0 for none.
static EMPTIED: AtomicUsize = AtomicUsize::new(0);

/// As an allocator that gives memory back while a fork waits for its lock.
extern "C" fn empty_and_write() {
    let at = EMPTIED.load(Ordering::SeqCst);
    if at != 0 {
        // SAFETY: the test's own memory, mapped as long as this address is told, and no thread else uses this page.
        let emptied = unsafe { sys::memory::discard(sys::memory::Span::new(at, 4096)) };
        // SAFETY: as above.
        unsafe { (*(at as *const AtomicUsize)).store(usize::from(emptied.is_ok()), Ordering::SeqCst) };
    }
}

/// The tests' turn; the handler above comes before the engine's, and so runs after it.
fn one() -> std::sync::MutexGuard<'static, ()> {
    static HANDLER: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler is a function for good.
    HANDLER.call_once(|| assert_eq!(unsafe { libc::pthread_atfork(Some(empty_and_write), None, None) }, 0));
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs something in a child; whether it returned true there.
fn child(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child has this thread only; what it calls takes no lock that another thread
    // may have held but the allocator's, which the C library readies for the child.
    match unsafe { libc::fork() } {
        0 => {
            let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(if worked { 0 } else { 1 }) }
        }
        child => {
            assert!(child > 0);
            child
        }
    }
}

fn worked(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn numbered(memory: &Memory) -> bool {
    let right = |(at, word): (usize, &std::sync::atomic::AtomicU64)| word.load(Ordering::Relaxed) == at as u64 * 3 + 1;
    memory.words().iter().enumerate().all(right)
}

#[test]
fn a_child_that_lives_meanwhile_keeps_its_own_content() {
    let _one = one();
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let (mut read, mut write) = std::io::pipe().unwrap();
    let sharing = child(|| {
        use std::io::Read;
        let mut go = [0];
        read.read_exact(&mut go).unwrap();
        numbered(&memory)
    });
    // Every page is shared with the child.
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent)
        .unwrap();
    assert!(done.complete(), "{done:?}");
    memory.assert_numbered();
    assert_colored(memory.pages(), 4, &set(&[1]));
    memory.words()[5].store(0, Ordering::Relaxed);
    std::io::Write::write_all(&mut write, &[1]).unwrap();
    assert!(worked(sharing));
    assert_eq!(memory.words()[5].load(Ordering::Relaxed), 0);
}

#[test]
fn a_child_made_afterwards_writes_for_itself_and_its_engine_works() {
    let _one = one();
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    engine
        .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent)
        .unwrap();
    let after = child(|| {
        if !numbered(&memory) {
            return false;
        }
        memory.words()[9].store(77, Ordering::Relaxed);
        // The child's own page has another frame now, and the census looks at the child's.
        let own = Memory::alone(MIB / 2);
        own.number();
        let census = engine.census(own.pages(), &set(&[1])).unwrap();
        if (census.pages, census.absent) != (128, 0) {
            return false;
        }
        // The child has one thread, so that nobody can meet a page on its way, whatever is allowed.
        let Ok(done) = engine.color_own(memory.pages(), &Wish::Set(set(&[2])), Others::Running) else {
            return false;
        };
        memory.words()[9].store(9 * 3 + 1, Ordering::Relaxed);
        assert_colored(memory.pages(), 4, &set(&[2]));
        done.complete() && numbered(&memory)
    });
    assert!(worked(after));
    memory.assert_numbered();
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[3])), Others::Absent)
        .unwrap();
    assert!(done.complete());
    memory.assert_numbered();
}

#[test]
fn children_made_in_the_middle_have_all_content() {
    let _one = one();
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let over = AtomicBool::new(false);
    let mut exchanged = 0;
    std::thread::scope(|scope| {
        let (memory, over) = (&memory, &over);
        let forks = scope.spawn(move || {
            let all = (0..60).all(|_| worked(child(|| numbered(memory))));
            over.store(true, Ordering::Relaxed);
            all
        });
        let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
        for chosen in sets.iter().cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let done = engine
                .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Running)
                .unwrap();
            // Shared again and again with children.
            let expected = |why| matches!(why, Why::Pinned | Why::Miscolored | Why::Changed);
            assert!(done.left.iter().all(|left| expected(left.why)), "{done:?}");
            exchanged += done.exchanged;
        }
        assert!(forks.join().unwrap(), "a child missed content");
    });
    assert!(exchanged > 0);
    memory.assert_numbered();
}

#[test]
fn a_fork_that_waits_for_the_range_itself_does_not_wait_for_ever() {
    let _one = one();
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let memory = Memory::alone(4 * MIB);
    memory.number();
    let last = memory.start + memory.bytes - 4096;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let forks = scope.spawn(move || {
            EMPTIED.store(last, Ordering::SeqCst);
            let all = (0..60).all(|_| worked(child(|| true)));
            EMPTIED.store(0, Ordering::SeqCst);
            over.store(true, Ordering::SeqCst);
            all
        });
        scope.spawn(move || {
            let start = std::time::Instant::now();
            while !over.load(Ordering::SeqCst) {
                if start.elapsed().as_secs() > 100 {
                    eprintln!("the fork and the engine wait for each other");
                    std::process::abort();
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        for color in (0..16).cycle() {
            if over.load(Ordering::SeqCst) {
                break;
            }
            let done = engine.color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Running);
            done.unwrap();
        }
        assert!(forks.join().unwrap());
    });
    let words = memory.words();
    let untouched = words.len() - 512;
    let right = |at: usize| words[at].load(Ordering::Relaxed) == at as u64 * 3 + 1;
    assert!((0..untouched).all(right));
    assert_eq!(words[untouched].load(Ordering::Relaxed), 1);
    assert!((untouched + 1..words.len()).all(|at| words[at].load(Ordering::Relaxed) == 0));
}

#[test]
fn programs_can_be_started_in_the_middle() {
    let _one = one();
    let Some(mut engine) = engine() else { return };
    if !running(&engine) {
        return;
    }
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let starts = scope.spawn(move || {
            let start = || {
                std::process::Command::new("/bin/true")
                    .status()
                    .is_ok_and(|status| status.success())
            };
            let all = (0..40).all(|_| start());
            over.store(true, Ordering::Relaxed);
            all
        });
        for color in (0..16).cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            engine
                .color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Running)
                .unwrap();
        }
        assert!(starts.join().unwrap());
    });
    memory.assert_numbered();
}
