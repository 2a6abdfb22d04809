//! A thread as it was, and the cpus that it was given.

use std::io;

use serde::{Deserialize, Serialize};
use sys::cpus::{list, parse_list};
use sys::tasks::Demand;

/// Cpus, which are written as a list such as 0-3,8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(pub Vec<u32>);

impl TryFrom<String> for Cpus {
    type Error = String;

    fn try_from(text: String) -> Result<Cpus, String> {
        let cpus = parse_list(&text).filter(|cpus| !cpus.is_empty());
        cpus.map(Cpus).ok_or_else(|| format!("`{text}` is no list of cpus"))
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        list(&cpus.0)
    }
}

/// Cpus that a thread was given here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    cpus: Cpus,
    /// The moment before that: a thread that began earlier has not inherited them.
    since: u64,
}

impl Given {
    /// The kernel takes cpus away that the cpuset does not have any more.
    fn is(&self, mask: &[u32], cpuset: Option<&[u32]>) -> bool {
        let cpus = &self.cpus.0;
        let left = |cpuset: &[u32]| cpus.iter().filter(|cpu| cpuset.contains(cpu)).eq(mask);
        cpus == mask || (!mask.is_empty() && cpuset.is_some_and(left))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub process: u32,
    pub thread: u32,
    /// When it began.
    began: u64,
    /// Its cpus.
    cpus: Cpus,
    /// It could use its whole cpuset: then it may use later cpus of the cpuset, too.
    whole: bool,
    /// The cpus that it was given: those of now, and those of before until it is known to have the new ones.
    given: Vec<Given>,
}

impl Kept {
    pub fn new(process: u32, thread: &Demand, cpus: Vec<u32>, cpuset: Option<&[u32]>) -> Kept {
        Kept {
            process,
            thread: thread.number,
            began: thread.began,
            whole: cpuset.is_some_and(|cpuset| cpuset.iter().all(|cpu| cpus.contains(cpu))),
            cpus: Cpus(cpus),
            given: Vec::new(),
        }
    }

    /// True if its owner has not pinned it: it could use its whole cpuset.
    pub fn is_free(&self) -> bool {
        self.whole
    }

    /// The record of a thread that inherited this one's given cpus and has the same earlier ones.
    pub fn inherited_by(&self, process: u32, thread: &Demand) -> Kept {
        Kept {
            process,
            thread: thread.number,
            began: thread.began,
            ..self.clone()
        }
    }

    /// A later thread may have the same number.
    pub fn is_of(&self, thread: &Demand) -> bool {
        self.thread == thread.number && self.began == thread.began
    }

    /// True for the cpus that this thread has because they were given to it here: all of them, those that its cpuset
    /// leaves, or all cpus of a cpuset that has none of them, or had none.
    pub fn is_ours(&self, mask: &[u32], cpuset: Option<&[u32]>) -> bool {
        self.given.iter().any(|given| given.is(mask, cpuset)) || cpuset == Some(mask)
    }

    /// True for a later thread that has the cpus that were given to this one.
    pub fn passed_on(&self, thread: &Demand, mask: &[u32], cpuset: Option<&[u32]>) -> bool {
        let mut given = self.given.iter();
        given.any(|given| given.since <= thread.began && given.is(mask, cpuset))
    }

    /// Notes that it is to have these cpus from now on.
    pub fn give(&mut self, cpus: &[u32], since: u64) {
        if self.given.last().is_none_or(|last| last.cpus.0 != cpus) {
            self.given.push(Given {
                cpus: Cpus(cpus.to_vec()),
                since,
            });
        }
    }

    /// Notes that it has the cpus that it was given last.
    pub fn has_them(&mut self) {
        let before_last = self.given.len().saturating_sub(1);
        self.given.drain(..before_last);
    }

    /// The cpus that it gets back. Those of before may not be in its cpuset any more.
    pub fn back(&self, cpuset: Option<&[u32]>) -> Vec<u32> {
        let mut cpus = self.cpus.0.clone();
        let cpuset = cpuset.unwrap_or_default();
        if self.whole || !cpus.iter().any(|cpu| cpuset.contains(cpu)) {
            cpus.extend(cpuset);
            cpus.sort_unstable();
            cpus.dedup();
        }
        cpus
    }
}

pub fn is_gone(error: &io::Error) -> bool {
    const ESRCH: i32 = 3;
    error.raw_os_error() == Some(ESRCH)
}
