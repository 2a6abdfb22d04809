//! The program in ways of the last cache, where there are no colors: all of its threads get the ways of its private
//! slots exclusively. No run-time is loaded, and no page moves.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use live::resctrl::{Instead, WaySlot, WaysError};
use policy::slots::{Kind, Plan};
use results::run::{CacheWays, InWays, Run};
use sys::supervise::Supervisor;

use super::started::code;
use crate::console;
use crate::failure::Failure;

/// Runs a command to its end, in ways for the private slots of a plan.
///
/// Errors: there are not that many ways, or the kernel refuses; the program was not started then.
pub fn run(instead: &Instead, plan: &Plan, command: &OsStr, arguments: &[OsString]) -> Result<Run, Failure> {
    // From here on, requests to end go to the program: the ways are always given back.
    let mut supervisor =
        Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
    console::note(format_args!("note: {}", instead.note()));
    let private = plan.slots.iter().filter(|slot| slot.kind == Kind::Private);
    let asked_bytes = private.fold(0u64, |sum, slot| sum.saturating_add(slot.bytes));
    let slot = match asked_bytes {
        0 => None,
        bytes => Some(in_ways(instead, bytes).map_err(|error| not_started(instead, &error))?),
    };
    let mut program = Command::new(command);
    program.args(arguments);
    let status = supervisor
        .run(program)
        .map_err(|error| Failure::work(format!("cannot run {}: {error}", command.to_string_lossy())))?;
    let masks = slot.iter().flat_map(WaySlot::masks);
    let caches = masks.map(|(cache, mask)| CacheWays {
        cache,
        mask: format!("{mask:x}"),
    });
    let ways = InWays {
        level: instead.level,
        why: instead.note(),
        asked_bytes,
        bytes: slot.as_ref().map_or(0, WaySlot::bytes),
        caches: caches.collect(),
    };
    // The program has run: errors from here on do not change its exit status.
    if let Some(Err(error)) = slot.map(WaySlot::free) {
        console::warn(format_args!(
            "the ways were not given back: {error}; the next program that takes some gives them back"
        ));
    }
    Ok(Run {
        exit_code: code(status),
        ways: Some(ways),
        ..Run::default()
    })
}

/// A slot with this thread in it. A thread's children are in its group from the first instruction on, so none of the
/// program's threads can be missed; this thread waits meanwhile and takes no cache from it.
fn in_ways(instead: &Instead, bytes: u64) -> Result<WaySlot, WaysError> {
    let this = sys::affinity::this_thread();
    let cpus = sys::affinity::allowed(None).map_err(|_| WaysError::NoCpus)?;
    let slot = instead.ways.slot(bytes, Kind::Private, &cpus)?;
    slot.add(this)?;
    Ok(slot)
}

fn not_started(instead: &Instead, error: &WaysError) -> Failure {
    Failure::work(format!(
        "ways of the L{} cache: {error}\nThe program was not started. Ways stand in for page colors here, because: {}",
        instead.level, instead.why
    ))
}
