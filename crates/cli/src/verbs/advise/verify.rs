//! A changed program, simulated beside the one that an advice is for, and both measured here in turn.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use capture::Folder;
use machine::Machine;
use results::{Advice, Outcome, Verified, VerifiedRound, VerifiedTime};
use sys::clock::{children_time, tick};

use super::Advise;
use super::tunables::asks_huge_pages;
use crate::failure::Failure;
use crate::verbs::compare::{self, Command, Simulation};
use crate::verbs::model::HOST;

/// Rounds that are measured, each of one run of both programs, if there is time.
const ROUNDS: usize = 5;
/// Rounds that are measured however long they take.
const LEAST_ROUNDS: usize = 3;
/// After this time no round begins beyond the minimum.
const ENOUGH: Duration = Duration::from_secs(10);
/// Quick programs continue until this has passed: medians of more rounds are steadier.
const BRIEF: Duration = Duration::from_secs(1);
/// The most rounds.
const MOST_ROUNDS: usize = 51;

/// The name of the changed program's trace.
const TRACE: &str = "changed.trace";

/// Note on pages, if one of the two commands asks for huge ones.
const HUGE: &str = "the changed command asks for huge pages, and all of its data is simulated on them; malloc gives them to large \
                    memory alone";
const SMALL: &str = "a command asks for huge pages, and both are simulated on small ones: the prediction says nothing of what huge \
                     pages save";

/// A changed program, and the folder of its trace, or why there is none.
pub struct Changed {
    command: Command,
    /// The exit status of both programs.
    status: i32,
    recorded: Result<Folder, Failure>,
}

impl Advise {
    /// The changed program, if one was given. Errors are reported before anything runs.
    pub fn changed(&self) -> Result<Option<Command>, Failure> {
        let Some(changed) = &self.verify else { return Ok(None) };
        let part = self.recording.part();
        if let Some(option) = part.or(self.budget.map(|_| "--budget")) {
            return Err(Failure::usage(format!(
                "`--verify` compares whole runs, and `{option}` records a part of one: leave one of them out"
            )));
        }
        Command::of(changed).map(Some)
    }

    /// Records the changed program, if the original ended normally: the changed one must end with the same status.
    pub fn record_change(
        &self,
        machine: &Machine,
        command: Command,
        broke: Option<&String>,
        exit: Option<i32>,
    ) -> Changed {
        let status = exit.unwrap_or(0);
        let recorded = || {
            if let Some(broke) = broke {
                return Err(Failure::work(broke));
            }
            let folder = Folder::make("advise");
            let folder = folder
                .map_err(|error| Failure::work(format!("cannot make a folder for the trace: {error}; set TMPDIR")))?;
            compare::record(&command, &self.recording, machine, &folder.path().join(TRACE), status)?;
            Ok(folder)
        };
        let recorded = recorded();
        Changed {
            command,
            status,
            recorded,
        }
    }

    /// Simulates the changed program as the advice's baseline was, and runs both.
    pub fn verified(&self, machine: &Machine, advice: &Advice, changed: Changed) -> Result<Verified, Failure> {
        let refused = |why: &dyn Display| Failure::work(format!("the change is not verified: {why}"));
        let Changed {
            command,
            status,
            recorded,
        } = changed;
        let folder = recorded.map_err(|failure| refused(&failure))?;
        let base = advice.base().ok_or_else(|| refused(&"no policy was simulated"))?;
        if base.windows.is_some() {
            return Err(refused(&"the advice is on a part of the run"));
        }
        let mut machine = machine.clone();
        // With the model of the advice.
        if advice
            .native
            .as_ref()
            .is_some_and(|native| native.overlapping_ns.is_some())
        {
            machine.core = None;
        }
        let trace = folder.path().join(TRACE);
        let simulation = || Simulation::under(&self.model, machine.clone(), &base.policy);
        let small = || simulation()?.of_trace(&trace, false);
        let inherited = std::env::var(results::allocators::TUNABLES).ok();
        let asks = |words: &[OsString]| asks_huge_pages(words, inherited.as_deref());
        let (counted, pages) = match (asks(&self.command), asks(&command.words)) {
            (false, false) => (small(), None),
            (false, true) => match simulation()?.on_huge_pages().of_trace(&trace, false) {
                Ok(counted) => (Ok(counted), Some(HUGE)),
                Err(_) => (small(), Some(SMALL)),
            },
            (true, _) => (small(), Some(SMALL)),
        };
        let counted = counted.map_err(|failure| refused(&failure))?;
        let alone = advice.trace.threads == 1;
        let [before, after] = [base, &counted.outcome].map(|outcome| in_program(outcome, alone));
        let predicted = VerifiedTime::new(before, after);
        let rounds = rounds(&self.command, &command.words, status).map_err(|why| refused(&why))?;
        let mut verified = Verified::new(command.text, predicted, rounds, alone.then(tick));
        verified.notes.extend(pages.map(str::to_string));
        if self.model.machine.as_deref().is_some_and(|name| name != HOST) {
            verified.notes.push(format!(
                "the prediction is for {}, and this machine was measured",
                machine.name
            ));
        }
        if let Some(function) = self.recording.begins() {
            verified.notes.push(format!(
                "the prediction is of what follows `{function}`, and whole runs were measured"
            ));
        }
        Ok(verified)
    }
}

