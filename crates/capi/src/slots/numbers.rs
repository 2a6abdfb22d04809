//! The numbers that a program has for its threads, and which threads they are.

use std::collections::BTreeMap;

/// The threads of an application that are bound.
#[derive(Default)]
pub struct Numbers(pub BTreeMap<i64, Bound>);

/// A thread of the operating system behind a number.
#[derive(Clone)]
pub struct Bound {
    /// The kernel's number for it.
    pub tid: u32,
    /// Where it might run when it was bound.
    pub cpus: Vec<u32>,
}
