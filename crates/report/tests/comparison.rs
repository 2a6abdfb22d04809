//! Two versions of a program held against each other, as people see it.

use crate::html::agree;

use anstream::adapter::strip_str;
use report::Top;
use results::{
    Advice, ComparedMisses, ComparedRow, ComparedSide, Comparison, Difference, Document, JudgedCondition, SideKind,
    Verified, VerifiedRound, VerifiedTime, saved,
};

fn side(name: &str, recordings: u64) -> ComparedSide {
    ComparedSide {
        name: name.to_string(),
        kind: SideKind::Command,
        recordings,
    }
}

fn figure(before: u64, after: u64) -> Difference {
    Difference::new(&[before, before + before / 500], &[after, after], 0.0, 500)
}

fn row(name: &str, before: u64, after: u64) -> ComparedRow {
    ComparedRow {
        name: name.to_string(),
        time_ns: figure(before, after),
        ..ComparedRow::default()
    }
}

/// A comparison with everything in it, and `rows` lines that went each way.
pub fn comparison(rows: u64) -> Comparison {
    let line = |number: u64, before, after| ComparedRow {
        function: Some("std::vector<std::pair<unsigned long, std::string>>::emplace_back".to_string()),
        ..row(&format!("a_file_with_a_long_name.cc:{number}"), before, after)
    };
    let better = (0..rows).map(|number| line(number, 90_000 - number, 40_000));
    let worse = (0..rows).map(|number| line(100 + number, 10_000, 30_000 - number));
    Comparison {
        machine: "westmere-x5660".to_string(),
        policy: "first-touch+random".to_string(),
        before: side("./sort-old big.txt", 2),
        after: side("./sort big.txt", 2),
        time: figure(1_200_000, 919_000),
        stall: figure(400_000, 119_000),
        references: figure(1_000_000, 1_000_000),
        instructions: None,
        misses: ["L1D", "L2", "L3", "TLB"]
            .map(|name| ComparedMisses {
                name: name.to_string(),
                misses: figure(12_000, 3_000),
            })
            .to_vec(),
        parts: vec![
            row("capacity misses", 300_000, 20_000),
            row("computing", 800_000, 800_000),
        ],
        source_lines: Some(better.chain(worse).collect()),
        structures: Some(vec![
            row("heap: make (a.cc)", 300_000, 19_000),
            row("stack", 1000, 1000),
            row("table", 0, 90_000),
        ]),
        causes: Some(vec![ComparedRow {
            structure: Some("heap: make (a.cc)".to_string()),
            ..row("walks-across", 250_000, 0)
        }]),
        conditions: vec![JudgedCondition {
            condition: "time > +3%".to_string(),
            met: false,
            why: "-23.4% (1.20 ms -> 919 us)".to_string(),
        }],
        notes: vec!["one recording each: differences under 1% are not told from chance".to_string()],
    }
}

fn text(comparison: &Comparison, width: usize, top: Top) -> String {
    strip_str(&report::comparison(comparison, width, top)).to_string()
}

#[test]
fn the_comparison_fits_a_screen_of_80_columns() {
    insta::assert_snapshot!("comparison", text(&comparison(9), 80, Top::Usual));
    for rows in [0, 1, 3, 500] {
        let shown = text(&comparison(rows), 80, Top::Usual);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}:\n{shown}");
        assert!(shown.lines().count() <= 30, "{shown}");
    }
    let all = text(&comparison(40), 80, Top::All);
    assert!(all.lines().count() > 80, "{all}");
    let three = text(&comparison(9), 80, Top::Rows(3));
    assert!(three.contains("and 6 more lines"), "{three}");
}

#[test]
fn the_verdict_is_one_line_of_what_is_known() {
    let with = |time| Comparison { time, ..comparison(0) };
    let verdict = |time| report::verdict_of_comparison(&with(time));
    assert_eq!(
        verdict(figure(1_200_000, 919_000)),
        "AFTER takes 23.5% less time (1.20 ms -> 919 us; noise 0.2%)"
    );
    assert!(verdict(figure(1_000_000, 1_500_000)).starts_with("AFTER takes 49.9% more time"));
    assert!(verdict(figure(1_000_000, 1_001_500)).starts_with("AFTER takes as long as BEFORE"));
}

#[test]
fn a_saved_comparison_is_shown_as_a_fresh_one() {
    let comparison = comparison(3);
    let saved = serde_json::to_string(&saved(&comparison)).unwrap();
    let document = Document::parse(&saved).unwrap();
    assert_eq!(document, Document::Comparison(Box::new(comparison.clone())));
    assert_eq!(
        report::text(&document, 80, Top::Usual),
        report::comparison(&comparison, 80, Top::Usual)
    );
    for top in [Top::Usual, Top::Rows(2), Top::All] {
        let tables = report::tables(&document, top);
        assert_eq!(tables.len(), 3);
        tables.iter().for_each(agree);
    }
    let page = report::page(&document, &|_| Err("there is none".to_string()));
    assert!(page.contains("AFTER takes 23.5% less time") && page.contains("walks-across"));
    assert!(page.contains("time &gt; +3% is not met"), "{page}");
}

#[test]
fn a_verified_change_is_shown_beside_its_prediction() {
    let round = VerifiedRound {
        before_ns: 40_000_000,
        after_ns: 32_000_000,
        ..VerifiedRound::default()
    };
    let change = |after_ns| {
        let predicted = VerifiedTime::new(43_100_000, after_ns);
        Verified::new("./walk rows".to_string(), predicted, vec![round; 3], None)
    };
    let text = strip_str(&report::verified(&change(33_000_000), 80)).to_string();
    assert_eq!(
        text,
        "Verified: ./walk rows\n  predicted: 23.4% less time (both recorded and simulated: 43.1 ms -> 33.0 ms);\n  \
         measured: 20.0% less (40.0 ms -> 32.0 ms, range 20.0% to 20.0%, 3 rounds)\n  They agree within 20%: the time before is 1.31 times \
         that after as predicted,\n  1.25 times as measured.\n"
    );
    assert!(report::verified(&change(34_480_000), 80).contains("within the range"));
    let worse = report::verified(&change(60_000_000), 80);
    assert!(
        worse.contains("39.2% more time") && worse.contains("They do not agree"),
        "{worse}"
    );
    let round = VerifiedRound {
        before_system_ns: 10_000_000,
        after_system_ns: 10_000_000,
        ..round
    };
    let tick = Some(std::time::Duration::from_millis(4));
    let with_kernel = Verified::new(String::new(), VerifiedTime::new(300, 220), vec![round; 3], tick);
    let text = strip_str(&report::verified(&with_kernel, 80)).to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("measured: 26.7% less (30.0 ms -> 22.0 ms, "), "{text}");
    assert!(
        text.contains("; with the time in the kernel 20.0% less (40.0 ms -> 32.0 ms)"),
        "{text}"
    );
    let advice = Advice {
        verified: Some(change(33_000_000)),
        ..Advice::default()
    };
    assert!(report::advice_page(&advice, &|_| Err("there is none".to_string())).contains("predicted: 23.4% less time"));
}
