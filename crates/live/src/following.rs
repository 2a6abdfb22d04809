//! A thread that goes to the cache of the data that it touches, on a running system: the mechanism of Lee and Schwan ("Region
//! Scheduling", ASPLOS 2012, sections 2 and 3), as an experiment. Policy `regions` decides, as in the simulator.
//!
//! Protection keys close pages to cpus; without such keys the pages' own protection does (`mprotect(2)`). The program
//! runs traced: a touch of a closed page stops it, the policy is asked, and the thread goes on where its data is
//! cached. The program's own handlers of faults are not concerned, since the tracer takes these stops before any signal
//! is delivered. The kernel obeys both means as well, so that all pages are open during system calls.
#![forbid(unsafe_code)]

mod begin;
mod clock;
mod closed;
mod deciding;
mod error;
mod host;
mod image;
mod layout;
mod moments;
mod stops;

use std::process::Command;

use policy::{Bounds, Name};
use results::LiveFollowing;
use sys::cache_domains::CacheDomain;

pub use error::FollowingError;
pub use sys::traced::Closing;

/// How a program is to follow its data.
#[derive(Clone, Debug)]
pub struct Asked {
    pub policy: Name,
    /// Settings as in `regions.period=20000`.
    pub settings: Vec<String>,
    /// The caches among which regions are divided: two at least.
    pub domains: Vec<CacheDomain>,
    /// `None`: by protection keys where the processor has them, else by the pages' protection.
    pub closing: Option<Closing>,
    /// Cpus of caches that regions may have are kept from sleeping while pages are closed ([`sys::awake`]).
    pub awake: bool,
    /// The sizes and stays known to gain; `None`: by the time that a move takes here.
    pub bounds: Option<Bounds>,
}

/// Measures the time of a move on this machine, in ns: a touch of a closed page, the policy's turn, and the thread on
/// another cpu. The program of `command` is started and ends before its first instruction.
///
/// Errors: there are no protection keys, where pages are to be closed by them; one cache domain only; the program cannot be started or
/// traced.
pub fn move_ns(
    command: Command,
    domains: &[CacheDomain],
    closing: Option<Closing>,
    awake: bool,
) -> Result<u64, FollowingError> {
    host::Host::begin(command, domains, closing, awake)?.end_before_it_runs()
}

/// Runs a command to its end.
///
/// Errors: as [`move_ns`]; the policy's settings.
pub fn run(command: Command, asked: &Asked, started: impl Fn(u32)) -> Result<LiveFollowing, FollowingError> {
    let mut host = host::Host::begin(command, &asked.domains, asked.closing, asked.awake)?;
    host.decide_by(asked)?;
    started(host.process());
    host.run()
}
