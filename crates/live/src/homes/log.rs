//! What was told to policies and what they asked for, as JSON lines; and the same told again.

use std::io::{self, BufRead, Write};

use policy::World;
use serde::{Deserialize, Serialize};
use sys::memory::PAGE;

use super::decisions::Decisions;
use super::error::HomesError;

/// The version of what is written.
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
    /// Free frames of each node; 2^64 - 1 where that is not known.
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
    /// The policy asks for something, after what stands before.
    Asks(Asked),
    /// What became of a move: the node that the page is on, or why it was left.
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

/// What policies are built of, and the machine that they see.
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
    /// The kernel's number; 0 where it is not known.
    pub thread: u32,
    pub write: bool,
}

/// What a policy asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Asked {
    Move { space: u32, page: u64, node: u32 },
    Copy { space: u32, page: u64, node: u32 },
    Collapse { space: u32, page: u64 },
}

/// Where entries are written; nowhere, where no log is wanted.
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

    /// What was written is there for others to read.
    pub fn flush(&mut self) -> Result<(), HomesError> {
        self.to.as_mut().map_or(Ok(()), Write::flush).map_err(HomesError::Log)
    }
}

/// A log that was told again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// What the policies asked for when the log was written, and what they ask for now.
    pub before: Vec<Asked>,
    pub now: Vec<Asked>,
}

/// Why a log cannot be told again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    #[error("line {0}: {1}")]
    Unread(usize, io::Error),
    #[error("it is of version {0}, and this is version {VERSION}")]
    Version(u32),
    #[error("it does not begin with the policy and its machine")]
    Beginning,
    #[error("line {line}: there is no {what} {number}")]
    Number {
        line: usize,
        what: &'static str,
        number: u64,
    },
    #[error(transparent)]
    Homes(#[from] HomesError),
}

/// Tells fresh policies with the same settings what a log says.
///
/// Errors: it is no log, or names what is not there. A last line that was cut off is passed over.
pub fn replay(log: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut decisions = None;
    let mut replayed = Replayed {
        before: Vec::new(),
        now: Vec::new(),
    };
    let mut lines = (1..).zip(log.split(b'\n')).peekable();
    while let Some((line, text)) = lines.next() {
        let text = text.map_err(|error| ReplayError::Unread(line, error))?;
        let last = lines.peek().is_none();
        let entry: Entry = match serde_json::from_slice(&text) {
            Ok(entry) => entry,
            Err(_) if last || text.is_empty() => break,
            Err(error) => return Err(ReplayError::Unread(line, error.into())),
        };
        let decisions = match &mut decisions {
            Some(decisions) => decisions,
            none => none.insert(begin(&entry)?),
        };
        check(&entry, decisions.world(), line)?;
        match entry {
            Entry::Asks(asked) => replayed.before.push(asked),
            entry => decisions.tell(&entry, &mut replayed.now),
        }
    }
    match decisions {
        Some(_) => Ok(replayed),
        None => Err(ReplayError::Beginning),
    }
}

fn begin(entry: &Entry) -> Result<Decisions, ReplayError> {
    /// More than any machine has: a bound on what a damaged log can ask for.
    const MOST: u32 = 1 << 20;
    let Entry::Begins(begins) = entry else {
        return Err(ReplayError::Beginning);
    };
    if begins.version != VERSION {
        return Err(ReplayError::Version(begins.version));
    }
    let nodes = begins.nodes.len() as u32;
    let cpus = nodes
        .checked_mul(begins.cpus_of_node)
        .filter(|cpus| (1..MOST).contains(cpus));
    let world = World {
        page_bytes: PAGE as u64,
        colors: 1,
        cpus: cpus.ok_or(ReplayError::Beginning)?,
        nodes,
        free_frames: vec![u64::MAX; nodes as usize],
        now_ns: 0,
        caches: None,
    };
    let name = begins.policy.parse().map_err(HomesError::from)?;
    Ok(Decisions::new(name, begins.settings.clone(), world)?)
}

/// Policies are told of nodes and cpus that there are, and of none else.
fn check(entry: &Entry, world: &World, line: usize) -> Result<(), ReplayError> {
    let least = |what, number: u64, least: u64| match number < least {
        true => Ok(()),
        false => Err(ReplayError::Number { line, what, number }),
    };
    let (cpus, nodes) = (world.cpus.into(), world.nodes.into());
    match entry {
        Entry::Misses(misses) => {
            misses.cpus.iter().try_for_each(|&cpu| least("cpu", cpu.into(), cpus))?;
            least("node", misses.served_by.into(), nodes)
        }
        Entry::Tick { cpu, .. } => least("cpu", (*cpu).into(), cpus),
        Entry::Pressure { node, .. } => least("node", (*node).into(), nodes),
        Entry::Free { frames } if frames.len() as u64 != nodes => Err(ReplayError::Number {
            line,
            what: "node",
            number: frames.len() as u64,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINS: &str = r#"{"is":"begins","version":1,"policy":"migrate","settings":["migrate.batch=1","migrate.trigger=3"],"source":"x","nodes":[0,1],"cpus_of_node":1,"page_bytes":4096}
{"is":"joins","space":0,"process":5,"name":"x"}
"#;
    const MISSES: &str = r#"{"is":"misses","at":5,"space":0,"page":7,"cpus":[1],"times":3,"served_by":0,"thread":0,"write":false}
"#;
    const MOVE: Asked = Asked::Move {
        space: 0,
        page: 7,
        node: 1,
    };

    fn told(text: &str) -> Result<Replayed, ReplayError> {
        replay(text.as_bytes())
    }

    #[test]
    fn a_log_told_again_asks_for_the_same() {
        let asks = serde_json::to_string(&Entry::Asks(MOVE)).unwrap();
        let replayed = told(&format!("{BEGINS}{MISSES}{asks}\n{MISSES}")).unwrap();
        assert_eq!(replayed.before, [MOVE]);
        assert_eq!(replayed.now, [MOVE]);
        // A log that says otherwise is found out.
        let replayed = told(&format!(
            "{BEGINS}{}{asks}\n",
            MISSES.replace(r#""times":3"#, r#""times":2"#)
        ))
        .unwrap();
        assert!(replayed.now.is_empty() && replayed.before == [MOVE]);
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        assert!(matches!(told(""), Err(ReplayError::Beginning)));
        assert!(matches!(told(MISSES), Err(ReplayError::Beginning)));
        let other = BEGINS.replace(r#""version":1"#, r#""version":9"#);
        assert!(matches!(told(&other), Err(ReplayError::Version(9))));
        let why = |text: &str| told(text).unwrap_err().to_string();
        assert!(why(&format!("{BEGINS}nothing\n{MISSES}")).starts_with("line 3: "));
        let cpu = MISSES.replace("[1]", "[2]");
        assert_eq!(why(&format!("{BEGINS}{cpu}")), "line 3: there is no cpu 2");
        let node = MISSES.replace(r#""served_by":0"#, r#""served_by":2"#);
        assert_eq!(why(&format!("{BEGINS}{node}")), "line 3: there is no node 2");
        // The last line of a log that was cut off.
        assert!(told(&format!("{BEGINS}{MISSES}{{\"is\":\"mis")).is_ok());
    }
}
