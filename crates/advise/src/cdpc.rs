//! Compiler-directed page coloring: the gain of its hints, compared with the usual policies, and how to get it.

use std::cmp::Reverse;

use policy::{Kind, Name};
use results::{Cache, CdpcAdvice, CdpcArray, CdpcRival, Change, Outcome, Structure, count, percent, time};

use crate::huge;
use crate::names::outcome_of;
use crate::words::{NOTHING, list, saved};

/// An array with a smaller part of the conflicts is not named.
const FEW: f64 = 0.01;
/// The advice if one of the policies is the baseline, called `name`, with its colors by hints, and there are hints.
pub fn advice(policies: &[Outcome], base: &Outcome, name: &Name) -> Option<CdpcAdvice> {
    let recolored = |color: &Name| outcome_of(policies, &name.recolored(color));
    let hinted = recolored(&Name::first(&[Kind::Color], |traits| traits.hints))?;
    let hints = hinted.cdpc.clone().filter(|hints| hints.pages > 0)?;
    let outer = outermost(hinted);
    let rivals = policy::registry().iter().filter(|entry| entry.traits.weighed);
    let rivals = rivals.filter_map(|entry| recolored(&entry.into()));
    let mut rivals: Vec<CdpcRival> = rivals.map(|rival| against(rival, hinted)).collect();
    if base.policy != hinted.policy && rivals.iter().all(|rival| rival.policy != base.policy) {
        rivals.push(against(base, hinted));
    }
    let mut advice = CdpcAdvice {
        policy: hinted.policy.clone(),
        wall_ns: hinted.time_ns.wall,
        hints,
        arrays: arrays(base.structures.as_deref().unwrap_or_default(), outer.level),
        cache: outer.name,
        against: rivals,
        next: String::new(),
        huge_pages: None,
        verdict: String::new(),
    };
    if gains(&advice) {
        advice.next = what_to_do(&advice);
    }
    advice.verdict = in_words(&advice, &outermost(base));
    Some(advice)
}

/// True if any of the others would be noticeably slower, and none faster.
pub fn gains(advice: &CdpcAdvice) -> bool {
    advice.huge_pages.as_ref().is_none_or(huge::gains) && gains_on_small_pages(advice)
}

fn gains_on_small_pages(advice: &CdpcAdvice) -> bool {
    let gains = || advice.against.iter().map(|rival| rival.gain);
    gains().any(|gain| gain >= NOTHING) && gains().all(|gain| gain > -NOTHING)
}

/// The text once the loss of the hints by huge pages is known.
pub fn weighed(advice: &mut CdpcAdvice) {
    let Some(lost) = &advice.huge_pages else { return };
    let (before, after) = (time(lost.against_ns), time(lost.wall_ns));
    let weighed = format!("{}: {after} instead of {before}", huge::in_words(lost));
    match (huge::gains(lost), lost.refused) {
        (true, _) => advice.verdict += &format!(" Where data is on huge pages, {weighed}."),
        (false, refused) => {
            let why = if refused { "is refused" } else { "gains nothing" };
            advice.verdict = format!("Compiler-directed page coloring {why} where data is on huge pages: {weighed}.");
            advice.next.clear();
        }
    }
}

fn what_to_do(advice: &CdpcAdvice) -> String {
    match advice.hints.from.as_str() {
        "summaries" => "start the program with `domicile run --policy cdpc -- PROGRAM`".to_string(),
        _ => "build the program with domicile-cc, domicile-c++ or domicile-fc, which tell the run-time library of its \
              parallel loops, and start it with `domicile run --policy cdpc -- PROGRAM`"
            .to_string(),
    }
}

