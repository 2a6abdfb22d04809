//! Recording from `main`, however a program was built and whatever its language calls it.
#![forbid(unsafe_code)]

use crate::workshop;

use std::path::{Path, PathBuf};
use std::process::Command;

use capture::{Options, Outcome};
use trace::Trace;
use workshop::{stream, tool};

/// What `begins` reads in its main.
const DATA: usize = 100;

/// Builds `begins.<kind>`; `None` where there is no such compiler.
fn built(folder: &Path, kind: &str, words: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(kind);
    let program = folder.join("program");
    // What was there is another program's, and mapped by nobody.
    let _ = std::fs::remove_file(&program);
    let (compiler, options) = words.split_first().unwrap();
    let made = Command::new(compiler)
        .current_dir(folder)
        .env("GOCACHE", folder.join("cache"))
        .env("GOFLAGS", "")
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output();
    match made {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            harness::not_installed(format_args!("there is no {compiler}"));
            None
        }
        made => {
            let made = made.unwrap();
            assert!(
                made.status.success(),
                "{words:?}: {}",
                String::from_utf8_lossy(&made.stderr)
            );
            Some(program)
        }
    }
}

fn record(program: &Path, from: Option<&str>) -> (Outcome, Trace) {
    let mut options = Options::new(program, [] as [&str; 0], program.with_extension("dtr"));
    options.tool = Some(tool());
    options.from = from.map(str::to_string);
    workshop::record(&options)
}

/// Recorded from main there is less than all, nothing of what leads to it, and no word of a lack.
fn begins_at_main(program: &Path, how: &str) {
    let (outcome, all) = record(program, None);
    assert_eq!(outcome.exit.code(), 0, "{how}");
    let (outcome, trace) = record(program, Some("main"));
    assert_eq!((outcome.exit.code(), &outcome.failure), (0, &None), "{how}");
    assert!(
        !outcome.notes.iter().any(|note| note.contains("main")),
        "{how}: {:?}",
        outcome.notes
    );
    let (few, many) = (trace.references(), all.references());
    assert!(few >= DATA as u64 && few < many, "{how}: {few} of {many}");
    // The linker and the C library's start come before it. Its first instruction is in the program.
    let (refs, _) = stream(&trace, 0);
    let pc = trace.sites()[refs[0].site as usize].pc;
    let name = program.file_name().unwrap().to_str().unwrap();
    let inside = |module: &&trace::Module| pc >= module.start && pc < module.start + module.bytes;
    let module = trace.modules().iter().find(inside);
    assert!(
        module.is_some_and(|module| module.path.ends_with(name)),
        "{how}: {pc:#x} in {module:?}"
    );
}

/// What main is called, and where its file says so.
fn all_ways(source: &str, ways: &[&[&str]]) {
    let folder = tempfile::tempdir().unwrap();
    for words in ways {
        let Some(program) = built(folder.path(), source, words) else {
            return;
        };
        begins_at_main(&program, &words.join(" "));
    }
}

#[test]
fn of_programs_in_c_in_all_forms() {
    let ways = [
        &["gcc", "-O1"][..],
        &["gcc", "-O1", "-s"],
        &["gcc", "-O1", "-no-pie"],
        &["gcc", "-O1", "-no-pie", "-s"],
        &["gcc", "-O1", "-static"],
        &["gcc", "-O1", "-static", "-s"],
        &["gcc", "-O1", "-static-pie"],
        &["gcc", "-O1", "-static-pie", "-s"],
        // The code at the entry loads main's address from a table then.
        &["gcc", "-O1", "-s", "-Wl,--no-relax"],
        // Where the dynamic linker lies lower.
        &["gcc", "-O1", "-no-pie", "-s", "-Wl,-Ttext-segment=0x20000000"],
    ];
    all_ways("begins.c", &ways);
}

/// LLVM's linker, which is Rust's, begins the code in the page of the file in which what is read ends.
#[test]
fn of_programs_in_rust() {
    let ways = [
        &["rustc", "-O"][..],
        &["rustc", "-O", "-Cstrip=symbols"],
        &["rustc", "-O", "-Clinker-features=-lld"],
    ];
    all_ways("begins.rs", &ways);
}

#[test]
fn of_programs_in_fortran() {
    all_ways(
        "begins.f90",
        &[
            &["gfortran", "-O1"],
            &["gfortran", "-O1", "-s"],
            &["gfortran", "-O1", "-static", "-s"],
        ],
    );
}

#[test]
fn of_programs_in_go() {
    all_ways(
        "begins.go",
        &[
            &["go", "build"],
            &["go", "build", "-ldflags=-s -w"],
            &["go", "build", "-buildmode=pie", "-ldflags=-s -w"],
        ],
    );
}

/// The script's interpreter, and then the program, each at its own main.
#[test]
fn of_programs_that_a_script_starts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path(), "begins.c", &["gcc", "-O1"]) else {
        return;
    };
    let script = folder.path().join("script");
    harness::write_program(&script, &format!("#!/bin/sh\n{} && exit 0\n", program.display()));
    let (outcome, trace) = record(&script, Some("main"));
    assert_eq!((outcome.exit.code(), outcome.failure), (0, None));
    let programs: Vec<_> = trace
        .processes()
        .iter()
        .map(|process| process.program.clone())
        .collect();
    let last = trace.threads().len() - 1;
    assert!(programs.last().unwrap().ends_with("program"), "{programs:?}");
    assert!(trace.thread_references(last as u32) >= DATA as u64 && trace.thread_references(0) > 0);
}

#[test]
fn where_there_is_no_main_it_begins_at_the_entry_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["gcc", "-O1", "-nostdlib", "-static", "-fno-stack-protector"];
    let Some(program) = built(folder.path(), "bare.c", &flags) else {
        return;
    };
    let (outcome, trace) = record(&program, Some("main"));
    assert_eq!((outcome.exit.code(), &outcome.failure), (0, &None));
    assert!(trace.references() >= DATA as u64);
    let said = outcome.notes.iter().find(|note| note.contains("`main`")).unwrap();
    assert!(said.contains("from its entry on"), "{said}");
    // Another function is not made up.
    let mut options = Options::new(&program, [] as [&str; 0], folder.path().join("nobody.dtr"));
    options.tool = Some(tool());
    options.from = Some("nobody".to_string());
    let _turn = workshop::alone();
    let outcome = capture::record(&options, &mut |_| {}).unwrap();
    assert!(outcome.failure.unwrap().contains("no process entered `nobody`"));
}
