//! `compare` of commands, and `advise --verify`, through Valgrind.

use crate::house;

use std::path::Path;
use std::process::Command;

use house::{Room, output};
use serde_json::Value;

/// A program that sums a matrix by rows or by columns.
pub fn walk(room: &Room) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/walk.c");
    let program = room.path("walk");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-o", &program])
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
    program
}

#[test]
fn two_commands_are_recorded_and_compared() {
    let room = Room::new();
    let program = walk(&room);
    let [columns, rows, neither] = ["columns", "rows", ""].map(|how| format!("'{program}' {how}"));
    let machine = ["--machine", "westmere-x5660", "--from", "main"];
    let compared = |before: &str, after: &str, more: &[&str], code| {
        output(&[&["compare", before, after], &machine[..], more].concat(), code)
    };
    let (out, said) = compared(&rows, &columns, &["--json", "--fail-if", "misses(L1D) > +20%"], 3);
    assert!(said.contains(&format!("before: the command `{rows}`")), "{said}");
    assert!(said.contains("misses(L1D) > +20% is met"), "{said}");
    let comparison: Value = serde_json::from_str(&out).unwrap();
    for side in ["before", "after"] {
        assert_eq!(comparison[side]["kind"], "command");
        assert_eq!(comparison[side]["recordings"], 2);
    }
    assert_eq!(comparison["time"]["verdict"], "worse", "{comparison}");
    let mut lines = comparison["source_lines"].as_array().unwrap().iter();
    let worse = lines.find(|line| line["time_ns"]["verdict"] == "worse").unwrap();
    assert_eq!(worse["name"], "walk.c:19");
    assert_eq!(worse["function"], "main");
    let mut causes = comparison["causes"].as_array().unwrap().iter();
    let worse = causes.find(|cause| cause["name"] == "walks-across").unwrap();
    assert_eq!(
        (&worse["structure"], &worse["time_ns"]["before"]),
        (&"grid".into(), &0.into())
    );
    // A spread among recordings of one program is no difference.
    let (text, _) = compared(&rows, &rows, &["--fail-if", "time > +1%"], 0);
    assert!(text.contains("; noise "), "{text}");
    let (_, said) = compared(&rows, &neither, &["--recordings", "1"], 1);
    assert!(
        said.contains("is not compared: ") && said.contains("status 7"),
        "{said}"
    );
}

#[test]
fn a_change_is_predicted_and_measured() {
    let room = Room::new();
    let program = walk(&room);
    let result = room.path("result.json");
    let advised = |changed: &str, code| {
        let arguments = ["advise", "--force", "--output", &result, "--policy", "random"];
        let verified = [
            "--machine",
            "zen3-milan",
            "--verify",
            changed,
            "--",
            &program,
            "columns",
        ];
        output(&[&arguments[..], &verified].concat(), code)
    };
    let changed = format!("'{program}' rows");
    let (_, said) = advised(&changed, 0);
    assert!(said.contains("predicted: ") && said.contains("measured: "), "{said}");
    let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let advice = read();
    let verified = &advice["verified"];
    assert_eq!(verified["command"], changed);
    assert!(verified["rounds"].as_array().unwrap().len() >= 3, "{verified}");
    assert_eq!(
        verified["predicted"]["before_ns"],
        advice["policies"][0]["time_ns"]["wall"]
    );
    let note = verified["notes"].to_string();
    assert!(
        note.contains("for zen3-milan") && verified["agrees"].is_boolean(),
        "{verified}"
    );
    let (shown, _) = output(&["report", &result], 0);
    assert!(shown.contains(&format!("Verified: {changed}")), "{shown}");
    // The advice is there all the same.
    let (_, said) = advised(&program, 1);
    assert!(
        said.contains("the change is not verified: ") && said.contains("status 7"),
        "{said}"
    );
    assert!(read().get("verified").is_none());
}

/// A walk by columns comes to another page with each step, and this TLB does not hold them.
#[test]
fn huge_pages_are_simulated_where_the_changed_command_asks_for_them() {
    let room = Room::new();
    let program = walk(&room);
    let result = room.path("result.json");
    let changed = format!("env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 '{program}' columns");
    let machine = ["--policy", "random", "--machine", "westmere-x5660"];
    let advise = [
        &["advise", "--output", &result, "--verify", &changed],
        &machine[..],
        &["--", &program, "columns"],
    ];
    output(&advise.concat(), 0);
    let advice: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let verified = &advice["verified"];
    assert!(
        verified["notes"].to_string().contains("is simulated on them"),
        "{verified}"
    );
    assert!(verified["predicted"]["saved"].as_f64().unwrap() > 0.2, "{verified}");
}
