//! A program that gives system calls up (seccomp): the run-time steps aside before it does.
//!
//! Placing asks the kernel for things that such a program may have forbidden itself, which ends it. So from then on every
//! new block is an ordinary one, and what is asked of blocks that are placed is answered from memory: what is known of
//! them does not change any more, and one that is freed is no longer anybody's. It concerns the process, though
//! the program may mean one thread only.
//!
//! A program that asks the kernel by an instruction of its own, and not the C library, is not noticed.

use std::ffi::{c_int, c_long, c_ulong};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{cdpc, next, placing};

static ASIDE: AtomicBool = AtomicBool::new(false);
/// The process that the run-time is in: who shares its memory for a while (`vfork`) has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// What the report says of it.
pub const NOTE: &str =
    "the program restricted its own system calls (seccomp): blocks allocated since then are not placed";

/// From now on it is this process that is looked at.
pub fn watch() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Whether nothing may be asked of the kernel any more.
#[inline]
pub fn is_aside() -> bool {
    ASIDE.load(Ordering::Acquire)
}

#[cold]
fn step_aside() {
    // Nothing is placed here, or it is the memory of somebody else that we are in.
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let aside = || ASIDE.store(true, Ordering::Release);
    placing::freeze(aside);
    cdpc::freeze();
    aside();
}

/// # Safety
/// As C's function of that name. (Arguments that an option does not have are handed on as they come.)
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        step_aside();
    }
    // SAFETY: the program's own call.
    unsafe { next::prctl(option, a, b, c, d) }
}

/// # Safety
/// As C's function of that name. (Arguments that a call does not have are handed on as they come.)
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
        // These would fail, in part, where they meet a page on its way.
        libc::SYS_mremap | libc::SYS_move_pages => sys::changes::change(call),
        _ => call(),
    }
}

/// Of `linux/seccomp.h`: what that call does, as against what it answers.
const SECCOMP_SET_MODE_STRICT: c_long = 0;
const SECCOMP_SET_MODE_FILTER: c_long = 1;
