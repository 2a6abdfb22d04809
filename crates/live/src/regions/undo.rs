//! The cpus that threads and control groups had before, in a file that is written before anything changes: so every
//! thread and group can be restored after an end or a kill.
//!
//! A thread gets its cpus back if it is the same one, by the time at which it began, and still has the cpus that were
//! given to it here, or the part of them that its cpuset has left. A thread that began later and has the same ones has
//! inherited them, and gets those of its process. So does each process that a placed one has started, as soon as it is
//! seen.
//!
//! A thread that cannot have its cpus again stays in the file. The end and the next start try once more.

mod groups;
mod kept;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sys::tasks::Demand;

use super::error::RegionsError;
use super::linux::{Here, Linux};
use groups::{Groups, Held};
use kept::{Kept, is_gone};

const FILE: &str = "regions-undo.json";
const LOCK: &str = "regions.lock";
const SHOWN: &str = "regions-shown";
/// Passes over the threads of a process: new ones may begin meanwhile.
const PASSES: usize = 4;

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    threads: Vec<Kept>,
    #[serde(default)]
    groups: Vec<Held>,
}

/// The kind of errors of operations that may work in the next interval.
pub(super) const NOT_NOW: io::ErrorKind = io::ErrorKind::WouldBlock;

pub(super) fn not_now(why: &str) -> io::Error {
    io::Error::new(NOT_NOW, why)
}

/// A thread that could not have its cpus again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    pub process: u32,
    pub thread: u32,
    pub why: String,
}

pub struct Undo {
    folder: PathBuf,
    /// Held as long as this lives.
    _lock: File,
    /// The records, by process and thread.
    kept: BTreeMap<(u32, u32), Kept>,
    /// The errors of those of them that could not have their cpus again.
    stuck: BTreeMap<(u32, u32), String>,
    groups: Groups,
}

