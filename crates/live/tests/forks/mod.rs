//! Forks before, during and after; exec. Each test has a process of its own: after a fork, pages that are written get
//! other frames, those of other tests too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use live::{Others, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, assert_colored, engine, running, set};

const MIB: usize = 1 << 20;

unsafe extern "C" {
    fn flockfile(stream: *mut libc::FILE);
    fn funlockfile(stream: *mut libc::FILE);
}

/// Address of a page that each fork empties and writes before it goes on; 0 for none.
static EMPTIED: AtomicUsize = AtomicUsize::new(0);

/// As an allocator that gives memory back while a fork waits for its lock.
extern "C" fn empty_and_write() {
    let at = EMPTIED.load(Ordering::SeqCst);
    if at != 0 {
        // SAFETY: the test's own memory, mapped as long as this address is set, and no thread else uses this page.
        let emptied = unsafe { sys::memory::discard(sys::memory::Span::new(at, 4096)) };
        // SAFETY: as above.
        unsafe { (*(at as *const AtomicUsize)).store(usize::from(emptied.is_ok()), Ordering::SeqCst) };
    }
}

/// Installs the handler above. It comes before the engine's, and so runs after it.
fn before_each_fork() {
    // SAFETY: the handler is a function for good.
    assert_eq!(unsafe { libc::pthread_atfork(Some(empty_and_write), None, None) }, 0);
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
    if !harness::alone("forks::a_child_that_lives_meanwhile_keeps_its_own_content", &[]) {
        return;
    }
    before_each_fork();
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
    if !harness::alone(
        "forks::a_child_made_afterwards_writes_for_itself_and_its_engine_works",
        &[],
    ) {
        return;
    }
    before_each_fork();
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
        // The child has one thread, so no other can meet a page in flight, whatever is allowed.
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
    if !harness::alone("forks::children_made_in_the_middle_have_all_content", &[]) {
        return;
    }
    before_each_fork();
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
    if !harness::alone(
        "forks::a_fork_that_waits_for_the_range_itself_does_not_wait_for_ever",
        &[],
    ) {
        return;
    }
    before_each_fork();
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
    if !harness::alone("forks::programs_can_be_started_in_the_middle", &[]) {
        return;
    }
    before_each_fork();
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

/// `fork` as its handlers do not see it.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// glibc's, without handlers (2.34).
    Bare,
    /// The system call alone.
    Clone,
    Clone3,
    Fork,
}

impl Way {
    fn fork(self) -> libc::pid_t {
        #[repr(C)]
        #[derive(Default)]
        struct Arguments {
            numbers: [u64; 4],
            signal: u64,
            more: [u64; 6],
        }
        match self {
            // SAFETY: as for `child`; the name is looked up in the C library that is loaded, which has it or not.
            Way::Bare => unsafe {
                let bare = libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr());
                if bare.is_null() {
                    return libc::fork();
                }
                std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> libc::pid_t>(bare)()
            },
            // SAFETY: as `fork`; the child calls nothing but `_exit`.
            Way::Clone => unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t },
            Way::Clone3 => {
                let arguments = Arguments {
                    signal: libc::SIGCHLD as u64,
                    ..Arguments::default()
                };
                // SAFETY: as above; the structure is what the kernel wants, and lives.
                let made = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<Arguments>()) };
                made as libc::pid_t
            }
            // SAFETY: as above.
            Way::Fork => unsafe { libc::fork() },
        }
    }
}

