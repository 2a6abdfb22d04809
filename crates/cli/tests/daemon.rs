//! The verb `daemon` from start to end. As root it serves; as another user it names the rights that
//! it needs.

use crate::house;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use house::{Room, output};
use serde_json::Value;

#[test]
fn wrong_options_tell_what_would_be_right() {
    let (_, said) = output(&["daemon", "--metrics", "0.0.0.0:9464"], 2);
    assert!(said.contains("other machines") && said.contains("127.0.0.1"), "{said}");
    let (_, said) = output(&["daemon", "--stock", "lots"], 2);
    assert!(said.contains("512M"), "{said}");
    let (_, said) = output(&["daemon", "--stock", "1G", "status"], 2);
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn what_belongs_to_homes_is_refused_without_them_and_the_other_way_round() {
    for (arguments, part) in [
        (&["daemon", "--homes"][..], "--pid"),
        (&["daemon", "--pid", "1"], "--homes"),
        (&["daemon", "--interval", "1s"], "add `--homes`"),
        (
            &["daemon", "--homes", "--pid", "1", "--stock", "1G"],
            "cannot be used with",
        ),
        (
            &["daemon", "--homes", "--pid", "1", "--cgroup", "x"],
            "cannot be used with",
        ),
        (
            &["daemon", "--homes", "--pid", "1", "--policy", "first-touch"],
            "migrate-replicate",
        ),
        (&["daemon", "--homes", "--pid", "1", "--interval", "1ms"], "10ms to 1h"),
        (
            &["daemon", "--homes", "--pid", "1", "--set", "migrate.trigger=0"],
            "migrate.trigger",
        ),
        (
            &["daemon", "--homes", "--pid", "1", "--set", "migrate.none=0"],
            "no parameter `none`",
        ),
        (
            &["daemon", "--homes", "--pid", "1", "--set", "migrate.gain=100"],
            "settings `gain` and `adapt` of policy `migrate` weigh what misses and moves take",
        ),
        (
            &[
                "run",
                "--policy",
                "migrate-replicate",
                "--set",
                "migrate-replicate.adapt=10",
                "--",
                "true",
            ],
            "leave them out",
        ),
    ] {
        let (_, said) = output(arguments, 2);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_machine_with_one_node_has_nowhere_to_move_pages_to() {
    if sys::nodes::nodes(&sys::Root::default()).is_ok_and(|nodes| nodes.len() > 1) {
        return harness::not_here("the machine has several memory nodes");
    }
    let room = Room::new();
    let (mine, log) = (std::process::id().to_string(), room.path("log"));
    for arguments in [
        &["daemon", "--homes", "--pid", &mine, "--observations", &log][..],
        &["run", "--policy", "migrate", "--observations", &log, "--", "true"],
    ] {
        let (out, said) = output(arguments, 1);
        assert!(out.is_empty() && said.contains("one memory node"), "{said}");
    }
    // The refused run left no file behind.
    assert!(!Path::new(&log).exists());
}

#[test]
fn without_a_daemon_the_status_says_how_to_start_one() {
    let room = Room::new();
    let (out, said) = output(&["daemon", "status", "--socket", &room.path("none")], 1);
    assert!(out.is_empty());
    assert!(
        said.contains("no daemon answers") && said.contains("domicile daemon"),
        "{said}"
    );
}

#[test]
fn a_socket_whose_folder_is_missing_is_neither_found_nor_made() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("missing/s");
    let domicile = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_domicile"))
            .args(arguments)
            .env("DOMICILE_COLORS", "force:12:4:65536")
            .env("DOMICILE_SOCKET", &socket)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(1));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = domicile(&["daemon", "status"]);
    assert!(
        said.contains("no daemon answers") && said.contains("missing/s"),
        "{said}"
    );
    let said = domicile(&["daemon", "--stock", "16M"]);
    let wanted = match sys::frames::Pagemap::own_numbers_visible() {
        true => "missing/s is missing; make it",
        false => "CAP_SYS_ADMIN",
    };
    assert!(said.contains(wanted), "{said}");
    assert!(!folder.path().join("missing").exists());
}

#[test]
fn it_serves_until_a_signal_stops_it() {
    // TMPDIR may be too long a path for a socket.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (socket, metrics) = (path("socket"), path("metrics"));
    let notify = std::os::unix::net::UnixDatagram::bind(path("notify")).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args([
            "daemon",
            "--socket",
            &socket,
            "--metrics",
            &metrics,
            "--stock",
            "16M",
            "--quota",
            "25%",
            "--log",
            "json",
        ])
        .env("DOMICILE_COLORS", "force:12:4:65536")
        .env("NOTIFY_SOCKET", path("notify"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !sys::frames::Pagemap::own_numbers_visible() {
        let done = daemon.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1));
        assert!(said.contains("CAP_SYS_ADMIN"), "{said}");
        return harness::not_allowed("frames are shown to root only");
    }
    let mut state = [0; 64];
    let bytes = notify.recv(&mut state).unwrap();
    assert_eq!(&state[..bytes], b"READY=1");
    let begun = Instant::now();
    let status: Value = loop {
        let (out, _) = output(&["--json", "daemon", "status", "--socket", &socket], 0);
        let status: Value = serde_json::from_str(&out).unwrap();
        if status["frames"]["at_hand"].as_u64() >= Some(4096) || begun.elapsed() > Duration::from_secs(60) {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status["frames"]["at_hand"].as_u64() >= Some(4096), "{status}");
    assert_eq!(status["frames"]["target"], 4096);
    assert_eq!(status["process"], daemon.id());
    assert_eq!(status["clients"], 0);
    assert_eq!(status["quota_bytes"], 4 << 20);
    assert_eq!(status["colors"]["source"], "forced");
    assert_eq!(status["frames"]["by_color"].as_array().unwrap().len(), 16);
    let (text, _) = output(&["daemon", "status", "--socket", &socket], 0);
    assert!(
        text.contains("16 of 64 KiB") && text.contains("a user may hold 4.0 MiB"),
        "{text}"
    );

    sys::signals::send(daemon.id(), 15).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    for gone in [&socket, &metrics] {
        assert!(!std::path::Path::new(gone).exists(), "{gone} was left behind");
    }
    let mut log = String::new();
    std::io::Read::read_to_string(&mut daemon.stderr.take().unwrap(), &mut log).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines
            .iter()
            .any(|line| line["message"] == "serving" && line["colors"] == 16),
        "{log}"
    );
    assert_eq!(lines.last().unwrap()["message"], "stopping");
}

/// A daemon in a folder of its own, whose log goes to `log`.
struct Served {
    folder: tempfile::TempDir,
    child: Child,
}

impl Served {
    fn socket(&self) -> String {
        self.folder.path().join("socket").to_str().unwrap().into()
    }

    /// Returns its status, if it answers.
    fn status(&self) -> Value {
        let (out, _) = output(&["--json", "daemon", "status", "--socket", &self.socket()], 0);
        serde_json::from_str(&out).unwrap()
    }

    fn send(&self, signal: i32) {
        sys::signals::send(self.child.id(), signal).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None` if frames cannot be seen, so that there can be no daemon.
fn serve(log: Stdio) -> Option<Served> {
    if !sys::frames::Pagemap::own_numbers_visible() {
        harness::not_allowed("frames are shown to root only");
        return None;
    }
    // TMPDIR may be too long a path for a socket.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let notify = std::os::unix::net::UnixDatagram::bind(folder.path().join("notify")).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // In the background of a shell, or under `nohup`, the tests inherit these signals as ignored.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP,INT", env!("CARGO_BIN_EXE_domicile")])
        .args(["daemon", "--verbose", "--stock", "16M", "--socket"])
        .arg(folder.path().join("socket"))
        .env("DOMICILE_COLORS", "force:12:4:65536")
        .env("NOTIFY_SOCKET", folder.path().join("notify"))
        .stderr(log)
        // Signals of the terminal are for the test.
        .process_group(0);
    let child = command.spawn().unwrap();
    assert_eq!(notify.recv(&mut [0; 64]).unwrap(), "READY=1".len());
    Some(Served { folder, child })
}

#[test]
fn a_log_that_cannot_be_written_is_no_reason_to_end() {
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let left = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for log in [full(), left()] {
        let Some(mut daemon) = serve(log) else { return };
        for _ in 0..5 {
            assert_eq!(daemon.status()["process"], daemon.child.id());
        }
        daemon.send(15);
        assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_log_that_nobody_reads_keeps_nobody_waiting() {
    let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
    // The writer sends as much as the pipe takes.
    writer.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut writer, &[b'x'; 4096]).is_ok() {}
    while std::io::Write::write(&mut writer, b"x").is_ok() {}
    writer.set_nonblocking(false).unwrap();
    let Some(mut daemon) = serve(Stdio::from(std::os::fd::OwnedFd::from(writer))) else {
        return;
    };
    for _ in 0..5 {
        assert_eq!(daemon.status()["process"], daemon.child.id());
    }
    daemon.send(15);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
    drop(reader);
}

#[test]
fn sighup_changes_nothing() {
    let Some(mut daemon) = serve(Stdio::piped()) else {
        return;
    };
    for _ in 0..3 {
        daemon.send(1);
        assert_eq!(daemon.status()["process"], daemon.child.id());
    }
    daemon.send(2);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
    assert!(!Path::new(&daemon.socket()).exists());
    let mut log = String::new();
    std::io::Read::read_to_string(&mut daemon.child.stderr.take().unwrap(), &mut log).unwrap();
    assert!(log.contains("SIGHUP") && log.contains("stopping"), "{log}");
}

#[test]
fn the_doctor_knows_a_daemon_that_answers_from_one_that_does_not() {
    let Some(daemon) = serve(Stdio::null()) else { return };
    let judged = || {
        let mut doctor = house::domicile(&["doctor", "--json"]);
        let done = doctor.env("DOMICILE_SOCKET", daemon.socket()).output().unwrap();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let all = report["facilities"].as_array().unwrap().iter();
        let one: Vec<&Value> = all.filter(|facility| facility["facility"] == "daemon").collect();
        assert_eq!(one.len(), 1, "{report}");
        one[0].clone()
    };
    let there = judged();
    assert_eq!(there["works"], "yes", "{there}");
    assert!(there["found"].as_str().unwrap().contains("answers at"), "{there}");
    // Stopped, it listens and does not answer.
    daemon.send(19);
    let mute = judged();
    assert_eq!(mute["works"], "no", "{mute}");
    assert!(mute["found"].as_str().unwrap().contains("did not answer"), "{mute}");
}

#[test]
fn the_service_is_started_again_whatever_ends_it_but_what_is_wrong_with_its_command_line() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../setup/systemd/domicile.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}"))
    };
    // A panic ends with 101, which is no signal: `on-abnormal` would not do.
    assert_eq!(value("Restart"), "on-failure");
    assert_eq!(value("RestartPreventExitStatus"), "2");
    // If it cannot start at all, systemd stops trying.
    assert!(value("StartLimitBurst").parse::<u32>().unwrap() <= 5);
    assert!(value("StartLimitIntervalSec").ends_with("min"));
}
