//! The sources that tell which pages a process touches, and the meaning of a miss with each source.
//!
//! A policy counts misses. A running Linux system shows misses only where the processor samples them; elsewhere it
//! shows *touches*: accesses to a page since the last look. [`Scale`] relates a source's counts to the misses that a
//! policy's parameters are in. The sources, the best first:
//!
//! | source | one count is | cpu |
//! |---|---|---|
//! | [`hardware`] | a sampled access that the last cache did not serve | known |
//! | [`damon`] | a sampling interval in which the kernel found a region accessed, for each page of the region | not known |
//! | [`taken`] | the first touch of a page that was taken out for a while | of the thread |
//! | [`idle`] | a look that found that the page was accessed since the look before | not known |
//! | [`hints`] | the first touch of a page since the kernel's own balancing closed it | known |
//! | [`faults`] | the first write to a page since the look before; reads are not seen | known |
//! | [`dirty`] | a look that found that the page was written since the look before; reads are not seen | not known |
//!
//! If the cpu is not known, a touch counts for the nodes on which threads of the process ran meanwhile. If that was one
//! node, the touch came from there. If there were several, it counts for each of them, so that the page looks shared:
//! no node is guessed.

pub mod damon;
pub mod dirty;
pub mod faults;
mod gathered;
pub mod hardware;
pub mod hints;
pub mod idle;
mod rests;
pub mod taken;

use std::time::Duration;

use sys::Root;
use sys::memory::Span;

use super::error::HomesError;

/// Memory that a process touched, as a source saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub span: Span,
    /// The source's own count of touches; the same for each page of the span.
    pub counts: u32,
    /// The thread and Linux's number of its cpu, where the source knows them.
    pub by: Option<(u32, u32)>,
    /// `None` if the source cannot tell reads from writes.
    pub write: Option<bool>,
}

/// How a source's counts compare with misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A page that is always in use gets so many counts at a look, and none gets more.
    Looks(u32),
    /// One in so many misses is a count.
    Events(u32),
}

/// A process that cannot be watched any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("it has ended")]
    Gone,
    #[error("{0}")]
    Refused(String),
}

pub trait Source: Send {
    fn name(&self) -> &'static str;
    /// The meaning of a count, for people.
    fn counts(&self) -> String;
    fn scale(&self) -> Scale;
    /// Returns whether it counts each cpu by itself, and not all of a node together.
    fn knows_cpus(&self) -> bool {
        false
    }
    /// Returns whether it tells reads from writes.
    fn knows_writes(&self) -> bool {
        false
    }
    /// Begins to watch a process.
    fn begin(&mut self, process: u32) -> Result<(), Lost>;
    /// The pages that it touched lately, ascending by address; the source's documentation defines a
    /// touch.
    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost>;
    /// Ends watching a process, whether or not it is still there.
    fn end(&mut self, process: u32);
    /// The source's further notes at the end, for people.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Processor time that the kernel spent on watching, in threads of its own.
    fn kernel_time(&mut self) -> Option<Duration> {
        None
    }
}

/// A source, or why it is none here.
pub type Probed = Result<Box<dyn Source>, String>;

/// The names of all sources, the best first.
pub const NAMES: [&str; 7] = [
    hardware::NAME,
    damon::NAME,
    taken::NAME,
    idle::NAME,
    hints::NAME,
    faults::NAME,
    dirty::NAME,
];

fn probe(root: &Root, name: &str, interval: Duration) -> Probed {
    match name {
        hardware::NAME => hardware::probe(root),
        damon::NAME => damon::probe(root, interval),
        taken::NAME => taken::probe(),
        idle::NAME => idle::probe(root),
        hints::NAME => hints::probe(root),
        faults::NAME => faults::probe(root),
        _ => dirty::probe(),
    }
}

/// The source that is used, and why the others are not: each of them was probed.
pub struct Choice {
    pub source: Box<dyn Source>,
    pub others: Vec<(String, String)>,
}

/// The best source that works here, or the one asked for, without probing the others.
///
/// Errors: none works; the reason of each is in the error.
pub fn choose(root: &Root, asked: Option<&str>, interval: Duration) -> Result<Choice, HomesError> {
    let mut others = Vec::new();
    let mut found: Option<Box<dyn Source>> = None;
    if let Some(asked) = asked
        && !NAMES.contains(&asked)
    {
        return Err(HomesError::UnknownSource(asked.to_string(), NAMES.join(", ")));
    }
    for name in NAMES {
        if asked.is_some_and(|asked| asked != name) {
            others.push((name.to_string(), "another one was asked for".to_string()));
            continue;
        }
        match (probe(root, name, interval), &found) {
            (Err(why), _) => others.push((name.to_string(), why)),
            (Ok(_), Some(better)) => {
                others.push((
                    name.to_string(),
                    format!("it works, too; {} comes before it", better.name()),
                ));
            }
            (Ok(source), None) => found = Some(source),
        }
    }
    match found {
        Some(source) => Ok(Choice { source, others }),
        None => Err(HomesError::NoSource(others)),
    }
}
