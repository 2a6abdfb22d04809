//! A program that restricts its system calls (seccomp): the run-time steps aside before it does.
//!
//! Placing makes system calls that such a program may have forbidden, which would end it. So from then on every new
//! block is an ordinary one, and queries about placed blocks are answered from memory: the knowledge about them no
//! longer changes, and a freed block has no owner any more. This applies to the process, even if the program restricts
//! only one thread.
//!
//! A program that makes system calls by its own instructions, without the C library, is not noticed.

use std::ffi::{c_int, c_long, c_ulong};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{cdpc, next, placing};

static ASIDE: AtomicBool = AtomicBool::new(false);
/// The process that the run-time is in: a child that shares its memory for a while (`vfork`) has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The report's note about it.
pub const NOTE: &str =
    "the program restricted its own system calls (seccomp): blocks allocated since then are not placed";

/// From now on this process is watched.
pub fn watch() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Returns true if system calls must be avoided.
#[inline]
pub fn is_aside() -> bool {
    ASIDE.load(Ordering::Acquire)
}

#[cold]
fn step_aside() {
    // Nothing is placed here, or this memory belongs to another process.
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let aside = || ASIDE.store(true, Ordering::Release);
    placing::freeze(aside);
    cdpc::freeze();
    aside();
}

/// # Safety
/// As C's function of that name. (Arguments that an option does not have are passed on unchanged.)
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        step_aside();
    }
    // SAFETY: the program's own call.
    unsafe { next::prctl(option, a, b, c, d) }
}

/// # Safety
/// As C's function of that name. (Arguments that a call does not have are passed on unchanged.)
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let restricts = match number {
        libc::SYS_seccomp => a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER,
        libc::SYS_prctl => a == c_long::from(libc::PR_SET_SECCOMP),
        _ => false,
    };
    if restricts {
        step_aside();
    }
    // SAFETY: the program's own call.
    let call = || unsafe { next::syscall(number, a, b, c, d, e, f) };
    match number {
        // If these met a page that is being moved, they would fail in part.
        libc::SYS_mremap | libc::SYS_move_pages => sys::changes::change(call),
        _ => call(),
    }
}

/// From `linux/seccomp.h`: the operations that restrict calls, as opposed to queries.
const SECCOMP_SET_MODE_STRICT: c_long = 0;
const SECCOMP_SET_MODE_FILTER: c_long = 1;
