//! A log replayed to fresh policies with the same settings: they make the same requests.

use std::io::{self, BufRead};

use policy::World;
use sys::memory::PAGE;

use super::decisions::Decisions;
use super::error::HomesError;
use super::log::{Asked, Entry, VERSION};

/// A replayed log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The policies' requests when the log was written, and their requests now.
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

/// Replays a log to fresh policies with the same settings.
///
/// Errors: it is no log, or names spaces that are not there. A truncated last line is skipped.
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
    /// More than any machine has: a bound on the requests of a damaged log.
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
        cpu_nodes: nodes,
        free_frames: vec![u64::MAX; nodes as usize],
        now_ns: 0,
        caches: None,
        domains: None,
        runnable: Vec::new(),
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
