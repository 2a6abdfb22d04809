//! Cache slots in C, C++ and Fortran, as root and as an ordinary user. The colors are forced, so that the programs
//! can tell for themselves whether pages have them.

use std::path::Path;
use std::process::Command;

use crate::slow::installed::prefix::{How, Outcome, Prefix, missing, output};

/// 16 colors by the lowest bits of a frame's number, 64 KiB of cache each; no daemon.
pub const FORCED: [(&str, &str); 2] = [
    ("DOMICILE_COLORS", "force:12:4:65536"),
    ("DOMICILE_SOCKET", "/nonexistent/daemon.sock"),
];

/// Without frame numbers, colors are known from huge pages alone.
fn huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let there = enabled.is_ok_and(|enabled| !enabled.contains("[never]"));
    if !there {
        harness::not_here("transparent huge pages are off");
    }
    there
}

/// As a user without privileges, where the tests are root's; none otherwise.
fn as_nobody(program: &Path) -> Option<Outcome> {
    // What an ordinary user runs is that already.
    if !harness::root() || missing("setpriv") || !huge_pages() {
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    Some(output(command.arg(program).envs(FORCED)))
}

/// Runs it as whoever runs the tests and as nobody; it says that it is done.
fn is_done(prefix: &Prefix, program: &Path, how: How) {
    assert_eq!(prefix.run(program, how).stdout, "done\n", "{how:?}");
    if how == How::Plain
        && let Some(ran) = as_nobody(program)
    {
        assert!(ran.success, "{}, as nobody:\n{}", program.display(), ran.stderr);
        assert_eq!(ran.stdout, "done\n", "as nobody");
    }
}

#[test]
fn figure_4_as_a_program_of_pthreads() {
    let Some(prefix) = Prefix::installed() else { return };
    // Valgrind's heap may hold code that runs, which is no memory to be moved.
    for how in [How::Plain, How::Static, How::AddressSanitizer] {
        let Some(program) = prefix.c("figure4.c", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}

#[test]
fn the_calls_of_ulcc_in_all_their_cases() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("ulcc.c", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}

#[test]
fn where_there_are_no_colors_the_program_runs_as_it_would_without() {
    let Some(prefix) = Prefix::installed() else { return };
    let Some(program) = prefix.c("ulcc.c", How::Plain) else {
        return;
    };
    let mut command = Command::new(&program);
    let ran = output(
        command
            .arg("refused")
            .envs(FORCED)
            .env("DOMICILE_COLORS", "none of them"),
    );
    assert!(ran.success, "{}", ran.stderr);
    let (why, rest) = ran.stdout.split_once('\n').unwrap();
    assert!(
        why.contains("DOMICILE_COLORS") && why.contains("none of them") && why.contains("force:"),
        "{why}"
    );
    assert_eq!((rest, ran.stderr.as_str()), ("done\n", ""));
}

#[test]
fn slots_as_objects_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("slots.c", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}

#[test]
fn slots_as_objects_in_fortran() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in [How::Plain, How::Static, How::AddressSanitizer] {
        let Some(program) = prefix.fortran("slots.f90", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}

#[test]
fn slots_and_containers_in_cxx_by_two_compilers() {
    let Some(prefix) = Prefix::installed() else { return };
    for (compilers, how) in [
        (&["g++"][..], How::Plain),
        (&["g++"], How::AddressSanitizer),
        (&["clang++-19", "clang++"], How::Plain),
    ] {
        let Some(program) = prefix.cxx17(compilers, "slots.cpp", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}

#[test]
fn a_program_of_openmp() {
    let Some(prefix) = Prefix::installed() else { return };
    let Some(program) = prefix.openmp("openmp.c") else {
        return;
    };
    is_done(prefix, &program, How::Plain);
}

#[test]
fn one_process_for_each_rank() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in [How::Plain, How::AddressSanitizer] {
        let Some(program) = prefix.c("ranks.c", how) else {
            continue;
        };
        is_done(prefix, &program, how);
    }
}