/// Children by calls that no handler sees look at every page, and so do their own children.
#[test]
fn children_by_whatever_call_have_all_content() {
    if !harness::alone("forks::children_by_whatever_call_have_all_content", &[]) {
        return;
    }
    before_each_fork();
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        harness::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
        return;
    }
    if !engine.means().forks {
        harness::not_allowed("userfaultfd does not report forks to this user");
        return;
    }
    let memory = Memory::alone(2 * MIB);
    memory.number();
    // Pages that are to be empty in children are so, whatever is in flight.
    let wiped = Memory::alone(MIB / 4);
    wiped.number();
    // SAFETY: the test's own memory.
    let advised = unsafe { libc::madvise(wiped.start as *mut _, wiped.bytes, libc::MADV_WIPEONFORK) };
    assert_eq!(advised, 0);
    let over = AtomicBool::new(false);
    let mut exchanged = 0;
    std::thread::scope(|scope| {
        let (memory, wiped, over) = (&memory, &wiped, &over);
        let forks = scope.spawn(move || {
            let _over = Finally(over);
            let right = || numbered(memory) && wiped.words().iter().all(|word| word.load(Ordering::Relaxed) == 0);
            let exit = |right: bool| {
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(if right { 0 } else { 1 }) }
            };
            for round in 0..400 {
                let way = [Way::Bare, Way::Clone, Way::Clone3, Way::Fork][round % 4];
                match way.fork() {
                    // Every second one has a child of its own at once.
                    0 if round % 8 < 4 => exit(right()),
                    0 => match way.fork() {
                        0 => exit(right()),
                        grandchild => exit(grandchild > 0 && worked(grandchild) && right()),
                    },
                    child => {
                        assert!(child > 0);
                        assert!(worked(child), "round {round}: a child by {way:?} missed content");
                    }
                }
                std::thread::sleep(std::time::Duration::from_micros(round as u64 * 37 % 900));
            }
        });
        let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
        for chosen in sets.iter().cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            for memory in [memory, wiped] {
                let done = engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Running);
                exchanged += done.unwrap().exchanged;
            }
        }
        forks.join().unwrap();
    });
    assert!(exchanged > 0);
    memory.assert_numbered();
    wiped.assert_numbered();
}

/// `vfork` and threads share the memory: a thread that touches a page in flight waits like any
/// other.
#[test]
fn what_shares_the_memory_waits() {
    if !harness::alone("forks::what_shares_the_memory_waits", &[]) {
        return;
    }
    before_each_fork();
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        harness::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
        return;
    }
    let memory = Memory::alone(MIB);
    memory.number();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (memory, over) = (&memory, &over);
        let forks = scope.spawn(move || {
            let _over = Finally(over);
            extern "C" fn look(memory: *mut libc::c_void) -> i32 {
                // SAFETY: the caller's memory, which lives longer than this child.
                i32::from(!numbered(unsafe { &*memory.cast::<Memory>() }))
            }
            let stack = Memory::new(MIB);
            for round in 0..200 {
                let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
                let top = (stack.start + stack.bytes) as *mut libc::c_void;
                // SAFETY: the child runs on a stack of its own while this thread waits; it only reads the test's memory.
                let child = unsafe { libc::clone(look, top, flags, (&raw const *memory).cast_mut().cast()) };
                assert!(child > 0);
                assert!(worked(child), "round {round}: the child missed content");
            }
        });
        for color in (0..16).cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let done = engine.color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Running);
            done.unwrap();
        }
        forks.join().unwrap();
    });
    memory.assert_numbered();
}

/// Sets a flag in the end, after a failure too.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fork that began before the first coloring holds the lock of the C library's handlers, and the engine hears it all
/// the same. Here it is held up there: the flush of all streams has the lock that fork takes next, and waits for one.
#[test]
fn a_fork_that_is_under_way_is_heard_by_the_first_coloring() {
    if !harness::alone("forks::a_fork_that_is_under_way_is_heard_by_the_first_coloring", &[]) {
        return;
    }
    let Some(mut engine) = engine() else { return };
    if !running(&engine) || !engine.means().forks {
        return;
    }
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let (held, let_go) = (AtomicBool::new(false), AtomicBool::new(false));
    let pause = |milliseconds| std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: a stream of this thread's own, locked and unlocked once.
            unsafe {
                let stream = libc::tmpfile();
                assert!(!stream.is_null());
                flockfile(stream);
                held.store(true, Ordering::SeqCst);
                while !let_go.load(Ordering::SeqCst) {
                    pause(1);
                }
                funlockfile(stream);
            }
        });
        while !held.load(Ordering::SeqCst) {
            pause(1);
        }
        // SAFETY: flushes all streams.
        scope.spawn(|| unsafe { libc::fflush(std::ptr::null_mut()) });
        pause(100);
        let fork = scope.spawn(|| worked(child(|| numbered(&memory))));
        pause(100);
        scope.spawn(|| {
            pause(300);
            let_go.store(true, Ordering::SeqCst);
        });
        let done = engine.color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Running);
        assert!(done.is_ok(), "{done:?}");
        assert!(fork.join().unwrap(), "the child missed content");
    });
    memory.assert_numbered();
}
