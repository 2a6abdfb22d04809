//! Signals, and ends: the program gets the signals sent to `domicile run`, which stops and ends as the program does,
//! and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sys::signals::send;

use crate::slow::run::workshop::Workshop;

/// A run in progress, and the program's output.
struct Going {
    run: Child,
    lines: BufReader<ChildStdout>,
    /// The program's number.
    program: u32,
}

impl Going {
    fn start(shop: &Workshop, by: &[&str], program: &Path) -> Going {
        let mut command = shop.command(by, &["--policy", "cdpc", "--align", "no"], &[program.to_str().unwrap()]);
        let mut run = command
            .env("TMPDIR", folder(shop))
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let program = first.trim().strip_prefix("process ").map(|number| number.parse());
        Going {
            run,
            lines,
            program: program.unwrap_or_else(|| panic!("the program said {first:?}")).unwrap(),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    fn send(&self, number: i32) {
        send(self.run.id(), number).unwrap();
    }

    /// The state of a process as the kernel names it; none if it is gone.
    fn state(process: u32) -> Option<char> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        text.rsplit(") ").next()?.chars().next()
    }

    /// Waits for something that comes about soon, or never.
    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came about: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The folder of the run's temporary files.
fn folder(shop: &Workshop) -> PathBuf {
    let folder = shop.path("temporary");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn left_behind(shop: &Workshop) -> usize {
    std::fs::read_dir(folder(shop)).unwrap().count()
}

#[test]
fn every_signal_is_the_programs() {
    let shop = Workshop::new();
    let Some(program) = shop.program("signals.c", &["-O1"]) else {
        return;
    };
    // In the background of a shell some of them would be ignored, and stay so.
    let mut going = Going::start(&shop, &["env", "--default-signal"], &program);
    // From SIGHUP to SIGSYS, but for those that cannot be caught, stop, or are about children.
    let sent = (1..=31)
        .filter(|number| ![9, 15, 17, 19, 20].contains(number))
        .chain([40, 64]);
    for number in sent {
        going.send(number);
        assert_eq!(going.line(), number.to_string());
    }
    let arguments = ["send", &going.run.id().to_string(), "41", "-5"].map(str::to_string);
    assert!(Command::new(&program).args(arguments).status().unwrap().success());
    assert_eq!(going.line(), "41 with -5");
    going.send(15);
    assert_eq!(going.line(), "15");
    assert_eq!(going.run.wait().unwrap().code(), Some(7));
    assert_eq!(left_behind(&shop), 0);
}

#[test]
fn a_program_that_a_signal_ends_is_not_orphaned() {
    let shop = Workshop::new();
    for number in [10, 12, 14, 34] {
        let sleep = shop.path("sleep");
        harness::write_program(&sleep, "#!/bin/sh\necho process $$\nexec sleep 1000\n");
        let mut going = Going::start(&shop, &[], &sleep);
        going.send(number);
        assert_eq!(going.run.wait().unwrap().code(), Some(128 + number));
        assert_eq!(Going::state(going.program), None);
        assert_eq!(left_behind(&shop), 0);
    }
}

#[test]
fn what_was_ignored_stays_ignored() {
    let shop = Workshop::new();
    let Some(program) = shop.program("signals.c", &["-O1"]) else {
        return;
    };
    let mut going = Going::start(&shop, &["sh", "-c", "trap '' HUP CHLD; exec \"$@\"", "sh"], &program);
    going.send(1);
    going.send(10);
    assert_eq!(going.line(), "10");
    going.send(15);
    assert_eq!(going.line(), "15");
    assert_eq!(going.run.wait().unwrap().code(), Some(7));
}

#[test]
fn it_stops_and_goes_on_with_the_program() {
    let shop = Workshop::new();
    let Some(program) = shop.program("signals.c", &["-O1"]) else {
        return;
    };
    let mut going = Going::start(&shop, &[], &program);
    let both = [going.run.id(), going.program];
    // As somebody else does it to the command, and as the terminal does it to both.
    for to in [vec![going.run.id()], both.to_vec(), vec![going.program]] {
        for process in to {
            send(process, 20).unwrap();
        }
        Going::until("both stopped", || {
            both.iter().all(|one| Going::state(*one) == Some('T'))
        });
        going.send(18);
        assert_eq!(going.line(), "18");
        Going::until("both go on", || both.iter().all(|one| Going::state(*one) != Some('T')));
    }
    going.send(15);
    assert_eq!(going.line(), "15");
    assert_eq!(going.run.wait().unwrap().code(), Some(7));
}

#[test]
fn who_kills_the_command_kills_the_program_and_the_next_run_sweeps_up() {
    let shop = Workshop::new();
    let Some(program) = shop.program("signals.c", &["-O1"]) else {
        return;
    };
    let mut going = Going::start(&shop, &[], &program);
    let beside = Going::start(&shop, &[], &program);
    assert_eq!(left_behind(&shop), 2);
    going.send(9);
    going.run.wait().unwrap();
    Going::until("the program is gone", || {
        Going::state(going.program).is_none_or(|state| state == 'Z')
    });
    assert_eq!(left_behind(&shop), 2);
    let next = Going::start(&shop, &[], &program);
    assert_eq!(left_behind(&shop), 2, "the folders of those that go on");
    for mut one in [beside, Going { run: next.run, ..next }] {
        one.send(15);
        assert_eq!(one.run.wait().unwrap().code(), Some(7));
    }
    assert_eq!(left_behind(&shop), 0);
}

#[test]
fn the_exit_status_is_the_programs_wherever_the_report_goes() {
    let shop = Workshop::new();
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let unread = || {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        Stdio::from(write)
    };
    for (code, script) in [(0, "exit 0"), (3, "exit 3"), (128 + 9, "kill -9 $$")] {
        for stderr in [full(), unread()] {
            let mut command = shop.command(&[], &["--policy", "cdpc"], &["sh", "-c", script]);
            assert_eq!(command.stderr(stderr).status().unwrap().code(), Some(code), "{script}");
        }
        for stdout in [full(), unread()] {
            let mut command = shop.command(&[], &["--policy", "cdpc", "--report", "-"], &["sh", "-c", script]);
            let status = command.stdout(stdout).stderr(Stdio::null()).status().unwrap();
            assert_eq!(status.code(), Some(code), "{script}");
        }
    }
    // A program that cannot be started makes no difference, even if the complaint cannot be
    // written.
    let mut command = shop.command(&[], &["--policy", "cdpc"], &["/no/such/program"]);
    assert_eq!(command.stderr(full()).status().unwrap().code(), Some(1));
}

/// With `--quiet` the only note printed is that nothing was placed; a file has the report all the
/// same.
#[test]
fn quiet_is_quiet() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &["-O1", "-fopenmp"]) else {
        return;
    };
    let report = shop.path("report.txt");
    let options = ["--quiet", "--policy", "cdpc", "--report", report.to_str().unwrap()];
    let command = [program.to_str().unwrap(), "static"];
    for (options, written) in [(&options[..3], false), (&options[..], true)] {
        let output = shop.command(&[], options, &command).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{options:?}");
        assert_eq!(report.exists(), written);
    }
    assert!(
        std::fs::read_to_string(&report)
            .unwrap()
            .contains("arrays in 2 parallel loops")
    );
    let mut passive = shop.command(&[], &options[..3], &["/bin/true"]);
    let passive = passive
        .env("DOMICILE_PRELOAD", shop.file("none.so", ""))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&passive.stderr).contains("nothing was placed"));
}
