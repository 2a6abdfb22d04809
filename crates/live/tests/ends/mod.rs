//! Threads that have their stacks in the range, end, and color it themselves. A failure here is a hang, so each test
//! runs in a process of its own that is given a limit of time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use live::{Engine, Others, PAGE_BYTES, Pages, Wish};

use crate::engine::memory::{ColorOwn, Memory, engine, running, set};

const MIB: usize = 1 << 20;

/// An engine for ranges in use, where there is one.
fn moving() -> Option<Engine> {
    engine().filter(running)
}

type Body = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

/// A thread that has its stack in memory of ours.
fn begin(body: Body, stack: &Memory) -> libc::pthread_t {
    let mut thread = 0;
    // SAFETY: the memory is the thread's until it is joined; the attributes live as long as they are used.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        let lowest = stack.start as *mut libc::c_void;
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, lowest, stack.bytes), 0);
        assert_eq!(
            libc::pthread_create(&mut thread, &attributes, body, std::ptr::null_mut()),
            0
        );
        libc::pthread_attr_destroy(&mut attributes);
    }
    thread
}

/// Waits for its end, for ever if the kernel could not say it.
fn join(thread: libc::pthread_t) {
    // SAFETY: our own thread, joined once.
    assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
}

/// True once the thread may end.
static MAY_END: AtomicBool = AtomicBool::new(false);

/// True once the thread runs: before that nobody can tell where its descriptor lies.
static RUNS: AtomicBool = AtomicBool::new(false);

extern "C" fn end_when_allowed(_: *mut libc::c_void) -> *mut libc::c_void {
    RUNS.store(true, Ordering::SeqCst);
    while !MAY_END.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    std::ptr::null_mut()
}

/// Colors a range again and again while something is done, and says how often it was.
fn recolored_during(engine: &mut Engine, range: Pages, work: impl FnOnce(&AtomicUsize) + Send) {
    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (over, calls) = (&over, &calls);
        let worker = scope.spawn(move || {
            work(calls);
            over.store(true, Ordering::SeqCst);
        });
        let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4]), set(&[9])];
        let mut outcomes = Vec::new();
        for chosen in sets.iter().cycle() {
            outcomes.push(engine.color_own(range, &Wish::Set(chosen.clone()), Others::Running));
            calls.fetch_add(1, Ordering::SeqCst);
            if over.load(Ordering::SeqCst) || worker.is_finished() {
                break;
            }
        }
        worker.join().unwrap();
        // Only now: the worker waits for calls.
        for done in outcomes {
            let done = done.unwrap();
            assert!(done.exchanged + done.kept > range.count / 2, "{done:?}");
        }
    });
}

#[test]
fn a_thread_that_ends_on_a_stack_in_the_range_is_joined() {
    if !harness::alone("ends::a_thread_that_ends_on_a_stack_in_the_range_is_joined", &[]) {
        return;
    }
    let Some(mut engine) = moving() else { return };
    let stack = Memory::alone(MIB);
    // A page with content is taken out and put back; a page without is only filled.
    stack.number();
    for round in 0..50 {
        MAY_END.store(false, Ordering::SeqCst);
        RUNS.store(false, Ordering::SeqCst);
        let thread = begin(end_when_allowed, &stack);
        while !RUNS.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        recolored_during(&mut engine, stack.pages(), |calls| {
            // Ends at any moment of some later call.
            while calls.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_micros(37 * round));
            MAY_END.store(true, Ordering::SeqCst);
            join(thread);
        });
    }
}

/// The range that the thread colors, which is its own stack.
static OWN_STACK: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static COLORED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Between the thread's descriptor and its stack: more than the part beside a stack that the engine leaves
    /// alone.
    static LOCAL: [AtomicUsize; 16 << 10] = const { [const { AtomicUsize::new(0) }; 16 << 10] };
}

