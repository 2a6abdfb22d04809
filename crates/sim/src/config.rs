//! The choice of what to simulate, and how closely to look.

use std::sync::Arc;

use machine::Machine;
use policy::Name;
use policy::slots::Plan;
use results::ProgramChange;

use crate::scheduling::Scheduling;

/// The cost of the actions of policies: those of [`policy::Cost`], in nanoseconds.
pub use policy::Cost as Costs;

/// A policy by name, as in [`policy::build`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    pub name: Name,
    /// Parameters, `policy.parameter=value`.
    pub sets: Vec<String>,
    /// Replaces the program's own statements to policy `slots`.
    pub plan: Option<Arc<Plan>>,
}

impl PolicySpec {
    pub fn new(name: Name) -> Self {
        PolicySpec {
            name,
            sets: Vec::new(),
            plan: None,
        }
    }
}

/// In which order the references of several threads happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the simulated clocks of the cpus.
    #[default]
    Clock,
    /// As they were recorded.
    Recorded,
}

/// The report beyond the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Each thread's misses and time.
    pub threads: bool,
    /// Each data structure's misses and stall.
    pub structures: bool,
    /// So many pages with the largest stall; 0: none.
    pub pages: usize,
    /// So many lines of the source with the largest stall; 0: none.
    pub source_lines: usize,
    /// So many lines with the most false sharing; 0: none.
    pub false_sharing: usize,
    /// The number of misses of the outermost cache that each data structure would have alone in a part of it.
    pub curves: bool,
    /// Why data misses: steps of walks, how much of lines and pages is used.
    pub causes: bool,
    /// The data whose misses go to other nodes' memory, and why (machines with several nodes).
    pub remote: bool,
    /// The threads that share each line, and how often one needs a line that another has.
    pub sharing: bool,
    /// Waiting over time, by data structure, thread and place.
    pub timeline: bool,
    /// Waiting by call stack.
    pub profile: bool,
    /// Curves and causes from all of the run; without this, long runs are sampled.
    pub exact: bool,
    /// The totals cpu by cpu (machines with several cpus).
    pub per_cpu: bool,
    /// The color that each page got when it was first touched.
    pub placements: bool,
}

impl Detail {
    /// Returns whether more is asked for than the totals of the machine and its cpus, so that the run has to be looked
    /// at closely.
    pub fn is_close(&self) -> bool {
        self.threads
            || self.structures
            || self.pages > 0
            || self.source_lines > 0
            || self.false_sharing > 0
            || self.curves
            || self.causes
            || self.remote
            || self.sharing
            || self.timeline
            || self.profile
    }

    /// The part that comes with the totals.
    pub fn of_totals(&self) -> Detail {
        Detail {
            per_cpu: self.per_cpu,
            placements: self.placements,
            ..Detail::default()
        }
    }
}

impl Default for Detail {
    fn default() -> Self {
        Detail {
            threads: false,
            structures: false,
            pages: 0,
            source_lines: 0,
            false_sharing: 0,
            curves: false,
            causes: false,
            remote: false,
            sharing: false,
            timeline: false,
            profile: false,
            exact: false,
            per_cpu: true,
            placements: false,
        }
    }
}

/// The part of a run that is counted: between two moments at which the program named a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// It begins when the first thread enters this phase; `None`: with the run.
    pub from_phase: Option<String>,
    /// It ends when a thread enters this phase after that, and the run with it; `None`: with the run.
    pub to_phase: Option<String>,
}

