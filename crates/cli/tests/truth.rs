//! `truth/run`: the pairs before and after a known change, on sizes that take no time.

use crate::house;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use house::Room;
use serde_json::Value;

fn truth(arguments: &[&str]) -> Output {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../truth/run");
    Command::new(run).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Whether there is what a small pair needs.
fn can_run() -> bool {
    harness::tool("python3") && harness::tool("gcc") && harness::tool("valgrind")
}

/// A list of pairs of `walk.c`: the last argument of each side is the size of the matrix.
fn pairs(room: &Room, sizes: &[(&str, u32, u32)]) -> PathBuf {
    let text: String = sizes
        .iter()
        .map(|(name, before, after)| {
            format!(
                "[[pair]]\nname = \"{name}\"\nkind = \"walk order\"\nwhose = \"ours\"\nof = \"C\"\nsource = \"walk.c\"\n\
                 before = [\"{{program}}\", \"columns\", \"{before}\"]\nafter = [\"{{program}}\", \"rows\", \"{after}\"]\n\n"
            )
        })
        .collect();
    room.file("pairs.toml", &text).into()
}

#[test]
fn the_pairs_are_many_and_half_of_them_held_back() {
    if !harness::tool("python3") {
        return;
    }
    let counted = |set: &str| {
        let list = printed(&truth(&["--list", "--set", set]));
        let pairs: Vec<&str> = list.lines().skip(3).collect();
        assert_eq!(list.lines().next().unwrap(), format!("{} pairs", pairs.len()));
        let foreign = pairs.iter().filter(|pair| pair.contains(" foreign: ")).count();
        (pairs.len(), foreign)
    };
    let (all, foreign) = counted("all");
    let (build, held) = (counted("build").0, counted("held").0);
    assert!(all >= 25 && foreign >= 10, "{all} pairs, {foreign} by others");
    assert_eq!(build + held, all);
    assert!(build.abs_diff(held) <= all / 4, "{build} and {held}");
}

#[test]
fn small_pairs_are_measured_predicted_and_printed() {
    if !can_run() {
        return;
    }
    let room = Room::new();
    let list = pairs(&room, &[("small", 300, 300), ("smaller", 150, 150)]);
    let out = room.path("out");
    let common = ["--pairs", list.to_str().unwrap(), "--out", &out, "--rounds", "2"];
    let simulated = [
        "--machine",
        "clovertown-x5355",
        "--domicile",
        env!("CARGO_BIN_EXE_domicile"),
    ];
    let table = printed(&truth(&[&common[..], &simulated].concat()));
    let row = table
        .lines()
        .find(|line| line.trim_start().starts_with("small "))
        .unwrap();
    assert!(row.contains("walk order") && row.contains("ours: C"), "{row}");
    assert!(table.contains("all: 2 pairs, 2 predicted"), "{table}");
    // A miss says which side misses.
    let missed = table.lines().filter(|line| line.ends_with(" no")).count();
    let sides = table.lines().filter(|line| line.contains(": before ")).count();
    assert!(sides >= missed, "{table}");
    let kept = std::fs::read_to_string(Path::new(&out).join("truth.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    for name in ["small", "smaller"] {
        let one = &kept["results"][name];
        assert_eq!(one["measured"]["seconds"]["before"].as_array().unwrap().len(), 2);
        // The window is that of the work: each of four passes reads each element once, and little else.
        let size = if name == "small" { 300 } else { 150 };
        let references = one["predicted"]["references"]["before"].as_u64().unwrap();
        assert!(
            (4 * size * size..5 * size * size).contains(&references),
            "{name}: {references}"
        );
    }
}

#[test]
fn a_pair_that_prints_other_results_is_refused_and_the_others_go_on() {
    if !can_run() {
        return;
    }
    let room = Room::new();
    let list = pairs(&room, &[("unlike", 150, 160), ("like", 150, 150)]);
    let out = room.path("out");
    let ended = truth(&[
        "--pairs",
        list.to_str().unwrap(),
        "--out",
        &out,
        "--rounds",
        "1",
        "--measure-only",
    ]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("unlike: before and after print other results"), "{said}");
    let table = String::from_utf8_lossy(&ended.stdout);
    assert!(table.contains("all: 1 pairs"), "{table}");
    assert!(
        table.contains("unlike: failed: unlike: before and after print"),
        "{table}"
    );
}
