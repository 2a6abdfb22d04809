//! What the numbers come to: where the time goes, which policy is best, and the sentences that sum it up.

use crate::invented;

use advise::advice_of;
use invented::{advice, facts, machine, ordered, outcome, random, work};
use results::Outcome;
use serde_json::Value;

#[test]
fn where_the_time_goes_adds_up() {
    let advice = advice();
    let base = advice.base().unwrap();
    let sum: u64 = advice.shares.iter().map(|share| share.ns).sum();
    // Each part was rounded.
    assert!(sum.abs_diff(base.time_ns.total) <= advice.shares.len() as u64);
    // Waiting for other threads is a part of the total, and does not shrink the shares of the work.
    let (waiting, working): (Vec<_>, Vec<_>) = advice.shares.iter().partition(|share| share.is_waiting());
    let fractions: f64 = working.iter().map(|share| share.fraction).sum();
    assert!((fractions - 1.0).abs() < 1e-6, "{fractions}");
    let [imbalance] = waiting[..] else {
        panic!("{waiting:?}")
    };
    let of_total = base.time_ns.imbalance as f64 / base.time_ns.total as f64;
    assert!(imbalance.part == "imbalance" && (imbalance.fraction - of_total).abs() < 1e-9);
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
        let part = |fraction: f64| Some((fraction * outcome.time_ns.worked() as f64) as u64);
        let (falsely, truly) = (part(falsely), part(truly));
        let last = outcome.caches.last_mut().unwrap();
        (last.stall_ns.false_sharing, last.stall_ns.true_sharing) = (falsely, truly);
        advice_of(
            &machine("simos-r4400"),
            facts(),
            &random(),
            &[],
            vec![outcome],
            Vec::new(),
        )
        .verdict
    };
    let accident = verdict(0.4, 0.1);
    assert!(
        accident.contains("50.0% of the time that cpus work") && accident.contains("false sharing"),
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
        let baseline = outcome.policy.parse().unwrap();
        advice_of(
            &machine(machine_name),
            facts(),
            &baseline,
            &[],
            vec![outcome],
            Vec::new(),
        )
        .verdict
    };
    let mut one_color = machine("simos-r4400");
    one_color.caches.retain(|cache| cache.level == 1);
    let verdict = advice_of(
        &one_color,
        facts(),
        &random(),
        &[],
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

/// Nobody shall mend data that nobody waits for.
#[test]
fn a_program_that_hardly_waits_is_called_that_first() {
    let verdict = |waits: u64| {
        let mut outcome = outcome("random", 0, 0.0);
        let time = &mut outcome.time_ns;
        (time.busy, time.total) = (1000 - waits, 1000);
        (time.cache_stall, time.local_stall, time.remote_stall, time.tlb_stall) = (waits, 0, 0, 0);
        (time.imbalance, time.sequential, time.synchronization) = (0, 0, 0);
        advice_of(
            &machine("simos-r4400"),
            facts(),
            &random(),
            &[],
            vec![outcome],
            Vec::new(),
        )
        .verdict
    };
    // Nobody has held the model against the clock: no bound.
    let says = "Of the time that cpus work they wait for memory for 4.0%.";
    assert!(verdict(40).starts_with(says), "{}", verdict(40));
    assert!(!verdict(60).contains("wait for memory for"), "{}", verdict(60));
}

#[test]
fn a_worse_policy_is_warned_of() {
    let outcomes = vec![outcome("random", 500, 1.0e6), outcome("bin-hopping", 900, 9.0e6)];
    let advice = advice_of(&machine("simos-r4400"), facts(), &random(), &[], outcomes, Vec::new());
    assert_eq!(
        advice.verdict,
        "`random`, the usual placement, is as good as any here; `bin-hopping` would cost 22.2% more time."
    );
}

#[test]
fn what_order_gains_is_said_in_words() {
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

    let verdict = |work: Value, wall: f64| ordered(work, wall, 40_000).work.unwrap().verdict;
    assert!(verdict(work(900, 2, 16, 0), 1.25).contains("would cost 25.0% more time"));
    assert!(verdict(work(900, 2, 16, 0), 1.001).contains("16 bins over 2 runs"));
    assert!(verdict(work(900, 2, 16, 0), 1.001).contains("makes no difference to the time"));
    assert!(verdict(work(0, 1, 1, 0), 1.0).contains("--set order.block=BYTES"));
    assert!(verdict(work(0, 1000, 1000, 0), 1.0).contains("no two of them follow each other"));
    assert!(verdict(work(0, 1, 4, 0), 1.0).contains("follow each other already"));
}
