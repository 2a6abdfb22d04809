//! The comparison of a result with the saved one.

use serde_json::Value;

/// Fields that results have gained since. An advice's outcomes say, as others do, that lines with false sharing were looked
/// for and none was found.
const ADDED: &[&str] = &[
    "schema",
    "tool",
    "false_sharing",
    "source_lines",
    "causes",
    "homes",
    "todo",
    "otherwise",
    "exit",
    "basis",
    "faults_ns",
    "sharing",
    "part",
    "timeline",
    "profile",
    "program",
    "arguments",
];

/// A policy that an advice has simulated since.
const ADDED_POLICY: &str = "interleave";

/// The titles of tables that results have gained since; each ends with an empty line.
const ADDED_TABLE: [&str; 2] = ["Lines of the source that wait most", "Causes and changes"];

/// Fields whose meaning has changed since: the base of shares of the time, and the beginning of an
/// advice.
const CHANGED: &[&str] = &["fraction", "verdict"];

/// Values that were 0 while unknown, and are null again: classes of misses that were not classed, a
/// TLB that is not there.
const NULL: [&str; 7] = [
    "/cold",
    "/capacity",
    "/conflict",
    "/true_sharing",
    "/false_sharing",
    "/tlb/accesses",
    "/tlb/misses",
];

/// Compares the saved output with the current one, and reports a difference.
pub fn same(before: &str, now: &str, json: bool) -> Result<(), String> {
    if !json {
        let differs = |(_, (a, b)): &(usize, (&str, &str))| a != b;
        let now = without_added(now);
        if let Some((line, (a, b))) = before.lines().zip(now.lines()).enumerate().find(differs) {
            return Err(format!("line {}: {a:?} is {b:?}", line + 1));
        }
        let (before, now) = (before.lines().count(), now.lines().count());
        return match before == now {
            true => Ok(()),
            false => Err(format!("{before} lines are {now}")),
        };
    }
    let read = |text: &str| -> Result<Vec<Value>, String> {
        let values = serde_json::Deserializer::from_str(text).into_iter();
        values.collect::<Result<_, _>>().map_err(|error| error.to_string())
    };
    let (before, now) = (read(before)?, read(now)?);
    if before.len() != now.len() {
        return Err(format!("{} objects are {}", before.len(), now.len()));
    }
    let mut pairs = before.iter().zip(&now).enumerate();
    pairs.try_for_each(|(at, (a, b))| equal(&at.to_string(), a, b))
}

fn without_added(text: &str) -> String {
    let mut added = false;
    let kept = text.lines().filter(|line| {
        let begins = ADDED_TABLE.iter().any(|title| line.contains(title));
        let ended = added && line.is_empty();
        added = (added || begins) && !line.is_empty();
        !added && !ended
    });
    kept.map(|line| format!("{line}\n")).collect()
}

fn equal(path: &str, before: &Value, now: &Value) -> Result<(), String> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (key, value) in before {
                let other = now.get(key).ok_or_else(|| format!("{path}/{key} is gone"))?;
                if CHANGED.contains(&key.as_str()) {
                    continue;
                }
                equal(&format!("{path}/{key}"), value, other)?;
            }
            match now
                .keys()
                .find(|key| !before.contains_key(*key) && !ADDED.contains(&key.as_str()))
            {
                Some(key) => Err(format!("{path}/{key} is new")),
                None => Ok(()),
            }
        }
        // Texts for people; estimates are marked where it matters.
        (Value::Array(_), Value::Array(_)) if path.ends_with("/notes") => Ok(()),
        (Value::Array(before), Value::Array(now)) => {
            let added = |value: &&Value| value["policy"].as_str().is_some_and(|name| name.contains(ADDED_POLICY));
            let now: Vec<&Value> = now.iter().filter(|value| !added(value)).collect();
            if before.len() != now.len() {
                return Err(format!("{path}: {} are {}", before.len(), now.len()));
            }
            let mut pairs = before.iter().zip(now).enumerate();
            pairs.try_for_each(|(at, (a, b))| equal(&format!("{path}/{at}"), a, b))
        }
        // 2 and 2.0 are one number. The version before read some fractions wrongly in their last bit.
        (Value::Number(a), Value::Number(b)) if close(a.as_f64(), b.as_f64()) => Ok(()),
        (Value::Number(zero), Value::Null)
            if zero.as_f64() == Some(0.0) && NULL.iter().any(|end| path.ends_with(end)) =>
        {
            Ok(())
        }
        _ if before == now => Ok(()),
        _ => Err(format!("{path}: {before} is {now}")),
    }
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= f64::EPSILON * a.abs())
}

#[test]
fn differences_are_found() {
    let old = r#"{"a": 1, "b": [2.0, null], "c": "x"}"#;
    assert_eq!(same(old, r#"{"c": "x", "b": [2, null], "a": 1}"#, true), Ok(()));
    for (new, what) in [
        (r#"{"a": 1, "b": [2.0, null]}"#, "0/c is gone"),
        (r#"{"a": 1, "b": [2.0, null], "c": "x", "d": 1}"#, "0/d is new"),
        (r#"{"a": 1, "b": [2.0, 0], "c": "x"}"#, "0/b/1: null is 0"),
        (r#"{"a": 1, "b": [2.5, null], "c": "x"}"#, "0/b/0: 2.0 is 2.5"),
        (
            r#"{"a": 1, "b": [2.000000000000002, null], "c": "x"}"#,
            "0/b/0: 2.0 is 2.000000000000002",
        ),
        (r#"{"a": null, "b": [2.0, null], "c": "x"}"#, "0/a: 1 is null"),
    ] {
        assert_eq!(same(old, new, true), Err(what.to_string()));
    }
    assert!(same("a\nb\n", "a\nc\n", false).is_err() && same("a\n", "a\nb\n", false).is_err());
}
