//! `demo/run`: the demonstration of `make demo` once all is built. Its quick part has less work, and measures nothing
//! beforehand.

use crate::house::Room;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn demo(room: &Room, arguments: &[&str]) -> std::process::Output {
    Command::new(root().join("demo/run"))
        .args(arguments)
        .env("DOMICILE", env!("CARGO_BIN_EXE_domicile"))
        .env("DEMO_OUT", room.path("out"))
        .env("XDG_CACHE_HOME", room.path("cache"))
        .output()
        .unwrap()
}

#[test]
fn the_demonstration_goes_from_the_culprit_to_the_clock() {
    if !(harness::tool("gcc") && harness::tool("valgrind")) {
        return;
    }
    let room = Room::new();
    let shown = demo(&room, &["--quick"]);
    let said = String::from_utf8_lossy(&shown.stderr);
    assert_eq!(shown.status.code(), Some(0), "{said}");
    let printed = String::from_utf8(shown.stdout).unwrap();
    // The list of things to do has numbers, too: the first part goes up to the patch.
    let (screen, rest) = printed.split_once("\n2. The advice followed").unwrap();
    let (patch, rest) = rest.split_once("\n3. The time").unwrap();
    let (verified, debian) = rest.split_once("\n4. A program").unwrap();
    let culprit = "for (struct event *event = by_time[0]; event; event = event->next)";
    let source = std::fs::read_to_string(root().join("demo/events.c")).unwrap();
    let line = source.lines().position(|line| line.trim() == culprit).unwrap() + 2;
    let first = format!("\n1. events.c:{line} waits for heap: receive (events.c:");
    assert!(screen.contains(&first) && screen.contains("DO "), "{printed}");
    assert!(
        patch.contains("\n+++ demo/events-together.c") && patch.contains("memcpy"),
        "{printed}"
    );
    assert!(
        verified.contains("predicted: ") && verified.contains("measured: "),
        "{printed}"
    );
    assert!(
        debian.contains("sed s/memory/MEMORY/") && debian.contains(" references"),
        "{printed}"
    );
    // The patch makes the second program of the first, and both print the same.
    let out = PathBuf::from(room.path("out"));
    let prints = |name: &str| Command::new(out.join(name)).output().unwrap().stdout;
    assert_eq!(prints("events"), prints("events-together"));
    assert!(!prints("events").is_empty());
}

#[test]
fn the_demonstration_takes_no_other_word() {
    let room = Room::new();
    let refused = demo(&room, &["--fast"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("usage: demo/run"));
    assert!(refused.stdout.is_empty());
}
