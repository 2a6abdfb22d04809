//! The gain of running the marked work in another order, and its reason.

use policy::Name;
use results::{
    CLASSES, Cache, CacheChange, Change, Outcome, Work, WorkAdvice, bytes, count, nanoseconds, percent, time,
};

use crate::names::{outcome_of, without_order};
use crate::words::{NOTHING, saved};

/// The first of the policies that orders work and differs from another among them only in that.
pub fn advice(policies: &[Outcome], names: &[Name]) -> Option<WorkAdvice> {
    policies.iter().find_map(|new| {
        let work = new.order.as_ref()?;
        let name = names.iter().find(|name| name.to_string() == new.policy)?;
        let old = outcome_of(policies, &without_order(name)).filter(|old| old.order.is_none())?;
        Some(of(work, new, old))
    })
}

fn of(work: &Work, new: &Outcome, old: &Outcome) -> WorkAdvice {
    let (wall, against) = (new.time_ns.wall, old.time_ns.wall);
    let mut advice = WorkAdvice {
        policy: new.policy.clone(),
        against: old.policy.clone(),
        work: work.clone(),
        wall_ns: wall,
        against_ns: against,
        gain: saved(against, wall),
        gain_ns_per_item: (against as f64 - wall as f64) / work.items.max(1) as f64,
        caches: old
            .caches
            .iter()
            .zip(&new.caches)
            .map(|(old, new)| change(old, new))
            .collect(),
        verdict: String::new(),
    };
    advice.verdict = in_words(&advice);
    advice
}

fn change(old: &Cache, new: &Cache) -> CacheChange {
    let (before, after) = (old.totals(), new.totals());
    let classes = CLASSES.iter().zip(before.classes.into_iter().zip(after.classes));
    let change = |(class, (before, after)): (&&str, (Option<u64>, Option<u64>))| {
        let (before, after) = before.zip(after)?;
        Some((class.to_string(), Change { before, after }))
    };
    let classes = classes.filter_map(change);
    CacheChange {
        name: old.name.clone(),
        level: old.level,
        misses: Change {
            before: before.misses,
            after: after.misses,
        },
        classes: classes
            .filter(|(_, change)| change.before > 0 || change.after > 0)
            .collect(),
    }
}

fn in_words(advice: &WorkAdvice) -> String {
    let work = &advice.work;
    let items = format!("the {} marked work items", count(work.items));
    let mut text = if work.moved == 0 {
        format!(
            "Policy `order` leaves {items} in the order that they have: {}.",
            why_none_moved(work)
        )
    } else if advice.gain >= NOTHING {
        format!(
            "Running {items} in the order of `{}` ({}) would save {} of the run time: {} instead of {} under `{}`. That \
             is {} for each item, which is what forking one may cost. {}",
            advice.policy,
            bins(work),
            percent(advice.gain),
            time(advice.wall_ns),
            time(advice.against_ns),
            advice.against,
            nanoseconds(advice.gain_ns_per_item),
            misses(advice),
        )
    } else if advice.gain <= -NOTHING {
        format!(
            "Running {items} in the order of `{}` ({}) would cost {} more time than under `{}`: the order that they \
             have suits the caches better. {}",
            advice.policy,
            bins(work),
            percent(-advice.gain),
            advice.against,
            misses(advice),
        )
    } else {
        format!(
            "Running {items} in the order of `{}` ({}) makes no difference to the time. {}",
            advice.policy,
            bins(work),
            misses(advice),
        )
    };
    if work.workers > 1 {
        text += &format!(
            " The new order is run by {} workers, the old one by one thread: part of the difference is theirs.",
            work.workers
        );
    }
    if work.fixed > 0 {
        text += &format!(
            " {} further items stay where they are, because threads meet in them or they do not end.",
            count(work.fixed)
        );
    }
    text
}

fn bins(work: &Work) -> String {
    let runs = match work.runs {
        1 => String::new(),
        runs => format!(" over {} runs", count(runs)),
    };
    format!(
        "{} bins{runs}, blocks of {} a side",
        count(work.bins),
        bytes(work.block)
    )
}

fn why_none_moved(work: &Work) -> String {
    if work.runs == work.items {
        return "no two of them follow each other without a phase, a point where threads meet, or much else between them"
            .to_string();
    }
    if work.bins == work.runs {
        return format!(
            "all items of a run are in one bin, because their hints lie within one block of {} a side; a smaller \
             block can be set with `--set order.block=BYTES`",
            bytes(work.block)
        );
    }
    "those of a bin follow each other already".to_string()
}

/// The change in the misses of the outermost cache.
fn misses(advice: &WorkAdvice) -> String {
    let Some(cache) = advice.caches.last() else {
        return String::new();
    };
    let Change { before, after } = cache.misses;
    let total = format!("{} misses: {} become {}", cache.name, count(before), count(after));
    let classes: Vec<_> = cache
        .classes
        .iter()
        .map(|(class, change)| class_in_words(class, *change))
        .collect();
    match classes.is_empty() {
        true => format!("{total}."),
        false => format!("{total} ({}).", classes.join(", ")),
    }
}

/// A class of misses in both orders.
pub fn class_in_words(class: &str, change: Change) -> String {
    match change {
        Change { before, after } if before == after => format!("{class} {}", count(before)),
        Change { before, after } => format!("{class} {} → {}", count(before), count(after)),
    }
}