/// The folder of the state: of the machine for root, else of the user.
///
/// Errors: the user has none.
pub fn folder() -> Result<PathBuf, RegionsError> {
    if sys::processes::this_user() == 0 {
        return Ok(PathBuf::from("/run/domicile"));
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    own.map(|folder| PathBuf::from(folder).join("domicile"))
        .ok_or(RegionsError::NoFolder)
}

/// The mark of a dry run that was shown, which comes before the first change.
pub struct Shown(PathBuf);

impl Shown {
    pub fn at(folder: &Path) -> Shown {
        Shown(folder.join(SHOWN))
    }

    pub fn is(&self) -> bool {
        self.0.exists()
    }

    /// Errors: the file cannot be written.
    pub fn remember(&self) -> Result<(), RegionsError> {
        fs::write(&self.0, "").map_err(|error| RegionsError::State {
            path: self.0.clone(),
            error,
        })
    }
}

impl Undo {
    /// Takes the folder, which is made if it is not there.
    ///
    /// Errors: it cannot be made or written; another process has it.
    pub fn open(folder: &Path) -> Result<Undo, RegionsError> {
        let failed = |error| RegionsError::State {
            path: folder.to_path_buf(),
            error,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RegionsError::Busy(folder.to_path_buf())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Undo {
            folder: folder.to_path_buf(),
            _lock: lock,
            kept: BTreeMap::new(),
            stuck: BTreeMap::new(),
            groups: Groups::default(),
        })
    }

    /// Restores the state that a killed run has left, or that could not be restored earlier. Returns the threads that
    /// have their cpus again.
    ///
    /// Errors: the file is there and cannot be read; then nothing is changed.
    pub fn recover(&mut self, linux: &mut impl Linux) -> Result<u64, RegionsError> {
        let path = self.file();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(RegionsError::Unread { path, error }),
        };
        let saved: Saved = serde_json::from_slice(&text).map_err(|error| RegionsError::Damaged { path, error })?;
        self.groups.held = Groups::known(saved.groups);
        for kept in saved.threads {
            self.kept.insert((kept.process, kept.thread), kept);
        }
        self.restore_all(linux)
    }

    /// The same on this machine.
    pub fn recover_here(&mut self) -> Result<u64, RegionsError> {
        self.recover(&mut Here::new(None))
    }

    /// The file, which exists as long as a thread does not have the cpus that it had before.
    pub fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn failed(&self, error: io::Error) -> RegionsError {
        RegionsError::State {
            path: self.file(),
            error,
        }
    }

    /// Control groups that could not have their own choice of cpus again so far, each with its error.
    pub fn stuck_groups(&self) -> impl Iterator<Item = (&PathBuf, &String)> {
        self.groups.stuck.iter()
    }

    /// Threads that have not been able to get their cpus back so far.
    pub fn stuck(&self) -> impl Iterator<Item = Stuck> {
        self.stuck.iter().map(|(&(process, thread), why)| Stuck {
            process,
            thread,
            why: why.clone(),
        })
    }

    fn of(&self, process: u32) -> impl Iterator<Item = &Kept> {
        let range = (process, 0)..=(process, u32::MAX);
        self.kept.range(range).map(|(_, kept)| kept)
    }

    /// True if a process was given cpus here.
    pub fn has(&self, process: u32) -> bool {
        self.of(process).next().is_some()
    }

    /// True if a thread has its cpus because its process was given them here.
    pub fn is_ours(&self, process: u32, thread: &Demand, mask: &[u32], cpuset: &[u32]) -> bool {
        self.origin(process, thread, mask, Some(cpuset)).is_some()
    }

    /// The earlier state of a thread that has cpus given here: its own, or that of the thread of its process from which
    /// it inherited them. Cpus of an owner's choice are neither.
    fn origin(&self, process: u32, thread: &Demand, mask: &[u32], cpuset: Option<&[u32]>) -> Option<Kept> {
        let known = self
            .kept
            .get(&(process, thread.number))
            .filter(|kept| kept.is_of(thread));
        match known {
            Some(kept) => Some(kept).filter(|kept| kept.is_ours(mask, cpuset)).cloned(),
            None => {
                let source = self.of(process).find(|kept| kept.passed_on(thread, mask, cpuset));
                source.map(|source| source.inherited_by(process, thread))
            }
        }
    }

    /// Gives all threads of a process these cpus. The earlier state of each is written to the file first.
    ///
    /// Returns the kernel's error, if any. Errors: the file cannot be written; then nothing is changed.
    pub fn give(&mut self, linux: &mut impl Linux, process: u32, cpus: &[u32]) -> Result<io::Result<()>, RegionsError> {
        let cpuset = linux.cpuset(process);
        for _ in 0..PASSES {
            let since = linux.ticks();
            let mut to_do = Vec::new();
            let mut new = false;
            for thread in linux.threads(process) {
                let Some(mask) = linux.mask(process, thread.number) else {
                    continue;
                };
                if mask == cpus {
                    continue;
                }
                to_do.push(thread.number);
                let origin = self.origin(process, &thread, &mask, cpuset.as_deref());
                let mut kept = origin.unwrap_or_else(|| Kept::new(process, &thread, mask, cpuset.as_deref()));
                // It was free when it was looked at.
                if !kept.is_free() {
                    return Ok(Err(not_now("its owner has pinned a thread of it meanwhile")));
                }
                kept.give(cpus, since);
                let before = self.kept.insert((process, thread.number), kept.clone());
                new |= before != Some(kept);
            }
            if new {
                self.write()?;
            }
            if to_do.is_empty() {
                break;
            }
            for thread in to_do {
                match linux.allow(thread, cpus) {
                    Err(error) if !is_gone(&error) => return Ok(Err(error)),
                    _ => {}
                }
            }
        }
        // Processes started with the earlier cpus can be found only while these are known.
        self.free(linux)?;
        let range = (process, 0)..=(process, u32::MAX);
        self.kept.range_mut(range).for_each(|(_, kept)| kept.has_them());
        Ok(Ok(()))
    }

    /// Writes the whole file beside its place, then renames it: a reader finds the old one or the new
    /// one.
    fn write(&self) -> Result<(), RegionsError> {
        let saved = Saved {
            threads: self.kept.values().cloned().collect(),
            groups: self.groups.saved(),
        };
        let beside = self.folder.join(format!("{FILE}.new"));
        let written = serde_json::to_vec(&saved).map_err(io::Error::from);
        let written = written.and_then(|text| fs::write(&beside, text));
        let written = written.and_then(|()| fs::rename(&beside, self.file()));
        written.map_err(|error| self.failed(error))
    }

    /// Gives a process back its cpus. Returns how many threads have their cpus again.
    pub fn restore(&mut self, linux: &mut impl Linux, process: u32) -> Result<u64, RegionsError> {
        if !self.has(process) {
            return Ok(0);
        }
        let restored = self.put_back(linux, process) + self.put_back_all_started(linux);
        self.forget(|of| of == process);
        self.write()?;
        Ok(restored)
    }

    /// Gives all back their cpus, and removes the file, unless one cannot have its cpus again.
    pub fn restore_all(&mut self, linux: &mut impl Linux) -> Result<u64, RegionsError> {
        let mut processes: Vec<u32> = self.kept.keys().map(|(process, _)| *process).collect();
        processes.dedup();
        // Within the cpus of a group its threads could not have others.
        let of_groups = self.put_groups_back(linux);
        let restored: u64 = processes.into_iter().map(|process| self.put_back(linux, process)).sum();
        let restored = of_groups + restored + self.put_back_all_started(linux);
        self.forget(|_| true);
        if !self.kept.is_empty() || !self.groups.held.is_empty() {
            self.write()?;
            return Ok(restored);
        }
        match fs::remove_file(self.file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(restored),
        }
    }

    /// Threads of these processes need not be known any more, except those that could not have their cpus again.
    fn forget(&mut self, is_one: impl Fn(u32) -> bool) {
        let stuck = &self.stuck;
        self.kept.retain(|at, _| !is_one(at.0) || stuck.contains_key(at));
    }

    /// Processes that placed ones have started get the cpus that those had before.
    ///
    /// Errors: one could not get them, and the file, in which it stays, cannot be written.
    pub fn free(&mut self, linux: &mut impl Linux) -> Result<(), RegionsError> {
        let before = self.stuck.len();
        self.put_back_all_started(linux);
        match self.stuck.len() == before {
            true => Ok(()),
            false => self.write(),
        }
    }

    /// A process that is not free yet may start another one meanwhile: the search repeats until there is
    /// none.
    fn put_back_all_started(&mut self, linux: &mut impl Linux) -> u64 {
        let mut all = 0;
        for _ in 0..PASSES {
            match self.put_back_started(linux) {
                0 => break,
                freed => all += freed,
            }
        }
        all
    }

    fn put_back_started(&mut self, linux: &mut impl Linux) -> u64 {
        if self.kept.is_empty() {
            return 0;
        }
        let parents: BTreeMap<u32, u32> = linux.parents().into_iter().collect();
        let mut freed = 0;
        for &child in parents.keys().filter(|child| !self.has(**child)).collect::<Vec<_>>() {
            let placed: Vec<Kept> = ancestors(&parents, child)
                .flat_map(|ancestor| self.of(ancestor))
                .cloned()
                .collect();
            if placed.is_empty() {
                continue;
            }
            let cpuset = linux.cpuset(child);
            freed += self.each_thread(linux, child, cpuset.as_deref(), |_, thread, mask, cpuset| {
                let source = placed.iter().find(|kept| kept.passed_on(thread, mask, cpuset))?;
                Some(source.inherited_by(child, thread))
            });
        }
        freed
    }

    fn put_back(&mut self, linux: &mut impl Linux, process: u32) -> u64 {
        // Threads that could not get their cpus back may have ended, or can get them now.
        self.stuck.retain(|&(of, _), _| of != process);
        let threads = linux.threads(process);
        // A later process of the same number has no thread that is known.
        if !threads
            .iter()
            .any(|thread| self.of(process).any(|kept| kept.is_of(thread)))
        {
            return 0;
        }
        let cpuset = linux.cpuset(process);
        self.each_thread(linux, process, cpuset.as_deref(), |undo, thread, mask, cpuset| {
            undo.origin(process, thread, mask, cpuset)
        })
    }

    /// Gives each thread of a process that has cpus from here those that it had before. Returns how many got them; others are kept
    /// with the error.
    fn each_thread(
        &mut self,
        linux: &mut impl Linux,
        process: u32,
        cpuset: Option<&[u32]>,
        origin: impl Fn(&Undo, &Demand, &[u32], Option<&[u32]>) -> Option<Kept>,
    ) -> u64 {
        let (mut done, mut restored) = (BTreeSet::new(), 0);
        for _ in 0..PASSES {
            let begun = done.len();
            for thread in linux.threads(process) {
                if !done.contains(&thread.number)
                    && let Some(mask) = linux.mask(process, thread.number)
                    && let Some(kept) = origin(self, &thread, &mask, cpuset)
                {
                    done.insert(thread.number);
                    match linux.allow(thread.number, &kept.back(cpuset)) {
                        Ok(()) => restored += 1,
                        Err(error) if is_gone(&error) => {}
                        Err(error) => {
                            let at = (process, thread.number);
                            self.stuck.insert(at, error.to_string());
                            self.kept.insert(at, kept);
                        }
                    }
                }
            }
            if done.len() == begun {
                break;
            }
        }
        restored
    }
}

/// The ancestors of a process, the nearest first.
fn ancestors(parents: &BTreeMap<u32, u32>, process: u32) -> impl Iterator<Item = u32> {
    let mut seen = BTreeSet::from([process]);
    std::iter::successors(parents.get(&process).copied(), |one| parents.get(one).copied())
        // Processes may come and go while they are read: a circle is no family.
        .take_while(move |&one| seen.insert(one))
}
