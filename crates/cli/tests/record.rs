//! `record` on real programs, through Valgrind.

mod house;

use std::process::Command;

use house::{Room, domicile, json, output};

#[test]
fn the_programs_output_and_exit_code_pass_through() {
    let room = Room::new();
    let trace = room.path("p.trace");
    let run = |script: &str| {
        let output = domicile(&["record", "--force", "-o", &trace, "--", "sh", "-c", script])
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, said) = run("echo hello; echo there >&2; exit 7");
    assert_eq!((code, out.as_str()), (Some(7), "hello\n"));
    assert!(said.starts_with("there\n") && said.contains("references in"), "{said}");
    let (code, _, _) = run("kill -TERM $$");
    assert_eq!(code, Some(128 + 15));
    assert!(json(&["trace", "info", &trace, "--json"])[0]["references"].as_u64() > Some(1000));
}

#[test]
fn the_programs_input_is_ours() {
    let room = Room::new();
    let trace = room.path("sort.trace");
    let mut sort = domicile(&["record", "-o", &trace, "--", "sort"]);
    let output = sort.write_stdin("b\na\n").output().unwrap();
    assert_eq!(output.stdout, b"a\nb\n");
}

#[test]
fn a_recording_reports_what_it_did() {
    let room = Room::new();
    let trace = room.path("true.trace");
    let done = &json(&["record", "--json", "-o", &trace, "--", "true"])[0];
    assert_eq!(done["exit_code"], 0);
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert_eq!(info["references"], done["references"]);
    assert_eq!(info["instructions"], done["instructions"]);
    assert!(info["header"]["program"].as_str().unwrap().ends_with("true"));
}

#[test]
fn prefetches_and_teams_are_reported() {
    let room = Room::new();
    let source = room.file(
        "hints.c",
        "#include <stdlib.h>\nint main(void) { char *block = calloc(64, 64); long sum = 0;\n\
         _Pragma(\"omp parallel for num_threads(2) reduction(+:sum)\")\n\
         for (int i = 0; i < 64; i++) { __builtin_prefetch(block + 64 * i); sum += block[64 * i]; }\n\
         return sum != 0; }\n",
    );
    let program = room.path("hints");
    let compiled = Command::new("gcc")
        .args(["-O1", "-fopenmp", "-o", &program, &source])
        .status();
    assert!(compiled.unwrap().success());
    let trace = room.path("hints.trace");
    for (options, prefetches) in [(&["--prefetches"][..], 64), (&[], 0)] {
        let arguments = [&["record", "--force", "-o", &trace], options, &["--", &program]].concat();
        output(&arguments, 0);
        let info = &json(&["trace", "info", &trace, "--json"])[0];
        assert_eq!(info["prefetches"], prefetches);
        assert_eq!(info["teams"], 1);
    }
}

#[test]
fn windows_limit_what_is_recorded() {
    let room = Room::new();
    let trace = room.path("window.trace");
    let done = &json(&[
        "record",
        "--json",
        "--skip",
        "1000",
        "--window",
        "5000",
        "-o",
        &trace,
        "--",
        "sort",
        "/dev/null",
    ]);
    let done = done.last().unwrap();
    assert_eq!(done["references"], 5000);
    let (_, said) = output(&["record", "--window", "0", "-o", &trace, "--", "true"], 2);
    assert!(said.contains("--window"), "{said}");
}

#[test]
fn failures_of_the_recording_are_reported() {
    let room = Room::new();
    let (_, said) = output(&["record", "-o", &room.path("x"), "--", "/no/such/program"], 1);
    assert!(said.starts_with("domicile: cannot run /no/such/program"), "{said}");
    let (_, said) = output(&["record", "-o", "/no/such/folder/x.trace", "--", "true"], 1);
    assert!(said.contains("/no/such/folder/x.trace"), "{said}");
    let without = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args(["record", "-o", &room.path("y"), "--", "true"])
        .env("DOMICILE_VALGRIND_LIB", room.folder())
        .output()
        .unwrap();
    assert_eq!(without.status.code(), Some(1));
    let said = String::from_utf8(without.stderr).unwrap();
    assert!(
        said.contains("tool is not built") && said.contains("make -C capture/valgrind"),
        "{said}"
    );
}
