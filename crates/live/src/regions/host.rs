//! The host: observes processes interval by interval, gets decisions about them, and places their threads.
//!
//! In each interval:
//!
//! 1. It sees which processes there are, and tells the source of those that are busy that an interval begins.
//! 2. It waits, and looks several times at the cpus of the threads of those that have no place.
//! 3. It reads processor time, working sets, and the progress of a program that reports it; else instructions, if they
//!    can be counted.
//! 4. The observations go to the log and to [`super::decisions`]. Decisions are carried out, or in a dry run only
//!    reported.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::time::Duration;

use policy::regions::pairing::{Domain, rounded};
use results::{PairedProcess, PairingAction};
use sys::cpus::list;

use super::decisions::Decisions;
use super::error::RegionsError;
use super::linux::Linux;
use super::log::{Begins, Entry, Log, LoggedDomain, Observed, Seen, VERSION};
use super::sources::Choice;
use super::undo::Undo;
use super::{Config, Whom};
use grouped::Grouped;
use sys::cache_domains::CacheDomain;
use watched::{Unread, Watched, demand};

mod grouped;
mod placing;
mod report;
#[cfg(test)]
mod tests;
mod watched;

/// Looks at threads in an interval.
const LOOKS: u32 = 4;
/// The longest sleep between two checks for a stop.
const NAP: Duration = Duration::from_millis(50);
/// Actions and processes that the report lists, at most.
const LISTED: usize = 256;

pub struct Host<L: Linux> {
    linux: L,
    domains: Vec<CacheDomain>,
    choice: Choice,
    config: Config,
    whom: Whom,
    undo: Undo,
    decisions: Decisions,
    log: Log,
    watched: BTreeMap<u32, Watched>,
    begun: Duration,
    own_begun: Duration,
    interval_begun: Duration,
    intervals: u64,
    actions: VecDeque<PairingAction>,
    actions_count: u64,
    /// The processes of the last listing.
    listed: BTreeMap<u32, PairedProcess>,
    /// Working sets that could not be read, and the last one of them.
    unread: u64,
    unread_last: Option<String>,
    restored: u64,
    recovered: u64,
    grouped: Grouped,
    decided: bool,
}

impl<L: Linux> Host<L> {
    /// Restores the state that a killed run has left. Nothing is watched before the first interval.
    ///
    /// Errors: the log or the state cannot be written.
    pub fn new(
        mut linux: L,
        domains: Vec<CacheDomain>,
        choice: Choice,
        config: Config,
        whom: Whom,
        mut undo: Undo,
        log: Option<Box<dyn Write + Send>>,
    ) -> Result<Host<L>, RegionsError> {
        let recovered = undo.recover(&mut linux)?;
        let of_policy = domains.iter().map(|domain| Domain {
            cpus: domain.cpus.len() as u32,
            bytes: domain.bytes,
        });
        let progress = config.progress.is_some();
        let begun = linux.now();
        let mut host = Host {
            decisions: Decisions::new(of_policy.collect(), config.preferred.clone(), progress),
            own_begun: linux.own_time(),
            log: Log::new(log),
            linux,
            choice,
            whom,
            undo,
            watched: BTreeMap::new(),
            begun,
            interval_begun: begun,
            intervals: 0,
            actions: VecDeque::new(),
            actions_count: 0,
            listed: BTreeMap::new(),
            unread: 0,
            unread_last: None,
            restored: 0,
            recovered,
            grouped: Grouped::default(),
            decided: false,
            domains,
            config,
        };
        let logged = host.domains.iter().map(|domain| LoggedDomain {
            cpus: domain.cpus.clone(),
            bytes: domain.bytes,
        });
        let begins = Begins {
            version: VERSION,
            source: host.choice.source.name().to_string(),
            domains: logged.collect(),
            preferred: host.config.preferred.clone(),
            progress,
            acts: host.config.acts,
        };
        host.log.write(&Entry::Begins(begins))?;
        Ok(host)
    }

    /// Goes on, interval by interval, until no process is left to watch, the time is up, or `stop` returns true; a dry
    /// run until something was decided.
    pub fn run(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), RegionsError> {
        while self.interval(&mut stop)? {}
        self.log.flush()
    }

