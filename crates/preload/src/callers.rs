//! The call stack of an allocation, as far out as a site's owner may be.

use std::ffi::c_void;
use std::num::NonZeroUsize;

/// The most frames examined, from the immediate caller outwards: a container of C++ that is not inlined takes about
/// eight.
pub const MOST_FRAMES: usize = 24;

/// Addresses in the calls on the stack, innermost first; 0 after the last.
pub type Frames = [usize; MOST_FRAMES];

/// The state that `_Unwind_Backtrace` fills in.
struct Walk {
    /// The return address that the walk begins at: frames further in are ours.
    caller: usize,
    frames: Frames,
    found: usize,
}

#[repr(C)]
struct Context {
    _opaque: [u8; 0],
}

const GO_ON: i32 = 0;
const STOP: i32 = 5;

#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut Context, *mut c_void) -> i32, state: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

extern "C" fn step(context: *mut Context, state: *mut c_void) -> i32 {
    // SAFETY: the state is the `Walk` of `walk`, which waits and does not use it meanwhile.
    let walk = unsafe { &mut *state.cast::<Walk>() };
    // SAFETY: the unwinder passes a valid context to its step.
    let at = unsafe { _Unwind_GetIP(context) };
    if at == 0 || (walk.found == 0 && at != walk.caller) {
        return if at == 0 { STOP } else { GO_ON };
    }
    walk.frames[walk.found] = at - 1;
    walk.found += 1;
    if walk.found == MOST_FRAMES { STOP } else { GO_ON }
}

/// The stack from the call that returns to `caller` on; only that call if the stack cannot be walked.
#[inline(never)]
pub fn walk(caller: NonZeroUsize) -> Frames {
    let mut walk = Walk {
        caller: caller.get(),
        frames: [0; MOST_FRAMES],
        found: 0,
    };
    // SAFETY: the step gets the expected state, which is alive until this returns.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    if walk.found == 0 {
        walk.frames[0] = caller.get() - 1;
    }
    walk.frames
}
