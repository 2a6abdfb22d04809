//! The questions that the host asks of Linux, apart from working sets; tests put a made-up machine in its place.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::tasks::{self, Demand};
use sys::{Problem, Root, SysError, affinity, clock, cpusets, processes};

use super::Whom;
use super::counters::Counters;
use super::log::Counted;

pub trait Linux {
    /// Time since some moment before the start.
    fn now(&mut self) -> Duration;
    fn sleep(&mut self, time: Duration);
    /// Processor time of the calling thread.
    fn own_time(&mut self) -> Duration;
    /// The watched processes that exist just now.
    fn members(&mut self, whom: &Whom) -> Result<Vec<u32>, SysError>;
    /// A number that tells a process from a later one of the same number; `None` if it is gone.
    fn began(&mut self, process: u32) -> Option<u64>;
    fn name(&mut self, process: u32) -> String;
    /// The threads of a process; empty if it is gone.
    fn threads(&mut self, process: u32) -> Vec<Demand>;
    /// The cpus that a process's cpuset leaves it; `None` if it is gone.
    fn cpuset(&mut self, process: u32) -> Option<Vec<u32>>;
    /// The cpus that a thread may run on; `None` if it is gone.
    fn mask(&mut self, process: u32, thread: u32) -> Option<Vec<u32>>;
    fn allow(&mut self, thread: u32, cpus: &[u32]) -> io::Result<()>;
    /// The control group that a process is in: its folder.
    fn group_of(&mut self, process: u32) -> Option<PathBuf>;
    /// The processes of a control group and of those below it.
    fn in_group(&mut self, group: &Path) -> Vec<u32>;
    /// The cpuset of a control group.
    fn group(&mut self, group: &Path) -> Result<cpusets::Group, SysError>;
    /// Chooses the cpus of a control group, as a list.
    fn choose(&mut self, group: &Path, cpus: &str) -> Result<(), SysError>;
    /// All processes that are there, each with its parent.
    fn parents(&mut self) -> Vec<(u32, u32)>;
    /// The time now, as that at which a thread began is counted.
    fn ticks(&mut self) -> u64;
    /// Units of work that the program says it has done; `None` if it says nothing.
    fn units(&mut self) -> Option<f64>;
    /// Instructions of a process since this was asked last; `None` if none are counted, and the first time.
    fn counted(&mut self, process: u32, threads: &[Demand]) -> Option<Counted>;
    /// Stops counting a process's instructions.
    fn uncount(&mut self, process: u32);
    /// The reason why instructions cannot be counted here, if so.
    fn uncountable(&self) -> Option<String>;
}

/// The machine that this runs on.
#[derive(Debug)]
pub struct Here {
    root: Root,
    begun: Instant,
    progress: Option<PathBuf>,
    counters: Counters,
}

impl Here {
    pub fn new(progress: Option<PathBuf>) -> Here {
        Here {
            root: Root::default(),
            begun: Instant::now(),
            progress,
            counters: Counters::default(),
        }
    }

    fn of_user(&self, user: u32) -> Result<Vec<u32>, SysError> {
        processes::of_user(user).map_err(|error| SysError {
            path: "/proc".into(),
            problem: Problem::Failed(error),
        })
    }

    fn of_name(&self, name: &str) -> Result<Vec<u32>, SysError> {
        let kept = kept_name(name);
        let mut found = self.root.numbered("proc", "")?;
        found.retain(|process| {
            self.root
                .text(&format!("proc/{process}/comm"))
                .is_ok_and(|name| name == kept)
        });
        Ok(found)
    }

    /// Kernel threads have no command line, nor have those that have ended.
    fn is_program(&self, process: u32) -> bool {
        let line = self.root.text(&format!("proc/{process}/cmdline"));
        line.is_ok_and(|line| !line.is_empty())
    }
}

impl Linux for Here {
    fn now(&mut self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn own_time(&mut self) -> Duration {
        clock::thread_time()
    }

    fn members(&mut self, whom: &Whom) -> Result<Vec<u32>, SysError> {
        let mine = std::process::id();
        let mut found = match whom {
            Whom::Processes(processes) => return Ok(processes.clone()),
            Whom::Group(folder) => match processes::of_group(&self.root, folder) {
                // A group that was removed has no processes any more.
                Err(error) if matches!(error.problem, Problem::Absent) => Vec::new(),
                found => found?,
            },
            Whom::Name(name) => self.of_name(name)?,
            Whom::User(user) => self.of_user(*user)?,
            Whom::Beside { processes, names } => {
                let mut found = processes::family(&self.root, mine)?;
                // A later process of the same number is another one.
                let there = |(process, began): &&(u32, u64)| tasks::lives_since(&self.root, *process) == Some(*began);
                found.extend(processes.iter().filter(there).map(|(process, _)| *process));
                for name in names {
                    found.extend(self.of_name(name)?);
                }
                found
            }
        };
        found.retain(|&process| process != mine && self.is_program(process));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn began(&mut self, process: u32) -> Option<u64> {
        tasks::lives_since(&self.root, process)
    }

    fn name(&mut self, process: u32) -> String {
        self.root.text(&format!("proc/{process}/comm")).unwrap_or_default()
    }

    fn threads(&mut self, process: u32) -> Vec<Demand> {
        tasks::demand(&self.root, process).unwrap_or_default()
    }

    fn cpuset(&mut self, process: u32) -> Option<Vec<u32>> {
        cpusets::of(&self.root, process).ok()
    }

    fn mask(&mut self, process: u32, thread: u32) -> Option<Vec<u32>> {
        tasks::thread_mask(&self.root, process, thread).ok()
    }

    fn allow(&mut self, thread: u32, cpus: &[u32]) -> io::Result<()> {
        affinity::allow(Some(thread), cpus)
    }

    fn group_of(&mut self, process: u32) -> Option<PathBuf> {
        cpusets::group_of(&self.root, process)
    }

    fn in_group(&mut self, group: &Path) -> Vec<u32> {
        processes::of_group(&self.root, group).unwrap_or_default()
    }

    fn group(&mut self, group: &Path) -> Result<cpusets::Group, SysError> {
        cpusets::group(&self.root, group)
    }

    fn choose(&mut self, group: &Path, cpus: &str) -> Result<(), SysError> {
        cpusets::choose(&self.root, group, cpus)
    }

    fn parents(&mut self) -> Vec<(u32, u32)> {
        processes::parents(&self.root).unwrap_or_default()
    }

    fn ticks(&mut self) -> u64 {
        clock::ticks()
    }

    /// The last number in the file, whether the program appends numbers or writes over the one before.
    fn units(&mut self) -> Option<f64> {
        let text = std::fs::read_to_string(self.progress.as_ref()?).ok()?;
        let number = text.split_whitespace().rev().find_map(|word| word.parse().ok());
        number.filter(|number: &f64| number.is_finite())
    }

    fn counted(&mut self, process: u32, threads: &[Demand]) -> Option<Counted> {
        self.counters.counted(process, threads)
    }

    fn uncount(&mut self, process: u32) {
        self.counters.end(process);
    }

    fn uncountable(&self) -> Option<String> {
        self.counters.refused()
    }
}

/// The part of a program's name that the kernel keeps: 15 bytes.
pub fn kept_name(name: &str) -> &str {
    let end = (0..=15.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    &name[..end.unwrap_or(0)]
}
