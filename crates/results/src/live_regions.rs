//! The outcome for processes that are paired with cache domains on a running system.

use serde::{Deserialize, Serialize};

use crate::SourceNotUsed;

/// The result of `daemon --regions --json` and of `run --regions-with ... --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveRegions {
    /// True: processes were placed. False: it was a dry run, and nothing was changed.
    pub acted: bool,
    /// The source of working sets.
    pub source: String,
    /// The meaning of its count, and the count's limits.
    pub source_limit: String,
    /// Sources that are not used, and why.
    pub other_sources: Vec<SourceNotUsed>,
    /// The program that gets domains for itself; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    pub domains: Vec<PairingDomain>,
    /// As they were seen last.
    pub processes: Vec<PairedProcess>,
    /// The largest sum of working sets at a cache, without and with the last change, in bytes; absent where nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest_before_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest_after_bytes: Option<u64>,
    /// The reason of the last change, or why there was none.
    pub why: String,
    /// The actions, which a dry run did not carry out; of a long run the last ones.
    pub actions: Vec<PairingAction>,
    /// All actions, including those that are not listed.
    pub actions_count: u64,
    /// The unit of work in which changes are judged; absent where there is none, and in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<PairingMeasure>,
    /// Changes that were compared with the pace of work.
    pub trials: Vec<PairingTrial>,
    /// True if, by the pace of work, the last change did not lose.
    pub verified: bool,
    /// How often a thread got its earlier cpus back: meanwhile, at the end, and at the start after a run that was
    /// killed.
    pub restored_threads: u64,
    pub recovered_threads: u64,
    /// Intervals that were observed.
    pub intervals: u64,
    /// Processor time of Domicile itself.
    pub own_ns: u64,
    pub wall_ns: u64,
    pub notes: Vec<String>,
}

/// The outcome of policy `pairing` in a simulated run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairing {
    /// The caches among which processes are divided, how many, and the bytes of each.
    pub cache: String,
    pub caches: u32,
    pub cache_bytes: u64,
    /// As they were in the last intervals; their numbers are those of the trace.
    pub processes: Vec<PairedProcess>,
    /// The largest sum of working sets at a cache, without and with the last change, in bytes; absent where nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest_before_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest_after_bytes: Option<u64>,
    /// The reason of the last change, or why there was none; empty if nothing was decided.
    pub why: String,
    /// Places that were given and taken; of a long run the last ones.
    pub actions: Vec<PairingAction>,
    pub actions_count: u64,
}

/// A unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PairingMeasure {
    /// A program reports how many units it has done.
    Progress,
    /// Instructions in user mode, of each process by itself.
    Instructions,
}

/// The cpus below one instance of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairingDomain {
    /// As a list, such as 0-3,8.
    pub cpus: String,
    /// The level of the cache; absent where domains were given by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The size of the cache; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// Working sets of the processes that were seen there, and of those that the last decision puts there, in bytes.
    pub seen_bytes: u64,
    pub decided_bytes: u64,
    /// Busy threads in the same two cases, in thousandths of a cpu.
    pub seen_busy: u32,
    pub decided_busy: u32,
}

/// One process that was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedProcess {
    pub process: u32,
    pub name: String,
    /// The median of the last intervals; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Cpus that its threads would keep busy, in thousandths: the median of the last intervals.
    pub busy: u32,
    /// The domains that it was given, by index; absent if it runs wherever the kernel puts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
    /// The reason why it has no place; absent where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A process that is placed, or freed again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairingAction {
    /// Since the beginning.
    pub at_ns: u64,
    pub process: u32,
    pub name: String,
    /// Absent if it may run again wherever it could before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
    pub why: String,
    /// The error that prevented the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A change that was compared with the pace of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairingTrial {
    /// Processor time of the preferred program, else of all watched processes, for each unit that was done. Of instructions, both
    /// are over the same work: of each process the instructions of before or of after, whichever are less, at its own pace.
    pub before_ns: f64,
    pub after_ns: f64,
    /// It lost, and was undone.
    pub undone: bool,
}