fn in_words(advice: &CdpcAdvice, base: &Cache) -> String {
    let of_each = |say: &dyn Fn(&CdpcRival) -> String| list(&advice.against.iter().map(say).collect::<Vec<_>>());
    if gains(advice) {
        let gains = of_each(&|rival| format!("{} of the time under `{}`", percent(rival.gain), rival.policy));
        let misses = of_each(&|rival| count(rival.misses.before));
        let after = advice.against.first().map_or(0, |rival| rival.misses.after);
        return format!(
            "Compiler-directed page coloring would save {gains}: {} instead of {}, with {} misses in {} instead of \
             {misses}. For it, {}.",
            time(advice.wall_ns),
            of_each(&|rival| time(rival.wall_ns)),
            count(after),
            advice.cache,
            advice.next
        );
    }
    let slower: Vec<&CdpcRival> = advice.against.iter().filter(|rival| rival.gain <= -NOTHING).collect();
    if let Some(best) = slower.iter().min_by(|a, b| a.gain.total_cmp(&b.gain)) {
        return format!(
            "Compiler-directed page coloring would gain nothing: it takes {} more time than `{}`.",
            percent(-best.gain),
            best.policy
        );
    }
    format!(
        "Compiler-directed page coloring makes no difference to the time{}.",
        why_no_difference(base)
    )
}

fn why_no_difference(base: &Cache) -> String {
    let (Some(conflict), Some(capacity)) = (base.conflict, base.capacity) else {
        return String::new();
    };
    if base.misses == 0 || !base.classed() {
        return String::new();
    }
    let part = |misses: u64| misses as f64 / base.misses as f64;
    if part(conflict) < NOTHING {
        return format!(
            ": {} of the {} misses are conflicts",
            percent(part(conflict)),
            base.name
        );
    }
    if capacity > conflict {
        return format!(
            ": {} of the {} misses are for want of capacity, which no place of pages mends",
            percent(part(capacity)),
            base.name
        );
    }
    String::new()
}

fn outermost(outcome: &Outcome) -> Cache {
    outcome.caches.last().cloned().unwrap_or_default()
}

fn against(rival: &Outcome, hinted: &Outcome) -> CdpcRival {
    let (before, after) = (outermost(rival), outermost(hinted));
    CdpcRival {
        policy: rival.policy.clone(),
        wall_ns: rival.time_ns.wall,
        gain: saved(rival.time_ns.wall, hinted.time_ns.wall),
        misses: Change {
            before: before.misses,
            after: after.misses,
        },
        conflicts: before
            .conflict
            .zip(after.conflict)
            .map(|(before, after)| Change { before, after }),
    }
}

