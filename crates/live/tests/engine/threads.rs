//! Threads whose stacks lie in the range.

use std::sync::atomic::{AtomicUsize, Ordering};

use live::{Others, PAGE_BYTES, Why, Wish};

use crate::memory::{ColorOwn, Memory, engine, set};

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

#[test]
fn a_threads_descriptor_stays_where_it_is() {
    let Some(mut engine) = engine() else { return };
    if !engine.means().running {
        skips::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
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
    let at = DESCRIPTOR.load(Ordering::SeqCst);
    for color in 0..4 {
        let done = engine
            .color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Running)
            .unwrap();
        let stays = |left: &live::Left| left.address == at / PAGE_BYTES * PAGE_BYTES && left.why == Why::Own;
        let right = crate::memory::frames(memory.pages()).map(|frames| frames[(at - memory.start) / PAGE_BYTES] % 16);
        assert!(
            done.left.iter().any(stays) || right == Some(u64::from(color)),
            "{done:?}"
        );
        assert!(done.exchanged + done.kept > 200, "{done:?}");
        assert!(
            color == 0 || done.left.iter().any(stays) || right.is_none(),
            "the descriptor was moved"
        );
    }
    DESCRIPTOR.store(0, Ordering::SeqCst);
    // SAFETY: our own thread, joined once.
    assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
}
