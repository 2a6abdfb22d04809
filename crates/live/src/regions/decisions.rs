//! Decisions after each interval: medians of what was observed, the policy, and trials against a program's progress.
//!
//! Nothing here reads a clock or asks the system, so that a log that is told again gives the same actions.

mod rejected;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use policy::regions::pairing::{Domain, Free, Patience, Place, Plan, Process, Why, decide};
use results::{PairedProcess, PairingTrial};

use super::log::{Action, Observed, Seen};
use rejected::Rejected;

/// Intervals of which a median is taken; nothing is decided over a process before it was seen in so many.
pub const WINDOW: usize = 3;
/// Intervals for which a process keeps its place.
const LEAST: u32 = 5;
/// Intervals before and after a change whose progress is compared.
const TRIAL: usize = 3;
/// More time for each unit than this, as a ratio, is a loss.
const LOSS: f64 = 1.03;

/// Trials that the report lists, at most.
const TRIALS: usize = 256;

/// The reason of the others where a preferred program gets caches.
const MAKES_ROOM: &str = "it makes room for the preferred program";

/// Reasons of those that have no place although none was refused.
const LOST: &str = "a place was tried and lost";
const UNDECIDED: &str = "nothing has been decided since it became movable";

/// A process, and what was observed of it lately.
struct History {
    name: String,
    began: u64,
    bytes: VecDeque<u64>,
    busy: VecDeque<u32>,
    placed: Option<Vec<u32>>,
    since: u32,
    /// As it was seen last.
    seen: Seen,
}

impl History {
    /// True once it was seen for long enough.
    fn is_known(&self) -> bool {
        self.busy.len() >= WINDOW
    }
}

/// The places that processes had, by number.
type Places = BTreeMap<u32, Option<Vec<u32>>>;

/// A change that must prove itself.
struct Trial {
    before_ns: f64,
    /// The places that there were before, of the processes that it moved.
    places: Places,
    /// Those that it gave.
    tried: Places,
    /// Intervals since the change. The first one has the move itself in it, and does not count.
    since: usize,
}

pub struct Decisions {
    domains: Vec<Domain>,
    preferred: Option<String>,
    progress: bool,
    histories: BTreeMap<u32, History>,
    /// Processor time and units of work of the last intervals.
    rates: VecDeque<(u64, f64)>,
    units: Option<f64>,
    /// Processor time, and intervals, since units were read last.
    unread_ns: u64,
    silent: usize,
    trial: Option<Trial>,
    rejected: Rejected,
    /// The last ones.
    trials: VecDeque<PairingTrial>,
    /// The last plan that changed something, or else the last one, and its reason.
    plan: Option<(Plan, &'static str)>,
    /// Why processes have no place, by the last decision.
    free: BTreeMap<u32, Free>,
    /// Those that lost their places because the program made less progress with them.
    lost: BTreeSet<u32>,
    verified: bool,
}

impl Decisions {
    /// `progress`: whether a program says how much of its work it has done.
    pub fn new(domains: Vec<Domain>, preferred: Option<String>, progress: bool) -> Decisions {
        Decisions {
            domains,
            preferred,
            progress,
            histories: BTreeMap::new(),
            rates: VecDeque::new(),
            units: None,
            unread_ns: 0,
            silent: 0,
            trial: None,
            rejected: Rejected::default(),
            trials: VecDeque::new(),
            plan: None,
            free: BTreeMap::new(),
            lost: BTreeSet::new(),
            verified: false,
        }
    }

