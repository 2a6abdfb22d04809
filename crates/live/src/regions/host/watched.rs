//! A process that is watched, and how busy it was.

use std::collections::HashMap;
use std::path::PathBuf;

use sys::tasks::Demand;

use policy::regions::pairing::WINDOW;

/// A whole cpu, as busy time is counted.
const CPU: u64 = 1000;

/// A process that is watched.
pub struct Watched {
    pub began: u64,
    /// The current name: another program may have taken the place of the first.
    pub name: String,
    /// Time that each thread had had a cpu, and waited for one, at the end of the last interval.
    pub times: HashMap<u32, (u64, u64)>,
    pub busy: bool,
    /// The cpus that its cpuset leaves it.
    pub cpuset: Vec<u32>,
    /// Looks that found its threads in each domain.
    pub looks: Vec<u32>,
    /// The source's answer at the beginning of the interval, if it was told of that.
    pub begun: Option<Result<(), String>>,
    pub placed: bool,
    /// The control group by which it has its place; else it has that by affinity.
    pub group: Option<PathBuf>,
    /// Why it is left alone in the interval that ends.
    pub unsettled: Option<String>,
    /// The cpus to which its owner has pinned it.
    pub pinned: Option<Vec<u32>>,
    /// Why it is left alone from now on.
    pub refused: Option<String>,
    pub unread: Unread,
}

impl Watched {
    /// It has no place by its group any more.
    pub fn leave_group(&mut self) {
        (self.group, self.placed) = (None, false);
        // The cpuset must be read again, even if the process is idle.
        self.cpuset.clear();
    }
}

/// Intervals in which a working set could not be read.
#[derive(Default)]
pub struct Unread {
    /// It was read before.
    known: bool,
    /// Intervals since it was read last, and the error of the last one.
    since: usize,
    why: String,
}

impl Unread {
    pub fn read(&mut self) {
        (self.known, self.since) = (true, 0);
    }

    pub fn failed(&mut self, why: String) {
        (self.since, self.why) = (self.since + 1, why);
    }

    /// The reason why nothing can be decided over it for now: earlier readings count for as many intervals as a
    /// median has.
    pub fn left(&self) -> Option<String> {
        let is_left = self.since > 0 && (!self.known || self.since >= WINDOW);
        is_left.then(|| format!("its working set cannot be read: {}", self.why))
    }
}

/// Cpus that threads would have kept busy in an interval, in thousandths, and the processor time that they had. No thread keeps
/// more than one busy.
pub fn demand(threads: &[Demand], before: &HashMap<u32, (u64, u64)>, time: u64) -> (u32, u64) {
    let (mut busy, mut had) = (0, 0);
    for thread in threads {
        let (ran, waited) = before.get(&thread.number).copied().unwrap_or((0, 0));
        let ran = thread.ran.saturating_sub(ran);
        let wanted = ran.saturating_add(thread.waited.saturating_sub(waited)).min(time);
        busy += wanted.saturating_mul(CPU) / time;
        had += ran;
    }
    (u32::try_from(busy).unwrap_or(u32::MAX), had)
}
