//! A log told again to fresh decisions: the same is done.

use std::io::{self, BufRead};

use policy::regions::pairing::Domain;

use super::decisions::Decisions;
use super::log::{Action, Entry, VERSION};

/// A replayed log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The actions when the log was written, and those of now.
    pub before: Vec<Action>,
    pub now: Vec<Action>,
}

/// Why a log cannot be told again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    #[error("line {0}: {1}")]
    Unread(usize, io::Error),
    #[error("it is of version {0}, and this is version {VERSION}")]
    Version(u32),
    #[error("it does not begin with the machine's domains")]
    Beginning,
    #[error("line {0}: a process has cpus in other domains than there are")]
    Domains(usize),
}

/// Replays a log to fresh decisions.
///
/// Errors: it is no log, or names processes that are not there. A truncated last line is skipped.
pub fn replay(log: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut replayed = Replayed {
        before: Vec::new(),
        now: Vec::new(),
    };
    let mut decisions: Option<(Decisions, usize)> = None;
    let mut lines = (1..).zip(log.split(b'\n')).peekable();
    while let Some((line, text)) = lines.next() {
        let text = text.map_err(|error| ReplayError::Unread(line, error))?;
        let last = lines.peek().is_none();
        let entry: Entry = match serde_json::from_slice(&text) {
            Ok(entry) => entry,
            Err(_) if last || text.is_empty() => break,
            Err(error) => return Err(ReplayError::Unread(line, error.into())),
        };
        let (decisions, domains) = match &mut decisions {
            Some(decisions) => decisions,
            none => none.insert(begin(&entry)?),
        };
        match entry {
            Entry::Observed(observed) => {
                let count = *domains;
                let strange = |seen: Option<u32>| seen.is_some_and(|seen| seen as usize >= count);
                let mut all = observed.processes.iter();
                if all.any(|process| process.cpus.len() != count || strange(process.seen)) {
                    return Err(ReplayError::Domains(line));
                }
                replayed.now.extend(decisions.tell(&observed).0);
            }
            Entry::Acts(action) => replayed.before.push(action),
            Entry::Begins(_) | Entry::Failed { .. } => {}
        }
    }
    match decisions {
        Some(_) => Ok(replayed),
        None => Err(ReplayError::Beginning),
    }
}

fn begin(entry: &Entry) -> Result<(Decisions, usize), ReplayError> {
    let Entry::Begins(begins) = entry else {
        return Err(ReplayError::Beginning);
    };
    if begins.version != VERSION {
        return Err(ReplayError::Version(begins.version));
    }
    if begins.domains.is_empty() {
        return Err(ReplayError::Beginning);
    }
    let domains = begins.domains.iter().map(|domain| Domain {
        cpus: domain.cpus.len() as u32,
        bytes: domain.bytes,
    });
    let decisions = Decisions::new(domains.collect(), begins.preferred.clone(), begins.progress);
    Ok((decisions, begins.domains.len()))
}
