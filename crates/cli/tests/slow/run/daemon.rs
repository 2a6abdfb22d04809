//! A daemon that dies: programs that have slots go on, by the library in C and by a plan.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::slow::run::workshop::Workshop;

/// `domicile daemon`, which dies with the test.
struct Daemon {
    folder: tempfile::TempDir,
    child: Child,
}

impl Daemon {
    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Ready to serve; none (counted) where this user may not run one.
    fn start() -> Option<Daemon> {
        if !sys::frames::Pagemap::own_numbers_visible() {
            harness::not_allowed("frame numbers are hidden: there is no daemon");
            return None;
        }
        // TMPDIR may be too long a path for a socket.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let child = Daemon::served(folder.path());
        Some(Daemon { folder, child })
    }

    fn served(folder: &std::path::Path) -> Child {
        let notify = folder.join("notify");
        let _ = std::fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify).unwrap();
        ready.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_domicile"))
            .args(["daemon", "--stock", "32M", "--socket"])
            .arg(folder.join("socket"))
            .env("DOMICILE_COLORS", "force:12:4:65536")
            .env("NOTIFY_SOCKET", &notify)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        ready.recv(&mut [0; 64]).unwrap();
        child
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn again(&mut self) {
        self.child = Daemon::served(self.folder.path());
    }

    /// Connections to it, as it says.
    fn clients(&self) -> u64 {
        let mut status = Command::new(env!("CARGO_BIN_EXE_domicile"));
        status
            .args(["--json", "daemon", "status", "--socket"])
            .arg(self.socket());
        let status: serde_json::Value = serde_json::from_slice(&status.output().unwrap().stdout).unwrap();
        status["clients"].as_u64().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command, daemon: &Daemon) -> Program {
        let mut child = command
            .env("DOMICILE_SOCKET", daemon.socket())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Program {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The number of allocations so far, none of which failed.
    fn done(&mut self) -> u64 {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (done, rest) = line.split_once(" done, ").unwrap_or_else(|| panic!("it said {line:?}"));
        assert!(rest.starts_with("0 failed"), "{line}");
        done.parse().unwrap()
    }

    /// Waits for more of them.
    fn goes_on(&mut self) {
        let begun = self.done();
        for _ in 0..6000 {
            if self.done() > begun + 20 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not go on: {} allocations", self.done());
    }

    /// Waits for its end; returns its output.
    fn ends(mut self) -> String {
        drop(self.input.take());
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

/// Waits until the program asks the daemon again. A block that was freed may be used again without a word, and a daemon
/// that did not answer is left alone for half a minute at most.
fn comes_back(program: &mut Program, daemon: &Daemon) {
    let last = Instant::now() + Duration::from_secs(120);
    while daemon.clients() == 0 {
        assert!(Instant::now() < last, "it did not come back");
        program.goes_on();
    }
}

/// Allocations go on through two deaths of the daemon, and come to it again.
fn outlives(program: &mut Program, daemon: &mut Daemon) {
    program.goes_on();
    for _ in 0..2 {
        assert!(daemon.clients() > 0);
        daemon.kill();
        program.goes_on();
        daemon.again();
        comes_back(program, daemon);
    }
    daemon.kill();
    program.goes_on();
}

#[test]
fn a_program_in_c_goes_on_without_the_daemon_and_finds_the_next_one() {
    let Some(mut daemon) = Daemon::start() else { return };
    let shop = Workshop::new();
    let Some(program) = shop.linked("served.c", &["-O1"]) else {
        return;
    };
    let mut command = Command::new(program);
    let mut program = Program::start(command.env("DOMICILE_COLORS", "force:12:4:65536"), &daemon);
    outlives(&mut program, &mut daemon);
    program.ends();
}

#[test]
fn a_daemon_that_hangs_is_waited_for_now_and_then() {
    let Some(mut daemon) = Daemon::start() else { return };
    let shop = Workshop::new();
    let Some(program) = shop.linked("served.c", &["-O1"]) else {
        return;
    };
    let mut command = Command::new(program);
    let mut program = Program::start(command.env("DOMICILE_COLORS", "force:12:4:65536"), &daemon);
    program.goes_on();
    sys::signals::send(daemon.child.id(), 19).unwrap();
    // Each of these would else take as long as an answer may take.
    program.goes_on();
    program.goes_on();
    sys::signals::send(daemon.child.id(), 18).unwrap();
    comes_back(&mut program, &daemon);
    daemon.kill();
    program.ends();
}

#[test]
fn a_plan_goes_on_without_the_daemon_and_says_so() {
    let Some(mut daemon) = Daemon::start() else { return };
    let shop = Workshop::new();
    let Some(program) = shop.linked("served.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let plan = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n\
                [[data]]\nsite = \"heap: grab\"\nslot = \"a\"\n";
    let plan = shop.file("plan.toml", plan);
    let words = [program.to_str().unwrap(), "by a plan"];
    let mut command = shop.command(&[], &["--slots", plan.to_str().unwrap()], &words);
    let mut program = Program::start(&mut command, &daemon);
    outlives(&mut program, &mut daemon);
    let said = program.ends();
    let notes = said.lines().filter(|line| line.contains("daemon: ")).count();
    assert!(notes == 1 && said.contains("are this process's own"), "{said}");
}

#[test]
fn the_library_takes_no_descriptors_of_the_program_for_its_own() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("kept.c", &["-O1"]) else {
        return;
    };
    let daemon = Daemon::start();
    for how in ["closefrom", "loop"] {
        for served in [false, true] {
            let nowhere = PathBuf::from("/nonexistent/socket");
            let socket = daemon.as_ref().filter(|_| served).map_or(nowhere, Daemon::socket);
            let mut command = Command::new(&program);
            command.arg(how).env("DOMICILE_COLORS", "force:12:4:65536");
            let ran = command.env("DOMICILE_SOCKET", socket).output().unwrap();
            let printed = String::from_utf8_lossy(&ran.stdout);
            assert_eq!((&*printed, ran.status.code()), ("done\n", Some(0)), "{how}, {served}");
        }
    }
}
