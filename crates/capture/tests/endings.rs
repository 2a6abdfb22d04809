//! However the program ends, its output and exit code are its own and the trace can be read.
#![forbid(unsafe_code)]

use crate::workshop;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capture::Exit;
use trace::{Event, Op, Trace};
use workshop::{compile, events, filled, recorder, touches, unfinished};

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

#[test]
fn exit_codes_and_signals_pass_through() {
    let bench = compile("ends", &[]);
    for (how, exit) in [
        ("", Exit::Code(0)),
        ("code", Exit::Code(42)),
        ("crash", Exit::Signal(SIGSEGV)),
        ("abort", Exit::Signal(SIGABRT)),
        ("kill", Exit::Signal(SIGKILL)),
    ] {
        let (outcome, trace) = bench.record(&[how]);
        assert_eq!(outcome.exit, exit, "{how}");
        assert_eq!(outcome.failure, None);
        filled(&trace);
        assert_eq!(events(&trace).last(), Some(&(0, Event::Exit)), "{how}");
    }
    assert_eq!(Exit::Signal(SIGSEGV).code(), 139);
}

#[test]
fn children_and_what_they_become_are_followed() {
    let (outcome, trace) = compile("ends", &[]).record(&["fork"]);
    assert_eq!(outcome.exit, Exit::Code(0));
    let processes = trace.processes();
    assert_eq!(processes.len(), 3, "{processes:?}");
    assert_eq!(processes[1].parent, Some(0));
    assert_eq!(processes[2].parent, Some(1));
    assert_eq!(processes[1].pid, processes[2].pid);
    assert_eq!(processes[2].arguments, ["code"]);
    let order: Vec<_> = events(&trace)
        .into_iter()
        .filter(|(_, e)| matches!(e, Event::Spawn { .. } | Event::Join { .. } | Event::Exit))
        .collect();
    // Who was spawned when is the kernel's affair; the child becomes another, which is waited for.
    assert!(order.contains(&(0, Event::Spawn { child: 1 })), "{order:?}");
    assert!(order.contains(&(1, Event::Spawn { child: 2 })), "{order:?}");
    let place = |wanted| order.iter().position(|e| *e == wanted).unwrap();
    assert!(place((2, Event::Exit)) < place((0, Event::Join { child: 2 })));
    // The forked child goes on in the parent's code.
    assert_eq!(
        touches(&trace, 1, "data")
            .iter()
            .filter(|(op, ..)| *op != Op::Read)
            .count(),
        100
    );
}

#[test]
fn children_can_be_left_alone() {
    let bench = compile("ends", &[]);
    let mut options = bench.options(&["fork"]);
    options.follow_children = false;
    let (outcome, trace) = workshop::record(&options);
    assert_eq!(outcome.exit, Exit::Code(0));
    // The fork is one of the same program; what it becomes runs as ever.
    assert!(trace.processes().iter().all(|p| p.arguments == ["fork"]));
}

#[test]
fn output_and_input_are_the_programs_own() {
    let bench = compile("ends", &[]);
    let recorder = recorder(&bench.folder.path().join("echo.dtr"));
    let mut child = Command::new(recorder.0)
        .args(recorder.1)
        .arg(&bench.program)
        .arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "to stderr\n");
}

#[test]
fn much_output_passes_through() {
    let bench = compile("ends", &[]);
    let recorder = recorder(&bench.folder.path().join("flood.dtr"));
    let output = Command::new(recorder.0)
        .args(recorder.1)
        .arg(&bench.program)
        .arg("flood")
        .output()
        .unwrap();
    let expected: String = (0..200_000).map(|i| format!("line {i}\n")).collect();
    assert!(output.stdout == expected.as_bytes(), "{} bytes", output.stdout.len());
}

/// Unix sockets have short paths; folders for temporary files may have long ones.
#[test]
fn temporary_files_may_lie_deep() {
    let bench = compile("ends", &[]);
    let deep = bench.folder.path().join("deep".repeat(40));
    std::fs::create_dir(&deep).unwrap();
    let path = bench.folder.path().join("deep.dtr");
    let recorder = recorder(&path);
    let status = Command::new(recorder.0)
        .args(recorder.1)
        .arg(&bench.program)
        .arg("code")
        .env("TMPDIR", &deep)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(42));
    filled(&Trace::open(&path).unwrap());
    assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0, "what was made is gone");
}

