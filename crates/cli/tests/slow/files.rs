//! Files that results go to: refused in time, whole or not there, and nothing that was waited for is lost.

use crate::house;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use house::{Room, domicile, json, output};

const MACHINE: [&str; 4] = ["--machine", "simos-r4400", "--cpus", "1"];

fn trace(room: &Room) -> String {
    room.trace("t.trace", &"0 r 100000 4\n0 w 300000 4\n".repeat(1000))
}

/// The command with a machine that does not depend on this one.
fn on(arguments: &[&str]) -> Vec<String> {
    let (verb, rest) = arguments.split_first().unwrap();
    let words = [*verb].into_iter().chain(MACHINE).chain(rest.iter().copied());
    words.map(String::from).collect()
}

fn run(arguments: &[String], code: i32) -> (String, String) {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    output(&words, code)
}

#[test]
fn what_exists_is_written_over_by_force_alone() {
    let room = Room::new();
    let trace = trace(&room);
    let result = room.path("result.json");
    run(&on(&["advise", &trace, "-o", &result]), 0);
    let source = room.file("source.txt", "0 r 1000 4\n");
    let there = room.file("there", "precious");
    let writes: [Vec<String>; 7] = [
        on(&["advise", &trace, "-o", &there]),
        on(&[
            "advise",
            &trace,
            "-o",
            &room.path("other.json"),
            "--write-slots",
            &there,
        ]),
        on(&["simulate", &trace, "--policy", "cdpc", "--explain-hints", &there]),
        on(&["simulate", &trace, "--page-map", &there]),
        ["report", &result, "--html", &there].map(String::from).to_vec(),
        ["import", "--format", "text", &source, "-o", &there]
            .map(String::from)
            .to_vec(),
        ["record", "-o", &there, "--", "true"].map(String::from).to_vec(),
    ];
    for words in writes {
        let (_, said) = run(&words, 1);
        assert!(
            said.contains("there exists") && said.contains("--force"),
            "{words:?}: {said}"
        );
        assert_eq!(fs::read_to_string(&there).unwrap(), "precious", "{words:?}");
        let mut forced = words.clone();
        forced.insert(1, "--force".into());
        run(&forced, 0);
        if !words.contains(&"--write-slots".to_string()) {
            assert_ne!(fs::read(&there).unwrap(), b"precious", "{words:?}");
        }
        fs::write(&there, "precious").unwrap();
    }
    let partial = |name: &fs::DirEntry| name.file_name().to_string_lossy().contains(".partial");
    let left: Vec<_> = fs::read_dir(room.folder()).unwrap().flatten().filter(partial).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_result_that_nobody_named_finds_a_free_name() {
    let room = Room::new();
    let trace = trace(&room);
    for name in ["domicile-advice.json", "domicile-advice-2.json"] {
        let words = on(&["advise", &trace]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = domicile(&words).current_dir(room.folder()).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(said.contains(&format!("More: domicile report {name} ")), "{said}");
        assert!(Path::new(&room.path(name)).is_file());
    }
}

#[test]
fn what_cannot_be_written_is_refused_before_the_program_runs() {
    let room = Room::new();
    let ran = room.path("ran");
    let folder = room.folder();
    let folder = folder.to_str().unwrap();
    for place in ["/no/such/folder/result", folder, "/proc/result"] {
        for option in ["-o", "--write-slots", "--keep"] {
            let words = on(&["advise", option, place, "--", "touch", &ran]);
            let (out, said) = run(&words, 1);
            assert!(out.is_empty() && said.contains(place), "{option} {place}: {said}");
            assert!(!Path::new(&ran).exists(), "{option} {place}: the program was run");
        }
        output(&["record", "-o", place, "--", "touch", &ran], 1);
        assert!(!Path::new(&ran).exists(), "record {place}: the program was run");
    }
}

#[test]
fn tables_are_printed_even_if_the_file_fails() {
    let room = Room::new();
    let trace = trace(&room);
    let (out, said) = run(&on(&["advise", "--details", &trace, "-o", "/dev/full"]), 1);
    assert!(out.contains("Policies"), "{out}");
    assert!(!out.contains("More: domicile report"), "{out}");
    assert!(said.contains("/dev/full") && said.contains("No space left"), "{said}");
    let (out, said) = run(&on(&["advise", &trace, "-o", "/dev/full", "--json"]), 1);
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
    assert!(said.contains("/dev/full"), "{said}");
    let (out, _) = run(&on(&["simulate", &trace, "--page-map", "/dev/full"]), 1);
    assert!(out.contains("page-coloring"), "{out}");
}

#[test]
fn options_of_recording_go_without_a_trace_that_is_there() {
    let room = Room::new();
    let trace = trace(&room);
    let options: [&[&str]; 6] = [
        &["--window", "10"],
        &["--window", "10", "--windows", "2"],
        &["--skip", "0"],
        &["--fetches"],
        &["--no-pcs"],
        &["--no-children"],
    ];
    for option in options {
        let words = on(&[&["advise", &trace][..], option].concat());
        let (_, said) = run(&words, 2);
        assert!(said.contains(option[0]) && said.contains("recorded already"), "{said}");
    }
    // And the other way round.
    let (_, said) = run(&on(&["advise", "--salvage", "--", "true"]), 2);
    assert!(said.contains("--salvage"), "{said}");
    let (_, said) = run(&on(&["simulate", &trace, "--force"]), 2);
    assert!(said.contains("--force"), "{said}");
}

#[test]
fn a_damaged_trace_is_salvaged_where_the_error_says_so() {
    let room = Room::new();
    let mut text = String::new();
    for thread in 0..4 {
        for at in 0..60_000u64 {
            text += &format!("{thread} r {:x} 4\n", (at * 7919 + thread * 77_777) % 9_999_991);
        }
    }
    let trace = room.trace("t.trace", &text);
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0x5a);
    let damaged = room.path("damaged.trace");
    fs::write(&damaged, bytes).unwrap();
    for verb in ["simulate", "advise"] {
        let (_, said) = run(&on(&[verb, &damaged]), 1);
        assert!(said.contains("--salvage"), "{verb}: {said}");
        let (out, said) = run(&on(&[verb, &damaged, "--salvage", "--json"]), 0);
        let result: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        assert!(
            result.to_string().contains("damaged at byte") || said.contains("damaged at byte"),
            "{verb}"
        );
    }
}

#[test]
fn quiet_says_nothing_but_results_and_errors() {
    let room = Room::new();
    let (out, said) = output(&["record", "-q", "-o", &room.path("q.trace"), "--", "echo", "hello"], 0);
    assert_eq!((out.as_str(), said.as_str()), ("hello\n", ""));
    let (_, said) = output(&["--quiet", "simulate", "/no/such", "--machine", "simos-r4400"], 1);
    assert!(said.contains("/no/such"), "{said}");
    output(&["--no-progress", "trace", "info", &room.path("q.trace")], 0);
}

#[test]
fn a_recording_is_kept_and_named_when_what_follows_fails() {
    let room = Room::new();
    let scratch = room.folder().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let advise = |more: &[&str]| {
        let words = on(&[&["advise"][..], more, &["--", "true"]].concat());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = domicile(&words);
        command.env("TMPDIR", &scratch).current_dir(room.folder());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = advise(&["--from-phase", "never"]);
    assert_eq!(code, Some(1), "{said}");
    let kept = said.split("is kept in ").nth(1).unwrap().split(';').next().unwrap();
    assert!(json(&["trace", "info", kept, "--json"])[0]["references"].as_u64() > Some(1000));
    fs::remove_dir_all(Path::new(kept).parent().unwrap()).unwrap();
    // And nothing is left behind where all goes well.
    assert_eq!(advise(&[]).0, Some(0));
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn a_recording_is_kept_and_named_when_the_simulation_is_interrupted() {
    let room = Room::new();
    let scratch = room.folder().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let program = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo recorded";
    let mut advise = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_domicile")])
        .args(on(&["advise", "--", "sh", "-c", program]))
        .env("TMPDIR", &scratch)
        .current_dir(room.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The recording has ended when it can be read to its end.
    let begun = Instant::now();
    let recorded = || {
        let folder = fs::read_dir(&scratch)
            .unwrap()
            .flatten()
            .find(|entry| entry.path().is_dir())?;
        let trace = folder.path().join("advise.trace");
        let info = domicile(&["trace", "info", trace.to_str()?, "--json"]).output().ok()?;
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).ok()?;
        let whole = info["damage"].as_array().is_none_or(Vec::is_empty);
        (whole && info["references"].as_u64()? > 1000).then_some(trace)
    };
    let trace = loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "it was never recorded");
        assert!(
            advise.try_wait().unwrap().is_none(),
            "it ended before it could be interrupted"
        );
        if let Some(trace) = recorded() {
            break trace;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Command::new("kill")
        .args(["-INT", &advise.id().to_string()])
        .status()
        .unwrap();
    let mut said = String::new();
    advise.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let ended = advise.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(2), "{said}");
    assert!(
        said.contains("is kept in") && said.contains(trace.to_str().unwrap()),
        "{said}"
    );
    json(&["trace", "info", trace.to_str().unwrap(), "--json"]);
}

#[test]
fn one_file_is_not_for_two_things() {
    let room = Room::new();
    let trace = trace(&room);
    let text = fs::read(&trace).unwrap();
    let new = room.path("new");
    let twice: [Vec<String>; 5] = [
        on(&["advise", &trace, "-o", &trace, "--force"]),
        on(&["advise", &trace, "-o", &new, "--annotate", &new]),
        [
            &on(&["advise", "-o", &new, "--keep", &new])[..],
            &["--", "sh", "-c", "echo RAN"].map(String::from),
        ]
        .concat(),
        on(&[
            "simulate",
            &trace,
            "--policy",
            "cdpc",
            "--explain-hints",
            &trace,
            "--force",
        ]),
        on(&[
            "simulate",
            &trace,
            "--policy",
            "cdpc",
            "--explain-hints",
            &new,
            "--page-map",
            &new,
        ]),
    ];
    for words in twice {
        let (printed, said) = run(&words, 2);
        assert!(
            said.contains("are the same file") && printed.is_empty(),
            "{words:?}: {said}"
        );
    }
    assert_eq!(fs::read(&trace).unwrap(), text, "the trace is as it was");
    assert!(!Path::new(&new).exists());
    let (_, said) = output(&["record", "-o", "-", "--", "true"], 2);
    assert!(said.contains("name a file"), "{said}");
}
