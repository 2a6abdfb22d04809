//! What people see: an advice with everything in it, and the sentences that sum it up.

use advise::advice_of;
use anstream::adapter::strip_str;
use results::{Advice, Document, Facts, Outcome};
use serde_json::{Value, json};

fn cache(name: &str, level: u8, accesses: u64, classes: [u64; 5], stall: f64) -> Value {
    let misses: u64 = classes.iter().sum();
    let part = |count: u64| {
        if misses == 0 {
            0.0
        } else {
            stall * count as f64 / misses as f64
        }
    };
    json!({
        "name": name, "level": level, "accesses": accesses, "hits": accesses - misses, "misses": misses, "writebacks": 7,
        "cold": classes[0], "capacity": classes[1], "conflict": classes[2],
        "true_sharing": classes[3], "false_sharing": classes[4], "upgrades": 3,
        "stall_ns": {"hit": 0.0, "miss": stall, "cold": part(classes[0]), "capacity": part(classes[1]),
                     "conflict": part(classes[2]), "true_sharing": part(classes[3]), "false_sharing": part(classes[4]),
                     "upgrade": 0.0},
    })
}

fn outcome(policy: &str, conflicts: u64, remote: f64) -> Outcome {
    let l1 = cache("L1D", 1, 4_000_000, [1_000, 90_000, 20_000, 0, 0], 1.11e6);
    let l2 = cache("L2", 2, 111_000, [1_000, 40_000, conflicts, 300, 1_200], 2.0e7 + remote);
    let (busy, imbalance) = (1.2e7, 2.0e6);
    let stall = 1.11e6 + 2.0e7 + remote;
    let value = json!({
        "policy": policy, "machine": "flash-cc-numa", "references": 4_000_000u64, "instructions": 9_500_000u64,
        "caches": [l1, l2],
        "tlb": {"accesses": 4_000_000u64, "misses": 120},
        "memory": {"local": 9_000, "remote": 3_000, "local_percent": 75.0, "pages": 600},
        "time_ns": {"busy": busy, "cache_stall": 1.11e6, "local_stall": 2.0e7, "remote_stall": remote,
                    "tlb_stall": 0.0, "policy_overhead": 0.0, "imbalance": imbalance,
                    "total": busy + imbalance + stall, "wall": (busy + imbalance + stall) / 8.0},
        "structures": [
            {"name": "heap: build_table (join.c:120)", "kind": "heap", "file": "/src/join.c", "line": 120,
             "bytes": 2_400_000u64, "blocks": 41u64, "stall_ns": 1.5e7,
             "caches": [cache("L1D", 1, 2_000_000, [600, 80_000, 15_000, 0, 0], 0.0),
                        cache("L2", 2, 95_600, [600, 35_000, conflicts, 0, 0], 0.0)]},
            {"name": "counters", "kind": "symbol", "file": "/src/join.c", "line": 7, "bytes": 64u64, "blocks": 0,
             "stall_ns": 3.0e6,
             "caches": [cache("L1D", 1, 90_000, [2, 0, 0, 300, 1_200], 0.0), cache("L2", 2, 1_502, [2, 0, 0, 300, 1_200], 0.0)]},
            {"name": "never missed", "kind": "symbol", "bytes": 8, "caches": [cache("L1D", 1, 5, [0; 5], 0.0)]},
        ],
        "false_sharing": [
            {"structure": "counters", "line": 0x404080, "misses": 1_200, "sides": [
                {"thread": "1", "field": "counters[0].hits", "write": true, "source": "join.c:88"},
                {"thread": "2", "field": "counters[1].hits", "write": true, "source": "join.c:88"},
            ]},
        ],
    });
    serde_json::from_value(value).unwrap()
}

fn facts() -> Facts {
    Facts {
        file: None,
        references: 4_000_000,
        instructions: Some(9_500_000),
        threads: 8,
        processes: 1,
        footprint_bytes: 600 * 4096,
    }
}

fn machine(name: &str) -> machine::Machine {
    machine::load(name).unwrap()
}

fn advice() -> Advice {
    let outcomes = vec![
        outcome("first-touch+random", 9_000, 9.0e6),
        outcome("round-robin+random", 9_000, 1.7e7),
        outcome("first-touch+page-coloring", 500, 4.0e6),
    ];
    let notes = vec!["instruction fetches are not in the trace: misses of code are not counted".to_string()];
    let mut advice = advice_of(
        &machine("flash-cc-numa"),
        facts(),
        "first-touch+random",
        outcomes,
        notes,
    );
    advice.program = "join".to_string();
    advice.arguments = vec!["<orders>.db".to_string(), "--threads=8".to_string()];
    advice
}

