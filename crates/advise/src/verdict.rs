//! What placement can gain, said plainly, and why where it is nothing.

use results::{Advice, Outcome, Stall, percent, time};

use crate::words::{NOTHING, saved};

/// Below this share of the time, cache lines that go to and fro between cpus are not worth a sentence.
const FOUGHT_OVER: f64 = 0.05;

/// What placement and the order of work can gain, in a sentence or two, and whether the data's layout is to blame instead.
pub fn verdict(advice: &Advice) -> String {
    let mut text = match best_change(advice) {
        Some(best) => format!("{best} {}", placement(advice)),
        None => placement(advice),
    };
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

/// The proposed change that was simulated to gain most, if one gains anything.
fn best_change(advice: &Advice) -> Option<String> {
    let gains = advice
        .causes
        .iter()
        .filter(|cause| cause.gain.is_some_and(|gain| gain >= NOTHING));
    let best = gains.max_by(|a, b| a.gain.unwrap_or(0.0).total_cmp(&b.gain.unwrap_or(0.0)))?;
    let (gain, change) = (best.gain?, best.simulated.as_ref()?);
    let place = best.source.as_ref().unwrap_or(&best.function);
    Some(format!(
        "The best change that was simulated saves {} of the run time: {} ({place}, {}).",
        percent(gain),
        change.in_words(),
        best.kind,
    ))
}

/// What no placement of pages can mend: lines that cpus take from one another.
fn layout(base: &Outcome) -> Option<String> {
    let sum = |part: fn(&Stall) -> Option<u64>| {
        let parts = base.caches.iter().filter_map(|cache| part(&cache.stall_ns));
        parts.sum::<u64>()
    };
    let truly = sum(|stall| stall.true_sharing);
    let falsely = sum(|stall| stall.false_sharing);
    let upgrades = sum(|stall| Some(stall.upgrade));
    let share = (truly + falsely + upgrades) as f64 / base.time_ns.worked() as f64;
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
        "But {} of the time that cpus work goes to cache lines that they take from one another, {whose}: {remedy}.",
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
    let gain = saved(base.time_ns.wall, best.time_ns.wall);
    if gain >= NOTHING {
        return format!(
            "Placing pages by `{}` would save {} of the run time: {} instead of {} under `{}`.",
            best.policy,
            percent(gain),
            time(best.time_ns.wall),
            time(base.time_ns.wall),
            base.policy,
        );
    }
    let risk = saved(worst.time_ns.wall, base.time_ns.wall);
    if risk >= NOTHING {
        let ratio = worst.time_ns.wall as f64 / base.time_ns.wall as f64;
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

fn reason(advice: &Advice, base: &Outcome, placements: usize) -> String {
    let machine = &advice.machine;
    if machine.colors <= 1 && machine.nodes <= 1 {
        return format!(
            "{} has memory on one node only, and its caches give all page frames the same color, so there is nothing to choose",
            machine.name
        );
    }
    let time = &base.time_ns;
    let memory = (time.local_stall + time.remote_stall) as f64;
    let worked = time.worked();
    let total = worked as f64;
    if memory < NOTHING * total {
        let outermost = base.caches.last().map_or("the caches", |cache| cache.name.as_str());
        let share = percent(if worked > 0 { memory / total } else { 0.0 });
        return format!("what the program uses fits into {outermost}, and waiting for memory is {share} of its time");
    }
    let outer = base.caches.last().filter(|outer| outer.classed());
    let classes = outer.and_then(|outer| {
        Some((
            outer,
            outer.cold?,
            outer.conflict?,
            outer.true_sharing?,
            outer.false_sharing?,
        ))
    });
    let Some((outer, cold, conflicts, truly, falsely)) = classes else {
        return format!("all {placements} placements lead to the same misses");
    };
    let part = |misses: u64| misses as f64 / outer.misses.max(1) as f64;
    let (first, sharing, conflict) = (part(cold), part(truly + falsely), part(conflicts));
    if first > 1.0 - NOTHING {
        return format!(
            "the {} misses are first touches, which no placement avoids, and {} of the time is waiting for them",
            outer.name,
            percent(memory / total)
        );
    }
    if sharing > 0.5 {
        return format!(
            "{} of the {} misses are of lines that cpus take from one another ({} by false sharing); it is the data's \
             layout that must change, not the pages' place",
            percent(sharing),
            outer.name,
            percent(part(falsely)),
        );
    }
    if conflict < NOTHING {
        let nodes = match machine.nodes {
            0 | 1 => "there is one node",
            _ => "all placements leave as many of them local",
        };
        let conflicts = match conflicts {
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
