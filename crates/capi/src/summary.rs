//! `domicile_parallel_loop` of `domicile/summary.h`: passes a program's summary of a parallel loop to the listeners.
//!
//! The listeners are `domicile record` (as a client request, each summary once) and the run-time of `domicile run` (as
//! the same call, found by name). Without a listener the call only reads one variable.

mod recorder;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use live::summaries::domicile_loop;
use sys::cancellation::Uncancelled;

/// The function in the run-time that `domicile run` loads into programs.
type Run = unsafe extern "C-unwind" fn(*const domicile_loop);
#[cfg(not(miri))]
const RUN: &std::ffi::CStr = c"domicile_run_parallel_loop";

/// The listeners.
#[derive(Clone, Copy)]
struct Listeners {
    recorder: bool,
    run: Option<Run>,
}

fn listeners() -> Listeners {
    static LISTENERS: OnceLock<Listeners> = OnceLock::new();
    *LISTENERS.get_or_init(|| Listeners {
        recorder: sys::requests::recording(),
        run: run(),
    })
}

#[cfg(not(miri))]
fn run() -> Option<Run> {
    // SAFETY: this searches the loaded objects for a name that ends in a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, RUN.as_ptr()) };
    // SAFETY: the run-time defines the function of this name with this type, and nothing else uses the name.
    (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Run>(found) })
}

#[cfg(miri)]
fn run() -> Option<Run> {
    None
}

/// Describes how a parallel loop uses its arrays; see `domicile/summary.h`.
///
/// # Safety
/// As [`live::summaries::taken`] requires.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn domicile_parallel_loop(from: *const domicile_loop) {
    let listeners = listeners();
    if let Some(run) = listeners.run {
        // SAFETY: the caller's promise, passed on.
        unsafe { run(from) };
    }
    if listeners.recorder {
        let _uncancelled = Uncancelled::begin();
        // A panic ends here: the recording lacks a summary, and the program is unaffected.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the caller's promise.
            recorder::describe(unsafe { live::summaries::taken(from) });
        }));
    }
}
