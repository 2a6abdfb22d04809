//! pprof's format, as `go tool pprof` reads it.

use std::collections::BTreeMap;
use std::process::Command;

use profiles::{Format, Value};
use results::{Document, ProfileFrame};

use crate::invented;
use crate::readers::{bytes, said};
use crate::sums::{Sum, by_function, one_line, total, weight};

/// What the tool prints with these arguments of the invented profile.
fn printed(document: &Document, value: Value, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.pb.gz");
    std::fs::write(&file, bytes(document, Format::Pprof, value)).expect("it is written");
    let mut command = Command::new("go");
    command.args(["tool", "pprof"]).args(arguments).arg(&file);
    // Nothing but the profile decides what is printed.
    command.env("PPROF_TMPDIR", folder.path()).current_dir(folder.path());
    said(&mut command)
}

/// Rows of `-top`: own and with calls, by name.
fn top(text: &str) -> BTreeMap<String, Sum> {
    let heading = |line: &&str| !line.trim_start().starts_with("flat ");
    let rows = text.lines().skip_while(heading).skip(1).map(|line| {
        let mut rest = line.trim_start();
        let mut words = Vec::new();
        // Own, its share, the shares so far, with calls, their share.
        for _ in 0..5 {
            let (word, after) = rest.split_once(' ').expect("a name follows");
            words.push(word);
            rest = after.trim_start();
        }
        let number = |word: &str| {
            word.trim_end_matches("ns")
                .parse()
                .unwrap_or_else(|_| panic!("{word}: {text}"))
        };
        let sum = Sum {
            own: number(words[0]),
            with_calls: number(words[3]),
        };
        (rest.to_string(), sum)
    });
    rows.collect()
}

fn all_of(text: &str) -> i64 {
    // `Showing nodes accounting for 75ns, 100% of 75ns total`
    let words = text
        .lines()
        .find(|line| line.starts_with("Showing nodes"))
        .expect("the total is there");
    let total = words
        .split(" of ")
        .nth(1)
        .and_then(|rest| rest.split("ns total").next().or(Some(rest)));
    let total = total.map(|total| total.trim_end_matches(" total"));
    total
        .and_then(|total| total.parse().ok())
        .unwrap_or_else(|| panic!("{words}"))
}

fn name(frame: &ProfileFrame) -> String {
    let file = frame.file.as_deref().map_or(String::new(), |file| format!(" {file}"));
    format!("{}{file}", one_line(&frame.function))
}

const WHOLE: [&str; 6] = [
    "-top",
    "-filefunctions",
    "-unit=ns",
    "-nodecount=0",
    "-nodefraction=0",
    "-edgefraction=0",
];

#[test]
fn its_reader_finds_the_profiles_sums() {
    if !harness::tool("go") {
        return;
    }
    let (document, profile) = (invented::advice(), invented::profile());
    for value in Value::ALL {
        // The value is the one that is shown where nobody asks for another; nor may names change where it looks for symbols.
        for symbols in ["-symbolize=none", "-symbolize=local"] {
            let text = printed(&document, value, &[&WHOLE[..], &[symbols]].concat());
            let shown = text.lines().any(|line| line == format!("Type: {value}"));
            assert!(shown, "{text}");
            let mut expected = by_function(&profile, name, |stack| weight(stack, value));
            expected.retain(|_, sum| *sum != Sum::default());
            let mut found = top(&text);
            found.retain(|_, sum| *sum != Sum::default());
            assert_eq!(found, expected, "{value}: {text}");
            // Shares are of what is waited more or less.
            assert_eq!(
                all_of(&text),
                total(&profile, |stack| weight(stack, value).abs()),
                "{text}"
            );
        }
    }
}

#[test]
fn samples_can_be_grouped_by_data_structure() {
    if !harness::tool("go") {
        return;
    }
    let text = printed(
        &invented::advice(),
        Value::Stall,
        &[&WHOLE[..], &["-tagroot=structure", "-symbolize=none"]].concat(),
    );
    let found = top(&text);
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for stack in &invented::profile().stacks {
        *expected.entry(one_line(&stack.structure)).or_default() += weight(stack, Value::Stall);
    }
    for (structure, stall) in expected {
        let row = found.get(&format!("{structure} structure"));
        assert_eq!(row.map(|row| row.with_calls), Some(stall), "{structure}: {text}");
    }
}

#[test]
fn it_says_what_it_is() {
    if !harness::tool("go") {
        return;
    }
    let text = printed(&invented::advice(), Value::Stall, &["-comments"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("simulated by {}, not measured", results::TOOL));
    assert_eq!(lines[1..3], ["machine: invented", "policy: first-touch"]);
    assert!(lines[3].contains(invented::CHANGE), "{text}");
    let raw = printed(&invented::advice(), Value::Stall, &["-raw"]);
    assert!(raw.contains("/opt/my join"), "{raw}");
    assert!(raw.contains("PeriodType: stall nanoseconds"), "{raw}");
    assert!(
        raw.contains("stall/nanoseconds[dflt] misses/count avoided/nanoseconds"),
        "{raw}"
    );
}

#[test]
fn a_run_that_waited_for_nothing_is_a_profile() {
    if !harness::tool("go") {
        return;
    }
    let text = printed(&invented::empty(), Value::Stall, &["-raw"]);
    assert!(text.contains("stall/nanoseconds"), "{text}");
}
