//! Decisions after each interval: medians of the observations, the policy, and trials against the pace of work.
//!
//! Nothing here reads a clock or asks the system, so that a replayed log gives the same actions.

mod pace;
mod rejected;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use policy::regions::pairing::{Domain, Free, Lately, PATIENCE, Place, Plan, Process, Why, decide};
use results::{PairedProcess, PairingTrial};

use super::log::{Action, Observed, Seen};
use pace::{Pace, TRIAL, Work};
use rejected::Rejected;

/// More time for each unit than this, as a ratio, is a loss.
const LOSS: f64 = 1.03;

/// Trials that the report lists, at most.
const TRIALS: usize = 256;

/// The reason of the others where a preferred program gets caches.
const MAKES_ROOM: &str = "it makes room for the preferred program";

/// Reasons of those that have no place although none was refused.
const LOST: &str = "a place was tried and lost";
const UNDECIDED: &str = "nothing has been decided since it became movable";

/// A process, and its recent observations.
struct History {
    name: String,
    began: u64,
    lately: Lately,
    /// The last observation of it.
    seen: Seen,
}

/// The places that processes had, by number.
type Places = BTreeMap<u32, Option<Vec<u32>>>;

/// A change that must prove itself.
struct Trial {
    before: Work,
    /// The places that there were before, of the processes that it moved.
    places: Places,
    /// The places that it gave.
    tried: Places,
    /// Intervals since the change. The first one has the move itself in it, and does not count.
    since: usize,
}

pub struct Decisions {
    domains: Vec<Domain>,
    preferred: Option<String>,
    histories: BTreeMap<u32, History>,
    pace: Pace,
    trial: Option<Trial>,
    rejected: Rejected,
    /// The last ones.
    trials: VecDeque<PairingTrial>,
    /// The last plan that changed something, or else the last one, and its reason.
    plan: Option<(Plan, &'static str)>,
    /// Why processes have no place, by the last decision.
    free: BTreeMap<u32, Free>,
    /// Processes that lost their places because work went on more slowly with them.
    lost: BTreeSet<u32>,
    verified: bool,
}

impl Decisions {
    /// `progress`: whether a program says how much of its work it has done; else instructions count, where they are counted.
    pub fn new(domains: Vec<Domain>, preferred: Option<String>, progress: bool) -> Decisions {
        Decisions {
            domains,
            pace: Pace::new(progress, preferred.clone()),
            preferred,
            histories: BTreeMap::new(),
            trial: None,
            rejected: Rejected::default(),
            trials: VecDeque::new(),
            plan: None,
            free: BTreeMap::new(),
            lost: BTreeSet::new(),
            verified: false,
        }
    }

    /// Takes the observations of an interval. Returns the actions to take, and true if anything was
    /// decided.
    pub fn tell(&mut self, observed: &Observed) -> (Vec<Action>, bool) {
        self.remember(observed);
        if let Some(trial) = self.trial.take() {
            return (self.judge(trial), false);
        }
        if self.pace.waits() || !self.histories.values().any(|history| history.lately.is_known()) {
            return (Vec::new(), false);
        }
        (self.decide(), true)
    }

    fn remember(&mut self, observed: &Observed) {
        let there = |process: u32, began: u64| {
            let mut all = observed.processes.iter();
            all.any(|seen| seen.process == process && seen.began == began)
        };
        self.histories.retain(|&process, history| there(process, history.began));
        let histories = &self.histories;
        // A later process of the same number has nothing to do with all that.
        self.rejected.retain(|process| histories.contains_key(&process));
        self.free.retain(|process, _| histories.contains_key(process));
        self.lost.retain(|process| histories.contains_key(process));
        self.pace.retain(|process| histories.contains_key(&process));
        if let Some(trial) = &mut self.trial {
            trial.places.retain(|process, _| histories.contains_key(process));
            trial.tried.retain(|process, _| histories.contains_key(process));
            pace::retain(&mut trial.before, |process| histories.contains_key(&process));
        }
        for seen in &observed.processes {
            let history = self.histories.entry(seen.process).or_insert_with(|| History {
                name: seen.name.clone(),
                began: seen.began,
                lately: Lately::default(),
                seen: Seen::default(),
            });
            history.lately.tell(seen.bytes, seen.busy);
            history.seen = seen.clone();
            history.name.clone_from(&seen.name);
            if seen.left.is_some() {
                history.lately.lose_place();
                self.lost.remove(&seen.process);
            } else if self.free.get(&seen.process) == Some(&Free::Fixed) {
                self.free.remove(&seen.process);
            }
        }
        self.pace.tell(observed);
    }