#[test]
fn the_advice_fits_its_width() {
    let text = strip_str(&report::advice(&advice(), 100)).to_string();
    insta::assert_snapshot!("advice", text);
    for width in [90, 100, 120, 200] {
        let text = strip_str(&report::advice(&advice(), width)).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} columns where {width} were allowed");
    }
}

#[test]
fn where_the_time_goes_adds_up() {
    let advice = advice();
    let base = advice.base().unwrap();
    let sum: u64 = advice.shares.iter().map(|share| share.ns).sum();
    // Each part was rounded.
    assert!(sum.abs_diff(base.time_ns.total) <= advice.shares.len() as u64);
    let fractions: f64 = advice.shares.iter().map(|share| share.fraction).sum();
    assert!((fractions - 1.0).abs() < 1e-9);
}

#[test]
fn policies_are_ranked_by_time_and_structures_by_stall() {
    let advice = advice();
    let names: Vec<_> = advice.policies.iter().map(|outcome| outcome.policy.as_str()).collect();
    assert_eq!(
        names,
        ["first-touch+page-coloring", "first-touch+random", "round-robin+random"]
    );
    let names: Vec<_> = advice
        .structures
        .iter()
        .map(|structure| structure.name.as_str())
        .collect();
    assert_eq!(names, ["heap: build_table (join.c:120)", "counters"]);
}

#[test]
fn the_verdict_blames_the_layout_where_threads_fight_over_lines() {
    let verdict = |falsely: f64, truly: f64| {
        let mut outcome = outcome("random", 0, 0.0);
        for cache in &mut outcome.caches {
            cache.stall_ns.upgrade = 0;
            (cache.stall_ns.true_sharing, cache.stall_ns.false_sharing) = (Some(0), Some(0));
        }
        let part = |fraction: f64| Some((fraction * outcome.time_ns.total as f64) as u64);
        let (falsely, truly) = (part(falsely), part(truly));
        let last = outcome.caches.last_mut().unwrap();
        (last.stall_ns.false_sharing, last.stall_ns.true_sharing) = (falsely, truly);
        advice_of(&machine("simos-r4400"), facts(), "random", vec![outcome], Vec::new()).verdict
    };
    let accident = verdict(0.4, 0.1);
    assert!(
        accident.contains("But 50.0% of the time of all cpus") && accident.contains("false sharing"),
        "{accident}"
    );
    let shared = verdict(0.1, 0.4);
    assert!(shared.contains("let threads share less"), "{shared}");
    assert!(!verdict(0.02, 0.02).contains("take from one another, "));
}

#[test]
fn the_verdict_says_what_is_gained_or_why_nothing_is() {
    assert_eq!(
        advice().verdict,
        "Placing pages by `first-touch+page-coloring` would save 11.3% of the run time: 4.89 ms instead of 5.51 ms under \
         `first-touch+random`."
    );
    let same = |machine_name: &str, outcome: Outcome| {
        let baseline = outcome.policy.clone();
        advice_of(&machine(machine_name), facts(), &baseline, vec![outcome], Vec::new()).verdict
    };
    let mut one_color = machine("simos-r4400");
    one_color.caches.retain(|cache| cache.level == 1);
    let verdict = advice_of(
        &one_color,
        facts(),
        "random",
        vec![outcome("random", 0, 0.0)],
        Vec::new(),
    )
    .verdict;
    assert!(
        verdict.contains("the same color, so there is nothing to choose"),
        "{verdict}"
    );
    let mut fits = outcome("random", 0, 0.0);
    fits.time_ns.local_stall = 0;
    let verdict = same("simos-r4400", fits);
    assert!(verdict.contains("fits into L2"), "{verdict}");
    let mut touched_once = outcome("random", 0, 0.0);
    for cache in &mut touched_once.caches {
        (cache.cold, cache.capacity, cache.true_sharing, cache.false_sharing) =
            (Some(cache.misses), Some(0), Some(0), Some(0));
    }
    let verdict = same("simos-r4400", touched_once);
    assert!(verdict.contains("the L2 misses are first touches"), "{verdict}");
    let verdict = same("simos-r4400", outcome("random", 10, 0.0));
    assert!(
        verdict.contains("only <0.1% of the L2 misses are conflicts"),
        "{verdict}"
    );
    let mut shared = outcome("random", 0, 0.0);
    for cache in &mut shared.caches {
        (cache.capacity, cache.false_sharing) = (Some(0), cache.capacity);
    }
    let verdict = same("simos-r4400", shared);
    assert!(verdict.contains("lines that cpus take from one another"), "{verdict}");
    let mut empty = outcome("random", 0, 0.0);
    empty.references = 0;
    assert!(same("simos-r4400", empty).contains("no references"));
}