/// The data structures with the most conflicts in the caches of a level.
fn arrays(structures: &[Structure], level: u8) -> Vec<CdpcArray> {
    let array = |structure: &Structure| {
        let cache = structure.of_level(level);
        CdpcArray {
            name: structure.name.clone(),
            bytes: structure.bytes,
            misses: cache.misses,
            conflicts: cache.conflict().unwrap_or_default(),
        }
    };
    let mut arrays: Vec<CdpcArray> = structures.iter().map(array).collect();
    let all: u64 = arrays.iter().map(|array| array.conflicts).sum();
    arrays.retain(|array| array.conflicts > 0 && array.conflicts as f64 >= FEW * all as f64);
    arrays.sort_by_key(|array| Reverse(array.conflicts));
    arrays
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(policy: &str, wall: f64, capacity: u64, conflict: u64) -> Outcome {
        let mut value = json!({
            "policy": policy,
            "caches": [
                {"name": "L1", "level": 1, "misses": 9},
                {"name": "L2", "level": 2, "misses": capacity + conflict, "capacity": capacity, "conflict": conflict},
            ],
            "time_ns": {"wall": wall},
            "structures": [
                {"name": "x", "bytes": 4096, "caches": [{"name": "L2", "level": 2, "misses": 90, "conflict": 80}]},
                {"name": "y", "caches": [{"name": "L2", "level": 2, "misses": 900, "conflict": 0}]},
            ],
        });
        if policy.ends_with("cdpc") {
            value["cdpc"] = json!({"from": "trace", "pages": 64, "arrays": 2, "segments": 8, "sets": 4, "colors": 32,
                "asked": 64, "honoured": 60, "pages_of_one_cpu": 32, "malformed_summaries": 1, "malformed": ["l: none"]});
        }
        serde_json::from_value(value).unwrap()
    }

    fn advised(walls: [f64; 4], capacity: u64, conflict: u64) -> CdpcAdvice {
        let names = [
            "first-touch+page-coloring",
            "first-touch+bin-hopping",
            "first-touch+random",
            "first-touch+cdpc",
        ];
        let policies: Vec<Outcome> = names
            .iter()
            .zip(walls)
            .map(|(name, wall)| outcome(name, wall, capacity, if name.ends_with("cdpc") { 0 } else { conflict }))
            .collect();
        advice(&policies, &policies[2], &names[2].parse().unwrap()).unwrap()
    }

    #[test]
    fn the_verdict_says_what_is_saved_and_what_to_do() {
        let good = advised([4e9, 2e9, 3e9, 1e9], 10, 1000);
        assert!(gains(&good));
        assert_eq!(
            good.verdict,
            "Compiler-directed page coloring would save 75.0% of the time under `first-touch+page-coloring`, 50.0% of the time \
             under `first-touch+bin-hopping` and 66.7% of the time under `first-touch+random`: 1.00 s instead of 4.00 s, 2.00 s \
             and 3.00 s, with 10 misses in L2 instead of 1010, 1010 and 1010. For it, build the program with \
             domicile-cc, domicile-c++ or domicile-fc, which tell the run-time library of its parallel loops, and start it with \
             `domicile run --policy cdpc -- PROGRAM`."
        );
        assert_eq!(good.arrays.len(), 1);
        assert_eq!((good.arrays[0].name.as_str(), good.arrays[0].conflicts), ("x", 80));
        assert_eq!(
            crate::cdpc_in_words(&good.hints),
            "cdpc: hints for 64 pages of 2 arrays, from which cpus touch which pages (8 uniform access segments in 4 sets); 60 \
             of 64 were honoured; 1 summary left out: l: none"
        );
    }

    #[test]
    fn what_gains_nothing_says_why() {
        let worse = advised([4e9, 1e9, 3e9, 1.2e9], 10, 1000);
        assert!(!gains(&worse) && worse.next.is_empty());
        assert!(
            worse
                .verdict
                .contains("takes 20.0% more time than `first-touch+bin-hopping`"),
            "{}",
            worse.verdict
        );
        let same = advised([1e9; 4], 990, 10);
        assert!(
            same.verdict.contains("99.0% of the L2 misses are for want of capacity"),
            "{}",
            same.verdict
        );
        let few = advised([1e9; 4], 10_000, 1);
        assert!(few.verdict.contains("are conflicts"), "{}", few.verdict);
    }

    #[test]
    fn hints_that_lose_more_by_huge_pages_are_refused_with_both_numbers() {
        let lost = |gain_ns: i64, loss_ns: i64| results::HugePagesLost {
            bytes: 4 << 20,
            against_ns: 1_000_000_000,
            wall_ns: (1_000_000_000 - gain_ns + loss_ns) as u64,
            gain_ns,
            loss_ns,
            refused: loss_ns > gain_ns,
        };
        let weighed = |lost| {
            let mut advice = advised([4e9, 2e9, 3e9, 1e9], 10, 1000);
            advice.huge_pages = Some(lost);
            super::weighed(&mut advice);
            advice
        };
        let refused = weighed(lost(300_000_000, 500_000_000));
        assert!(!gains(&refused) && refused.next.is_empty());
        assert_eq!(
            refused.verdict,
            "Compiler-directed page coloring is refused where data is on huge pages: fewer misses save 300 ms, and 4.00 MB of its \
             data that leave huge pages for it cost 500 ms by walks of the TLB and page faults: 1.20 s instead of 1.00 s."
        );
        let kept = weighed(lost(300_000_000, 100_000_000));
        assert!(gains(&kept) && !kept.next.is_empty());
        assert!(
            kept.verdict.contains("would save") && kept.verdict.ends_with("800 ms instead of 1.00 s."),
            "{}",
            kept.verdict
        );
        let nothing = weighed(lost(300_000_000, 300_000_000));
        assert!(
            !gains(&nothing) && nothing.verdict.contains("gains nothing"),
            "{}",
            nothing.verdict
        );
    }

    #[test]
    fn without_hints_there_is_no_advice() {
        let plain = outcome("random", 1.0, 1, 1);
        let name = "random".parse().unwrap();
        assert_eq!(advice(std::slice::from_ref(&plain), &plain, &name), None);
        let mut empty = outcome("cdpc", 1.0, 1, 1);
        empty.cdpc.as_mut().unwrap().pages = 0;
        assert_eq!(advice(&[plain.clone(), empty], &plain, &name), None);
    }
}
