//! Threads whose stacks lie in the range.

use std::sync::atomic::{AtomicUsize, Ordering};

use live::{Others, PAGE_BYTES, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, engine, set};

const MIB: usize = 1 << 20;

unsafe extern "C" {
    fn pthread_mutex_timedlock(mutex: *mut libc::pthread_mutex_t, until: *const libc::timespec) -> libc::c_int;
}

/// The address of the thread's descriptor; then 0, which lets it end.
static DESCRIPTOR: AtomicUsize = AtomicUsize::new(0);

extern "C" fn wait(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: returns a number.
    DESCRIPTOR.store(unsafe { libc::pthread_self() } as usize, Ordering::SeqCst);
    while DESCRIPTOR.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
    std::ptr::null_mut()
}

/// Ends the thread and waits for its end.
struct Ended(libc::pthread_t);

impl Drop for Ended {
    fn drop(&mut self) {
        DESCRIPTOR.store(0, Ordering::SeqCst);
        // SAFETY: our own thread, joined once.
        assert_eq!(unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) }, 0);
    }
}

#[test]
fn a_threads_descriptor_stays_where_it_is() {
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        harness::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
        return;
    }
    let memory = Memory::alone(MIB);
    memory.number();
    let mut thread = 0;
    // SAFETY: the memory is the thread's stack until it is joined; the attributes live as long as they are used.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        let top = memory.start as *mut libc::c_void;
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, top, memory.bytes), 0);
        assert_eq!(
            libc::pthread_create(&mut thread, &attributes, wait, std::ptr::null_mut()),
            0
        );
    }
    while DESCRIPTOR.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    // Ends it after a failure too: its stack goes with the memory.
    let ended = Ended(thread);
    let at = DESCRIPTOR.load(Ordering::SeqCst);
    let its_frame =
        || crate::engine::memory::frames(memory.pages()).map(|frames| frames[(at - memory.start) / PAGE_BYTES]);
    let first = its_frame();
    for color in 0..4 {
        let done = engine
            .color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Running)
            .unwrap();
        let stays = |left: &live::Left| left.address == at / PAGE_BYTES * PAGE_BYTES && left.why == Why::Own;
        // It may have had the color from the first.
        let right = first.map(|frame| frame % 16) == Some(u64::from(color));
        assert!(done.left.iter().any(stays) != right, "{done:?}");
        assert!(done.exchanged + done.kept > 200, "{done:?}");
        assert_eq!(its_frame(), first, "the descriptor was moved");
    }
    drop(ended);
}

/// Locks the mutex that it is given, and ends without unlocking it.
extern "C" fn die(mutex: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: it is initialised, and outlives the thread.
    assert_eq!(unsafe { libc::pthread_mutex_lock(mutex.cast()) }, 0);
    mutex
}

/// A time that only a wait for ever reaches.
fn far() -> libc::timespec {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    libc::timespec {
        tv_sec: now.as_secs() as i64 + 60,
        tv_nsec: 0,
    }
}

#[test]
fn threads_that_end_in_a_range_that_is_colored_are_joined_and_their_robust_mutexes_recovered() {
    const STACK: usize = 256 << 10;
    const THREADS: usize = 8;
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        harness::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
        return;
    }
    let rounds = harness::repetitions(200, 20_000);
    let memory = Memory::alone(THREADS * STACK + PAGE_BYTES);
    memory.number();
    let (stacks, mutexes) = (memory.start, memory.start + THREADS * STACK);
    let mutex = |at: usize| (mutexes + at * 64) as *mut libc::pthread_mutex_t;
    // SAFETY: the last page of the memory is for the mutexes.
    unsafe {
        let mut kind = std::mem::zeroed();
        libc::pthread_mutexattr_init(&mut kind);
        libc::pthread_mutexattr_setrobust(&mut kind, libc::PTHREAD_MUTEX_ROBUST);
        (0..THREADS).for_each(|at| assert_eq!(libc::pthread_mutex_init(mutex(at), &kind), 0));
    }
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            for round in 0..rounds {
                let threads: Vec<libc::pthread_t> = (0..THREADS)
                    .map(|at| {
                        let mut thread = 0;
                        // SAFETY: the stack is the thread's alone until it is joined.
                        unsafe {
                            let mut attributes = std::mem::zeroed();
                            libc::pthread_attr_init(&mut attributes);
                            let stack = (stacks + at * STACK) as *mut libc::c_void;
                            assert_eq!(libc::pthread_attr_setstack(&mut attributes, stack, STACK), 0);
                            let made = libc::pthread_create(&mut thread, &attributes, die, mutex(at).cast());
                            assert_eq!(made, 0);
                        }
                        thread
                    })
                    .collect();
                for (at, thread) in threads.into_iter().enumerate() {
                    // SAFETY: our own thread and mutex.
                    unsafe {
                        let joined = libc::pthread_timedjoin_np(thread, std::ptr::null_mut(), &far());
                        assert_eq!(joined, 0, "round {round}: a thread that has ended was not joined");
                        let locked = pthread_mutex_timedlock(mutex(at), &far());
                        assert_eq!(
                            locked,
                            libc::EOWNERDEAD,
                            "round {round}: the mutex of a thread that has ended"
                        );
                        assert_eq!(libc::pthread_mutex_consistent(mutex(at)), 0);
                        assert_eq!(libc::pthread_mutex_unlock(mutex(at)), 0);
                    }
                }
            }
        });
        let mut exchanged = 0;
        for color in [0, 1].into_iter().cycle() {
            if maker.is_finished() {
                break;
            }
            let wish = Wish::Set(set(&[color]));
            exchanged += engine
                .color_own(memory.pages(), &wish, Others::Running)
                .unwrap()
                .exchanged;
        }
        assert!(exchanged > 0);
        maker.join().unwrap();
    });
}
