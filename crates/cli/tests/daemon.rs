//! The verb `daemon` from start to end. As root it serves; as anybody else it says what it needs.

mod house;

use std::process::{Command, Stdio};
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
fn it_serves_until_it_is_told_to_stop() {
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
        return skips::not_allowed("frames are shown to root only");
    }
    let mut told = [0; 64];
    let bytes = notify.recv(&mut told).unwrap();
    assert_eq!(&told[..bytes], b"READY=1");
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
