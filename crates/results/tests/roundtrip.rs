//! Whatever can be reported is read back as it was written, with everything that may be absent absent and present.

#[path = "roundtrip/invent.rs"]
mod invent;

use std::fmt::Debug;

use invent::{Absent, invent};
use proptest::prelude::*;
use results::run::Run;
use results::{
    Advice, Cache, Comparison, DaemonStatus, Doctor, Document, ExplainedHints, Imported, Outcome, PageMap, Recorded,
    SCHEMA, TOOL, Tlb, saved,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(seed: u64, absent: Absent) -> T {
    let value: T = invent(seed, absent);
    let text = serde_json::to_string(&value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    let through = serde_json::to_value(&value).unwrap();
    assert_eq!(serde_json::from_value::<T>(through).unwrap(), value);
    value
}

proptest! {
    #[test]
    fn results_are_read_as_they_were_written(seed: u64) {
        // An advice holds every other type.
        let advice: Advice = readable(&survives(seed, Absent::Some));
        let outcome: Outcome = readable(&survives(seed, Absent::Some));
        let comparison: Comparison = readable(&survives(seed, Absent::Some));
        let text = serde_json::to_string(&saved(&advice)).unwrap();
        prop_assert_eq!(Document::parse(&text).unwrap(), Document::Advice(Box::new(advice)));
        let text = serde_json::to_string(&saved(&outcome)).unwrap();
        prop_assert_eq!(Document::parse(&format!("{text}\n{text}\n")).unwrap(), Document::Outcomes(vec![outcome; 2]));
        let text = serde_json::to_string(&saved(&comparison)).unwrap();
        prop_assert_eq!(Document::parse(&text).unwrap(), Document::Comparison(Box::new(comparison)));
    }
}

/// The invented value with its shares, percentages and gains within what a reader accepts.
fn readable<T: Serialize + DeserializeOwned>(invented: &T) -> T {
    let mut value = serde_json::to_value(invented).unwrap();
    parts_are_parts(&mut value);
    serde_json::from_value(value).unwrap()
}

fn parts_are_parts(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match (name.as_str(), &mut *value) {
                    ("range" | "gain_varied", Value::Array(ends)) => {
                        let mut parts: Vec<f64> = ends.iter().filter_map(Value::as_f64).map(part).collect();
                        parts.sort_by(f64::total_cmp);
                        *value = json!(parts);
                    }
                    (name, Value::Number(number)) if is_part(name) => *value = json!(part(number.as_f64().unwrap())),
                    _ => parts_are_parts(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(parts_are_parts),
        _ => {}
    }
}

fn is_part(name: &str) -> bool {
    name.ends_with("share") || ["fraction", "local_percent", "gain", "later_gain"].contains(&name)
}

fn part(number: f64) -> f64 {
    number.rem_euclid(1.0)
}

#[test]
fn a_share_beyond_the_whole_is_refused_with_its_field() {
    for (share, is_read) in [(0.0, true), (1.0, true), (-0.1, false), (1.1, false)] {
        let text =
            json!({"schema": SCHEMA.to_string(), "todo": [{"share": share}], "policies": [], "where": []}).to_string();
        match Document::parse(&text) {
            Ok(_) => assert!(is_read, "{share}"),
            Err(error) => assert!(
                !is_read && error.to_string().contains("`todo[0].share`"),
                "{share}: {error}"
            ),
        }
    }
}

proptest! {
    #[test]
    fn what_other_verbs_report_is_read_as_it_was_written(seed: u64) {
        for absent in [Absent::Never, Absent::Some, Absent::Always] {
            survives::<Run>(seed, absent);
            survives::<ExplainedHints>(seed, absent);
            survives::<PageMap>(seed, absent);
            survives::<Recorded>(seed, absent);
            survives::<results::PlacedRun>(seed, absent);
            survives::<Imported>(seed, absent);
            survives::<DaemonStatus>(seed, absent);
            survives::<Doctor>(seed, absent);
        }
    }
}

#[test]
fn what_is_not_known_of_a_process_is_no_field_and_of_a_page_null() {
    let run = serde_json::to_value(survives::<Run>(1, Absent::Never)).unwrap();
    let process = &run["processes"][0];
    assert!(
        process.get("cdpc").is_some() && process["cdpc"].get("padded").is_some(),
        "{run}"
    );
    let unknown = results::run::Report::default();
    assert!(serde_json::to_value(unknown).unwrap().get("cdpc").is_none());
    let map = PageMap {
        pages: vec![results::MappedPage {
            colors: vec![None, Some(3)],
            ..results::MappedPage::default()
        }],
        ..PageMap::default()
    };
    let map = serde_json::to_value(map).unwrap();
    assert_eq!(map["pages"][0]["colors"], json!([null, 3]));
    assert_eq!(map["pages"][0]["array"], json!(null));
}

/// Every name of a field in a value, and whether any of that name is null.
fn fields(value: &Value, found: &mut std::collections::BTreeMap<String, bool>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                *found.entry(name.clone()).or_default() |= value.is_null();
                fields(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn what_is_absent_stays_absent_and_what_is_there_stays_there() {
    let all = survives::<Advice>(1, Absent::Never);
    let none = survives::<Advice>(1, Absent::Always);
    let (mut with, mut without) = (Default::default(), Default::default());
    fields(&serde_json::to_value(&all).unwrap(), &mut with);
    fields(&serde_json::to_value(&none).unwrap(), &mut without);
    assert!(with.values().all(|null| !null), "{with:?}");
    for part in ["work", "bus", "prefetches", "prefetch_hits", "late", "stall_by_class"] {
        assert!(with.contains_key(part) && !without.contains_key(part), "{part}");
    }
    for unknown in ["instructions", "cold", "file", "source", "written"] {
        assert!(
            !with[unknown] && without.get(unknown).is_none_or(|null| *null),
            "{unknown}"
        );
    }
    assert_eq!(survives::<Tlb>(1, Absent::Always), Tlb::default());
    let cache = survives::<Cache>(1, Absent::Always);
    assert_eq!(cache.totals().classes, [None; 5]);
}

#[test]
fn results_say_their_schema_and_tool() {
    let value = serde_json::to_value(saved(&Outcome::default())).unwrap();
    assert_eq!(
        (&value["schema"], &value["tool"]),
        (&json!(SCHEMA.to_string()), &json!(TOOL))
    );
    assert_eq!(value["policy"], "");
}

#[test]
fn results_of_older_schemas_are_read_and_of_newer_ones_refused() {
    let parse = |schema: Value| {
        let object = json!({"schema": schema, "tool": "domicile 9.1.0", "policy": "random", "time_ns": {"wall": 7.0}});
        Document::parse(&object.to_string()).map_err(|error| error.to_string())
    };
    let Document::Outcomes(old) = Document::parse(r#"{"policy": "random", "time_ns": {"wall": 7.0}}"#).unwrap() else {
        panic!("an outcome is no advice");
    };
    assert_eq!(
        (old[0].time_ns.wall, old[0].instructions, old[0].tlb.misses),
        (7, None, None)
    );
    assert!(parse(json!("0.3")).is_ok() && parse(json!(SCHEMA.to_string())).is_ok());
    // A newer minor version has fields that are passed over.
    assert!(parse(json!(format!("{}.{}", SCHEMA.major, SCHEMA.minor + 1))).is_ok());
    let newer = parse(json!(format!("{}.0", SCHEMA.major + 1))).unwrap_err();
    assert!(
        newer.contains("domicile 9.1.0") && newer.contains("schema 2.0"),
        "{newer}"
    );
    for wrong in [json!(1), json!("new"), json!(null), json!({"a": 1})] {
        assert!(
            parse(wrong.clone()).unwrap_err().contains("which is no version"),
            "{wrong}"
        );
    }
}