    fn decide(&mut self) -> Vec<Action> {
        let processes: Vec<Process> = self.histories.values().map(|history| self.process(history)).collect();
        let plan = decide(&self.domains, &processes, PATIENCE);
        let free = self
            .histories
            .keys()
            .zip(&plan.places)
            .filter_map(|(&process, place)| match place {
                Place::Free(free) => Some((process, *free)),
                Place::In(_) => None,
            });
        self.free = free.collect();
        let new: Places = (self.histories.iter().zip(&plan.places))
            .filter_map(|((&process, history), place)| {
                let place = match place {
                    Place::In(domains) => Some(domains.clone()),
                    Place::Free(_) => None,
                };
                (place.as_deref() != history.lately.placed()).then_some((process, place))
            })
            .collect();
        let is_lost = self.rejected.contains(&new);
        let makes_room = |process: &u32| {
            let history = self.histories.get(process);
            plan.why == Why::Preferred && history.is_some_and(|history| self.preferred.as_ref() != Some(&history.name))
        };
        let why = |process: &u32| match self.free.get(process) {
            None if makes_room(process) => MAKES_ROOM,
            None | Some(Free::NoGain) => plan.why.in_words(),
            Some(free) => free.in_words(),
        };
        let actions = match is_lost {
            true => Vec::new(),
            false => self.actions(&new, why),
        };
        if is_lost {
            self.lost.extend(new.keys());
        }
        if self.plan.is_none() || !actions.is_empty() {
            // A process that must give its place up has its own reason; the plan itself may have changed
            // nothing.
            let first = new.keys().next().filter(|_| plan.why == Why::Nothing && !is_lost);
            let why = first.map_or(plan.why.in_words(), why);
            self.plan = Some((plan.clone(), why));
        }
        if is_lost {
            return Vec::new();
        }
        let gains = matches!(plan.why, Why::Cpus | Why::Fullest | Why::Preferred);
        if gains && !new.is_empty() {
            self.verified = false;
            self.trial = self.pace.work().map(|before| Trial {
                before,
                places: self.places_of(&new),
                tried: new.clone(),
                since: 0,
            });
        }
        self.take(&new);
        actions
    }

    /// The places that these processes have.
    fn places_of(&self, these: &Places) -> Places {
        let placed = |process: &u32| {
            Some((
                *process,
                self.histories.get(process)?.lately.placed().map(<[u32]>::to_vec),
            ))
        };
        these.keys().filter_map(placed).collect()
    }

    fn process(&self, history: &History) -> Process {
        let process = history.lately.process(history.seen.cpus.clone(), history.seen.seen);
        Process {
            preferred: self.preferred.as_ref() == Some(&history.name),
            fixed: process.fixed || history.seen.left.is_some(),
            ..process
        }
    }

    /// Compares a change with the time before. Returns the actions that undo it, if it lost.
    fn judge(&mut self, mut trial: Trial) -> Vec<Action> {
        trial.since += 1;
        if trial.since == 1 {
            self.pace.clear();
            self.trial = Some(trial);
            return Vec::new();
        }
        let after = self.pace.work();
        let Some((before_ns, after_ns)) = after.and_then(|after| pace::compare(&trial.before, &after)) else {
            // Work of which nothing is known any more cannot be compared.
            self.trial = (trial.since < 4 * TRIAL).then_some(trial);
            return Vec::new();
        };
        let undone = after_ns > before_ns * LOSS;
        let trial_said = PairingTrial {
            before_ns,
            after_ns,
            undone,
        };
        keep(&mut self.trials, trial_said, TRIALS);
        self.verified = !undone;
        if !undone {
            return Vec::new();
        }
        // A cpuset may have lost the cpus of the place of before.
        for (process, domains) in &mut trial.places {
            let seen = self.histories.get(process).map(|history| &history.seen);
            let usable =
                |domain: &u32| seen.is_some_and(|seen| seen.cpus.get(*domain as usize).is_some_and(|&cpus| cpus > 0));
            *domains = domains.take().filter(|domains| domains.iter().any(usable));
        }
        self.lost = trial.tried.keys().copied().collect();
        self.rejected.add(trial.tried);
        self.pace.clear();
        let actions = self.actions(
            &trial.places,
            |_| "work took more processor time with the change than before",
        );
        self.take(&trial.places);
        actions
    }

    /// A process that must be left alone has no place of ours.
    fn actions(&self, new: &Places, why: impl Fn(&u32) -> &'static str) -> Vec<Action> {
        let mut actions = Vec::new();
        for (process, domains) in new {
            if let Some(history) = self.histories.get(process)
                && history.seen.left.is_none()
            {
                actions.push(Action {
                    process: *process,
                    domains: domains.clone(),
                    why: why(process).to_string(),
                });
            }
        }
        actions
    }

    /// Processes have these places from now on, but for those that must be left alone.
    fn take(&mut self, new: &Places) {
        for (process, domains) in new {
            let history = self.histories.get_mut(process);
            if let Some(history) = history.filter(|history| history.seen.left.is_none()) {
                history.lately.place(domains.clone());
            }
        }
    }

    /// The place that a process has by the last decision.
    pub fn place(&self, process: u32) -> Option<&[u32]> {
        self.histories.get(&process)?.lately.placed()
    }

    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref().map(|(plan, _)| plan)
    }

    /// The reason of the last change, or for none.
    pub fn why(&self) -> Option<&'static str> {
        self.plan.as_ref().map(|(_, why)| *why)
    }

    pub fn trials(&self) -> Vec<PairingTrial> {
        self.trials.iter().cloned().collect()
    }

    pub fn verified(&self) -> bool {
        self.verified
    }

    /// A process by its medians, with its place, or why it has none.
    pub fn paired(&self, process: u32) -> Option<PairedProcess> {
        let history = self.histories.get(&process)?;
        let why = match (history.lately.placed(), &history.seen.left) {
            (Some(_), _) => None,
            (None, Some(left)) => Some(left.clone()),
            _ if !history.lately.is_known() => Some("it was not watched for long enough".to_string()),
            _ => {
                let none = if self.lost.contains(&process) { LOST } else { UNDECIDED };
                let why = self.free.get(&process).map_or(none, |free| free.in_words());
                Some(why.to_string())
            }
        };
        Some(PairedProcess {
            process,
            name: history.name.clone(),
            working_set_bytes: history.lately.bytes(),
            busy: history.lately.busy(),
            domains: history.lately.placed().map(<[u32]>::to_vec),
            why,
        })
    }
}

/// Adds one, and drops the oldest beyond so many.
fn keep<T>(all: &mut VecDeque<T>, one: T, most: usize) {
    all.push_back(one);
    while all.len() > most {
        all.pop_front();
    }
}
