//! Metrics, despite many connections that never ask for any.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::slow::daemon::house::*;

fn daemon() -> (Daemon, tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let at = folder.path().join("metrics");
    let daemon = Daemon::new(Wish {
        metrics: Some(at.to_str().unwrap().into()),
        ..Wish::default()
    });
    (daemon, folder, at)
}

#[test]
fn silent_ones_do_not_keep_others_from_the_metrics() {
    if !privileged() {
        return;
    }
    let (_daemon, _folder, at) = daemon();
    let mut silent: Vec<UnixStream> = Vec::new();
    for round in 0..4 {
        silent.extend((0..16).map(|_| UnixStream::connect(&at).unwrap()));
        let page = metrics(&at);
        assert_eq!(metric(&page, "domicile_connections"), 0, "round {round}");
    }
    // The first ones had to go, the last one may still ask.
    let mut first = silent.remove(0);
    assert_eq!(first.read(&mut [0; 16]).unwrap(), 0);
    let mut last = silent.pop().unwrap();
    last.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    last.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
}

#[test]
fn those_who_ask_and_do_not_read_do_not_either() {
    if !privileged() {
        return;
    }
    let (_daemon, _folder, at) = daemon();
    let _deaf: Vec<UnixStream> = (0..40)
        .map(|_| {
            let mut deaf = UnixStream::connect(&at).unwrap();
            // Again and again on one connection: answered once.
            let _ = deaf.write_all(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(100));
            deaf
        })
        .collect();
    metrics(&at);
}
