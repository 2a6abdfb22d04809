//! `compare`, and `report` of two results: the gains and losses of a change.

use crate::house;

use house::{Room, json, output};
use serde_json::Value;

const ON: [&str; 4] = ["--machine", "simos-r4400", "--cpus", "1"];

/// So many turns of two addresses that share a set of the cache under page coloring.
fn thrash(room: &Room, name: &str, turns: usize) -> String {
    room.trace(name, &"0 r 100000 4\n0 r 300000 4\n".repeat(turns))
}

/// A saved result of `simulate` under one policy.
fn simulated(room: &Room, name: &str, trace: &str, more: &[&str]) -> String {
    let arguments = [&["simulate", trace, "--json"], more].concat();
    room.file(name, &output(&arguments, 0).0)
}

fn compared(before: &str, after: &str, more: &[&str], code: i32) -> (String, String) {
    output(&[&["compare", before, after], more].concat(), code)
}

fn on(more: &[&'static str]) -> Vec<&'static str> {
    [&ON, more].concat()
}

#[test]
fn two_results_are_compared_and_report_does_the_same() {
    let room = Room::new();
    let coloring = [&ON[..], &["--policy", "page-coloring", "--by", "structure"]].concat();
    let before = simulated(&room, "before.json", &thrash(&room, "before.trace", 5000), &coloring);
    let after = simulated(&room, "after.json", &thrash(&room, "after.trace", 2500), &coloring);
    let (text, said) = compared(&before, &after, &[], 0);
    assert!(
        text.starts_with("AFTER takes ") && text.contains("% less time ("),
        "{text}"
    );
    assert!(text.contains("differences under 1% are not told from chance"), "{text}");
    assert!(text.lines().count() <= 30, "{text}");
    let told = format!("before: the result {before}; after: the result {after}");
    assert!(said.contains(&told), "{said}");
    assert_eq!(output(&["report", &before, &after], 0).0, text);
    let comparison = &json(&["compare", &before, &after, "--json"])[0];
    assert_eq!(json(&["report", &before, &after, "--json"])[0], *comparison);
    assert_eq!(comparison["references"]["before"], 10_000);
    assert_eq!(comparison["references"]["after"], 5_000);
    assert_eq!(comparison["time"]["verdict"], "better");
    assert_eq!(comparison["policy"], "page-coloring");
    assert!(comparison["source_lines"].is_null() && comparison["structures"].is_array());
    // The printed comparison is a result, too.
    let saved = room.file("comparison.json", &comparison.to_string());
    assert_eq!(output(&["report", &saved], 0).0, text);
    let page = room.path("page.html");
    output(&["report", &before, &after, "--html", &page], 0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("AFTER takes"));
}

#[test]
fn the_same_twice_differs_in_nothing() {
    let room = Room::new();
    let trace = thrash(&room, "t.trace", 500);
    let (text, said) = compared(&trace, &trace, &on(&["--fail-if", "time > +0%"]), 0);
    assert!(text.starts_with("AFTER takes as long as BEFORE"), "{text}");
    assert!(!text.contains("\nBetter") && !text.contains("\nWorse"), "{text}");
    assert!(text.contains("time > +0% is not met"), "{text}");
    assert!(said.contains("the trace"), "{said}");
}

#[test]
fn a_condition_that_is_met_is_the_exit_status() {
    let room = Room::new();
    let before = thrash(&room, "before.trace", 1000);
    let after = thrash(&room, "after.trace", 1100);
    let coloring = on(&["--policy", "page-coloring"]);
    let with = |conditions: &[&'static str], code| {
        let mut more = coloring.clone();
        for condition in conditions {
            more.extend(["--fail-if", condition]);
        }
        compared(&before, &after, &more, code)
    };
    let (text, said) = with(&["time > +3%"], 3);
    assert!(text.contains("more time"), "{text}");
    assert!(said.contains("domicile: time > +3% is met: +"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("is met")).count(), 1, "{said}");
    let (_, said) = with(&["time > +30%", "misses(L2) < -5%"], 0);
    assert!(!said.contains("is met"), "{said}");
    assert!(
        with(&["time > +30%", "misses(L2)>5%"], 3)
            .1
            .contains("misses(L2) > +5% is met")
    );
    with(&["references > +9%"], 3);
    with(&["references > +11%"], 0);
    // The condition asks for a gain of 10%, and there is none.
    with(&["time > -10%"], 3);
    let mut more = coloring.clone();
    more.extend(["--fail-if", "stall > +3%", "--json"]);
    let (out, said) = compared(&before, &after, &more, 3);
    let comparison: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(comparison["conditions"][0]["met"], true);
    assert!(said.contains("stall > +3% is met"), "{said}");
}

#[test]
fn wrong_conditions_are_bad_usage() {
    let room = Room::new();
    let trace = thrash(&room, "t.trace", 10);
    for wrong in ["time", "time > 3", "wall > 3%", "misses() > 3%"] {
        let (out, said) = compared(&trace, &trace, &on(&["--fail-if", wrong]), 2);
        assert!(out.is_empty() && said.contains("misses(CACHE)"), "{wrong}: {said}");
    }
    let (out, said) = compared(&trace, &trace, &on(&["--fail-if", "misses(L7) > 3%"]), 2);
    assert!(out.is_empty() && said.contains("there is no cache `L7`"), "{said}");
    let result = simulated(&room, "r.json", &trace, &ON);
    let (_, said) = compared(&result, &result, &["--fail-if", "misses(L7) > 3%"], 2);
    assert!(said.contains("the caches are"), "{said}");
    let (_, said) = output(&["report", &result, "--fail-if", "time > 3%"], 2);
    assert!(said.contains("give a second one"), "{said}");
}

#[test]
fn several_recordings_say_how_far_they_differ() {
    let room = Room::new();
    let [short, long, longer] =
        [("a", 1000), ("b", 1100), ("c", 1150)].map(|(name, turns)| thrash(&room, &format!("{name}.trace"), turns));
    let with = |more: &[&str]| {
        let more = [&ON[..], &["--policy", "page-coloring", "--json"], more].concat();
        serde_json::from_str::<Value>(&compared(&short, &longer, &more, 0).0).unwrap()
    };
    let alone = with(&[]);
    assert_eq!(
        (&alone["time"]["verdict"], &alone["before"]["recordings"]),
        (&"worse".into(), &1.into())
    );
    let several = with(&["--before-also", &longer, "--after-also", &long]);
    assert_eq!(several["time"]["verdict"], "same");
    assert_eq!(several["after"]["recordings"], 2);
    assert!(several["time"]["noise"].as_u64() > several["time"]["before"].as_u64().map(|before| before / 10));
    assert_eq!(several["notes"].as_array().unwrap().len(), 0);
}

#[test]
fn results_of_other_machines_and_policies_are_refused() {
    let room = Room::new();
    let trace = thrash(&room, "t.trace", 50);
    let before = simulated(&room, "a.json", &trace, &ON);
    let elsewhere = simulated(&room, "b.json", &trace, &["--machine", "alphaserver-8400"]);
    let (out, said) = compared(&before, &elsewhere, &[], 1);
    assert!(
        out.is_empty() && said.contains("different machines, simos-r4400 and"),
        "{said}"
    );
    let otherwise = simulated(&room, "c.json", &trace, &[&ON[..], &["--policy", "random"]].concat());
    assert!(compared(&before, &otherwise, &[], 1).1.contains("different policies"));
    assert!(
        output(&["report", &before, &otherwise], 1)
            .1
            .contains("different policies")
    );
    let both = [&ON[..], &["--policy", "random", "--policy", "page-coloring"]].concat();
    let both = simulated(&room, "d.json", &trace, &both);
    assert!(compared(&both, &otherwise, &[], 1).1.contains("random, page-coloring"));
    compared(&both, &otherwise, &["--policy", "random"], 0);
    let (_, said) = compared(&before, &before, &ON, 2);
    assert!(said.contains("`--machine` is for traces and commands"), "{said}");
    let (_, said) = compared(&before, &before, &["--no-causes"], 2);
    assert!(said.contains("`--no-causes` is for traces and commands"), "{said}");
    let (_, said) = compared(&trace, &trace, &on(&["--recordings", "3"]), 2);
    assert!(said.contains("`--recordings` is for commands"), "{said}");
    let (_, said) = compared("no-such.json", &before, &[], 1);
    assert!(said.contains("there is no file `no-such.json`"), "{said}");
}

/// A trace is simulated under the policy that an advice is given for, and an advice has its causes.
#[test]
fn a_trace_and_an_advice_of_it_agree() {
    let room = Room::new();
    let trace = thrash(&room, "t.trace", 2000);
    for machine in [
        &ON[..],
        &["--machine", "flash-cc-numa"],
        &["--machine", "clovertown-x5355"],
    ] {
        let arguments = [&["advise", &trace, "--json"], machine].concat();
        let advice = room.file("advice.json", &output(&arguments, 0).0);
        let arguments = [&["compare", &advice, &trace, "--json"], machine].concat();
        let comparison = &json(&arguments)[0];
        assert_eq!(comparison["time"]["verdict"], "same", "{comparison}");
        let causes = comparison["causes"].as_array().unwrap().iter();
        assert!(comparison["structures"].is_array());
        for cause in causes {
            assert_eq!(cause["time_ns"]["verdict"], "same", "{cause}");
        }
        let without = &json(&[&arguments[..], &["--no-causes"]].concat())[0];
        assert!(without["causes"].is_null(), "{without}");
    }
}

#[test]
fn a_change_that_cannot_be_verified_is_refused_before_anything_runs() {
    let room = Room::new();
    let trace = thrash(&room, "t.trace", 10);
    output(&["advise", "--verify", "true", &trace], 2);
    for part in [
        &["--budget", "1m"][..],
        &["--window", "1M"],
        &["--skip", "5"],
        &["--duration", "5s"],
    ] {
        let arguments = [&["advise", "--verify", "true"], part, &["--", "true"]].concat();
        let (out, said) = output(&arguments, 2);
        assert!(
            out.is_empty() && said.contains(part[0]) && said.contains("whole runs"),
            "{said}"
        );
    }
    output(&["advise", "--verify", "true 'x", "--", "true"], 2);
    let (_, said) = output(&["advise", "--verify", "no-such-program", "--", "true"], 1);
    assert!(said.contains("no program `no-such-program`"), "{said}");
}

/// The commands of the book's page, the one of the workflow too, are read as they stand there.
#[test]
fn commands_of_the_book_are_command_lines() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/compare.md");
    let text = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let commands: Vec<&str> = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches("$ "))
        .filter(|line| line.starts_with("domicile ") || line.starts_with("installed/bin/domicile "))
        .collect();
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        let words = shlex::split(command).unwrap();
        let read = cli::command().try_get_matches_from(words);
        assert!(read.is_ok(), "{command}: {}", read.unwrap_err());
    }
}