    /// One interval. Returns whether another one is to follow.
    pub fn interval(&mut self, stop: &mut impl FnMut() -> bool) -> Result<bool, RegionsError> {
        self.meet()?;
        if self.watched.is_empty() && self.whom.ends() {
            return Ok(false);
        }
        self.begin();
        if !self.wait(stop) {
            return Ok(false);
        }
        let observed = self.observe();
        self.intervals += 1;
        self.log.write(&Entry::Observed(observed.clone()))?;
        let (actions, decided) = self.decisions.tell(&observed);
        self.list(&observed);
        self.give_up(&observed)?;
        for action in actions {
            self.carry(action, observed.at)?;
        }
        self.decided |= decided && !observed.processes.is_empty();
        self.log.flush()?;
        let now = self.linux.now();
        self.interval_begun = now;
        let time_left = self.config.duration.is_none_or(|most| now - self.begun < most);
        Ok(time_left && (self.config.acts || !self.decided))
    }

    /// Begins to watch those that have come, and ends it for those that are gone.
    fn meet(&mut self) -> Result<(), RegionsError> {
        let there = match self.linux.members(&self.whom) {
            Ok(there) => there,
            Err(error) if self.watched.is_empty() => return Err(RegionsError::Nobody(error.to_string())),
            // The next interval asks again.
            Err(_) => return Ok(()),
        };
        let began: BTreeMap<u32, u64> = there
            .iter()
            .filter_map(|&process| Some((process, self.linux.began(process)?)))
            .collect();
        let gone =
            |(process, watched): (&u32, &Watched)| (began.get(process) != Some(&watched.began)).then_some(*process);
        for process in self.watched.iter().filter_map(gone).collect::<Vec<u32>>() {
            self.watched.remove(&process);
            self.choice.source.end(process);
            self.linux.uncount(process);
            // The process may have left the group, and still exist.
            self.restored += self.undo.restore(&mut self.linux, process)?;
        }
        for (process, began) in began {
            if !self.watched.contains_key(&process) {
                self.join(process, began);
            }
        }
        self.look_at_groups()?;
        self.undo.free(&mut self.linux)
    }

    fn join(&mut self, process: u32, began: u64) {
        let threads = self.linux.threads(process);
        let times = threads
            .iter()
            .map(|thread| (thread.number, (thread.ran, thread.waited)));
        if self.counts() {
            // Its counters begin with the interval.
            self.linux.counted(process, &threads);
        }
        let watched = Watched {
            began,
            name: self.linux.name(process),
            times: times.collect(),
            // The first interval shows that.
            busy: true,
            cpuset: Vec::new(),
            looks: vec![0; self.domains.len()],
            begun: None,
            placed: false,
            group: None,
            unsettled: None,
            pinned: None,
            refused: None,
            unread: Unread::default(),
        };
        self.watched.insert(process, watched);
    }

    /// An interval begins for those that were busy in the last one; the others cost nothing.
    fn begin(&mut self) {
        for (&process, watched) in &mut self.watched {
            watched.looks.fill(0);
            watched.begun = None;
            if watched.busy && watched.refused.is_none() {
                watched.begun = Some(self.choice.source.begin(process));
            }
        }
    }

    /// The working set in the interval that ends. One that cannot be read is tried again in the next.
    fn read(&mut self, process: u32) -> Option<u64> {
        let watched = self.watched.get_mut(&process)?;
        let read = watched.begun.clone()?.and_then(|()| self.choice.source.look(process));
        match read {
            Ok(bytes) => {
                watched.unread.read();
                Some(bytes)
            }
            Err(why) => {
                // The source restarts with it.
                self.choice.source.end(process);
                // A process that ends just now is gone the next time.
                if self.linux.began(process) == Some(watched.began) {
                    self.unread += 1;
                    self.unread_last = Some(format!("process {process} ({}): {why}", watched.name));
                    watched.unread.failed(why);
                }
                None
            }
        }
    }

    /// Sleeps until the interval is over, looking at threads. Returns whether to go on after it.
    fn wait(&mut self, stop: &mut impl FnMut() -> bool) -> bool {
        let part = self.config.interval / LOOKS;
        let end = self.interval_begun + self.config.interval;
        let mut look = self.interval_begun + part / 2;
        loop {
            let now = self.linux.now();
            if stop() {
                return false;
            }
            if now >= end {
                return true;
            }
            if now >= look {
                look += part;
                self.look();
            }
            self.linux.sleep(NAP.min(end - now));
        }
    }

