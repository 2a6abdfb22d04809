//! The program's numbers for its threads, and the threads behind them.

use std::collections::BTreeMap;

/// The bound threads of an application.
#[derive(Default)]
pub struct Numbers(pub BTreeMap<i64, Bound>);

/// A thread of the operating system behind a number.
#[derive(Clone)]
pub struct Bound {
    /// The kernel's number for it.
    pub tid: u32,
    /// The cpus on which it could run when it was bound.
    pub cpus: Vec<u32>,
}
