//! The gain of placement in plain words, and the reason if there is none.

use results::{Advice, Cause, HomesAdvice, Native, Outcome, Stall, percent, short, time};

use crate::basis;
use crate::words::{NOTHING, saved};
use crate::{cdpc, slots};

/// Below this share of the time, cache lines that move back and forth between cpus are not mentioned.
const FOUGHT_OVER: f64 = 0.05;

/// If cpus wait for memory for less than this part of their time, that comes first: nothing about memory can gain more.
const HARDLY_WAITS: f64 = 0.05;

/// For a gain over windows that may be zero over the run.
const CHANCE: &str = "What is gained over the windows of the trace may be chance: more windows would show.";

/// Used if nodes matter and colors do not.
const OTHER_COLORS: &str = "Other colors of pages make no difference.";

/// True if other nodes' memory is waited for.
fn matters(homes: &HomesAdvice) -> bool {
    homes.remote_share >= NOTHING
}

/// The largest cost and its cure; the gain of placement and of the order of work, in a sentence or two; and in one line
/// the things without an effect.
pub fn verdict(advice: &Advice) -> String {
    let right = advice.native.as_ref().is_some_and(Native::is_right);
    let bound = advice.base().and_then(|base| most_that_can_be_gained(base, right));
    let mut text: Vec<String> = bound.into_iter().collect();
    text.extend(worst_cause(advice));
    let (gain, placement) = placement(advice);
    // Each thing without an effect, and its sentence if it is the only one.
    let mut noes: Vec<(&str, &str)> = Vec::new();
    match gain {
        true => text.push(placement.clone()),
        // Homes of pages have separate sentences.
        false if advice.homes.as_ref().is_some_and(matters) => noes.push(("other colors of pages", OTHER_COLORS)),
        false => noes.push(("placing pages differently", &placement)),
    }
    if let Some(homes) = &advice.homes {
        text.push(homes.verdict.clone());
    }
    if let Some(sharing) = &advice.sharing {
        match crate::sharing::matters(sharing) {
            true => text.push(sharing.verdict.clone()),
            false => noes.push(("other caches for the threads", &sharing.verdict)),
        }
    }
    if let Some(work) = &advice.work {
        text.push(work.verdict.clone());
    }
    let slots = advice.slots.as_ref();
    if let Some(slots) = slots {
        match slots::gains(slots) {
            true if basis::may_be_chance(advice, &slots.policy) => noes.push(("cache slots", CHANCE)),
            true => text.push(slots.verdict.clone()),
            // A gain that is lost again is reported as such.
            false if slots.huge_pages.is_some_and(|lost| lost.refused) => text.push(slots.verdict.clone()),
            false => noes.push(("cache slots", &slots.verdict)),
        }
    }
    if let Some(cdpc) = &advice.cdpc {
        match cdpc::gains(cdpc) {
            true if basis::may_be_chance(advice, &cdpc.policy) => {
                noes.push(("compiler-directed page coloring", CHANCE))
            }
            true => text.push(cdpc.verdict.clone()),
            false if cdpc.huge_pages.is_some_and(|lost| lost.refused) => text.push(cdpc.verdict.clone()),
            false => noes.push(("compiler-directed page coloring", &cdpc.verdict)),
        }
    }
    match noes.as_slice() {
        [] => {}
        [(_, alone)] => text.push(alone.to_string()),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            text.push(format!("Nothing is gained by {}.", or(&names)));
        }
    }
    text.extend(advice.base().and_then(|base| layout(advice, base)));
    text.extend(basis::in_words(advice));
    match &advice.broke {
        None => text.join(" "),
        Some(broke) => format!("{} {}", of_a_stump(broke), text.join(" ")),
    }
}

/// A note that a verdict covers only the part that ran. The first part of the reason is enough: the whole stands above.
fn of_a_stump(broke: &str) -> String {
    let why = broke.split_once(": ").map_or(broke, |(why, _)| why);
    format!("Not of a whole run ({why}); what was recorded says no more than this:")
}

/// A sentence that cpus hardly wait for memory, if so. It adds that nothing can gain more only if the clock confirms
/// (`right`) the simulated runs.
fn most_that_can_be_gained(base: &Outcome, right: bool) -> Option<String> {
    let time = &base.time_ns;
    let waits = time.cache_stall + time.local_stall + time.remote_stall + time.tlb_stall;
    let share = waits as f64 / time.worked() as f64;
    let bound = if right {
        ": nothing that is changed about memory gains more"
    } else {
        ""
    };
    (share < HARDLY_WAITS).then(|| {
        format!(
            "Of the time that cpus work they wait for memory for {}{bound}.",
            percent(share)
        )
    })
}

