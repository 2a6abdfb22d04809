//! A request that takes a look at the client's pages, between its two steps.

use std::time::Instant;

use super::broker::Refused;
use super::looks;
use super::wire::{Answer, Refusal, Run};

/// A look that a client waits for.
pub struct Pending {
    /// Its number.
    pub look: u64,
    pub request: Asked,
}

/// The request that a look is for.
pub struct Asked {
    pub purpose: Purpose,
    /// When it came, its place among the kinds of requests, and the work that it was so far.
    pub begun: Instant,
    pub kind: usize,
    pub work: u64,
}

/// The use of the result of a look.
pub enum Purpose {
    /// The process has just connected: its page map is opened.
    Open,
    Look(Run),
    Leave(Run),
    Left(Left),
    Adopt,
}

/// The frames of ours that pages had which were freed, a place a page, and where.
pub struct Left {
    pub frames: Vec<Option<u64>>,
    pub cpu: u32,
}

/// How a request is met.
pub enum Reply {
    Now(Answer),
    /// With the state of these pages.
    Seen(Run, Purpose),
}

/// The refusal for a process that could not be looked at in time.
pub fn too_slow() -> Refused {
    let text = format!(
        "the program's pages could not be looked at within {} s: its address space is locked; use your own frames",
        looks::MOST.as_secs()
    );
    (Refusal::Slow, text)
}
