//! The pace of work: processor time for each unit of it, before and after a change.
//!
//! A program may tell how many units it has done (`--progress`). Else the instructions of each process are the units, where
//! the processor counts them. Processes get more or less of the processor by a change, and an instruction of one takes longer
//! than that of another. So each process is compared with itself, and a change is judged by the work that was done both before and after.

use std::collections::{BTreeMap, VecDeque};

use super::super::log::Observed;
use super::keep;

/// Intervals before and after a change whose paces are compared.
pub const TRIAL: usize = 3;

/// Units of work, and the processor time that they took, by process. Those of a program that tells its progress stand under
/// [`TOLD`].
pub type Work = BTreeMap<u32, (u64, f64)>;

/// No process has this number.
const TOLD: u32 = 0;

#[derive(Debug)]
pub struct Pace {
    progress: bool,
    /// Only this program's work counts, where one is preferred.
    preferred: Option<String>,
    /// The last intervals.
    intervals: VecDeque<Work>,
    units: Option<f64>,
    /// Something was ever told.
    known: bool,
    /// Processor time since units were told last, and intervals without a word.
    unread_ns: u64,
    silent: usize,
}

impl Pace {
    /// `progress`: whether a program tells its progress.
    pub fn new(progress: bool, preferred: Option<String>) -> Pace {
        Pace {
            progress,
            preferred,
            intervals: VecDeque::new(),
            units: None,
            known: false,
            unread_ns: 0,
            silent: 0,
        }
    }

    /// An interval was observed.
    pub fn tell(&mut self, observed: &Observed) {
        let preferred = self.preferred.as_ref();
        let counts = observed
            .processes
            .iter()
            .filter(|seen| preferred.is_none_or(|name| *name == seen.name));
        self.silent += 1;
        if !self.progress {
            let counted = counts.filter_map(|seen| Some((seen.process, seen.counted?)));
            let work: Work = counted
                .map(|(process, counted)| (process, (counted.ns, counted.instructions as f64)))
                .collect();
            if !work.is_empty() {
                (self.known, self.silent) = (true, 0);
                keep(&mut self.intervals, work, TRIAL);
            }
            return;
        }
        self.unread_ns += counts.map(|seen| seen.cpu_ns).sum::<u64>();
        // A file that is just being written over may be empty: the next reading is of both intervals.
        let Some(now) = observed.units else { return };
        if let Some(before) = self.units
            && now >= before
        {
            keep(
                &mut self.intervals,
                Work::from([(TOLD, (self.unread_ns, now - before))]),
                TRIAL,
            );
        }
        (self.known, self.units, self.unread_ns, self.silent) = (true, observed.units, 0, 0);
    }

    /// True while too little is known for a comparison. A source that reports nothing is not waited
    /// for.
    pub fn waits(&self) -> bool {
        self.known && self.silent < 4 * TRIAL && self.intervals.len() < TRIAL
    }

    /// The work of the last intervals; `None` if nothing is known to have been done in so many.
    pub fn work(&self) -> Option<Work> {
        let mut sum = Work::new();
        for (&process, &(ns, units)) in self.intervals.iter().flatten() {
            let of = sum.entry(process).or_default();
            *of = (of.0 + ns, of.1 + units);
        }
        sum.retain(|_, (_, units)| *units > 0.0);
        (self.intervals.len() >= TRIAL && !sum.is_empty()).then_some(sum)
    }

    /// Forgets all earlier intervals.
    pub fn clear(&mut self) {
        self.intervals.clear();
    }

    /// A later process of the same number has nothing to do with one that is gone.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        for work in &mut self.intervals {
            retain(work, &is_there);
        }
    }
}

/// Forgets the work of processes that are gone.
pub fn retain(work: &mut Work, is_there: impl Fn(u32) -> bool) {
    work.retain(|&process, _| process == TOLD || is_there(process));
}

/// Processor time for a unit before and after, in ns, both over the same work: of each process that of before or after, whichever is
/// less. So a process that has hardly anything to do any more hardly counts. `None` if none did something in both.
pub fn compare(before: &Work, after: &Work) -> Option<(f64, f64)> {
    let (mut units, mut before_ns, mut after_ns) = (0.0, 0.0, 0.0);
    for (process, &(ns, done)) in before {
        let Some(&(later_ns, later)) = after.get(process) else {
            continue;
        };
        let work = done.min(later);
        units += work;
        before_ns += ns as f64 / done * work;
        after_ns += later_ns as f64 / later * work;
    }
    (units > 0.0).then(|| (before_ns / units, after_ns / units))
}
