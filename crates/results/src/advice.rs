//! The advice: one program on one machine, under every policy that can make a difference.

use serde::{Deserialize, Serialize};

use crate::causes::Cause;
use crate::detail::{Collision, SourceLine, Structure};
use crate::gains::{CdpcAdvice, SlotAdvice, WorkAdvice};
use crate::homes_advice::HomesAdvice;
use crate::lenient::{named_ns, ns};
use crate::number::count;
use crate::outcome::Outcome;
use crate::profile::Profile;
use crate::regions::RegionsAdvice;
use crate::sharing::SharingAdvice;
use crate::timeline::Timeline;
use crate::todo::Todo;
use crate::truth::TruthRange;
use crate::verified::Verified;

/// The output of `advise --json`: the whole result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Advice {
    pub program: String,
    pub arguments: Vec<String>,
    /// Why the run does not count as whole (a signal killed the program, its status is not 0, the disk was full ...),
    /// in a clause: the advice covers what was recorded until then. Absent if it ended normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broke: Option<String>,
    pub machine: MachineFacts,
    pub trace: Facts,
    /// The policy that the parts below are of: what a usual kernel does.
    pub baseline: String,
    /// The time of all cpus under the baseline, part by part; adds up to its total.
    #[serde(rename = "where")]
    pub shares: Vec<Share>,
    /// The place that ended the waiting: caches, local or remote memory.
    pub served: Vec<Share>,
    /// The structures that cost most under the baseline, the worst first.
    pub structures: Vec<Structure>,
    /// The lines of the source that wait most under the baseline, the worst first; empty in results of versions that did not
    /// look for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_lines: Vec<SourceLine>,
    pub false_sharing: Vec<Collision>,
    /// Waiting over time under the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The same by call stack; absent in results of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Why the worst structures miss, and what to do about it: first those whose cure saves most, then those that wait
    /// longest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Changes to make, the largest gain first; none below 1% of the run time. Empty in results of older versions.
    pub todo: Vec<Todo>,
    /// How long the program took without the recorder, beside what was simulated; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
    /// Changes that were tried and gain nothing, and those that could not be tried, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub otherwise: String,
    /// The program's exit status; absent for traces, and if a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Every policy's outcome, the fastest first.
    pub policies: Vec<Outcome>,
    /// The gain of another order of the marked work; absent where no work is marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkAdvice>,
    /// The remote data, the reasons, and what would bring it near; absent if there is one node, or the user named
    /// policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homes: Option<HomesAdvice>,
    /// The threads that share data, and the caches that they belong under; absent if there is one thread, or one cache
    /// for all cpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingAdvice>,
    /// Pages that are used together, if threads or processes would gain by running at the cache of their pages; else
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<RegionsAdvice>,
    /// How the outermost cache could be partitioned; absent if that was not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotAdvice>,
    /// The gain of compiler-directed page coloring; absent where that was not simulated, or there are no hints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdpc: Option<CdpcAdvice>,
    /// How far predictions were off on this machine (`domicile truth`): the ranges of gains rest on it. Absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<TruthRange>,
    /// The outcome of a changed program, predicted and measured; absent where none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// Policies that gain something only if no data is on huge pages: with small pages they lose more than they gain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The gain of placement, in a sentence or two.
    pub verdict: String,
    /// Figures that are only estimates, and why.
    pub notes: Vec<String>,
}

impl Advice {
    /// Warnings to be read first: that this is advice on a stump, and why.
    pub fn warning(&self) -> Option<String> {
        let broke = self.broke.as_ref()?;
        let references = count(self.trace.references);
        Some(format!(
            "Not a whole run: {broke}. This is advice on what was recorded, {references} references."
        ))
    }

    /// The outcome that the advice is given for.
    pub fn base(&self) -> Option<&Outcome> {
        self.policies.iter().find(|outcome| outcome.policy == self.baseline)
    }
}

/// The time of a run by the clock and by simulation, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Native {
    /// Short programs are run several times; all times here are means.
    pub runs: u32,
    /// From the start to the end of the whole run, without the recorder.
    pub wall_ns: u64,
    /// Of that, the time of all cpus in the program, and in the kernel for it. Of the kernel's time, only page faults
    /// are simulated.
    pub user_ns: u64,
    pub system_ns: u64,
    /// The simulated work of all cpus, for comparison with `user_ns`; for a trace of windows, scaled up to the run.
    pub simulated_ns: u64,
    /// The simulated time of all cpus in the kernel's page faults, which is a part of `system_ns` and not of `simulated_ns`.
    pub faults_ns: u64,
    /// As `simulated_ns` with overlapping loads, if the model in use makes each load wait alone because that is nearer
    /// to the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlapping_ns: Option<u64>,
}

impl Default for Native {
    fn default() -> Native {
        Native {
            runs: 1,
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            simulated_ns: 0,
            faults_ns: 0,
            overlapping_ns: None,
        }
    }
}

impl Native {
    /// Up to this factor off, a simulated time counts as right.
    pub const RIGHT: f64 = 1.5;

    /// The measured time divided by the simulated one.
    pub fn ratio(&self) -> f64 {
        self.user_ns as f64 / self.simulated_ns.max(1) as f64
    }

    /// How far the simulated time is from the measured one: twice as long is as far as half as long.
    pub fn off(&self) -> f64 {
        self.ratio().max(f64::MIN_POSITIVE).ln().abs()
    }

    /// True if the simulated time is about the measured one.
    pub fn is_right(&self) -> bool {
        (1.0 / Native::RIGHT..=Native::RIGHT).contains(&self.ratio())
    }
}

/// The machine of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MachineFacts {
    pub name: String,
    pub clock_mhz: f64,
    pub cpus: u32,
    pub nodes: u32,
    /// Colors among which page placement can choose; 1: none.
    pub colors: u32,
    pub page_bytes: u64,
    pub caches: Vec<CacheFacts>,
    pub local_ns: f64,
    pub remote_ns: f64,
    /// The source of its figures, in a few words (`probed`, `not probed`, `no core: compares placements only`); absent
    /// for descriptions that come with Domicile and have a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CacheFacts {
    pub name: String,
    pub level: u8,
    pub bytes: u64,
    pub ways: u32,
    pub cpus_per_instance: u32,
    pub hit_ns: f64,
    pub colors: u32,
}

/// The trace of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Facts {
    /// The trace's file; null where it was recorded for this advice only.
    pub file: Option<String>,
    pub references: u64,
    pub instructions: Option<u64>,
    pub threads: u64,
    pub processes: u64,
    /// Bytes of all pages touched.
    pub footprint_bytes: u64,
    /// The recorded part of the run, in a word or two; absent if it is the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// A part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Share {
    /// `busy`, `cache`, `local`, `remote`, `memory`, `tlb`, `policy`, `prefetch`, `imbalance`, `sequential` or
    /// `synchronization`.
    pub part: String,
    /// A description for people.
    pub name: String,
    #[serde(deserialize_with = "ns")]
    pub ns: u64,
    /// The share of the time in which cpus worked (computed, or waited for memory). For time in which they only waited
    /// for other threads, see [`Share::is_waiting`], the share of the total of all cpus.
    pub fraction: f64,
    /// Nanoseconds by class of the misses that caused it, where it is caused by misses.
    #[serde(deserialize_with = "named_ns")]
    pub classes: Vec<(String, u64)>,
}

impl Share {
    /// True if it is time in which a cpu merely waited for other threads. It stands apart from the others: a parent that
    /// waits for its child would halve every other share.
    pub fn is_waiting(&self) -> bool {
        matches!(self.part.as_str(), "imbalance" | "sequential" | "synchronization")
    }
}
