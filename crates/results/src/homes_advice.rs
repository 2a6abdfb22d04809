//! Advice for a machine with several memory nodes: the remote data, the reasons, and the changes that would
//! bring it near.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::detail::StructureKind;
use crate::lenient::ns;

/// Why misses on a page go to another node, under a policy that leaves it where it was touched first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RemoteReason {
    /// One node uses the page, and a thread of another one touched it first.
    FirstTouch,
    /// One node uses it for a while, then another.
    MovesOn,
    /// Several nodes read it, and hardly any writes it.
    #[default]
    ReadByMany,
    /// Several nodes use it, and it is written.
    WrittenByMany,
}

impl RemoteReason {
    pub const ALL: [RemoteReason; 4] = [
        RemoteReason::FirstTouch,
        RemoteReason::MovesOn,
        RemoteReason::ReadByMany,
        RemoteReason::WrittenByMany,
    ];
}

impl Display for RemoteReason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            RemoteReason::FirstTouch => "first touched by another node's thread",
            RemoteReason::MovesOn => "used by one node after the other",
            RemoteReason::ReadByMany => "read by several nodes",
            RemoteReason::WrittenByMany => "written and used by several nodes",
        })
    }
}

/// A data structure whose misses went to another node's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemoteStructure {
    pub name: String,
    pub kind: StructureKind,
    /// The place of its definition or allocation.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Pages with a miss on it.
    pub pages: u64,
    /// Its misses that the memory of the missing cpu's own node served, and others.
    pub local: u64,
    pub remote: u64,
    /// Its misses by the node of the cpu.
    pub nodes: Vec<u64>,
    /// Its remote misses by the reason of their pages, the most frequent first.
    pub reasons: Vec<RemoteMisses>,
    /// The code that first touched its pages with remote misses, the largest counts first; at most three.
    pub first_touches: Vec<FirstToucher>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemoteMisses {
    pub reason: RemoteReason,
    pub remote: u64,
}

/// A line of the source and a thread that touched pages first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FirstToucher {
    /// `file:line`, else the function, else a place in a file of code.
    pub source: String,
    pub function: String,
    /// The library function that the line calls and that touched the pages; absent if the line did it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// The thread's index in the trace, and the node of its cpu then.
    pub thread: u32,
    pub node: u32,
    pub pages: u64,
    /// Remote misses on these pages.
    pub remote: u64,
}

impl Display for FirstToucher {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.source)?;
        match &self.through {
            Some(through) => write!(f, ", in {through}"),
            None => Ok(()),
        }
    }
}

/// A change that brings data near to its users, and its gain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HomesRemedy {
    /// For people.
    pub name: String,
    /// The policy that was simulated for it.
    pub policy: String,
    /// Its parameters (`--set`), where they are not the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    /// The part of the run time that it saves; negative where it costs time.
    pub gain: f64,
    /// The same for the second half of the misses, with pages where the first half left them; absent if that was not
    /// examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_gain: Option<f64>,
    /// Of the misses that memory served, those of the cpu's own node, in percent.
    pub local_percent: f64,
    pub migrations: u64,
    pub replications: u64,
    /// The command, setting or call that does it.
    pub how: String,
    /// The assumptions of the simulation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conditions: String,
}

/// The gain of placing pages on nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HomesAdvice {
    /// The policy that the structures were measured under, and the reference for gains.
    pub against: String,
    /// The part of the cpus' working time that they wait for other nodes' memory and caches.
    pub remote_share: f64,
    /// Of the misses that memory served, those of the cpu's own node, in percent.
    pub local_percent: f64,
    /// A sentence if all threads were on the cpus of one node, so that nothing could be remote; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub on_one_node: String,
    /// Those with most remote misses first.
    pub structures: Vec<RemoteStructure>,
    /// Misses beyond all caches: a row for each node of cpus, with the nodes whose memory, or dirty caches, served
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Vec<u64>>,
    /// The fastest first.
    pub remedies: Vec<HomesRemedy>,
    /// The same in words.
    pub verdict: String,
}
