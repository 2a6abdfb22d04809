//! Programs in C, C++ and Fortran, compiled by plain compilers against what `make install` installs, and run
//! plainly, under AddressSanitizer and under Valgrind.

mod prefix;
mod replicated;
mod ship;
mod slots;

use std::process::Command;

use prefix::{How, Prefix, missing, output};

/// The order of the threads in the paper's example (section 2.4): its four bins, one after another.
const BINS: &str = " t1 t2 t5 t6 t3 t4 t7 t8 t9 t10 t13 t14 t11 t12 t15 t16\n";

#[test]
fn everything_is_where_it_should_be() {
    let Some(prefix) = Prefix::installed() else { return };
    for file in [
        "lib/libdomicile.a",
        "lib/libdomicile.so",
        "lib/pkgconfig/domicile.pc",
        "lib/cmake/domicile/domicileConfig.cmake",
        "lib/cmake/domicile/domicileConfigVersion.cmake",
        "include/domicile/domicile.h",
        "include/domicile/slots.hpp",
        "include/domicile/stream.h",
        "include/domicile/summary.h",
        "include/domicile/th.h",
        "include/domicile/trace.h",
        "include/domicile/ulcc.h",
        "share/domicile/fortran/domicile_th.f90",
        "share/man/man3/th.3",
        "share/domicile/fortran/domicile_slots.f90",
        "share/man/man3/domicile_order.3",
        "share/man/man3/domicile_parallel_loop.3",
        "share/man/man3/domicile_phase.3",
        "share/man/man3/domicile_replicated.3",
        "share/man/man3/domicile_replicated_write.3",
        "share/man/man3/domicile_shared_replicas.3",
        "share/man/man3/domicile_shared_replicas_attach.3",
        "share/man/man3/domicile_slots.3",
        "share/man/man3/domicile_ship.3",
        "share/man/man3/domicile_caches_start.3",
        "share/man/man3/domicile_data_set_allocate.3",
        "share/man/man3/ulcc.3",
        "share/man/man3/ULCC_Allocate.3",
    ] {
        assert!(prefix.path(file).is_file(), "{file} was not installed");
    }
    let real = std::fs::read_link(prefix.path("lib/libdomicile.so.0")).unwrap();
    assert_eq!(
        real.to_str(),
        Some(concat!("libdomicile.so.", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn nothing_but_our_names_leaves_the_shared_library() {
    let Some(prefix) = Prefix::installed() else { return };
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=posix"])
        .arg(prefix.path("lib/libdomicile.so"));
    let names = output(&mut nm).stdout;
    let names: Vec<&str> = names.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(
        ["th_fork", "ULCC_Init", "domicile_order_run", "domicile_slots_open"]
            .iter()
            .all(|name| names.contains(name)),
        "{names:?}"
    );
    // It stands in front of these, which would fail where pages are on their way.
    let in_front = ["mremap", "move_pages"];
    let ours = |name: &str| ["th_", "ULCC_", "domicile_"].iter().any(|ours| name.starts_with(ours));
    let others: Vec<_> = names
        .iter()
        .filter(|name| !ours(name) && !in_front.contains(name))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_papers_example_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("paper.c", how) else {
            continue;
        };
        assert_eq!(
            prefix.run(&program, how).stdout,
            format!("{BINS}{BINS}{BINS}sum -80.0\n"),
            "{how:?}"
        );
    }
}

#[test]
fn the_papers_example_in_fortran() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.fortran("paper.f90", how) else {
            continue;
        };
        let ran = prefix.run(&program, how);
        let wanted = format!("{BINS}{BINS}sum -80.0\n{BINS}10.0\n11 of 4\n6 of 4\n");
        assert_eq!(ran.stdout, wanted, "{how:?}");
        assert_eq!(
            ran.stderr, "domicile: th_init: a size is less than 0: nothing was changed\n",
            "{how:?}"
        );
    }
}

#[test]
fn the_papers_calls_in_all_their_cases() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("calls.c", how) else {
            continue;
        };
        let ran = prefix.run(&program, how);
        assert_eq!(ran.stdout, "done\n", "{how:?}");
        for said in [
            "th_run: called by a running thread: nothing was run",
            "th_init: not while the order is running",
        ] {
            assert!(ran.stderr.contains(said), "{how:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn what_cannot_be_left_undone_ends_the_program_with_a_message() {
    let Some(prefix) = Prefix::installed() else { return };
    let Some(program) = prefix.c("calls.c", How::Plain) else {
        return;
    };
    for (case, said) in [
        (
            "no-function",
            "domicile: th_fork: f is 0: a thread must have a function\n",
        ),
        (
            "stranger",
            "domicile: th_fork: the order is running, and the caller is not one of its threads\n",
        ),
        ("memory", "domicile: th_fork: out of memory\n"),
    ] {
        // Memory ends soon; no core file is left.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "ulimit -c 0; ulimit -v 400000; exec \"$0\" \"$1\""])
            .arg(&program)
            .arg(case);
        let ran = shell.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), said);
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&ran.status),
            Some(6),
            "{case}"
        );
    }
}

