//! The outcome for pages that follow their users on a running system.

use serde::{Deserialize, Serialize};

/// The output of `daemon --homes --json`, and of `run --json` under a policy that moves pages between nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveHomes {
    /// How the program ended; absent for a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub policy: String,
    /// Its parameters that are not its defaults: first those that follow from the source, then those that were set.
    pub settings: Vec<String>,
    /// The source that tells which pages are touched.
    pub source: String,
    /// The unit of its counts.
    pub counts: String,
    /// True if writes are distinguished from reads, by the source or beside it.
    pub writes_known: bool,
    /// Sources that are not used, and why.
    pub other_sources: Vec<SourceNotUsed>,
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// The kernel's own balancing; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_balancing: Option<KernelBalancing>,
    pub processes: Vec<HomesProcess>,
    pub moves: HomesMoves,
    /// The kinds of replication that ran beside the policy, and their cost in memory; empty for a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replication: Vec<HomesReplication>,
    pub samples: HomesSamples,
    /// The intervals in order; in a long run neighbours are summed.
    pub intervals: Vec<HomesInterval>,
    /// Processor time of Domicile itself, and of threads of the kernel that watched for it; absent where not known.
    pub own_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    pub wall_ns: u64,
    pub notes: Vec<String>,
}

/// A source of information that is not used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceNotUsed {
    pub name: String,
    pub why: String,
}

/// The state of the kernel's own balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelBalancing {
    /// It moves pages between nodes, too.
    pub among_nodes: bool,
    /// It moves pages between fast and slow memory.
    pub among_tiers: bool,
}

/// One process that was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesProcess {
    pub process: u32,
    pub name: String,
    /// Why it is no longer watched, or never was; absent if it was watched to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    pub pages_moved: u64,
}

/// Pages of 4096 bytes: what the policy requested, and the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesMoves {
    pub asked: u64,
    pub moved: u64,
    /// Those that were not moved, by reason.
    pub failed: Vec<HomesFailed>,
    /// Copies, and ends of copies, that the policy requested. Linux has no transparent replicas: none is carried out.
    pub copies_not_made: u64,
    pub collapses_not_made: u64,
    /// Time in which pages were moved.
    pub ns: u64,
}

/// One way of replication, and what it cost in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesReplication {
    pub mode: ReplicationMode,
    /// Processes that read copies of text; replicated data that was made.
    pub users: u64,
    /// Memory of all copies, including each first one; for data, the most at one time.
    pub bytes: u64,
    /// The same for each node, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<HomesCopies>,
    /// Bytes of text of all processes that stayed in place; and why the last of them did, or why nothing ran.
    #[serde(default)]
    pub left_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How readers reach the copy of their node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplicationMode {
    /// Program text and read-only data, in place of the files' pages.
    #[default]
    Text,
    /// Data of a program that asks for its copy, for the threads of a process.
    Handles,
    /// Data that several processes have mapped at the same address.
    Mappings,
}

/// Memory of copies on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesCopies {
    pub node: u32,
    pub bytes: u64,
}

/// Pages that were not moved for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesFailed {
    pub why: String,
    pub pages: u64,
}

/// The observations that the policy was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesSamples {
    /// Counts of pages on the node of the touching thread, and on others.
    pub local: u64,
    pub remote: u64,
    /// Those of both that count for several nodes, since the source does not say which one it was.
    pub shared: u64,
    /// Touched memory in pages that were passed over: no thread was seen to run, other processes also have the pages,
    /// or there were more than are examined in an interval.
    pub nobody: u64,
    pub of_several_processes: u64,
    pub too_many: u64,
}

/// A part of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesInterval {
    /// Since the beginning.
    pub from_ns: u64,
    pub to_ns: u64,
    pub local: u64,
    pub remote: u64,
    pub moved: u64,
}

impl HomesInterval {
    /// The part of the counts that are local, in percent; `None` where there are none.
    pub fn local_percent(&self) -> Option<f64> {
        let all = self.local + self.remote;
        (all > 0).then(|| self.local as f64 * 100.0 / all as f64)
    }
}
