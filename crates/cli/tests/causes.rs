//! Small programs, each with one defect: `advise` names the structure, the line and the cause, and says what to do. A
//! program without one gets no change proposed.

mod house;

use std::fs;
use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

/// A program of the folder `causes`, compiled and recorded.
struct Recorded {
    /// Its source's name, and the number of the line that says `here`.
    place: String,
    trace: String,
}

fn recorded(room: &Room, source: &str, arguments: &[&str]) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/causes").join(source);
    let text = fs::read_to_string(&path).expect("the source is there");
    let program = room.path("program");
    let (compiler, options): (&str, &[&str]) = match path.extension().and_then(|end| end.to_str()) {
        Some("c") => ("gcc", &["-O2", "-g", "-pthread"]),
        Some("cc") => ("g++", &["-O2", "-g"]),
        Some("f90") => ("gfortran", &["-O2", "-g"]),
        _ => ("rustc", &["-O", "-g"]),
    };
    let status = Command::new(compiler)
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&path)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{compiler} {source}");
    let trace = room.path("program.trace");
    output(&[&["record", "-o", &trace, "--", &program], arguments].concat(), 0);
    let line = text.lines().position(|line| line.contains(" here"));
    Recorded {
        place: format!("{source}:{}", line.map_or(0, |line| line + 1)),
        trace,
    }
}

fn advice(of: &Recorded, machine: &str) -> Value {
    json(&["advise", "--machine", machine, "--json", &of.trace]).remove(0)
}

fn causes(advice: &Value) -> &[Value] {
    advice["causes"].as_array().map_or(&[], Vec::as_slice)
}

/// The cause of this kind.
fn of_kind<'a>(advice: &'a Value, kind: &str) -> &'a Value {
    let found = causes(advice).iter().find(|cause| cause["kind"] == kind);
    found.unwrap_or_else(|| panic!("{kind} is missing: {:#}", advice["causes"]))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn a_matrix_walked_across_its_rows_is_to_be_walked_along_them() {
    let room = Room::new();
    let program = recorded(&room, "across.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "walks-across");
    assert_eq!(cause["structure"], "grid", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    let evidence = &cause["evidence"];
    assert_eq!(evidence["step_bytes"], 531 * 8, "{cause:#}");
    assert!(number(&evidence["used_bytes"]) < 16.0, "{cause:#}");
    assert!(number(&evidence["used_by_it_bytes"]) > 56.0, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("interchange")),
        "{cause:#}"
    );
    let kept = room.path("advice.json");
    let (said, _) = output(
        &["advise", "--machine", "westmere-x5660", "-o", &kept, &program.trace],
        0,
    );
    for part in [
        "Why, and what to do",
        "grid: walks-across",
        "steps of 4248 bytes",
        "interchange the loops",
    ] {
        assert!(said.contains(part), "`{part}` is missing:\n{said}");
    }
    let lines = said.lines().skip_while(|line| !line.starts_with("Why, and what to do"));
    for line in lines.take_while(|line| !line.is_empty()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn columns_of_a_power_of_two_are_to_be_padded() {
    let room = Room::new();
    let program = recorded(&room, "power.f90", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "power-of-two");
    // gfortran numbers the variables of a main program.
    assert!(
        cause["structure"].as_str().is_some_and(|name| name.starts_with("a.")),
        "{cause:#}"
    );
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    let evidence = &cause["evidence"];
    assert_eq!(
        (&evidence["step_bytes"], &evidence["power_of_two"]),
        (&4096.into(), &4096.into()),
        "{cause:#}"
    );
    assert!(
        number(&evidence["sets_covered"]) * 8.0 <= number(&evidence["sets"]),
        "{cause:#}"
    );
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("4096 to 4160")),
        "{cause:#}"
    );
}

#[test]
fn elements_of_which_one_field_is_used_are_to_be_split() {
    let room = Room::new();
    let program = recorded(&room, "hot.cc", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(cause["kind"], "unused-fields", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(
        cause["structure"].as_str().is_some_and(|name| name.contains("hot.cc")),
        "{cause:#}"
    );
    assert_eq!(cause["evidence"]["element_bytes"], 64, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("bytes 0 to 7")),
        "{cause:#}"
    );
}

#[test]
fn a_shuffled_list_is_irregular() {
    let room = Room::new();
    let program = recorded(&room, "list.cc", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "irregular");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(
        cause["structure"]
            .as_str()
            .is_some_and(|name| name.contains("list.cc:14")),
        "{cause:#}"
    );
    assert_eq!(cause["evidence"]["element_bytes"], 16, "{cause:#}");
}

#[test]
fn a_word_of_each_page_is_a_case_for_huge_pages() {
    let room = Room::new();
    let program = recorded(&room, "pages.rs", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "thin-pages");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(number(&cause["evidence"]["used_of_page"]) < 0.05, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("huge pages")),
        "{cause:#}"
    );
}

#[test]
fn a_contended_lock_is_no_false_sharing() {
    let room = Room::new();
    let program = recorded(&room, "locked.c", &["lock"]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "contended-lock");
    assert_eq!(cause["structure"], "lock", "{cause:#}");
    assert!(
        causes(&advice).iter().all(|cause| cause["kind"] != "false-sharing"),
        "{:#}",
        advice["causes"]
    );
}

#[test]
fn fields_of_one_line_are_false_sharing_and_no_lock() {
    let room = Room::new();
    let program = recorded(&room, "locked.c", &["apart"]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(cause["kind"], "false-sharing", "{cause:#}");
    assert_eq!(cause["structure"], "apart", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(
        causes(&advice).iter().all(|cause| cause["kind"] != "contended-lock"),
        "{:#}",
        advice["causes"]
    );
}

#[test]
fn a_sum_in_order_gets_no_change_proposed() {
    let room = Room::new();
    let program = recorded(&room, "sum.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(
        (&cause["kind"], &cause["source"]),
        (&"first-use".into(), &program.place.as_str().into()),
        "{cause:#}"
    );
    for cause in causes(&advice) {
        assert_eq!(cause.get("change"), None, "{cause:#}");
    }
}
