//! `mremap` and `move_pages` of this library take turns with pages on their way.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use sys::changes::Pass;
use sys::memory::{Area, PAGE, Size};

// That of this library, as a program that is linked with it finds it.
unsafe extern "C" {
    fn move_pages(
        process: i32,
        count: u64,
        pages: *mut *mut c_void,
        nodes: *const i32,
        status: *mut i32,
        flags: i32,
    ) -> i64;
}

/// Calls something while a pass is under way; it must not return before that ends.
fn waits_for_the_pass(call: impl FnOnce() + Send) {
    let ended = AtomicBool::new(false);
    let pass = loop {
        if let Some(pass) = Pass::begin() {
            break pass;
        }
    };
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            call();
            ended.load(Ordering::SeqCst)
        });
        while !pass.awaited() {
            assert!(!caller.is_finished(), "it did not wait");
            std::thread::yield_now();
        }
        ended.store(true, Ordering::SeqCst);
        drop(pass);
        assert!(caller.join().unwrap(), "it returned while pages were on their way");
    });
}

#[test]
fn mremap_and_move_pages_wait_for_pages_on_their_way_and_do_what_they_should() {
    let _linked = domicile::phase::domicile_phase as *const () as usize;
    let (from, to) = (
        Area::map(4 * PAGE, Size::Small).unwrap(),
        Area::map(4 * PAGE, Size::Small).unwrap(),
    );
    from.set_word(2, 7, 99);
    let (source, place) = (from.start(), to.start());
    waits_for_the_pass(|| {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: both are the test's own areas, which stay mapped.
        let moved = unsafe { libc::mremap(source as *mut _, 4 * PAGE, 4 * PAGE, flags, place as *mut c_void) };
        assert_eq!(moved as usize, place);
    });
    assert_eq!((to.word(2, 7), from.word(2, 7)), (99, 0));
    waits_for_the_pass(|| {
        let (mut pages, mut status) = ([(place + 2 * PAGE) as *mut c_void], [-1]);
        // SAFETY: one page, asked for and not moved.
        let asked = unsafe { move_pages(0, 1, pages.as_mut_ptr(), std::ptr::null(), status.as_mut_ptr(), 0) };
        assert_eq!((asked, status), (0, [0]));
    });
    // An error is the C library's own.
    // SAFETY: refused: there is no such flag.
    let refused = unsafe { libc::mremap(place as *mut _, PAGE, PAGE, 1 << 20) };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((refused, error), (libc::MAP_FAILED, Some(libc::EINVAL)));
}
