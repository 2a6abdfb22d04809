//! Runs that break off: how is said, with the line, and in the trace.
#![forbid(unsafe_code)]

use crate::workshop;

use std::path::Path;
use std::process::Command;

use capture::{Exit, Options, broke_off};
use workshop::{compile, tool};

const ILL: i32 = 4;

#[test]
fn a_crash_is_told_with_its_line_and_stays_with_the_trace() {
    let bench = compile("ends", &[]);
    let (outcome, trace) = bench.record(&["crash"]);
    let broke = outcome.broke.unwrap();
    assert!(
        broke.starts_with("the program was killed by signal 11 (SIGSEGV), at main (ends.c:"),
        "{broke}"
    );
    assert_eq!(broke_off(trace.header()), Some(&*broke));
    let (outcome, trace) = bench.record(&["code"]);
    assert_eq!(outcome.exit, Exit::Code(42));
    assert_eq!((outcome.broke, broke_off(trace.header())), (None, None));
    let mut old = trace.header().clone();
    old.origin = "record; the program ended with exit status 42".to_string();
    assert_eq!(broke_off(&old), None);
    old.origin += "; its process a (8) was killed by signal 11 (SIGSEGV)";
    assert!(broke_off(&old).is_some());
    let (outcome, trace) = bench.record(&[""]);
    assert_eq!((outcome.broke, broke_off(trace.header())), (None, None));
}

/// An instruction by its bytes, which every assembler knows, in a program that otherwise runs everywhere.
fn with_instruction(folder: &Path, bytes: &str) -> (capture::Outcome, trace::Trace) {
    let source = folder.join("odd.c");
    let text = format!(
        "volatile int data[100];\nint main(void)\n{{\n   for (int i = 0; i < 100; i++) data[i] = i;\n   __asm__ volatile(\".byte \
         {bytes}\" ::: \"xmm0\");\n   return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let program = folder.join("odd");
    let made = Command::new("gcc")
        .args(["-O1", "-g", "-o"])
        .args([&program, &source])
        .status();
    assert!(made.unwrap().success());
    let mut options = Options::new(&program, [] as [&str; 0], folder.join("odd.dtr"));
    options.tool = Some(tool());
    workshop::record(&options)
}

#[test]
fn an_instruction_that_valgrind_does_not_know_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    // vxorps %zmm0,%zmm0,%zmm0; sha1nexte %xmm1,%xmm0
    for (bytes, name) in [
        ("0x62,0xf1,0x7c,0x48,0x57,0xc0", "AVX-512"),
        ("0x0f,0x38,0xc8,0xc1", "SHA"),
    ] {
        let (outcome, trace) = with_instruction(folder.path(), bytes);
        assert_eq!(outcome.exit, Exit::Signal(ILL));
        let broke = outcome.broke.unwrap();
        let expected =
            format!("the program ended at an instruction of {name}, which Valgrind does not know, at main (odd.c:5): ");
        assert!(broke.starts_with(&expected), "{broke}");
        assert!(broke.contains("-march=x86-64-v3"), "{broke}");
        assert!(
            !outcome.notes.iter().any(|note| note.contains("valgrind:")),
            "{:?}",
            outcome.notes
        );
        assert!(trace.references() > 100);
    }
    // A program that ends itself so is none of Valgrind's business.
    let broke = with_instruction(folder.path(), "0x0f,0x0b").0.broke.unwrap();
    assert_eq!(broke, "the program was killed by signal 4 (SIGILL), at main (odd.c:5)");
}

#[test]
fn a_process_is_called_as_it_was_started() {
    let bench = compile("ends", &["-s"]);
    let link = bench.program.with_file_name("server");
    std::os::unix::fs::symlink("ends", &link).unwrap();
    let mut options = bench.options(&["code"]);
    options.program = link.into();
    let (outcome, trace) = workshop::record(&options);
    let names: Vec<_> = trace.modules().iter().map(|module| module.path.clone()).collect();
    assert!(names.iter().any(|name| name.ends_with("/server")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("/ends")), "{names:?}");
    // Code without a symbol has its file's name.
    let of_file = trace
        .locations()
        .iter()
        .filter(|location| location.function.contains("+0x"));
    let of_file: Vec<_> = of_file.map(|location| &location.function).collect();
    assert!(of_file.iter().any(|name| name.starts_with("server+0x")), "{of_file:?}");
    assert!(!of_file.iter().any(|name| name.starts_with("ends+0x")), "{of_file:?}");
    assert!(
        outcome
            .notes
            .iter()
            .any(|note| note.contains("/server has no debug information")),
        "{:?}",
        outcome.notes
    );
}