extern "C" fn color_own_stack(_: *mut libc::c_void) -> *mut libc::c_void {
    LOCAL.with(|local| {
        for (at, word) in local.iter().enumerate() {
            word.store(at + 1, Ordering::Relaxed);
        }
    });
    let [start, count] = [0, 1].map(|at| OWN_STACK[at].load(Ordering::SeqCst));
    if let Some(mut engine) = moving() {
        for color in [1, 5, 9] {
            let done = engine.color_own(Pages { start, count }, &Wish::Set(set(&[color])), Others::Running);
            let done = done.unwrap();
            assert!(done.exchanged + done.kept > count / 2, "{done:?}");
            COLORED.fetch_add(1, Ordering::SeqCst);
        }
    }
    LOCAL.with(|local| {
        let right = |(at, word): (usize, &AtomicUsize)| word.load(Ordering::Relaxed) == at + 1;
        assert!(local.iter().enumerate().all(right));
    });
    std::ptr::null_mut()
}

#[test]
fn a_thread_colors_the_range_that_holds_its_own_stack_and_descriptor() {
    if !harness::alone(
        "ends::a_thread_colors_the_range_that_holds_its_own_stack_and_descriptor",
        &[],
    ) || moving().is_none()
    {
        return;
    }
    let stack = Memory::alone(4 * MIB);
    stack.number();
    OWN_STACK[0].store(stack.start, Ordering::SeqCst);
    OWN_STACK[1].store(stack.bytes / PAGE_BYTES, Ordering::SeqCst);
    // Another thread, so that the engine does not find itself alone.
    join(begin(color_own_stack, &stack));
    assert_eq!(COLORED.load(Ordering::SeqCst), 3);
}

/// A robust mutex in the range.
static MUTEX: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicBool = AtomicBool::new(false);

extern "C" fn die_with_it(_: *mut libc::c_void) -> *mut libc::c_void {
    let mutex = MUTEX.load(Ordering::SeqCst) as *mut libc::pthread_mutex_t;
    // SAFETY: the test initialised it, and keeps it as long as the thread lives.
    let locked = unsafe { libc::pthread_mutex_lock(mutex) };
    assert_eq!(locked, 0);
    HELD.store(true, Ordering::SeqCst);
    end_when_allowed(std::ptr::null_mut())
}

#[test]
fn a_robust_mutex_in_the_range_tells_that_its_owner_died() {
    if !harness::alone("ends::a_robust_mutex_in_the_range_tells_that_its_owner_died", &[]) {
        return;
    }
    let Some(mut engine) = moving() else { return };
    let (range, stack) = (Memory::alone(64 * PAGE_BYTES), Memory::alone(MIB));
    range.number();
    let mutex = (range.start + 33 * PAGE_BYTES + 512) as *mut libc::pthread_mutex_t;
    MUTEX.store(mutex as usize, Ordering::SeqCst);
    for round in 0..50 {
        MAY_END.store(false, Ordering::SeqCst);
        HELD.store(false, Ordering::SeqCst);
        // SAFETY: memory of ours, in which nothing else is, initialised before it is used.
        unsafe {
            let mut kind = std::mem::zeroed();
            assert_eq!(libc::pthread_mutexattr_init(&mut kind), 0);
            assert_eq!(
                libc::pthread_mutexattr_setrobust(&mut kind, libc::PTHREAD_MUTEX_ROBUST),
                0
            );
            assert_eq!(libc::pthread_mutex_init(mutex, &kind), 0);
        }
        let thread = begin(die_with_it, &stack);
        while !HELD.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        recolored_during(&mut engine, range.pages(), |calls| {
            while calls.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_micros(37 * round));
            MAY_END.store(true, Ordering::SeqCst);
            join(thread);
        });
        let mutex = mutex.addr();
        // SAFETY: initialised above; nobody else is left who uses it.
        unsafe {
            let mutex = mutex as *mut libc::pthread_mutex_t;
            // Had the kernel not said it, this would wait for ever.
            assert_eq!(libc::pthread_mutex_lock(mutex), libc::EOWNERDEAD);
            assert_eq!(libc::pthread_mutex_consistent(mutex), 0);
            assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
            assert_eq!(libc::pthread_mutex_destroy(mutex), 0);
        }
    }
}