/// The simulated nanoseconds of a program. `alone`: it has one thread, so the clock's figure is without the system's
/// time.
fn in_program(outcome: &Outcome, alone: bool) -> u64 {
    let of_system = if alone { outcome.time_ns.page_faults } else { 0 };
    outcome.time_ns.wall.saturating_sub(of_system)
}

/// Runs both in turn. Error: how one of them ended, if not with `status`.
fn rounds(before: &[OsString], after: &[OsString], status: i32) -> Result<Vec<VerifiedRound>, String> {
    let begun = Instant::now();
    let mut rounds = Vec::new();
    while wanted(rounds.len(), begun.elapsed()) {
        let (before_ns, before_system_ns) = measured(before, status)?;
        let (after_ns, after_system_ns) = measured(after, status)?;
        rounds.push(VerifiedRound {
            before_ns,
            after_ns,
            before_system_ns,
            after_system_ns,
        });
    }
    Ok(rounds)
}

/// Returns true if one more round should follow this many, which took this long.
fn wanted(rounds: usize, passed: Duration) -> bool {
    match rounds {
        rounds if rounds < LEAST_ROUNDS => true,
        rounds if rounds < ROUNDS => passed < ENOUGH,
        rounds => rounds < MOST_ROUNDS && passed < BRIEF,
    }
}

/// Nanoseconds from a program's start to its end, and those that the kernel worked for it. The program reads nothing,
/// and its output is discarded: neither a terminal nor a disk should be measured.
fn measured(command: &[OsString], ends_with: i32) -> Result<(u64, u64), String> {
    let (program, arguments) = command.split_first().ok_or("no program was given")?;
    let name = program.to_string_lossy();
    let mut process = Process::new(program);
    process.args(arguments);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let system = || children_time().map(|(_, system)| system).unwrap_or_default();
    let (begun, system_before) = (Instant::now(), system());
    let status = process
        .status()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let took = begun.elapsed();
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    match status.code() == Some(ends_with) {
        true => Ok((ns(took), ns(system().saturating_sub(system_before)))),
        false => Err(format!(
            "{name} ran without the recorder and did not end in good order: {status}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_few_where_they_are_long_and_many_where_they_are_short() {
        let seconds = Duration::from_secs_f64;
        assert!(wanted(0, seconds(0.0)) && wanted(2, seconds(100.0)));
        assert!(wanted(4, seconds(9.0)) && !wanted(3, seconds(11.0)));
        assert!(!wanted(5, seconds(9.0)) && wanted(5, seconds(0.5)));
        assert!(!wanted(51, seconds(0.5)));
    }

    #[test]
    fn a_program_that_fails_is_named_with_how_it_ended() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(measured(&words("true"), 0).is_ok());
        assert!(measured(&words("false"), 1).is_ok());
        let said = measured(&words("false"), 0).unwrap_err();
        assert!(said.starts_with("false ") && said.contains("exit status: 1"), "{said}");
        assert!(
            measured(&words("no-such-program"), 0)
                .unwrap_err()
                .contains("cannot run")
        );
    }
}
