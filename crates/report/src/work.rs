//! What running the marked work in another order gains, and why.

use serde::{Deserialize, Serialize};

use crate::number::{bytes, count, nanoseconds, percent};
use crate::outcome::{CLASSES, Cache, Outcome, Work};

/// Below this, two predicted times are the same for all that the model can tell.
const NOTHING: f64 = 0.01;

/// One order of work against the work as it was, on the same placement of pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkAdvice {
    /// The policy with `order`, and the same without it.
    pub policy: String,
    pub against: String,
    pub work: Work,
    /// Predicted time of the whole run in the new order and in the old one.
    pub wall_ns: f64,
    pub against_ns: f64,
    /// The part of the old time that is saved; negative where the new order is slower.
    pub gain: f64,
    /// What is saved for each item: forking an item may cost as much. Forking is not simulated.
    pub gain_ns_per_item: f64,
    pub caches: Vec<CacheChange>,
    /// The same in words.
    pub verdict: String,
}

/// Misses of one kind of cache in the old order and in the new.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheChange {
    pub name: String,
    pub level: u8,
    pub misses: Change,
    /// By class of misses, those that there are in either order.
    pub classes: Vec<(String, Change)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub before: u64,
    pub after: u64,
}

impl WorkAdvice {
    /// The first of the policies that orders work and has another among them that differs in nothing else.
    pub fn new(policies: &[Outcome]) -> Option<WorkAdvice> {
        policies.iter().find_map(|new| {
            let work = new.order.as_ref()?;
            let old = policies
                .iter()
                .find(|old| old.order.is_none() && placement(&new.policy) == old.policy)?;
            Some(WorkAdvice::of(work, new, old))
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
            gain: if against > 0.0 { (against - wall) / against } else { 0.0 },
            gain_ns_per_item: (against - wall) / work.items.max(1) as f64,
            caches: old
                .caches
                .iter()
                .zip(&new.caches)
                .map(|(old, new)| change(old, new))
                .collect(),
            verdict: String::new(),
        };
        advice.verdict = advice.in_words();
        advice
    }

    fn in_words(&self) -> String {
        let work = &self.work;
        let items = format!("the {} marked work items", count(work.items));
        let mut text = if work.moved == 0 {
            format!(
                "Policy `order` leaves {items} in the order that they have: {}.",
                self.why_none_moved()
            )
        } else if self.gain >= NOTHING {
            format!(
                "Running {items} in the order of `{}` ({}) would save {} of the run time: {} instead of {} under `{}`. That \
                 is {} for each item, which is what forking one may cost. {}",
                self.policy,
                self.bins(),
                percent(self.gain),
                nanoseconds(self.wall_ns),
                nanoseconds(self.against_ns),
                self.against,
                nanoseconds(self.gain_ns_per_item),
                self.misses(),
            )
        } else if self.gain <= -NOTHING {
            format!(
                "Running {items} in the order of `{}` ({}) would cost {} more time than under `{}`: the order that they \
                 have suits the caches better. {}",
                self.policy,
                self.bins(),
                percent(-self.gain),
                self.against,
                self.misses(),
            )
        } else {
            format!(
                "Running {items} in the order of `{}` ({}) makes no difference to the time. {}",
                self.policy,
                self.bins(),
                self.misses(),
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

    fn bins(&self) -> String {
        let work = &self.work;
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

    fn why_none_moved(&self) -> String {
        let work = &self.work;
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

    /// What becomes of the misses of the outermost cache.
    fn misses(&self) -> String {
        let Some(cache) = self.caches.last() else {
            return String::new();
        };
        let Change { before, after } = cache.misses;
        let total = format!("{} misses: {} become {}", cache.name, count(before), count(after));
        let classes: Vec<_> = cache
            .classes
            .iter()
            .map(|(class, change)| in_words(class, *change))
            .collect();
        match classes.is_empty() {
            true => format!("{total}."),
            false => format!("{total} ({}).", classes.join(", ")),
        }
    }
}

/// A class of misses in both orders.
pub fn in_words(class: &str, change: Change) -> String {
    match change {
        Change { before, after } if before == after => format!("{class} {}", count(before)),
        Change { before, after } => format!("{class} {} → {}", count(before), count(after)),
    }
}

/// A policy's name without the part that orders work; placement alone is `page-coloring`.
fn placement(policy: &str) -> String {
    match policy
        .parse::<policy::Name>()
        .map(|name| name.without(policy::Kind::Order))
    {
        Ok(Some(placement)) => placement.to_string(),
        Ok(None) => "page-coloring".to_string(),
        Err(_) => policy.to_string(),
    }
}

/// What the block is, and how it came to be chosen.
pub fn facts(work: &Work) -> String {
    let plural = |number: u64, what: &str| format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" });
    format!(
        "{} ({} moved) in {} and {}, {} looked at, tour {}; {}",
        plural(work.items, "item"),
        count(work.moved),
        plural(work.runs, "run"),
        plural(work.bins, "bin"),
        plural(u64::from(work.hints), "hint"),
        work.tour,
        work.reason,
    )
}

fn change(old: &Cache, new: &Cache) -> CacheChange {
    let changes = CLASSES.iter().map(|(class, of)| {
        let (before, after) = (of(old), of(new));
        (class.to_string(), Change { before, after })
    });
    CacheChange {
        name: old.name.clone(),
        level: old.level,
        misses: Change {
            before: old.misses,
            after: new.misses,
        },
        classes: changes.filter(|(_, change)| change.before + change.after > 0).collect(),
    }
}