/// The place whose cure saves most, else the longest waiting one that can be improved.
fn worst_cause(advice: &Advice) -> Option<String> {
    let mended = |cause: &&Cause| cause.change.is_some() && cause.gain.is_none_or(|gain| gain >= NOTHING);
    let worst = advice.causes.iter().find(mended)?;
    let mut text = format!(
        "{} of the time that cpus work goes to waiting for `{}` at {} ({}): {}",
        percent(worst.share),
        short(&worst.structure),
        place(worst),
        worst.kind,
        worst.change.as_deref().unwrap_or_default(),
    );
    match worst.gain {
        Some(gain) => text += &format!("; simulated, this saves {} of the run time.", percent(gain)),
        None => text.push('.'),
    }
    Some(text)
}

fn place(cause: &Cause) -> String {
    short(cause.source.as_ref().unwrap_or(&cause.function))
}

fn or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Costs that no placement of pages can cure: lines that cpus take from each other.
fn layout(advice: &Advice, base: &Outcome) -> Option<String> {
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
    let of_locks = |locks: bool| {
        let lines = advice.false_sharing.iter().filter(|line| line.lock == locks);
        lines.map(|line| line.misses).sum::<u64>()
    };
    let (whose, remedy) = if falsely > truly && of_locks(true) > of_locks(false) {
        (
            "mostly for words of locks that they take in turn",
            "hold a lock for less, take it less often, or have several",
        )
    } else if falsely > truly {
        (
            "mostly by accident (false sharing)",
            "put what different threads write into different lines",
        )
    } else {
        ("because they share the data", "let threads share less, or less often")
    };
    Some(format!(
        "{} of the time that cpus work goes to cache lines that they take from one another, {whose}: {remedy}.",
        percent(share)
    ))
}

/// Returns true if a different placement of pages gains anything, and the text.
fn placement(advice: &Advice) -> (bool, String) {
    let Some(base) = advice.base() else {
        return (true, "No policy was simulated.".to_string());
    };
    // Placement is judged with work in one order, that of the baseline.
    let policies: Vec<_> = advice
        .policies
        .iter()
        .filter(|outcome| outcome.order == base.order)
        // A proposal has its own sentence.
        .filter(|outcome| advice.slots.as_ref().is_none_or(|slots| slots.policy != outcome.policy))
        .filter(|outcome| !advice.refused.contains(&outcome.policy))
        .collect();
    let (Some(best), Some(worst)) = (policies.first(), policies.last()) else {
        return (true, "No policy was simulated.".to_string());
    };
    if base.references == 0 {
        return (
            true,
            "The trace holds no references: there is nothing to place.".to_string(),
        );
    }
    let gain = basis::gain(base, best);
    if gain >= NOTHING {
        let text = format!(
            "Placing pages by `{}` would save {} of the run time: {} instead of {} under `{}`.",
            best.policy,
            percent(gain),
            time(best.time_ns.wall),
            time(base.time_ns.wall),
            base.policy,
        );
        return (true, text);
    }
    let risk = saved(worst.time_ns.wall, base.time_ns.wall);
    if risk >= NOTHING {
        let ratio = worst.time_ns.wall as f64 / base.time_ns.wall as f64;
        let cost = match ratio {
            ratio if ratio < 2.0 => format!("cost {} more time", percent(ratio - 1.0)),
            ratio => format!("take {ratio:.1} times as long"),
        };
        let text = format!(
            "`{}`, the usual placement, is as good as any here; `{}` would {cost}.",
            base.policy, worst.policy
        );
        return (false, text);
    }
    let text = format!(
        "Placing pages differently makes no difference here: {}.",
        reason(advice, base, policies.len())
    );
    (false, text)
}

/// A sentence that no placement is better; a single one cannot be compared.
fn same_misses(placements: usize) -> String {
    match placements {
        1 => "one run shows none that could gain 1%, and no other was simulated".to_string(),
        _ => format!("all {placements} placements lead to the same misses"),
    }
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
        return same_misses(placements);
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
    same_misses(placements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_on_a_stump_says_so_first() {
        let mut advice = Advice::default();
        let firm = verdict(&advice);
        advice.broke =
            Some("the program was killed by signal 11 (SIGSEGV), at main (a.c:3): access not mapped".to_string());
        let text = verdict(&advice);
        assert!(
            text.starts_with(
                "Not of a whole run (the program was killed by signal 11 (SIGSEGV), at main (a.c:3)); what was"
            ),
            "{text}"
        );
        assert!(text.ends_with(&firm), "{text}");
    }
}
