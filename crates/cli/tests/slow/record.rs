//! `record` on real programs, through Valgrind.

use crate::house;

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
    let (_, said) = output(&["record", "--force", "--from", "", "-o", &trace, "--", "true"], 2);
    assert!(said.contains("--from"), "{said}");
}

/// 300 lines of 64 bytes before `work`, and 500 within it.
const STAGES: &str = "#include <unistd.h>\nstatic volatile char block[1 << 16];\n\
    __attribute__((noinline)) void touch(int lines) { for (int i = 0; i < lines; i++) block[64 * i] = 1; }\n\
    __attribute__((noinline)) void work(void) { touch(500); }\n\
    int main(int count, char **words) { touch(300); work(); if (count > 1) for (;;) touch(9); return count - 1; }\n";

fn stages(room: &Room, strip: bool) -> String {
    let source = room.file("stages.c", STAGES);
    let program = room.path("stages");
    let flags: &[&str] = if strip { &["-O1", "-s"] } else { &["-O1"] };
    let compiled = Command::new("gcc").args(flags).args(["-o", &program, &source]).status();
    assert!(compiled.unwrap().success());
    program
}

#[test]
fn recording_begins_at_a_function() {
    let room = Room::new();
    let program = stages(&room, false);
    let trace = room.path("stages.trace");
    let references = |options: &[&str]| {
        let arguments = [
            &["record", "--force", "--json", "-o", &trace],
            options,
            &["--", &program],
        ]
        .concat();
        json(&arguments).last().unwrap()["references"].as_u64().unwrap()
    };
    let (all, main, work) = (
        references(&[]),
        references(&["--from", "main"]),
        references(&["--from", "work"]),
    );
    // Code after main returns is recorded, too; the dynamic linker is not.
    assert!((800..all - 10_000).contains(&main), "{main} of {all}");
    assert!((300..=310).contains(&(main - work)), "{work} of {main}");
    let windows = ["--from", "main", "--window", "100", "--windows", "4"];
    assert_eq!(references(&[&windows[..], &["--warm", "0"]].concat()), 400);
    let warmed = references(&windows);
    assert!((401..2000).contains(&warmed), "{warmed}");
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert_eq!(info["header"]["chosen"]["from"], "main");
    // Without symbols, the program's entry tells where main is.
    stages(&room, true);
    assert_eq!(references(&["--from", "main"]), main);

    let arguments = ["record", "--force", "-o", &trace, "--from", "nobody", "--", &program];
    let (_, said) = output(&arguments, 1);
    assert!(said.contains("no process entered `nobody`"), "{said}");
    let arguments = ["advise", "--json", "--from", "nobody", "--", &program];
    let (_, said) = output(&arguments, 1);
    assert!(said.contains("no process entered `nobody`"), "{said}");
}

#[test]
fn a_recording_ends_when_its_time_is_up_and_the_program_with_it() {
    let room = Room::new();
    let program = stages(&room, false);
    let trace = room.path("stages.trace");
    let arguments = [
        "record",
        "-o",
        &trace,
        "--from",
        "main",
        "--duration",
        "500ms",
        "--",
        &program,
        "forever",
    ];
    let (_, said) = output(&arguments, 0);
    assert!(said.contains("recording ended after 0.5 seconds"), "{said}");
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert!(info["references"].as_u64() > Some(1000));
    assert_eq!(info["header"]["chosen"]["duration_ms"], 500);
}

/// The data that it made before it blocked is less than a part that the tool hands over.
#[test]
fn a_program_that_blocks_at_its_beginning_keeps_nobody_waiting() {
    let room = Room::new();
    let trace = room.path("sleep.trace");
    let begin = ["--from", "main"];
    let words = |options: &[&str]| {
        let words = [
            &["record", "--force", "-o", &trace][..],
            &begin,
            options,
            &["--", "sleep", "1000"],
        ]
        .concat();
        output(&words, 0).1
    };
    let said = words(&["--duration", "300ms"]);
    assert!(said.contains("recording ended after 0.3 seconds"), "{said}");
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert!(info["references"].as_u64() > Some(0), "{info}");
    let words = [
        "advise", "--json", "--budget", "1s", "--from", "nobody", "--", "sleep", "1000",
    ];
    let (_, said) = output(&words, 1);
    assert!(said.contains("no process entered `nobody`"), "{said}");
}

/// A run that fits the budget is simulated whole, and its gain is one figure.
#[test]
fn a_budget_takes_nothing_from_a_short_run() {
    let room = Room::new();
    let program = stages(&room, false);
    let advise = |options: &[&str]| {
        let words = [
            &["advise", "--json", "--machine", "zen3-milan"],
            options,
            &["--", &program],
        ]
        .concat();
        json(&words).remove(0)
    };
    let (all, within) = (advise(&["--from", "main"]), advise(&["--budget", "20s"]));
    assert_eq!(all["trace"]["references"], within["trace"]["references"]);
    assert!(within["policies"][0].get("windows").is_none());
    assert_eq!(within["trace"]["part"], "from main on");
}

#[test]
fn an_advice_keeps_to_its_budget() {
    let room = Room::new();
    let program = stages(&room, false);
    let counted = |advice: &serde_json::Value| {
        advice["policies"][0]["windows"]["counted"]
            .as_array()
            .map_or(0, Vec::len)
    };
    // The number depends on the speed of simulations here: a machine that others keep busy needs longer for the
    // same.
    let advices = ["2s", "10s", "50s"].map(|budget| {
        let arguments = ["advise", "--json", "--budget", budget, "--", &program, "forever"];
        move || json(&arguments).remove(0)
    });
    let advice = advices
        .iter()
        .map(|advise| advise())
        .find(|advice| counted(advice) >= 4)
        .unwrap();
    let notes = advice["notes"].to_string();
    let verdict = advice["verdict"].as_str().unwrap();
    let windows = counted(&advice);
    assert!(windows <= 20, "{windows}");
    assert!(
        verdict.contains(&format!("Rests on {windows} windows with")),
        "{verdict}"
    );
    assert!(
        verdict.contains("that the program made while it was recorded"),
        "{verdict}"
    );
    assert!(verdict.contains("with 95% confidence"), "{verdict}");
    assert!(notes.contains(&format!("{windows} windows of")), "{notes}");
    assert!(notes.contains("the program was ended with it"), "{notes}");
    // The test itself ended it.
    assert_eq!(advice.get("broke"), None);
    let (_, said) = output(&["advise", "--budget", "2s", "x.trace"], 2);
    assert!(said.contains("--budget"), "{said}");
    let (_, said) = output(&["advise", "--budget", "1ns", "--", "true"], 2);
    assert!(said.contains("too short to record anything"), "{said}");
}

#[test]
fn numbers_have_units() {
    let room = Room::new();
    let trace = room.path("n.trace");
    let arguments = [
        "record", "--json", "-o", &trace, "--skip", "1K", "--window", "2e3", "--", "true",
    ];
    assert_eq!(json(&arguments)[0]["references"], 2000);
    for (option, wrong, why) in [
        ("--window", "2GiB", "is no number"),
        ("--skip", "1.5", "does not come out whole"),
        ("--duration", "5 minutes", "is no time"),
        ("--windows", "5e9", "too large"),
    ] {
        let (_, said) = output(
            &["record", option, wrong, "--window", "1", "-o", &trace, "--", "true"],
            2,
        );
        assert!(said.contains(why), "{option} {wrong}: {said}");
    }
    let said = output(&["record", "--window", "1M0", "-o", &trace, "--", "true"], 2).1;
    assert!(said.contains("\"1M0\" is no number") && said.contains("100M"), "{said}");
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