/// The dynamic linker divides the list of what to preload at spaces and colons.
#[test]
fn the_tool_may_lie_in_a_folder_of_any_name() {
    let bench = compile("ends", &[]);
    let built = bench.folder.path().join("a: b c");
    std::fs::create_dir(&built).unwrap();
    for file in std::fs::read_dir(workshop::tool()).unwrap() {
        let file = file.unwrap();
        std::os::unix::fs::symlink(file.path(), built.join(file.file_name())).unwrap();
    }
    let output = Command::new(recorder(&built).0)
        .arg("--quiet")
        .arg("-o")
        .arg(bench.folder.path().join("any.dtr"))
        .arg("--")
        .arg(&bench.program)
        .arg("code")
        .env("DOMICILE_VALGRIND_LIB", &built)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Ctrl-C from a terminal goes to the program and the recorder alike; sent to the recorder alone it
/// is passed on. Either way the program ends and the trace is finished.
#[test]
fn an_interrupted_recording_can_be_read() {
    let bench = compile("ends", &[]);
    let path = bench.folder.path().join("wait.dtr");
    let recorder = recorder(&path);
    // Who starts the tests in the background may have them ignore interrupts, which programs inherit.
    let mut child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(recorder.0)
        .args(recorder.1)
        .arg(&bench.program)
        .arg("wait")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Until the program is at work, beyond its beginning, however slow the machine is.
    let under_way = || std::fs::metadata(unfinished(&path)).is_ok_and(|m| m.len() > 4096);
    let begun = Instant::now();
    while !under_way() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "the program is never at work"
        );
        assert_eq!(child.try_wait().unwrap(), None, "the program ended by itself");
        std::thread::sleep(Duration::from_millis(25));
    }
    sys::signals::send(child.id(), 2).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(128 + 2),
        "the program's end, reported by the recorder: {status}"
    );
    let trace = Trace::open(&path).unwrap();
    assert!(trace.damage().is_empty());
    filled(&trace);
    assert!(!unfinished(&path).exists());
}

/// When the recorder is gone the program runs on and ends as it would have.
#[test]
fn the_program_outlives_the_recorder() {
    let bench = compile("ends", &[]);
    let path = bench.folder.path().join("flood.dtr");
    let recorder = recorder(&path);
    let mut child = Command::new(recorder.0)
        .args(recorder.1)
        .arg(&bench.program)
        .arg("flood")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut first = [0; 8];
    std::io::Read::read_exact(&mut output, &mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut output, &mut rest).unwrap();
    assert!(rest.ends_with(b"line 199999\n"));
    // What was written before can be salvaged, and its name says what it is.
    assert!(!path.exists());
    let _ = Trace::salvage(unfinished(&path)).unwrap();
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let bench = compile("ends", &[]);
    let mut options = bench.options(&["code"]);
    options.output = "/dev/full".into();
    let _turn = workshop::alone();
    match capture::record(&options, &mut |_| {}) {
        Ok(outcome) => {
            assert_eq!(outcome.exit, Exit::Code(42));
            let failure = outcome.failure.unwrap();
            assert!(failure.contains("cannot write"), "{failure}");
        }
        Err(e) => assert!(e.to_string().contains("cannot write"), "{e}"),
    }
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let bench = compile("ends", &[]);
    let _turn = workshop::alone();
    let fails = |change: &dyn Fn(&mut capture::Options)| {
        let mut options = bench.options(&[]);
        change(&mut options);
        capture::record(&options, &mut |_| {}).unwrap_err().to_string()
    };
    assert!(fails(&|o| o.program = "no-such-program".into()).contains("no such program"));
    assert!(fails(&|o| o.program = "/etc/passwd".into()).contains("not an executable"));
    assert!(fails(&|o| o.window = Some(0)).contains("window of 0"));
    assert!(fails(&|o| o.windows = 5).contains("--window"));
    assert!(fails(&|o| o.tool = Some("/nowhere".into())).contains("not built"));
    assert!(fails(&|o| o.output = "/nonexistent/x.dtr".into()).contains("/nonexistent"));
}
