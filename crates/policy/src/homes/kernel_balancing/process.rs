//! One process under NUMA balancing: the pages that are closed next and when, and the evaluation of its faults.
//!
//! Linux keeps times and counts for each thread, and the thread that comes first closes the pages of all. Here they are
//! kept for the process. All its threads are one numa group as soon as two of them have faulted on one page.

use std::collections::BTreeSet;

use crate::seam::World;

/// The rate at which pages are closed.
pub struct Pace {
    pub delay_ns: u64,
    /// The shortest and the longest time for all pages of a process.
    pub least_ns: u64,
    pub most_ns: u64,
    /// At once, and in a second at most (0: no bound).
    pub bytes: u64,
    pub bytes_per_second: u64,
}

impl Pace {
    fn pages(&self, world: &World) -> u64 {
        (self.bytes / world.page_bytes).max(1)
    }

    /// The shortest and the longest time between two scans of a process of `pages` pages (task_scan_min,
    /// task_scan_max).
    fn bounds(&self, pages: u64, world: &World) -> (u64, u64) {
        let scans = pages.div_ceil(self.pages(world)).max(1);
        let floor = match self.bytes_per_second {
            0 => 0,
            rate => (u128::from(self.bytes) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        let least = (self.least_ns / scans).max(floor).max(1);
        (least, (self.most_ns / scans).max(least))
    }
}

/// A touch of a page that was closed.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub cpu_node: u32,
    /// The node of the page afterwards.
    pub page_node: u32,
    /// It was on the cpu's node.
    pub local: bool,
    /// The fault before was the same thread's, or there was none.
    pub private: bool,
    /// The page should have moved, and could not.
    pub failed: bool,
}

/// Passes over all pages in which a page moves at its first fault, or at one of a thread that has it to itself.
const EARLY: u64 = 4;
/// A node that faults more than this many times as often as another one may take its pages (ACTIVE_NODE_FRACTION).
const MUCH: u64 = 3;
/// The time between scans changes in tenths, and stays where seven of ten faults are private or local.
const SLOTS: u64 = 10;
const THRESHOLD: u64 = 7;

#[derive(Default)]
pub struct Process {
    pages: BTreeSet<u64>,
    closed: BTreeSet<u64>,
    /// The number of the page that is looked at next.
    cursor: u64,
    next_ns: u64,
    period_ns: u64,
    /// Passes over all pages that have ended, and those after which the period was adapted.
    passes: u64,
    adapted: u64,
    /// Two threads have faulted on one page.
    shares: bool,
    /// Faults since the period was adapted.
    local: u64,
    remote: u64,
    private: u64,
    shared: u64,
    failed: u64,
    /// Faults by node of the cpu and of the page: since the period was adapted, and before, with less weight for older
    /// ones.
    recent: Faults,
    faults: Faults,
}

#[derive(Clone, Default)]
struct Faults {
    cpu: Vec<u64>,
    page: Vec<u64>,
}

fn of(faults: &[u64], node: u32) -> u64 {
    faults.get(node as usize).copied().unwrap_or(0)
}

fn add(faults: &mut Vec<u64>, node: u32) {
    let node = node as usize;
    faults.resize(faults.len().max(node + 1), 0);
    faults[node] += 1;
}

/// Older counts are halved.
fn decay(faults: &mut Vec<u64>, recent: &mut Vec<u64>) {
    faults.resize(faults.len().max(recent.len()), 0);
    for (node, fault) in faults.iter_mut().enumerate() {
        *fault = *fault / 2 + recent.get(node).copied().unwrap_or(0);
    }
    recent.clear();
}

impl Process {
    pub fn new(pace: &Pace, world: &World) -> Process {
        Process {
            next_ns: world.now_ns.saturating_add(pace.delay_ns),
            ..Process::default()
        }
    }

    pub fn add(&mut self, page: u64) {
        self.pages.insert(page);
    }

    pub fn opened(&mut self, page: u64) {
        self.closed.remove(&page);
    }

