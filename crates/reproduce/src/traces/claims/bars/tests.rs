//! Claims of a fictitious item, each held and not held.

use super::*;

/// Bars A, B and C of a fictitious item, with their runs.
fn held(claim: &str, runs: [Run; 3]) -> bool {
    let text = format!(
        "machine = \"flash-cc-numa\"\npage_us = 350\nworkloads = [\"engineering\"]\nmeasures = []\n\
         [[bar]]\nname = \"A\"\npolicy = \"round-robin\"\n[[bar]]\nname = \"B\"\npolicy = \"first-touch\"\n\
         [[bar]]\nname = \"C\"\npolicy = \"migrate\"\n[[claim]]\nsays = \"it\"\nworkloads = [\"engineering\"]\n{claim}"
    );
    let traces: Traces = toml::from_str(&text).unwrap();
    traces.check(&[]).unwrap();
    let mut replayed = Replayed::default();
    for (bar, run) in traces.bars.iter().zip(runs) {
        replayed.runs.insert(crate::traces::streams::key(bar, 350), Ok(run));
    }
    let stand = Stand {
        traces: &traces,
        replayed: Rc::new(replayed),
    };
    stand.holds(&traces.claims[0].kind).unwrap().0
}

fn run(local: u64, stall: u64, overhead: u64) -> Run {
    Run {
        user: 100,
        remote_stall: stall,
        overhead,
        local,
        remote: 100 - local,
        ..Run::default()
    }
}

#[test]
fn the_fastest_is_before_each_of_the_others() {
    let claim = "kind = \"faster\"\nof = \"C\"\nothers = [\"A\", \"B\"]";
    assert!(held(claim, [run(0, 100, 0), run(0, 80, 0), run(0, 50, 20)]));
    assert!(!held(claim, [run(0, 100, 0), run(0, 80, 0), run(0, 50, 30)]));
    assert!(!held(claim, [run(0, 100, 0), run(0, 60, 0), run(0, 50, 20)]));
}

#[test]
fn who_is_beaten_by_little_is_not_beaten() {
    // 180 and 176 of 200 are 2 points apart.
    let claim = |points| format!("kind = \"unbeaten\"\nof = \"B\"\nothers = [\"C\"]\npoints = {points}");
    let runs = [run(0, 100, 0), run(0, 80, 0), run(0, 70, 6)];
    assert!(held(&claim("2.0"), runs));
    assert!(!held(&claim("1.9"), runs));
}

#[test]
fn flat_runs_are_near_each_other() {
    let claim = "kind = \"flat\"\nbars = [\"B\", \"C\"]\npoints = 1.0";
    assert!(held(claim, [run(0, 100, 0), run(0, 80, 0), run(0, 82, 0)]));
    assert!(!held(claim, [run(0, 100, 0), run(0, 80, 0), run(0, 84, 0)]));
}

#[test]
fn stall_is_traded_for_overhead_or_not() {
    let claim = "kind = \"trade\"\nbars = [\"A\", \"B\", \"C\"]";
    assert!(held(claim, [run(0, 10, 9), run(0, 20, 5), run(0, 20, 0)]));
    assert!(!held(claim, [run(0, 10, 9), run(0, 20, 5), run(0, 20, 6)]));
    assert!(!held(claim, [run(0, 30, 9), run(0, 20, 5), run(0, 40, 0)]));
}

#[test]
fn local_shares_are_near_on_both_sides_or_on_one() {
    let claim = |kind: &str| format!("kind = \"{kind}\"\nof = \"B\"\nover = \"C\"\npoints = 2.0");
    let runs = |of, over| [run(0, 0, 0), run(of, 0, 0), run(over, 0, 0)];
    assert!(held(&claim("same-local"), runs(74, 76)) && !held(&claim("same-local"), runs(79, 76)));
    assert!(held(&claim("gentle"), runs(79, 76)) && !held(&claim("gentle"), runs(73, 76)));
    assert!(inconsistent(&[true, false]) && !inconsistent(&[false, false]) && !inconsistent(&[true]));
}

#[test]
fn a_claim_with_a_field_that_no_such_claim_has_is_refused() {
    let claim = |more: &str| {
        let text = format!("says = \"it\"\nkind = \"flat\"\nbars = []\npoints = 1.0\n{more}");
        toml::from_str::<Claim>(&text)
    };
    assert!(claim("workloads = []").is_ok());
    let error = claim("pionts = 2.0").unwrap_err().to_string();
    assert!(error.contains("pionts"), "{error}");
}

#[test]
fn misses_that_wait_less_on_average_are_sooner() {
    let claim = |node| format!("kind = \"sooner\"\nof = \"C\"\nover = \"B\"\nnode = \"{node}\"");
    // 100 over 50 remote misses; then 30 and 50 over 20. None waits for local ones.
    assert!(held(&claim("remote"), [run(0, 0, 0), run(50, 100, 0), run(80, 30, 0)]));
    assert!(!held(&claim("remote"), [run(0, 0, 0), run(50, 100, 0), run(80, 50, 0)]));
    assert!(!held(&claim("local"), [run(0, 0, 0), run(50, 100, 0), run(80, 30, 0)]));
    // 2 and 1.99, and 1.97.
    assert!(!held(&claim("remote"), [run(0, 0, 0), run(0, 200, 0), run(0, 199, 0)]));
    assert!(held(&claim("remote"), [run(0, 0, 0), run(0, 200, 0), run(0, 197, 0)]));
}