#[test]
fn the_environment_says_how_a_program_of_the_papers_calls_runs() {
    let Some(prefix) = Prefix::installed() else { return };
    let Some(program) = prefix.c("paper.c", How::Plain) else {
        return;
    };
    let with = |name, value| output(Command::new(&program).env(name, value));
    assert_eq!(
        with("DOMICILE_TOUR", "first-fork").stdout,
        format!("{BINS}{BINS}{BINS}sum -80.0\n")
    );
    // Nearest neighbours go around the square of four bins.
    let around = " t1 t2 t5 t6 t3 t4 t7 t8 t11 t12 t15 t16 t9 t10 t13 t14\n";
    assert_eq!(
        with("DOMICILE_TOUR", "nearest").stdout,
        format!("{around}{around}{around}sum -80.0\n")
    );
    let wrong = with("DOMICILE_WORKERS", "many");
    assert!(
        wrong.stderr.contains("DOMICILE_WORKERS=many is ignored"),
        "{}",
        wrong.stderr
    );
    assert!(wrong.stdout.contains("sum -80.0"));
}

#[test]
fn orders_as_objects_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("order.c", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}

#[test]
fn orders_as_objects_in_fortran() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.fortran("order.f90", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}

#[test]
fn what_is_said_of_parallel_loops_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("summary.c", how) else {
            continue;
        };
        let ran = prefix.run(&program, how);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("done\n", ""), "{how:?}");
    }
}

#[test]
fn phases_in_fortran() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.fortran("phase.f90", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}

#[test]
fn the_headers_in_cxx() {
    let Some(prefix) = Prefix::installed() else { return };
    let Some(program) = prefix.cxx("plus.cpp") else { return };
    assert_eq!(prefix.run(&program, How::Plain).stdout, "done\n");
}

#[test]
fn each_header_stands_alone_in_c99() {
    let Some(prefix) = Prefix::installed() else { return };
    for header in ["domicile.h", "stream.h", "summary.h", "th.h", "trace.h", "ulcc.h"] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"]);
        if header != "trace.h" {
            gcc.arg("-pedantic-errors");
        }
        gcc.arg(prefix.path("include/domicile").join(header));
        assert!(output(&mut gcc).success, "{header}");
    }
}

#[test]
fn a_project_of_cmake() {
    let Some(prefix) = Prefix::installed() else { return };
    if missing("cmake") || missing("gfortran") {
        return;
    }
    let build = tempfile::tempdir().unwrap();
    let source = prefix::programs().join("cmake");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source).arg("-B").arg(build.path());
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.path("").display()));
    let said = output(&mut configure);
    assert!(said.success, "{}{}", said.stdout, said.stderr);
    let said = output(Command::new("cmake").arg("--build").arg(build.path()));
    assert!(said.success, "{}{}", said.stdout, said.stderr);
    for program in ["paper", "paper-static", "paper-fortran"] {
        let ran = output(&mut Command::new(build.path().join(program)));
        assert!(ran.stdout.starts_with(BINS), "{program}: {}{}", ran.stdout, ran.stderr);
    }
    for program in ["ranks", "slots-fortran"] {
        let ran = output(Command::new(build.path().join(program)).envs(slots::FORCED));
        assert_eq!(ran.stdout, "done\n", "{program}: {}", ran.stderr);
    }
}

#[test]
fn a_staged_installation_names_the_final_place() {
    let Some(_) = Prefix::installed() else { return };
    let stage = tempfile::tempdir().unwrap();
    prefix::install(&[
        format!("DESTDIR={}", stage.path().display()),
        "PREFIX=/opt/somewhere".to_owned(),
    ]);
    let described = std::fs::read_to_string(stage.path().join("opt/somewhere/lib/pkgconfig/domicile.pc")).unwrap();
    assert!(described.contains("prefix=/opt/somewhere\n"), "{described}");
    assert!(stage.path().join("opt/somewhere/include/domicile/th.h").is_file());
}
