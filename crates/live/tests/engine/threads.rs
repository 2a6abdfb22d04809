//! Threads whose stacks lie in the range.

use std::sync::atomic::{AtomicUsize, Ordering};

use live::{Others, PAGE_BYTES, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, engine, set};

const MIB: usize = 1 << 20;

/// Where the thread's descriptor is; then 0, that it may end.
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