#[test]
fn a_worse_policy_is_warned_of() {
    let outcomes = vec![outcome("random", 500, 1.0e6), outcome("bin-hopping", 900, 9.0e6)];
    let advice = advice_of(&machine("simos-r4400"), facts(), "random", outcomes, Vec::new());
    assert_eq!(
        advice.verdict,
        "`random`, the usual placement, is as good as any here; `bin-hopping` would cost 22.2% more time."
    );
}

#[test]
fn outcomes_side_by_side() {
    let outcomes = [outcome("page-coloring", 500, 0.0), outcome("bin-hopping", 9_000, 0.0)];
    let text = strip_str(&report::outcomes(&outcomes, 100)).to_string();
    insta::assert_snapshot!("outcomes", text);
    assert_eq!(report::outcomes(&[], 80), "There are no results to show.\n");
}

#[test]
fn a_saved_result_is_shown_as_a_fresh_one() {
    let advice = advice();
    let saved = serde_json::to_string_pretty(&advice).unwrap();
    let document = Document::parse(&saved).unwrap();
    assert_eq!(report::text(&document, 100), report::advice(&advice, 100));
    let outcomes = [outcome("page-coloring", 500, 0.0), outcome("random", 9_000, 0.0)];
    let lines = outcomes
        .each_ref()
        .map(|outcome| serde_json::to_string(outcome).unwrap())
        .join("\n");
    assert_eq!(Document::parse(&lines).unwrap(), Document::Outcomes(outcomes.to_vec()));
    for wrong in [
        "",
        "{",
        "[]",
        "3",
        "{\"policy\": 1}",
        "{\"policies\": 3, \"where\": []}",
        "{\"policy\":\"x\"}",
    ] {
        assert!(Document::parse(wrong).is_err(), "{wrong} was taken for a result");
    }
}

#[test]
fn the_page_stands_alone_and_escapes_what_it_shows() {
    let mut advice = advice();
    advice.program = "<script>alert('x')</script>".to_string();
    let page = report::advice_page(&advice);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("));
    assert!(page.contains("build_table (join.c:120)") && page.contains("counters[1].hits"));
    for tag in ["section", "table", "tr", "td", "div", "span", "p", "ul", "dl"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{tag}>")).count(),
            "{tag} is not closed as often as opened"
        );
    }
    let page = report::outcomes_page(&[outcome("page-coloring", 1, 0.0)]);
    assert!(page.contains("page-coloring"));
}

/// An advice on work in another order: L2 capacity misses and time of it, 40 000 capacity misses and 25 ms without.
fn ordered(work: Value, wall: f64, capacity: u64) -> Advice {
    let plain = outcome("random", 5_000, 0.0);
    let mut new = outcome("random+order", 5_000, 0.0);
    new.order = Some(serde_json::from_value(work).unwrap());
    new.time_ns.wall = (wall * plain.time_ns.wall as f64).round() as u64;
    let l2 = new.caches.last_mut().unwrap();
    l2.misses = l2.misses - l2.capacity.unwrap() + capacity;
    l2.capacity = Some(capacity);
    let machine = machine::presets()
        .iter()
        .find(|preset| preset.name == "simos-r4400")
        .unwrap();
    let machine = machine::from_toml(machine.text, machine.name).unwrap();
    advice_of(&machine, facts(), "random", vec![new, plain], Vec::new())
}

