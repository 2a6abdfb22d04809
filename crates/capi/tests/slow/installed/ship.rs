//! Shipped work in C and Fortran.

use crate::slow::installed::prefix::{How, Prefix, output};
use std::process::Command;

/// Rust's library keeps the main thread's handle by a pointer into its middle, which Valgrind counts as possibly lost.
const WAYS: [How; 3] = [How::Plain, How::Static, How::AddressSanitizer];

#[test]
fn shipped_work_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in WAYS {
        let Some(program) = prefix.c("ship.c", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
    // What only other threads of its parent had is lost in a child of fork, and AddressSanitizer counts it.
    for how in [How::Plain, How::Static] {
        let Some(program) = prefix.c("ship.c", how) else {
            continue;
        };
        let ran = output(Command::new(&program).arg("forks"));
        assert_eq!((ran.stdout.as_str(), ran.success), ("done\n", true), "{}", ran.stderr);
    }
}

#[test]
fn shipped_work_in_fortran() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in WAYS {
        let Some(program) = prefix.fortran("ship.f90", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}
