//! What people see: an advice with everything in it, and simulated runs side by side.

use crate::invented;

use anstream::adapter::strip_str;
use invented::{advice, ordered, outcome, work};
use report::Top;
use results::{Document, Outcome};
use serde_json::json;

#[test]
fn the_advice_fits_its_width() {
    let text = strip_str(&report::advice(&advice(), 100, Top::Usual)).to_string();
    insta::assert_snapshot!("advice", text);
    for width in [90, 100, 120, 200] {
        let text = strip_str(&report::advice(&advice(), width, Top::Usual)).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} columns where {width} were allowed");
    }
}

#[test]
fn outcomes_side_by_side() {
    let outcomes = [outcome("page-coloring", 500, 0.0), outcome("bin-hopping", 9_000, 0.0)];
    let text = strip_str(&report::outcomes(&outcomes, 100, Top::Usual)).to_string();
    insta::assert_snapshot!("outcomes", text);
    assert_eq!(report::outcomes(&[], 80, Top::Usual), "There are no results to show.\n");
}

#[test]
fn a_saved_result_is_shown_as_a_fresh_one() {
    let advice = advice();
    let saved = serde_json::to_string_pretty(&advice).unwrap();
    let document = Document::parse(&saved).unwrap();
    assert_eq!(
        report::text(&document, 100, Top::Usual),
        report::advice(&advice, 100, Top::Usual)
    );
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
    // Without anything to draw there is no script.
    let baseline = advice.baseline.clone();
    advice.policies.retain(|outcome| outcome.policy == baseline);
    let page = report::advice_page(&advice, &|_| Err("there is none".to_string()));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
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

#[test]
fn what_order_gains_is_a_table() {
    let gain = ordered(work(900, 1, 16, 3), 0.5, 1_000);
    let text = strip_str(&report::advice(&gain, 100, Top::Usual)).to_string();
    assert!(text.contains("The work in another order, random+order"), "{text}");
    assert!(report::advice_page(&gain, &|_| Err("there is none".to_string())).contains("1000 items (900 moved)"));
}

/// Waits by kind, the bus and prefetches are drawn where there are any, and nowhere else.
#[test]
fn what_occupies_the_bus_and_what_prefetches_came_to() {
    let plain = strip_str(&report::outcomes(
        &[outcome("page-coloring", 500, 0.0)],
        120,
        Top::Usual,
    ))
    .to_string();
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
    let text = strip_str(&report::outcomes(std::slice::from_ref(&outcome), 200, Top::Usual)).to_string();
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
