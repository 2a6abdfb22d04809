//! `domicile report --format`: results become profiles that other viewers open.

use serde_json::Value;

use crate::house::{Room, output};

/// A program whose `find` is called by one who waits and by one who does not, recorded.
const PROGRAM: &str = r#"
#include <stdlib.h>
static char small[64], large[64 << 20];
__attribute__((noinline)) static long find(char *at) { return *(volatile char *)at; }
__attribute__((noinline)) static long warm(long i) { return find(small + i % 64) + 1; }
__attribute__((noinline)) static long cold(long i) { return find(large + i * 4096 % sizeof large) + 1; }
int main(void) { long sum = 0; for (long i = 0; i < 40000; i++) sum += warm(i) + cold(i); return sum == 7; }
"#;

fn recorded(room: &Room) -> String {
    let source = room.file("find.c", PROGRAM);
    let (program, trace) = (room.path("find"), room.path("find.dtr"));
    let built = std::process::Command::new("gcc")
        .args(["-O1", "-g", "-o", &program, &source])
        .status();
    assert!(built.unwrap().success());
    output(&["record", "-o", &trace, "--", &program], 0);
    trace
}

fn simulated(room: &Room, trace: &str) -> String {
    let (result, _) = output(
        &[
            "simulate",
            trace,
            "--machine",
            "zen3-milan",
            "--by",
            "stack,time,line",
            "--json",
        ],
        0,
    );
    room.file("result.json", &result)
}

#[test]
fn a_profile_says_which_caller_waits() {
    let room = Room::new();
    let result = simulated(&room, &recorded(&room));
    let (folded, _) = output(&["report", &result, "--format", "folded", "-o", "-"], 0);
    let of = |caller: &str| -> u64 {
        let stacks = folded
            .lines()
            .filter(|line| line.contains(&format!(";{caller};find (find.c:4)")));
        stacks
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    assert!(
        of("cold") > 100 * of("warm").max(1),
        "{} and {}:\n{folded}",
        of("cold"),
        of("warm")
    );
    // All is there that the lines of the result wait for, but for what rounding takes.
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let lines = value["source_lines"].as_array().unwrap();
    let waited: u64 = lines.iter().map(|line| line["stall_ns"].as_u64().unwrap()).sum();
    let sum: u64 = folded
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(waited.abs_diff(sum) * 1000 < waited, "{sum} of {waited} ns");
}

#[test]
fn each_form_is_written_and_says_what_opens_it() {
    let room = Room::new();
    let result = simulated(&room, &recorded(&room));
    let forms = [
        ("pprof", "go tool pprof"),
        ("folded", "inferno-flamegraph"),
        ("perfetto", "ui.perfetto.dev"),
        ("parquet", "duckdb"),
        ("callgrind", "kcachegrind"),
    ];
    for (form, viewer) in forms {
        let place = room.path(form);
        let (said, _) = output(&["report", &result, "--format", form, "-o", &place], 0);
        let last = said.lines().last().unwrap();
        assert!(last.contains(viewer) && last.contains(&place), "{said}");
        assert!(std::path::Path::new(&place).exists());
        // What is there is not written over.
        let (_, refused) = output(&["report", &result, "--format", form, "-o", &place], 1);
        assert!(refused.contains("exists") && refused.contains("--force"), "{refused}");
        output(&["report", &result, "--format", form, "-o", &place, "--force"], 0);
    }
}

#[test]
fn what_cannot_be_a_profile_says_why() {
    let room = Room::new();
    let trace = room.trace("small.dtr", "0 r 1000 4\n0 w 2000 4\n");
    let (plain, _) = output(&["simulate", &trace, "--machine", "zen3-milan", "--json"], 0);
    let plain = room.file("plain.json", &plain);
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let (_, said) = output(&[&["report"], arguments].concat(), code);
        assert!(said.contains(words), "{said}");
    };
    refused(&[&plain, "--format", "folded"], 1, "--by stack");
    refused(&[&plain, "--format", "perfetto"], 1, "--by time");
    refused(&[&plain, &plain, "--format", "folded"], 2, "one result");
    refused(&[&plain, "--format", "svg"], 2, "pprof");
    refused(&[&plain, "--format", "parquet", "-o", "-"], 2, "a folder");
    let result = simulated(&room, &trace);
    refused(&[&result, "--format", "folded", "--value", "avoided"], 1, "avoid");
    refused(
        &[&result, "--format", "folded", "-o", &result, "--force"],
        2,
        "same file",
    );
}