/// A simulation: one machine, several policies.
#[derive(Clone, Debug)]
pub struct Config {
    pub machine: Machine,
    pub policies: Vec<PolicySpec>,
    /// Changes of the program that are simulated with it, one after the other; none: the program as it is.
    pub changes: Vec<ProgramChange>,
    /// Seed of random replacement.
    pub seed: u64,
    pub order: Order,
    /// True if misses are classed (cold, capacity, conflict, true and false sharing).
    pub classes: bool,
    pub detail: Detail,
    /// The only policy, by its place in `policies`, that `detail` is about; the others get their
    /// totals, which is faster. `None`: all get it.
    pub detail_for: Option<usize>,
    /// Nanoseconds that a thread runs before another of its cpu gets its turn.
    pub slice_ns: u64,
    /// The cpus that threads are given while they run. Only by the clocks.
    pub schedule: Scheduling,
    /// The first cpu of each thread, by its number in the trace; threads beyond take the cpus in their order, as all do
    /// if this is `None`. Policies that get the uses of each cpu before the run (`cdpc`, `slots`) are told the latter.
    pub placement: Option<Vec<u32>>,
    /// Nanoseconds that the code of a barrier takes of each thread that reaches it, and the end of a team of its
    /// master.
    pub barrier_ns: f64,
    /// The counted window; `None`: all of the run.
    pub window: Option<Window>,
    pub costs: Costs,
    /// Over a stream of misses: the number of frames on all nodes together, of which any node can have any (the memory
    /// pressure of Verghese96, Table 7); `None`: those of the machine.
    pub frames_together: Option<u64>,
    /// Threads of the host to use; `None`: one for each of its cpus.
    pub threads: Option<usize>,
}

impl Config {
    /// The cpu that a thread begins on.
    pub fn first_cpu(&self, thread: u32) -> u32 {
        let placed = self.placement.as_ref().and_then(|placed| placed.get(thread as usize));
        placed.copied().unwrap_or(thread) % self.machine.cpus
    }

    /// The policy that is looked at closely, if it is the only one.
    pub fn detailed(&self) -> Option<&PolicySpec> {
        self.policies.get(self.detail_for?)
    }

    /// Seed 1, by the clocks, with classes, totals and totals by cpu, slices of 10 ms, threads that stay, barriers
    /// that cost nothing, all of the run, the costs
    /// of [`VERGHESE96`], all cpus of the host.
    pub fn new(machine: Machine, policies: Vec<PolicySpec>) -> Config {
        Config {
            machine,
            policies,
            changes: Vec::new(),
            seed: 1,
            order: Order::Clock,
            classes: true,
            detail: Detail::default(),
            detail_for: None,
            slice_ns: 10_000_000,
            schedule: Scheduling::Stay,
            placement: None,
            barrier_ns: 0.0,
            window: None,
            costs: VERGHESE96,
            frames_together: None,
            threads: None,
        }
    }
}

/// Costs of a kernel that migrates and replicates pages, measured in IRIX 5.2 on a simulated FLASH (Verghese96, section
/// 8.2, table 8), averaged over its three workloads: a migration is (472.0 + 448.4 + 516.1) / 3 us, a replication
/// (441.9 + 394.7 + 486.1) / 3 us. The paper gives no latency for a collapse: it is taken as a replication without page
/// allocation and copying. A touch fault is the table's interrupt handling. The time of moving a thread is not the
/// paper's: 50 us is the cost of `sched_setaffinity` and the faults after it on Linux. The time of another frame on the
/// same node is from Ding11 (section 4.3), measured with its memory manager: 0.1 s for the 8192 pages of 32 MB.
pub const VERGHESE96: Costs = Costs {
    move_page_ns: 478_800.0,
    recolor_page_ns: 12_207.0,
    copy_page_ns: 440_900.0,
    collapse_ns: 200_900.0,
    touch_fault_ns: 19_900.0,
    move_thread_ns: 50_000.0,
};

/// The cost of moving a page on Linux today, roughly: 4.6 us is this project's measurement for giving a page of a
/// running program another frame (crates/live/README.md, Figures: AMD EPYC, Linux 6.18), and a fault on a present page
/// takes 1.5 us there (docs/src/homes.md). A copy costs as much as a move, a collapse half of it, without allocation
/// and copying.
pub const LINUX: Costs = Costs {
    move_page_ns: 4_600.0,
    recolor_page_ns: 4_600.0,
    copy_page_ns: 4_600.0,
    collapse_ns: 2_300.0,
    touch_fault_ns: 1_500.0,
    move_thread_ns: 50_000.0,
};
