//! Reserved ways, for machines whose cpus all share the last-level cache: a preferred program gets ways of it for
//! itself (resctrl), and all others keep the rest.
//!
//! Its threads are put into a group of the kernel's, which releases them when the group is removed at the end; a group
//! that a killed run has left is removed when the next one is made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use policy::slots::Kind;
use results::{LiveRegions, PairedProcess, PairingAction, PairingDomain, bytes};
use sys::cpus::list;

use super::linux::Linux;
use super::{Config, RegionsError, Whom};
use crate::resctrl::{WaySlot, Ways, WaysError};

/// The longest sleep between two checks for a stop.
const NAP: Duration = Duration::from_millis(50);

/// A program with ways of its own, or in a dry run one that would have them.
pub struct Reserved<L: Linux> {
    linux: L,
    slot: Option<WaySlot>,
    bytes: u64,
    cpus: Vec<u32>,
    level: u32,
    config: Config,
    whom: Whom,
    /// By process: the threads that were put into the group.
    told: BTreeMap<u32, BTreeSet<u32>>,
    actions: Vec<PairingAction>,
    intervals: u64,
    begun: Duration,
}

impl<L: Linux> Reserved<L> {
    /// Half of the ways that are free become the preferred program's.
    ///
    /// Errors: there are no ways to have; nobody is preferred.
    pub fn begin(
        mut linux: L,
        ways: &Ways,
        (level, cpus): (u32, Vec<u32>),
        config: Config,
        whom: Whom,
    ) -> Result<Reserved<L>, RegionsError> {
        if config.preferred.is_none() {
            return Err(RegionsError::OneDomain);
        }
        let half = ways.available(&cpus)? / 2;
        let slot = match config.acts {
            true => Some(ways.slot(half, Kind::Private, &cpus)?),
            false => None,
        };
        let begun = linux.now();
        Ok(Reserved {
            linux,
            bytes: slot.as_ref().map_or(half, WaySlot::bytes),
            slot,
            cpus,
            level,
            config,
            whom,
            told: BTreeMap::new(),
            actions: Vec::new(),
            intervals: 0,
            begun,
        })
    }

    /// Goes on until the time is up, `stop` says so, or nobody of those that are watched is left; a dry run looks once.
    pub fn run(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), RegionsError> {
        loop {
            let there = self.look()?;
            self.intervals += 1;
            let over = self.linux.now() - self.begun;
            let late = self.config.duration.is_some_and(|duration| over >= duration);
            if !self.config.acts || late || (there == 0 && self.whom.ends()) {
                return Ok(());
            }
            let until = self.linux.now() + self.config.interval;
            while self.linux.now() < until {
                if stop() {
                    return Ok(());
                }
                self.linux.sleep(NAP.min(self.config.interval));
            }
        }
    }

    /// Tells the kernel of threads that are new. Returns how many processes are watched.
    fn look(&mut self) -> Result<usize, RegionsError> {
        let preferred = self.config.preferred.clone().unwrap_or_default();
        let members = self.linux.members(&self.whom).unwrap_or_default();
        let living: Vec<u32> = members
            .into_iter()
            .filter(|&process| self.linux.began(process).is_some())
            .collect();
        self.told.retain(|process, _| living.contains(process));
        for &process in &living {
            let name = self.linux.name(process);
            if name.trim() != preferred {
                continue;
            }
            let threads: BTreeSet<u32> = self.linux.threads(process).iter().map(|thread| thread.number).collect();
            let first = !self.told.contains_key(&process);
            let told = self.told.entry(process).or_default();
            let mut failed = None;
            for &thread in threads.difference(&told.clone()) {
                match self.slot.as_ref().map(|slot| slot.add(thread)) {
                    // It has ended meanwhile.
                    Some(Err(WaysError::NoThread { .. })) => {}
                    Some(Err(error)) => failed = Some(error.to_string()),
                    None | Some(Ok(())) => {
                        told.insert(thread);
                    }
                }
            }
            told.retain(|thread| threads.contains(thread));
            if first || failed.is_some() {
                let at_ns = (self.linux.now() - self.begun).as_nanos() as u64;
                self.actions.push(PairingAction {
                    at_ns,
                    process,
                    name: name.trim().to_string(),
                    domains: Some(vec![0]),
                    why: format!("{} of the cache are its own (resctrl)", bytes(self.bytes)),
                    failed,
                });
            }
        }
        Ok(living.len())
    }

