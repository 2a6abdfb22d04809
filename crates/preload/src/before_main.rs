//! The moment between the constructors of a program and its `main`: all declarations that the program makes beforehand
//! are known, and none of its data is in use.
//!
//! A library's own constructors run before the program's. So the run-time interposes the C library's function that runs
//! the program's and then `main`, and passes our function in place of `main`, which then continues in the program's
//! `main`.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{cdpc, next};

type Pointer = *mut c_void;

/// The program's `main`.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// # Safety
/// As the C library's function of that name, which the first code of a program calls.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __libc_start_main(
    main: Pointer,
    count: c_int,
    arguments: Pointer,
    init: Pointer,
    fini: Pointer,
    linker_fini: Pointer,
    stack_end: Pointer,
) -> c_int {
    let main = if cdpc::is_armed() {
        MAIN.store(main, Ordering::Relaxed);
        ours as *mut c_void
    } else {
        main
    };
    // SAFETY: the program's own call, except for a `main` that continues in its own.
    unsafe { next::libc_start_main(main, count, arguments, init, fini, linker_fini, stack_end) }
}

/// Colors, and then becomes the program's `main`: nothing of ours is on the stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn ours() {
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin
    )
}

/// The same.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn ours() {
    naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "stp x2, x30, [sp, #16]",
        "bl {begin}",
        "mov x16, x0",
        "ldp x2, x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        begin = sym begin
    )
}

extern "C" fn begin() -> Pointer {
    cdpc::before_main();
    MAIN.load(Ordering::Relaxed)
}
