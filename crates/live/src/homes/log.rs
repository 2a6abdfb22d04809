//! The events told to policies and their requests, as JSON lines.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::error::HomesError;

/// The version of the log's format.
pub const VERSION: u32 = 1;

/// A line of the log. Nodes and cpus are numbered as policies number them; times are nanoseconds since the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Entry {
    Begins(Begins),
    /// A process is watched from now on, as this space.
    Joins {
        space: u32,
        process: u32,
        name: String,
    },
    /// Free frames of each node; 2^64 - 1 if not known.
    Free {
        frames: Vec<u64>,
    },
    Misses(Misses),
    Tick {
        at: u64,
        space: u32,
        cpu: u32,
    },
    Pressure {
        at: u64,
        space: u32,
        node: u32,
        free_frames: u64,
    },
    /// The policy's request, after the entries before this one.
    Asks(Asked),
    /// The outcome of a move: the node that the page is on, or why it was left.
    Became {
        space: u32,
        page: u64,
        pages: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    Leaves {
        space: u32,
        why: String,
    },
}

/// The settings that policies are built of, and the machine that they see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    pub version: u32,
    pub policy: String,
    pub settings: Vec<String>,
    pub source: String,
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// Cpus on each, as policies number them.
    pub cpus_of_node: u32,
    pub page_bytes: u64,
}

/// Misses on one page: each of the cpus in turn, so many times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    pub at: u64,
    pub space: u32,
    pub page: u64,
    pub cpus: Vec<u32>,
    pub times: u32,
    pub served_by: u32,
    /// The kernel's number; 0 if not known.
    pub thread: u32,
    pub write: bool,
}

/// A policy's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Asked {
    Move { space: u32, page: u64, node: u32 },
    Copy { space: u32, page: u64, node: u32 },
    Collapse { space: u32, page: u64 },
}

/// The log's destination, if a log is wanted.
pub struct Log {
    to: Option<Box<dyn Write + Send>>,
}

impl Log {
    pub fn new(to: Option<Box<dyn Write + Send>>) -> Log {
        Log { to }
    }

    pub fn write(&mut self, entry: &Entry) -> Result<(), HomesError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let line = serde_json::to_vec(entry).map_err(io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            to.write_all(&line)
        });
        written.map_err(HomesError::Log)
    }

    /// Flushes the entries, for others to read.
    pub fn flush(&mut self) -> Result<(), HomesError> {
        self.to.as_mut().map_or(Ok(()), Write::flush).map_err(HomesError::Log)
    }
}