    /// Gives the ways back, and reports the outcome.
    pub fn end(mut self) -> Result<LiveRegions, RegionsError> {
        let processes = self.actions.iter().map(|action| PairedProcess {
            process: action.process,
            name: action.name.clone(),
            domains: action.domains.clone(),
            ..PairedProcess::default()
        });
        let why = match self.actions.is_empty() {
            true => "no process of the preferred program was there".to_string(),
            false => String::new(),
        };
        let report = LiveRegions {
            acted: self.config.acts,
            source: "none".to_string(),
            source_limit: "ways need no working sets; lines that are in the cache already are hit from anywhere"
                .to_string(),
            preferred: self.config.preferred.clone(),
            domains: vec![PairingDomain {
                cpus: list(&self.cpus),
                level: Some(self.level),
                ..PairingDomain::default()
            }],
            processes: processes.collect(),
            why,
            actions_count: self.actions.len() as u64,
            actions: self.actions.clone(),
            intervals: self.intervals,
            own_ns: self.linux.own_time().as_nanos() as u64,
            wall_ns: (self.linux.now() - self.begun).as_nanos() as u64,
            notes: vec![format!(
                "all cpus share the L{} cache: ways of it were {}, by resctrl. This has run on made-up trees and on no hardware",
                self.level,
                if self.config.acts {
                    "given, and taken back"
                } else {
                    "to be given"
                }
            )],
            ..LiveRegions::default()
        };
        if let Some(slot) = self.slot.take() {
            slot.free()?;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regions::fake::{Fake, Process, Thread};
    use crate::resctrl::tests::{INTEL, group_names, machine, masks, ways};

    const MIB: u64 = 1 << 20;

    fn config(acts: bool) -> Config {
        Config {
            interval: Duration::from_secs(1),
            duration: Some(Duration::from_secs(3)),
            preferred: Some("redis".to_string()),
            acts,
            progress: None,
        }
    }

    fn two_programs() -> Fake {
        let redis = Process {
            name: "redis".to_string(),
            ..Process::busy(1, MIB)
        };
        Fake::with([(11, redis), (12, Process::busy(1, MIB))])
    }

    #[test]
    fn the_preferred_program_has_ways_until_the_end() {
        let folder = machine(&INTEL);
        let fake = two_programs();
        let ways = ways(&folder, &INTEL);
        let whom = Whom::Processes(vec![11, 12]);
        let mut reserved = Reserved::begin(fake.clone(), &ways, (3, vec![0, 1]), config(true), whom).unwrap();
        let group = group_names(&folder).remove(0);
        // The group has half of the 18 ways that devices do not use; the default group has the
        // others.
        let [own, default] = [group.as_str(), ""].map(|group| masks(&folder, &INTEL, group)[0]);
        assert_eq!((own.count_ones() >= 8, own & default), (true, 0));
        // A thread that starts meanwhile is put into the group as well.
        let begun = fake.clone();
        let mut looks = 0;
        reserved
            .run(|| {
                looks += 1;
                if looks == 30 {
                    let mut world = begun.0.lock().unwrap();
                    world
                        .processes
                        .get_mut(&11)
                        .unwrap()
                        .threads
                        .insert(99, Thread::on(&[0, 1]));
                }
                false
            })
            .unwrap();
        let tasks = std::fs::read_to_string(folder.path().join("sys/fs/resctrl").join(&group).join("tasks")).unwrap();
        let told: Vec<&str> = tasks.lines().collect();
        let threads: Vec<String> = fake.0.lock().unwrap().processes[&11]
            .threads
            .keys()
            .map(u32::to_string)
            .collect();
        assert_eq!(told.len(), 2);
        assert!(
            threads.iter().all(|thread| told.contains(&thread.as_str())),
            "{told:?} {threads:?}"
        );
        let report = reserved.end().unwrap();
        assert_eq!((report.actions.len(), report.acted), (1, true));
        assert!(report.actions[0].why.contains("are its own (resctrl)"), "{report:?}");
        assert!(group_names(&folder).is_empty());
        assert_eq!(masks(&folder, &INTEL, "")[0], 0xfffff);
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let folder = machine(&INTEL);
        let whom = Whom::Processes(vec![11, 12]);
        let ways = ways(&folder, &INTEL);
        let mut reserved = Reserved::begin(two_programs(), &ways, (3, vec![0, 1]), config(false), whom).unwrap();
        reserved.run(|| false).unwrap();
        let report = reserved.end().unwrap();
        assert_eq!((report.actions.len(), report.acted), (1, false));
        assert_eq!(masks(&folder, &INTEL, "")[0], 0xfffff);
        assert!(group_names(&folder).is_empty());
    }
}
