//! What placement can gain, said plainly, and why where it is nothing.

use crate::advice::Advice;
use crate::number::{nanoseconds, percent};
use crate::outcome::{Outcome, Stall};

/// Below this, two predicted times are the same for all that the model can tell.
const NOTHING: f64 = 0.01;

/// Below this share of the time, cache lines that go to and fro between cpus are not worth a sentence.
const FOUGHT_OVER: f64 = 0.05;

/// What placement and the order of work can gain, in a sentence or two, and whether the data's layout is to blame instead.
pub fn verdict(advice: &Advice) -> String {
    let mut text = placement(advice);
    if let Some(work) = &advice.work {
        text.push(' ');
        text.push_str(&work.verdict);
    }
    if let Some(slots) = &advice.slots {
        text.push(' ');
        text.push_str(&slots.verdict);
    }
    if let Some(cdpc) = &advice.cdpc {
        text.push(' ');
        text.push_str(&cdpc.verdict);
    }
    if let Some(layout) = advice.base().and_then(layout) {
        text.push(' ');
        text.push_str(&layout);
    }
    text
}

/// What no placement of pages can mend: lines that cpus take from one another.
fn layout(base: &Outcome) -> Option<String> {
    let sum = |part: fn(&Stall) -> f64| base.caches.iter().map(|cache| part(&cache.stall_ns)).sum::<f64>();
    let truly = sum(|stall| stall.true_sharing.unwrap_or(0.0));
    let falsely = sum(|stall| stall.false_sharing.unwrap_or(0.0));
    let upgrades = sum(|stall| stall.upgrade);
    let share = (truly + falsely + upgrades) / base.time_ns.total;
    if share.is_nan() || share < FOUGHT_OVER {
        return None;
    }
    let (whose, remedy) = if falsely > truly {
        (
            "mostly by accident (false sharing)",
            "put what different threads write into different lines",
        )
    } else {
        ("because they share the data", "let threads share less, or less often")
    };
    Some(format!(
        "But {} of the time of all cpus goes to cache lines that they take from one another, {whose}: {remedy}.",
        percent(share)
    ))
}

fn placement(advice: &Advice) -> String {
    let Some(base) = advice.base() else {
        return "No policy was simulated.".to_string();
    };
    // Placement is judged on work in one order, that of the baseline.
    let policies: Vec<_> = advice
        .policies
        .iter()
        .filter(|outcome| outcome.order == base.order)
        // What is proposed has a sentence of its own.
        .filter(|outcome| advice.slots.as_ref().is_none_or(|slots| slots.policy != outcome.policy))
        .collect();
    let (Some(best), Some(worst)) = (policies.first(), policies.last()) else {
        return "No policy was simulated.".to_string();
    };
    if base.references == 0 {
        return "The trace holds no references: there is nothing to place.".to_string();
    }
    let gain = relative(base.time_ns.wall, best.time_ns.wall);
    if gain >= NOTHING {
        return format!(
            "Placing pages by `{}` would save {} of the run time: {} instead of {} under `{}`.",
            best.policy,
            percent(gain),
            nanoseconds(best.time_ns.wall),
            nanoseconds(base.time_ns.wall),
            base.policy,
        );
    }
    let risk = relative(worst.time_ns.wall, base.time_ns.wall);
    if risk >= NOTHING {
        let ratio = worst.time_ns.wall / base.time_ns.wall;
        let cost = match ratio {
            ratio if ratio < 2.0 => format!("cost {} more time", percent(ratio - 1.0)),
            ratio => format!("take {ratio:.1} times as long"),
        };
        return format!(
            "`{}`, the usual placement, is as good as any here; `{}` would {cost}.",
            base.policy, worst.policy
        );
    }
    format!(
        "Placing pages differently makes no difference here: {}.",
        reason(advice, base, policies.len())
    )
}

/// The part of `from` that is saved by `to`.
fn relative(from: f64, to: f64) -> f64 {
    if from > 0.0 { (from - to) / from } else { 0.0 }
}

fn reason(advice: &Advice, base: &Outcome, placements: usize) -> String {
    let machine = &advice.machine;
    if machine.colors <= 1 && machine.nodes <= 1 {
        return format!(
            "{} has memory on one node only, and its caches give all page frames the same color, so there is nothing to choose",
            machine.name
        );
    }
    let time = &base.time_ns;
    let memory = time.local_stall + time.remote_stall;
    if memory < NOTHING * time.total {
        let outermost = base.caches.last().map_or("the caches", |cache| cache.name.as_str());
        let share = percent(if time.total > 0.0 { memory / time.total } else { 0.0 });
        return format!("what the program uses fits into {outermost}, and waiting for memory is {share} of its time");
    }
    let Some(outer) = base.caches.last().filter(|outer| outer.classed()) else {
        return format!("all {placements} placements lead to the same misses");
    };
    let part = |misses: u64| misses as f64 / outer.misses.max(1) as f64;
    let (first, sharing, conflict) = (
        part(outer.cold),
        part(outer.true_sharing + outer.false_sharing),
        part(outer.conflict),
    );
    if first > 1.0 - NOTHING {
        return format!(
            "the {} misses are first touches, which no placement avoids, and {} of the time is waiting for them",
            outer.name,
            percent(memory / time.total)
        );
    }
    if sharing > 0.5 {
        return format!(
            "{} of the {} misses are of lines that cpus take from one another ({} by false sharing); it is the data's \
             layout that must change, not the pages' place",
            percent(sharing),
            outer.name,
            percent(part(outer.false_sharing)),
        );
    }
    if conflict < NOTHING {
        let nodes = match machine.nodes {
            0 | 1 => "there is one node",
            _ => "all placements leave as many of them local",
        };
        let conflicts = match outer.conflict {
            0 => "none".to_string(),
            _ => format!("only {}", percent(conflict)),
        };
        return format!(
            "{conflicts} of the {} misses are conflicts, which is what colors can remove, and {nodes}",
            outer.name
        );
    }
    format!("all {placements} placements lead to the same misses")
}