    fn look(&mut self) {
        for (&process, watched) in self
            .watched
            .iter_mut()
            .filter(|(_, watched)| watched.begun == Some(Ok(())) && !watched.placed)
        {
            for thread in self.linux.threads(process) {
                let ran = watched
                    .times
                    .get(&thread.number)
                    .is_none_or(|&(ran, _)| thread.ran > ran);
                let domain = self.domains.iter().position(|domain| domain.cpus.contains(&thread.cpu));
                if let Some(domain) = domain.filter(|_| ran) {
                    watched.looks[domain] += 1;
                }
            }
        }
    }

    fn observe(&mut self) -> Observed {
        let time = (self.linux.now() - self.interval_begun).max(Duration::from_millis(1));
        let numbers: Vec<u32> = self.watched.keys().copied().collect();
        let processes = numbers
            .into_iter()
            .filter_map(|process| self.observe_one(process, nanos(time)));
        let processes = processes.collect();
        Observed {
            at: nanos(self.linux.now() - self.begun),
            processes,
            units: self.linux.units(),
        }
    }

    /// A process at the end of an interval; `None` if it has ended meanwhile.
    fn observe_one(&mut self, process: u32, time: u64) -> Option<Seen> {
        let threads = self.linux.threads(process);
        if threads.is_empty() {
            return None;
        }
        let watched = self.watched.get_mut(&process)?;
        let (busy, cpu_ns) = demand(&threads, &watched.times, time);
        watched.times = threads
            .iter()
            .map(|thread| (thread.number, (thread.ran, thread.waited)))
            .collect();
        watched.busy = rounded(busy) > 0;
        // The cpuset of an idle process may wait.
        if watched.busy || watched.cpuset.is_empty() {
            watched.cpuset = self.linux.cpuset(process)?;
        }
        let cpuset = watched.cpuset.clone();
        let mut cpus = self.own_cpuset(process)?;
        let name = self.linux.name(process);
        let watched = self.watched.get_mut(&process)?;
        if !name.is_empty() {
            watched.name = name;
        }
        let bytes = self.read(process);
        let counted = match self.counts() {
            true => self.linux.counted(process, &threads),
            false => None,
        };
        let watched = self.watched.get(&process)?;
        let refused = watched.refused.clone().or_else(|| watched.unread.left());
        // A process that rests for an interval is as it was.
        let pinned = match watched.busy {
            true => self.pinned(process, &threads, &cpuset),
            false => watched.pinned.clone(),
        };
        let watched = self.watched.get_mut(&process)?;
        watched.pinned.clone_from(&pinned);
        let pinned = pinned.map(|mask| {
            cpus.retain(|cpu| mask.contains(cpu));
            format!("its owner has pinned it to cpus {}", list(&mask))
        });
        let left = refused.or(pinned).or(watched.unsettled.take());
        let most = watched.looks.iter().max().copied().filter(|&most| most > 0);
        let seen = most.and_then(|most| watched.looks.iter().position(|&looks| looks == most));
        let usable = |domain: &CacheDomain| domain.cpus.iter().filter(|cpu| cpus.contains(cpu)).count() as u32;
        Some(Seen {
            process,
            began: watched.began,
            name: watched.name.clone(),
            bytes,
            busy,
            cpu_ns,
            counted,
            cpus: self.domains.iter().map(usable).collect(),
            seen: seen.map(|seen| seen as u32),
            left,
        })
    }

    /// True if changes are judged by instructions: something is changed, and no program tells its progress.
    fn counts(&self) -> bool {
        self.config.acts && self.config.progress.is_none()
    }

    /// Remembers the processes of an interval, as they may be seen for the last time.
    fn list(&mut self, observed: &Observed) {
        for seen in &observed.processes {
            let Some(paired) = self.decisions.paired(seen.process) else {
                continue;
            };
            if self.listed.len() < LISTED || self.listed.contains_key(&seen.process) {
                self.listed.insert(seen.process, paired);
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
