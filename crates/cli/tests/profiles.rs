//! `domicile report --format`: results become profiles that other viewers open.

use serde_json::Value;

use crate::house::{Room, output};

/// A program whose `find` has a caller that waits and one that does not, recorded. Each address depends on the earlier
/// reads (`sum % 2` is 0), so that each miss is waited for, and the few samples of a recording are enough.
const PROGRAM: &str = r#"
#include <stdlib.h>
static char small[64], large[64 << 20];
__attribute__((noinline)) static long find(char *at) { return *(volatile char *)at; }
__attribute__((noinline)) static long warm(long i) { return find(small + i % 64) + 1; }
__attribute__((noinline)) static long cold(long i) { return find(large + i * 4096 % sizeof large) + 1; }
int main(void) { long sum = 0; for (long i = 0; i < 40000; i++) sum += warm(i) + cold(i + sum % 2); return sum == 7; }
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
    // The profile has all the stall of the result's lines, except for rounding.
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let lines = value["source_lines"].as_array().unwrap();
    let waited: u64 = lines.iter().map(|line| line["stall_ns"].as_u64().unwrap()).sum();
    let sum: u64 = folded
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(waited.abs_diff(sum) * 1000 < waited, "{sum} of {waited} ns");
}

/// A program whose child waits for `other` in functions whose stacks were known before the fork.
const FORKING: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
static char mine[16 << 20], other[16 << 20];
__attribute__((noinline)) static long find(char *at) { return *(volatile char *)at; }
__attribute__((noinline)) static long walk(char *array) {
    long sum = 0;
    for (long i = 0; i < 40000; i++) sum += find(array + i * 4096 % sizeof mine);
    return sum;
}
__attribute__((noinline)) static long both(void) {
    pid_t child = 0;
    long sum = 0;
    for (int turn = 0; turn < 2; turn++) {
        sum += walk(turn && !child ? other : mine);
        if (!turn) child = fork();
    }
    return child ? waitpid(child, 0, 0) < 0 : sum == 7;
}
int main(void) { return both(); }
"#;

#[test]
fn a_forked_child_has_its_callers() {
    let room = Room::new();
    let source = room.file("forks.c", FORKING);
    let (program, trace) = (room.path("forks"), room.path("forks.dtr"));
    let built = std::process::Command::new("gcc")
        .args(["-O1", "-g", "-o", &program, &source])
        .status();
    assert!(built.unwrap().success());
    output(&["record", "-o", &trace, "--", &program], 0);
    let (folded, _) = output(
        &["report", &simulated(&room, &trace), "--format", "folded", "-o", "-"],
        0,
    );
    let of_child = |line: &&str| line.contains(";find (forks.c:5);[other]");
    let lines: Vec<&str> = folded.lines().filter(of_child).collect();
    assert!(!lines.is_empty(), "{folded}");
    for line in lines {
        assert!(line.contains("main;both;walk;find"), "{line}");
    }
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
        // An existing file is not overwritten.
        let (_, refused) = output(&["report", &result, "--format", form, "-o", &place], 1);
        assert!(refused.contains("exists") && refused.contains("--force"), "{refused}");
        output(&["report", &result, "--format", form, "-o", &place, "--force"], 0);
    }
    // Tables of an earlier result do not remain among those of this one.
    let older = room.path("parquet/pages.parquet");
    std::fs::write(&older, "older").unwrap();
    let place = room.path("parquet");
    output(&["report", &result, "--format", "parquet", "-o", &place, "--force"], 0);
    assert!(!std::path::Path::new(&older).exists());
    // Folders that nobody named are numbered, as files are.
    for name in ["domicile-profile.parquet", "domicile-profile-2.parquet"] {
        let mut command = crate::house::domicile(&["report", &result, "--format", "parquet"]);
        let run = command.current_dir(room.folder()).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        assert!(room.folder().join(name).is_dir(), "{name}");
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
    refused(&[&plain, "--format", "folded", "--top", "3"], 2, "leave it out");
    refused(&[&plain, "--format", "folded", "--details"], 2, "leave it out");
    refused(&[&plain, "--format", "parquet", "-o", "-"], 2, "a folder");
    let result = simulated(&room, &trace);
    refused(&[&result, "--format", "folded", "--value", "avoided"], 1, "avoid");
    refused(
        &[&result, "--format", "folded", "-o", &result, "--force"],
        2,
        "same file",
    );
}

#[test]
fn a_profile_goes_through_a_pipe() {
    let room = Room::new();
    let result = simulated(&room, &room.trace("small.dtr", "0 r 1000 4\n0 w 2000 4\n"));
    let (straight, _) = output(&["report", &result, "--format", "folded", "-o", "-"], 0);
    let piped = crate::house::domicile(&["report", "-", "--format", "folded", "-o", "-"])
        .pipe_stdin(&result)
        .unwrap()
        .output()
        .unwrap();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert_eq!(String::from_utf8_lossy(&piped.stdout), straight);
}

#[test]
fn a_source_that_is_a_pipe_is_not_read() {
    let room = Room::new();
    let pipe = room.path("pipe.c");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let trace = room.trace("small.dtr", "0 r 1000 4\n0 w 2000 4\n");
    let result = room.path("advice.json");
    output(&["advise", &trace, "--machine", "zen3-milan", "-o", &result], 0);
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    for outcome in value["policies"].as_array_mut().unwrap() {
        outcome["source_lines"] =
            serde_json::json!([{"function": "f", "file": pipe, "line": 1, "stall_ns": 10, "caches": []}]);
    }
    let saved = room.file("named.json", &value.to_string());
    let page = room.path("page.html");
    output(&["report", &saved, "--html", &page], 0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("it is no file"));
}
