//! A run's figures by thread, data structure and page, and the lines that threads with different data take from each
//! other.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::cache::{ClassTotals, Misses};
use crate::lenient::ns;

/// The work and the waiting of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Thread {
    /// Its index in the trace.
    pub thread: u32,
    /// The system's number and name for it; without these in the trace, the number is the index.
    pub number: u64,
    pub name: String,
    /// Index of its process.
    pub process: u32,
    pub references: u64,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    pub caches: Vec<Misses>,
}

/// The kind of a data structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StructureKind {
    Symbol,
    /// Blocks of one allocation site; mappings without a file too.
    Heap,
    /// Declared by the program.
    Array,
    Stack,
    File,
    #[default]
    Unknown,
}

impl Display for StructureKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            StructureKind::Symbol => "symbol",
            StructureKind::Heap => "heap",
            StructureKind::Array => "array",
            StructureKind::Stack => "stack",
            StructureKind::File => "file",
            StructureKind::Unknown => "unknown",
        })
    }
}

/// The cost of a data structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Structure {
    pub name: String,
    pub kind: StructureKind,
    /// The place of its definition or allocation.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Its size; of an allocation site, the most bytes that were live at once.
    pub bytes: u64,
    /// Blocks that an allocation site allocated, else 0.
    pub blocks: u64,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    pub caches: Vec<Misses>,
}

impl Structure {
    /// Its misses in the caches of a level.
    pub fn of_level(&self, level: u8) -> ClassTotals {
        Misses::of_level(&self.caches, level)
    }

    /// Its misses in the caches nearest to the cpus: what its references missed.
    pub fn nearest(&self) -> ClassTotals {
        Misses::nearest(&self.caches)
    }
}

/// The cost of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Page {
    /// Index of its process.
    pub process: u32,
    /// Its virtual address.
    pub page: u64,
    /// The data structure that has the largest part of its stall.
    pub structure: String,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    pub caches: Vec<Misses>,
}

/// The cost of the accesses of a line of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SourceLine {
    /// The function; a place in a file of code (`libx.so+0x12f0`) where it has no name.
    pub function: String,
    /// Absent where the program has no line information.
    pub file: Option<String>,
    pub line: Option<u32>,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    pub caches: Vec<Misses>,
    /// The data structures that it stalls for most, the worst first.
    pub structures: Vec<LineStructure>,
}

impl SourceLine {
    /// `file:line` without folders.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), self.line?))
    }

    /// Its misses in the caches nearest to the cpus.
    pub fn nearest(&self) -> ClassTotals {
        Misses::nearest(&self.caches)
    }
}

/// The waiting of a line of the source for one data structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LineStructure {
    pub name: String,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
}

/// Two threads with different data in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Collision {
    pub structure: String,
    /// Virtual address of the line (of the machine's largest lines).
    pub line: u64,
    /// Misses that were false sharing, in the kind of cache that had most of them.
    pub misses: u64,
    /// True if both accesses are to words of one lock: the lock is contended, and its words belong in one line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock: bool,
    /// The access that missed, and the write that had taken the line away: the two that collided there most often.
    pub sides: Vec<Side>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Side {
    pub thread: String,
    /// The field that it accesses, or the offset in the structure.
    pub field: String,
    pub write: bool,
    /// `file:line`; null where the trace does not say.
    pub source: Option<String>,
}