    /// An interval was observed. Returns what is to be done, and whether anything was decided.
    pub fn tell(&mut self, observed: &Observed) -> (Vec<Action>, bool) {
        self.remember(observed);
        if let Some(trial) = self.trial.take() {
            return (self.judge(trial), false);
        }
        // A program that tells no progress is not waited for.
        let tells = self.progress && self.units.is_some() && self.silent < 4 * TRIAL;
        let waits = tells && self.rates.len() < TRIAL;
        if waits || !self.histories.values().any(History::is_known) {
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
        if let Some(trial) = &mut self.trial {
            trial.places.retain(|process, _| histories.contains_key(process));
            trial.tried.retain(|process, _| histories.contains_key(process));
        }
        for seen in &observed.processes {
            let history = self.histories.entry(seen.process).or_insert_with(|| History {
                name: seen.name.clone(),
                began: seen.began,
                bytes: VecDeque::new(),
                busy: VecDeque::new(),
                placed: None,
                since: u32::MAX,
                seen: Seen::default(),
            });
            keep(&mut history.busy, seen.busy, WINDOW);
            if let Some(bytes) = seen.bytes {
                keep(&mut history.bytes, bytes, WINDOW);
            }
            history.since = history.since.saturating_add(1);
            history.seen = seen.clone();
            history.name.clone_from(&seen.name);
            if seen.left.is_some() {
                history.placed = None;
                self.lost.remove(&seen.process);
            } else if self.free.get(&seen.process) == Some(&Free::Fixed) {
                self.free.remove(&seen.process);
            }
        }
        // A preferred program is the one that tells its progress; else all may have a part in it.
        let counts = |seen: &&Seen| self.preferred.as_ref().is_none_or(|name| *name == seen.name);
        self.unread_ns += observed
            .processes
            .iter()
            .filter(counts)
            .map(|seen| seen.cpu_ns)
            .sum::<u64>();
        self.silent += 1;
        // A file that is just being written over may be empty: the next reading is of both intervals.
        let Some(now) = observed.units else { return };
        if let Some(before) = self.units
            && now >= before
        {
            keep(&mut self.rates, (self.unread_ns, now - before), TRIAL);
        }
        (self.units, self.unread_ns, self.silent) = (observed.units, 0, 0);
    }

    fn decide(&mut self) -> Vec<Action> {
        let processes: Vec<Process> = self.histories.values().map(|history| self.process(history)).collect();
        let plan = decide(&self.domains, &processes, Patience { least: LEAST });
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
                (place != history.placed).then_some((process, place))
            })
            .collect();
        let is_lost = self.rejected.contains(&new);
        let makes_room = |process: &u32| {
            let history = self.histories.get(process);
            plan.why == Why::Preferred && history.is_some_and(|history| self.preferred.as_ref() != Some(&history.name))
        };
        let why = |process: &u32| match self.free.get(process) {
            None if makes_room(process) => MAKES_ROOM,
            None | Some(Free::NoGain) => reason(plan.why),
            Some(free) => free_because(*free),
        };
        let actions = match is_lost {
            true => Vec::new(),
            false => self.actions(&new, why),
        };
        if is_lost {
            self.lost.extend(new.keys());
        }
        if self.plan.is_none() || !actions.is_empty() {
            // Whoever gives a place up because it must says why; the plan itself may have changed nothing.
            let first = new.keys().next().filter(|_| plan.why == Why::Nothing && !is_lost);
            let why = first.map_or(reason(plan.why), why);
            self.plan = Some((plan.clone(), why));
        }
        if is_lost {
            return Vec::new();
        }
        let gains = matches!(plan.why, Why::Cpus | Why::Fullest | Why::Preferred);
        if gains && !new.is_empty() {
            self.verified = false;
            self.trial = self.rate().map(|before_ns| Trial {
                before_ns,
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
        let placed = |process: &u32| Some((*process, self.histories.get(process)?.placed.clone()));
        these.keys().filter_map(placed).collect()
    }

    fn process(&self, history: &History) -> Process {
        Process {
            bytes: median(&history.bytes).unwrap_or(0),
            busy: median(&history.busy).unwrap_or(0),
            cpus: history.seen.cpus.clone(),
            seen: history.seen.seen,
            placed: history.placed.clone(),
            since: history.since,
            preferred: self.preferred.as_ref() == Some(&history.name),
            // One that has just begun counts, and is not moved yet.
            fixed: history.seen.left.is_some() || !history.is_known(),
        }
    }

    /// Processor time for each unit of work, over the last intervals; `None` where nothing is known to have been done.
    fn rate(&self) -> Option<f64> {
        let time: u64 = self.rates.iter().map(|(time, _)| time).sum();
        let units: f64 = self.rates.iter().map(|(_, units)| units).sum();
        (self.rates.len() >= TRIAL && units > 0.0).then(|| time as f64 / units)
    }

    /// A change is compared with what was before. Returns what undoes it, if it lost.
    fn judge(&mut self, mut trial: Trial) -> Vec<Action> {
        trial.since += 1;
        if trial.since == 1 {
            self.rates.clear();
            self.trial = Some(trial);
            return Vec::new();
        }
        let Some(after_ns) = self.rate() else {
            // A program that says nothing any more cannot be compared.
            self.trial = (trial.since < 4 * TRIAL).then_some(trial);
            return Vec::new();
        };
        let undone = after_ns > trial.before_ns * LOSS;
        let trial_said = PairingTrial {
            before_ns: trial.before_ns,
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
        self.rates.clear();
        let actions = self.actions(
            &trial.places,
            |_| "the program made less progress with the change than before",
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
                history.placed.clone_from(domains);
                history.since = 0;
            }
        }
    }

    /// The place that a process has by the last decision.
    pub fn place(&self, process: u32) -> Option<&[u32]> {
        self.histories.get(&process)?.placed.as_deref()
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
        let why = match (&history.placed, &history.seen.left) {
            (Some(_), _) => None,
            (None, Some(left)) => Some(left.clone()),
            _ if !history.is_known() => Some("it was not watched for long enough".to_string()),
            _ => {
                let none = if self.lost.contains(&process) { LOST } else { UNDECIDED };
                let why = self.free.get(&process).map_or(none, |free| free_because(*free));
                Some(why.to_string())
            }
        };
        Some(PairedProcess {
            process,
            name: history.name.clone(),
            working_set_bytes: median(&history.bytes),
            busy: median(&history.busy).unwrap_or(0),
            domains: history.placed.clone(),
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

fn median<T: Copy + Ord>(of: &VecDeque<T>) -> Option<T> {
    let mut sorted: Vec<T> = of.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// The reason for a change, in words.
fn reason(why: Why) -> &'static str {
    match why {
        Why::Cpus => "threads get cpus that were idle, or fewer of them share a cpu",
        Why::Fullest => "the fullest cache gets less to hold",
        Why::Preferred => "a preferred program gets caches of its own",
        Why::Released => "a place gains nothing any more",
        Why::Nothing => "nothing is to be gained, or less than an eighth",
    }
}

fn free_because(free: Free) -> &'static str {
    match free {
        Free::Fixed => "it is left alone",
        Free::Idle => "it is idle",
        Free::NoDomain => "it may use the cpus of no domain",
        Free::OneDomain => "it may use the cpus of one domain only",
        Free::OneFits => "one domain only has cpus for all of its busy threads",
        Free::Wide => "it keeps more cpus busy than it may use in one domain",
        Free::Taken => {
            "it may use none of the domains in its share: those of the preferred program, or those left to the others"
        }
        Free::Lost => "its cpuset has changed: it may not use the cpus of its place any more",
        Free::NoParts => "no program needs caches of its own any more",
        Free::NoGain => "a place of its own would gain nothing, or less than an eighth",
    }
}