    /// The pages that are to be closed now. A scan ends at the last page, and the next one begins at the first.
    pub fn scan(&mut self, pace: &Pace, world: &World) -> Vec<u64> {
        if world.now_ns < self.next_ns {
            return Vec::new();
        }
        let (least, most) = pace.bounds(self.pages.len() as u64, world);
        if self.period_ns == 0 {
            self.period_ns = least;
        }
        self.period_ns = self.period_ns.clamp(least, most);
        self.next_ns = world.now_ns + self.period_ns;
        let wanted = usize::try_from(pace.pages(world)).unwrap_or(usize::MAX);
        let open = self
            .pages
            .range(self.cursor..)
            .filter(|page| !self.closed.contains(page));
        let scanned: Vec<u64> = open.take(wanted).copied().collect();
        self.closed.extend(&scanned);
        let next = scanned.last().and_then(|last| last.checked_add(1));
        match next.filter(|next| scanned.len() == wanted && self.pages.range(next..).next().is_some()) {
            Some(next) => self.cursor = next,
            None => {
                self.cursor = 0;
                self.passes += 1;
            }
        }
        scanned
    }

    /// True if a page may go to the cpu that faults on it (should_numa_migrate_memory). `last`: node and thread of the fault
    /// before.
    pub fn wants(&self, last: Option<(u32, u32)>, fault: &Fault) -> bool {
        if self.passes <= EARLY && fault.private {
            return true;
        }
        // Twice in a row from one node.
        if last.is_some_and(|(node, _)| node != fault.cpu_node) {
            return false;
        }
        let same_thread = fault.private && last.is_some();
        if same_thread || !self.shares {
            return true;
        }
        let (to, from) = (fault.cpu_node, fault.page_node);
        let (cpu_to, cpu_from) = (of(&self.faults.cpu, to), of(&self.faults.cpu, from));
        let (page_to, page_from) = (of(&self.faults.page, to), of(&self.faults.page, from));
        // Pages are spread as faults are, with a margin of a quarter.
        cpu_to > cpu_from * MUCH || cpu_to * page_from * 3 > cpu_from * page_to * 4
    }

    pub fn count(&mut self, fault: &Fault, pace: &Pace, world: &World) {
        self.shares |= !fault.private;
        match fault.local {
            true => self.local += 1,
            false => self.remote += 1,
        }
        match fault.private {
            true => self.private += 1,
            false => self.shared += 1,
        }
        self.failed += u64::from(fault.failed);
        if self.adapted < self.passes {
            self.adapted = self.passes;
            self.adapt(pace, world);
        }
        add(&mut self.recent.cpu, fault.cpu_node);
        add(&mut self.recent.page, fault.page_node);
    }

    /// After a pass: how long until the next scans (update_task_scan_period).
    fn adapt(&mut self, pace: &Pace, world: &World) {
        decay(&mut self.faults.cpu, &mut self.recent.cpu);
        decay(&mut self.faults.page, &mut self.recent.page);
        let (least, most) = pace.bounds(self.pages.len() as u64, world);
        if self.local + self.shared == 0 || self.failed > 0 {
            // If no fault is near and none is shared, or pages cannot move.
            self.period_ns = self.period_ns.saturating_mul(2).clamp(least, most);
            self.next_ns = world.now_ns + self.period_ns;
        } else {
            let slot = self.period_ns.div_ceil(SLOTS);
            let local = self.local * SLOTS / (self.local + self.remote);
            let private = self.private * SLOTS / (self.private + self.shared);
            let slower = |tenths: u64| slot * (tenths - THRESHOLD).max(1);
            self.period_ns = match () {
                () if private >= THRESHOLD => self.period_ns.saturating_add(slower(private)),
                () if local >= THRESHOLD => self.period_ns.saturating_add(slower(local)),
                () => self.period_ns.saturating_sub(slot * (THRESHOLD - local.max(private))),
            }
            .clamp(least, most);
        }
        (self.local, self.remote, self.private, self.shared, self.failed) = (0, 0, 0, 0, 0);
    }
}
