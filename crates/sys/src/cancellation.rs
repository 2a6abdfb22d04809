//! Threads that are cancelled (`pthread_cancel`): not while they are in code of ours.
//!
//! Opening, reading and waiting are cancellation points. A thread that is cancelled there unwinds, through locks that
//! it holds and pages that it has taken out, and through frames that nothing may unwind through, which ends the
//! program. So code of ours that a program calls defers cancellation until it returns.

use std::ffi::c_int;
use std::marker::PhantomData;

/// While it lives the thread is not cancelled. A pending cancellation takes effect afterwards at the thread's next
/// cancellation point, or at once if the thread is set so.
#[must_use]
pub struct Uncancelled {
    before: c_int,
    /// The state is the thread's own.
    _here: PhantomData<*const ()>,
}

#[cfg(not(miri))]
unsafe extern "C-unwind" {
    /// Unwinds where a thread that is cancelled at once allows it again.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Nobody is cancelled there.
#[cfg(miri)]
unsafe fn pthread_setcancelstate(_: c_int, _: *mut c_int) -> c_int {
    0
}

/// Constants of `pthread.h`, on every architecture.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

impl Uncancelled {
    #[inline]
    pub fn begin() -> Uncancelled {
        let mut before = 0;
        // SAFETY: concerns the calling thread alone, and there is room for the answer.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
        Uncancelled {
            before,
            _here: PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: the thread's state from before.
        unsafe { pthread_setcancelstate(self.before, &mut ours) };
    }
}
