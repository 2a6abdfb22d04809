//! What placement can gain, said plainly, and why where it is nothing.

use crate::advice::Advice;
use crate::number::{nanoseconds, percent};
use crate::outcome::Outcome;

/// Below this, two predicted times are the same for all that the model can tell.
const NOTHING: f64 = 0.01;

/// What placement can gain, in a sentence or two.
pub fn verdict(advice: &Advice) -> String {
    let (Some(best), Some(base)) = (advice.policies.first(), advice.base()) else {
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
    let worst = advice.policies.last().unwrap_or(best);
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
        reason(advice, base)
    )
}

/// The part of `from` that is saved by `to`.
fn relative(from: f64, to: f64) -> f64 {
    if from > 0.0 { (from - to) / from } else { 0.0 }
}

fn reason(advice: &Advice, base: &Outcome) -> String {
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
    let outer = base.caches.last();
    if let Some(outer) = outer.filter(|outer| outer.cold as f64 > (1.0 - NOTHING) * outer.misses as f64) {
        return format!(
            "the {} misses are first touches, which no placement avoids, and {} of the time is waiting for them",
            outer.name,
            percent(memory / time.total)
        );
    }
    let movable = outer.map_or(0, |cache| cache.conflict);
    if let Some(outer) = outer.filter(|outer| outer.classed() && (movable as f64) < NOTHING * outer.misses as f64) {
        let nodes = if machine.nodes <= 1 {
            "there is one node"
        } else {
            "all placements leave as many of them local"
        };
        return format!(
            "only {} of the {} misses are conflicts, which is what colors can remove, and {nodes}",
            percent(if outer.misses > 0 {
                movable as f64 / outer.misses as f64
            } else {
                0.0
            }),
            outer.name
        );
    }
    format!("all {} placements lead to the same misses", advice.policies.len())
}
