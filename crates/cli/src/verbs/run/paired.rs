//! A program that is paired with caches beside other running processes: the program and they get the cpus of one cache
//! each.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use live::regions::{Config, Here, Linux, RegionsError, Undo, Whom, by_hand, folder, kept_name, prepare};
use results::LiveRegions;
use sys::Root;
use sys::supervise::Supervisor;

use super::{Run, started};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::Done;
use crate::verbs::daemon::refused;
use crate::verbs::watching::created;

/// Columns that the names of facts take.
const NAMES: usize = 11;

/// The report, or why threads could not get their cpus back, and how watching ended. None if it did not begin.
type Watched = Option<(Result<LiveRegions, RegionsError>, Result<(), RegionsError>)>;

impl Run {
    /// Runs the program and pairs it, and the processes it starts, with caches beside the named processes.
    pub fn pair(&self, console: &mut Console) -> Done {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        // Threads that a killed run left behind are helped first, even if this command is refused.
        let state = self.state.clone().map_or_else(folder, Ok).map_err(refused)?;
        let mut undo = Undo::open(&state).map_err(refused)?;
        let recovered = undo.recover_here().map_err(refused)?;
        if recovered > 0 {
            console::warn(format_args!(
                "{recovered} threads have their cpus again from a run that was killed"
            ));
        }
        if !self.watching.sets().is_empty() {
            return Err(Failure::usage("--set is for policies: `--regions-with` has none"));
        }
        // A report that cannot be written is refused before a program runs for hours.
        let place = self.report_file()?;
        let others = Others::of(&self.regions_with)?;
        let domains = match self.domains.is_empty() {
            true => None,
            false => Some(by_hand(&Root::default(), &self.domains).map_err(|error| refused(error.into()))?),
        };
        let config = Config {
            interval: self.watching.interval().unwrap_or(Duration::from_secs(1)),
            duration: None,
            preferred: self.preferred.as_deref().map(|name| kept_name(name).to_string()),
            acts: true,
            progress: self.progress.clone(),
        };
        let prepared = prepare(config, domains, self.watching.source()).map_err(refused)?;
        if let Some(path) = self.watching.observations() {
            self.overwrite.allows(path, "the observations")?;
        }
        let log = self.watching.observations().map(|path| created(path)).transpose()?;
        let places: Vec<Vec<u32>> = prepared.domains().iter().map(|domain| domain.cpus.clone()).collect();
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        // Processes that the program leaves behind still belong to it.
        Supervisor::adopt().map_err(Failure::work)?;
        console::note(format_args!(
            "working sets are watched by {}, for {} caches; processes have the cpus again that they had before when the program ends",
            prepared.source(),
            prepared.domains().len()
        ));
        let mut command = Command::new(program);
        command.args(arguments);
        let ended = Arc::new(AtomicBool::new(false));
        let stop = ended.clone();
        let mut beside: Option<JoinHandle<Watched>> = None;
        let status = supervisor.run_with(command, |child| {
            // The host measures its thread's time, so it begins there.
            beside = Some(thread::spawn(move || {
                let watched = prepared.watch(others.beside(), undo, log);
                let mut host = watched
                    .inspect_err(|error| console::warn(format_args!("the program is not paired: {error}")))
                    .ok()?;
                let done = host.run(|| {
                    Supervisor::reap_adopted(child);
                    stop.load(Ordering::Relaxed)
                });
                Some((host.end(), done))
            }));
        });
        ended.store(true, Ordering::Relaxed);
        // The others get their cpus back before anything is printed.
        let watched = beside.map(JoinHandle::join);
        let freed = live::regions::free_left_behind(&places);
        let status =
            status.map_err(|error| Failure::work(format!("cannot run {}: {error}", program.to_string_lossy())))?;
        // The program has run: errors from here on do not change its exit status.
        match watched {
            Some(Ok(Some((Ok(mut report), done)))) => {
                report.recovered_threads += recovered;
                report.restored_threads += freed;
                if let Err(error) = done {
                    console::note(format_args!("note: {error}"));
                }
                if let Err(failure) = self.say_paired(console, place, &report) {
                    failure.report();
                }
            }
            Some(Ok(Some((Err(error), _)))) => console::warn(format_args!(
                "threads may not have their cpus again: {error}. {} keeps them, and the next run with --regions-with gives them back",
                state.display()
            )),
            Some(Err(_)) => console::warn(format_args!(
                "the program was not watched to its end, and threads may not have their cpus again. {} keeps them, and the next run \
                 with --regions-with gives them back",
                state.display()
            )),
            Some(Ok(None)) | None => {}
        }
        Ok(ExitCode::from(u8::try_from(started::code(status)).unwrap_or(1)))
    }

    fn say_paired(
        &self,
        console: &mut Console,
        place: Option<crate::destination::Destination>,
        report: &LiveRegions,
    ) -> Result<(), Failure> {
        let text = match console.json() {
            true => super::json(report)?,
            false => {
                let facts = report::live_regions(report).facts(NAMES);
                facts.lines().map(|line| format!("domicile: {line}\n")).collect()
            }
        };
        self.put(console, place, &text, false)
    }
}

/// The processes that the program is paired with.
struct Others {
    processes: Vec<(u32, u64)>,
    names: Vec<String>,
}

impl Others {
    /// Numbers are process ids; everything else is the name of a program.
    ///
    /// Error: no such process exists now.
    fn of(asked: &[String]) -> Result<Others, Failure> {
        let mut here = Here::new(None);
        let mut others = Others {
            processes: Vec::new(),
            names: Vec::new(),
        };
        for one in asked {
            match one.parse::<u32>() {
                Ok(process) => match here.began(process) {
                    Some(began) => others.processes.push((process, began)),
                    None => return Err(refused(RegionsError::Nobody(format!("there is no process {process}")))),
                },
                Err(_) => {
                    let named = here.members(&Whom::Name(one.clone())).map_err(Failure::work)?;
                    if named.is_empty() {
                        return Err(refused(RegionsError::Nobody(format!("no process is called {one}"))));
                    }
                    others.names.push(one.clone());
                }
            }
        }
        Ok(others)
    }

    fn beside(self) -> Whom {
        Whom::Beside {
            processes: self.processes,
            names: self.names,
        }
    }
}