#[test]
fn what_order_gains_is_said_in_words() {
    let work = |moved: u64, runs: u64, bins: u64, fixed: u64| {
        json!({"items": 1000, "moved": moved, "fixed": fixed, "runs": runs, "bins": bins, "hints": 2, "block": 4096,
               "reason": "because", "tour": "first-fork", "workers": 1})
    };
    let gain = ordered(work(900, 1, 16, 3), 0.5, 1_000);
    let advice = gain.work.as_ref().unwrap();
    assert_eq!(
        (advice.policy.as_str(), advice.against.as_str()),
        ("random+order", "random")
    );
    assert!((advice.gain - 0.5).abs() < 1e-9);
    assert!((advice.gain_ns_per_item - advice.wall_ns as f64 / 1000.0).abs() < 1e-6);
    for said in [
        "would save 50.0% of the run time",
        "16 bins, blocks of 4.00 KB a side",
        "capacity 40.0 k → 1000",
        "3 further items stay where they are",
    ] {
        assert!(gain.verdict.contains(said), "{said}: {}", gain.verdict);
    }
    assert!(
        !gain.verdict.contains("Placing pages by `random+order`"),
        "{}",
        gain.verdict
    );
    let text = strip_str(&report::advice(&gain, 100)).to_string();
    assert!(text.contains("The work in another order, random+order"), "{text}");
    assert!(report::advice_page(&gain).contains("1000 items (900 moved)"));

    let verdict = |work: Value, wall: f64| ordered(work, wall, 40_000).work.unwrap().verdict;
    assert!(verdict(work(900, 2, 16, 0), 1.25).contains("would cost 25.0% more time"));
    assert!(verdict(work(900, 2, 16, 0), 1.001).contains("16 bins over 2 runs"));
    assert!(verdict(work(900, 2, 16, 0), 1.001).contains("makes no difference to the time"));
    assert!(verdict(work(0, 1, 1, 0), 1.0).contains("--set order.block=BYTES"));
    assert!(verdict(work(0, 1000, 1000, 0), 1.0).contains("no two of them follow each other"));
    assert!(verdict(work(0, 1, 4, 0), 1.0).contains("follow each other already"));
}

/// Waits by kind, the bus and prefetches are told where there are any, and nowhere else.
#[test]
fn what_occupies_the_bus_and_what_prefetches_came_to() {
    let plain = strip_str(&report::outcomes(&[outcome("page-coloring", 500, 0.0)], 120)).to_string();
    for absent in [
        "sequential",
        "synchronization",
        "prefetch",
        "Memory bus",
        "Waiting, by kind",
    ] {
        assert!(!plain.contains(absent), "{absent} in\n{plain}");
    }
    let mut value = serde_json::to_value(outcome("page-coloring", 500, 0.0)).unwrap();
    value["time_ns"]["sequential"] = json!(3.0e6);
    value["time_ns"]["synchronization"] = json!(2.0e6);
    value["time_ns"]["prefetch_stall"] = json!(1.0e6);
    value["time_ns"]["stall_by_class"] = json!({
        "on_chip": 1.5e6, "cold": 0.0, "capacity": 2.5e6, "conflict": 7.5e6, "true_sharing": 0.0, "false_sharing": 0.0,
        "unclassed": 0.0, "upgrade": 0.0, "late_prefetch": 4.5e6,
    });
    value["bus"] = json!({"data": 8.0e6, "writebacks": 1.0e6, "upgrades": 0.0, "occupancy_percent": 61.5});
    value["prefetch"] = json!({
        "issued": 1000, "dropped_tlb": 70, "dropped_unmapped": 1, "already_present": 29, "brought": 900, "useful": 800,
        "late": 44,
    });
    let outcome: Outcome = serde_json::from_value(value).unwrap();
    let text = strip_str(&report::outcomes(std::slice::from_ref(&outcome), 200)).to_string();
    for (head, expected) in [
        (
            "Time",
            vec![
                "sequential",
                "3.00 ms",
                "synchronization",
                "2.00 ms",
                "prefetches",
                "1.00 ms",
            ],
        ),
        (
            "Waiting, by kind of miss",
            vec!["conflict", "7.50 ms", "late prefetches", "4.50 ms"],
        ),
        ("Memory bus", vec!["61.5%", "8.00 ms", "writebacks"]),
        ("Prefetches of the program", vec!["1000", "71", "900", "800", "44"]),
    ] {
        let part = text.split(head).nth(1).unwrap_or_else(|| panic!("{head} in\n{text}"));
        let part = part.split("\n\n").next().unwrap_or_default();
        for expected in expected {
            assert!(part.contains(expected), "{expected} under {head} in\n{text}");
        }
    }
    let waiting = text.split("by kind of miss").nth(1).unwrap_or_default();
    let waiting = waiting.split("\n\n").next().unwrap_or_default();
    assert!(!waiting.contains("cold"), "what is nothing needs no column:\n{text}");
}
