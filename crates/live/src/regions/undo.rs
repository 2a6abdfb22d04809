//! The cpus that threads had before, in a file that is written before anything changes: whoever ends, or was killed, leaves
//! each thread as it was.
//!
//! A thread gets its cpus back if it is the same one, by the time at which it began, and still has cpus that were given to it
//! here. One that began later has inherited its cpus, and gets those of its process; so do processes that it started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sys::cpus::{list, parse_list};
use sys::tasks::Demand;

use super::error::RegionsError;
use super::linux::{Here, Linux};

const FILE: &str = "regions-undo.json";
const LOCK: &str = "regions.lock";
const SHOWN: &str = "regions-shown";
/// Passes over the threads of a process: new ones may begin meanwhile.
const PASSES: usize = 4;

/// A thread as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    process: u32,
    thread: u32,
    /// When it began.
    began: u64,
    /// Its cpus, as a list.
    cpus: String,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    threads: Vec<Kept>,
    /// Lists of cpus that were given to threads.
    given: BTreeSet<String>,
}

pub struct Undo {
    folder: PathBuf,
    /// Held as long as this lives.
    _lock: File,
    kept: BTreeMap<(u32, u32), Kept>,
    given: BTreeSet<String>,
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
            given: BTreeSet::new(),
        })
    }

    /// Puts in order what a run that was killed has left. Returns the threads that have their cpus again.
    ///
    /// Errors: the file is there and cannot be read; then nothing is changed.
    pub fn recover(&mut self, linux: &mut impl Linux) -> Result<u64, RegionsError> {
        let text = match fs::read(self.folder.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(self.failed(error)),
        };
        let saved: Saved = serde_json::from_slice(&text).map_err(|error| self.failed(error.into()))?;
        self.given = saved.given;
        for kept in saved.threads {
            self.kept.insert((kept.process, kept.thread), kept);
        }
        self.restore_all(linux)
    }

    /// The same on this machine.
    pub fn recover_here(&mut self) -> Result<u64, RegionsError> {
        self.recover(&mut Here::new(None))
    }

    fn failed(&self, error: io::Error) -> RegionsError {
        RegionsError::State {
            path: self.folder.join(FILE),
            error,
        }
    }

    /// True where a process was given cpus here.
    pub fn has(&self, process: u32) -> bool {
        self.kept.range((process, 0)..=(process, u32::MAX)).next().is_some()
    }

    /// True for cpus that were given to a thread here: another one may have inherited them.
    pub fn gave(&self, cpus: &[u32]) -> bool {
        self.given.contains(&list(cpus))
    }

    /// The cpus that a process had before, by its first thread that is known.
    fn before(&self, process: u32) -> Option<Vec<u32>> {
        let mut threads = self.kept.range((process, 0)..=(process, u32::MAX));
        threads.next().and_then(|(_, kept)| parse_list(&kept.cpus))
    }

    /// Gives all threads of a process these cpus. How each of them was is written down first.
    ///
    /// Returns what kept the kernel from it, if anything. Errors: the file cannot be written; then nothing is changed.
    pub fn give(&mut self, linux: &mut impl Linux, process: u32, cpus: &[u32]) -> Result<io::Result<()>, RegionsError> {
        for _ in 0..PASSES {
            let threads = linux.threads(process);
            let mut to_do = Vec::new();
            let mut new = self.given.insert(list(cpus));
            for thread in threads {
                let Some(mask) = linux.mask(process, thread.number) else {
                    continue;
                };
                if mask == cpus {
                    continue;
                }
                to_do.push(thread.number);
                let known = self.kept.get(&(process, thread.number));
                if known.is_some_and(|kept| kept.began == thread.began) {
                    continue;
                }
                // One that has inherited cpus that were given here would have had those of its process.
                let inherited = self.gave(&mask).then(|| self.before(process)).flatten();
                let kept = Kept {
                    process,
                    thread: thread.number,
                    began: thread.began,
                    cpus: list(&inherited.unwrap_or(mask)),
                };
                self.kept.insert((process, thread.number), kept);
                new = true;
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
        Ok(Ok(()))
    }

    /// The whole file beside its place, then renamed: whoever reads it finds the old one or the new one.
    fn write(&self) -> Result<(), RegionsError> {
        let saved = Saved {
            threads: self.kept.values().cloned().collect(),
            given: self.given.clone(),
        };
        let beside = self.folder.join(format!("{FILE}.new"));
        let written = serde_json::to_vec(&saved).map_err(io::Error::from);
        let written = written.and_then(|text| fs::write(&beside, text));
        let written = written.and_then(|()| fs::rename(&beside, self.folder.join(FILE)));
        written.map_err(|error| self.failed(error))
    }

    /// Gives a process back what it had. Returns how many threads have their cpus again.
    pub fn restore(&mut self, linux: &mut impl Linux, process: u32) -> Result<u64, RegionsError> {
        if !self.has(process) {
            return Ok(0);
        }
        let restored = self.put_back(linux, process);
        self.kept.retain(|&(of, _), _| of != process);
        self.write()?;
        Ok(restored)
    }

    /// Gives all back what they had, and removes the file.
    pub fn restore_all(&mut self, linux: &mut impl Linux) -> Result<u64, RegionsError> {
        let mut processes: Vec<u32> = self.kept.keys().map(|(process, _)| *process).collect();
        processes.dedup();
        let restored = processes.into_iter().map(|process| self.put_back(linux, process)).sum();
        self.kept.clear();
        self.given.clear();
        match fs::remove_file(self.folder.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(restored),
        }
    }

    /// A new process has inherited cpus that were given to its parent: it gets those that its parent had before.
    pub fn free(&self, linux: &mut impl Linux, process: u32, parent: u32) {
        let Some(cpus) = self.before(parent) else { return };
        for thread in linux.threads(process) {
            let given = linux.mask(process, thread.number).is_some_and(|mask| self.gave(&mask));
            if given {
                // One that ends meanwhile needs no cpus.
                let _ = linux.allow(thread.number, &cpus);
            }
        }
    }

    fn put_back(&self, linux: &mut impl Linux, process: u32) -> u64 {
        let mut restored = 0;
        let Some(first) = self.before(process) else { return 0 };
        // A later process of the same number has no thread that is known.
        let is_known = |thread: &Demand| {
            let kept = self.kept.get(&(process, thread.number));
            kept.is_some_and(|kept| kept.began == thread.began)
        };
        if !linux.threads(process).iter().any(is_known) {
            return 0;
        }
        for member in linux.family(process) {
            // A descendant that is known itself has its own turn.
            if member != process && self.has(member) {
                continue;
            }
            for _ in 0..PASSES {
                let mut changed = 0;
                for thread in linux.threads(member) {
                    let given = linux.mask(member, thread.number).is_some_and(|mask| self.gave(&mask));
                    let kept = self
                        .kept
                        .get(&(member, thread.number))
                        .filter(|kept| kept.began == thread.began);
                    let cpus = kept.map_or(Some(first.clone()), |kept| parse_list(&kept.cpus));
                    let Some(cpus) = cpus.filter(|cpus| given && !self.gave(cpus)) else {
                        continue;
                    };
                    changed += u64::from(linux.allow(thread.number, &cpus).is_ok());
                }
                restored += changed;
                if changed == 0 {
                    break;
                }
            }
        }
        restored
    }
}

fn is_gone(error: &io::Error) -> bool {
    const ESRCH: i32 = 3;
    error.raw_os_error() == Some(ESRCH)
}
