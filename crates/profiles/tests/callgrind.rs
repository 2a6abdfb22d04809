//! Callgrind's format, as `callgrind_annotate` reads it.

use std::collections::BTreeMap;
use std::process::Command;

use profiles::{Format, Value};
use results::{Document, Profile, ProfileFrame, Timeline};

use crate::invented;
use crate::readers::{bytes, said};
use crate::sums::{by_function, one_line, total, weight};

/// The columns of all functions, and of the program.
struct Annotated {
    total: Vec<i64>,
    functions: BTreeMap<String, Vec<i64>>,
}

fn annotated(document: &Document, columns: usize, inclusive: bool) -> Annotated {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile");
    std::fs::write(&file, bytes(document, Format::Callgrind, Value::Stall)).expect("it is written");
    let mut command = Command::new("callgrind_annotate");
    command.args(["--auto=no", "--show-percs=no", "--threshold=100"]);
    command.arg(if inclusive { "--inclusive=yes" } else { "--inclusive=no" });
    let output = command
        .arg(&file)
        .current_dir(folder.path())
        .output()
        .expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let mut annotated = Annotated {
        total: Vec::new(),
        functions: BTreeMap::new(),
    };
    for line in text.lines() {
        let mut rest = line.trim_start();
        let mut numbers = Vec::new();
        for _ in 0..columns {
            let (number, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let Ok(number) = number.replace(',', "").replace('.', "0").parse::<i64>() else {
                break;
            };
            numbers.push(number);
            rest = after.trim_start();
        }
        if numbers.len() < columns {
            continue;
        }
        if rest.starts_with("PROGRAM TOTALS") {
            annotated.total = numbers;
        } else {
            let before = annotated.functions.insert(rest.to_string(), numbers);
            assert_eq!(before, None, "{rest} is there twice");
        }
    }
    assert!(text.contains("PROGRAM TOTALS"), "{text}");
    annotated
}

fn name(frame: &ProfileFrame) -> String {
    format!(
        "{}:{}",
        frame.file.as_deref().unwrap_or("???"),
        one_line(&frame.function)
    )
}

fn check(document: &Document, profile: &Profile, values: &[Value]) {
    let [own, with_calls] = [false, true].map(|inclusive| annotated(document, values.len(), inclusive));
    for (column, value) in values.iter().enumerate() {
        let weigh = |stack: &_| weight(stack, *value).max(0);
        let all = total(profile, weigh);
        assert_eq!([own.total[column], with_calls.total[column]], [all, all]);
        let expected = by_function(profile, name, weigh);
        for (name, sum) in &expected {
            assert_eq!(
                own.functions.get(name).map_or(0, |of| of[column]),
                sum.own,
                "{value}: {name}"
            );
            assert_eq!(
                with_calls.functions[name][column], sum.with_calls,
                "{value}: {name}, with calls"
            );
        }
        assert_eq!(with_calls.functions["???:[all]"][column], all);
        // And no function besides.
        assert_eq!(with_calls.functions.len(), expected.len() + 1);
    }
}

#[test]
fn its_reader_finds_the_profiles_sums() {
    if !harness::tool("callgrind_annotate") {
        return;
    }
    check(
        &invented::advice(),
        &invented::profile(),
        &[Value::Stall, Value::Misses, Value::Avoided],
    );
    let unchanged = Profile {
        change: None,
        ..invented::profile()
    };
    let document = invented::outcomes(unchanged.clone(), Timeline::default());
    check(&document, &unchanged, &[Value::Stall, Value::Misses]);
}

#[test]
fn it_finds_costs_by_line() {
    if !harness::tool("callgrind_annotate") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source: String = (1..=60).map(|line| format!("line {line}\n")).collect();
    std::fs::write(folder.path().join("tree.c"), source).expect("it is written");
    let mut profile = invented::profile();
    for frame in &mut profile.frames {
        frame.file = frame.file.as_ref().map(|file| file.replace("/src/", ""));
    }
    let document = invented::outcomes(profile, Timeline::default());
    std::fs::write(
        folder.path().join("profile"),
        bytes(&document, Format::Callgrind, Value::Stall),
    )
    .expect("it is written");
    let mut command = Command::new("callgrind_annotate");
    command.args(["--auto=yes", "--show-percs=no", "--threshold=100", "profile"]);
    let text = said(command.current_dir(folder.path()));
    // The line's own cost; what is called there has lines of its own.
    let line = text
        .lines()
        .find(|line| line.trim_end().ends_with("line 44"))
        .expect("line 44 is annotated");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[..3], ["1,234,567", "4,321", "0"], "{text}");
}

#[test]
fn a_run_that_waited_for_nothing_has_no_functions() {
    if !harness::tool("callgrind_annotate") {
        return;
    }
    let empty = annotated(&invented::empty(), 3, true);
    assert_eq!(empty.total.iter().sum::<i64>(), 0);
}
