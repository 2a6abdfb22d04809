//! A program whose pages follow it between nodes: it runs unchanged, and is observed from outside.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use capture::Folder;
use live::homes::{HomesError, Whom};
use policy::Name;
use results::LiveHomes;
use sys::supervise::Supervisor;

use super::copies::{self, Copies};
use super::{Run, started};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::{Done, watching};

/// The result for the program's pages, and how watching ended.
type Watched = Result<(LiveHomes, Result<(), HomesError>), HomesError>;

impl Run {
    /// Runs the program and makes its pages follow it.
    pub fn follow(&self, console: &mut Console, policy: &Name) -> Done {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        if self.align.is_some() || self.force_colors.is_some() {
            return Err(Failure::usage(format!(
                "policy `{policy}` moves pages between nodes and gives them no colors: leave out --align and --force-colors"
            )));
        }
        let text = copies::are_wanted(self.text.as_deref(), Some(policy))?;
        // A report that cannot be written is refused before a program runs for hours.
        let place = self.report_file()?;
        let (prepared, log) = self.watching.prepare(policy, None, self.overwrite)?;
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        watching::announce(prepared.source());
        let mut command = Command::new(program);
        command.args(arguments);
        let folder = Folder::make(started::FOLDER)
            .map_err(|error| Failure::work(format!("cannot make a folder for temporary files (TMPDIR): {error}")))?;
        let copies = Copies::prepare(&mut command, text, self.children, folder.path());
        let ended = Arc::new(AtomicBool::new(false));
        let stop = ended.clone();
        let family = self.children;
        let mut beside: Option<JoinHandle<Watched>> = None;
        let status = supervisor.run_with(command, |child| {
            let whom = match family {
                true => Whom::Family(child),
                false => Whom::Processes(vec![child]),
            };
            // The host measures its thread's time, so it begins there.
            beside = Some(thread::spawn(move || {
                let mut host = prepared.watch(whom, log)?;
                let done = host.run(|| stop.load(Ordering::Relaxed));
                Ok((host.report()?, done))
            }));
        });
        let status =
            status.map_err(|error| Failure::work(format!("cannot run {}: {error}", program.to_string_lossy())))?;
        ended.store(true, Ordering::Relaxed);
        let code = started::code(status);
        // The program has run: errors from here on do not change its exit status.
        match beside.map(JoinHandle::join) {
            Some(Ok(Ok((mut report, done)))) => {
                report.exit_code = Some(code);
                report.replication = copies.report();
                if let Err(error) = done {
                    console::note(format_args!("note: {error}"));
                }
                if let Err(failure) = self.say_homes(console, place, &report) {
                    failure.report();
                }
            }
            Some(Ok(Err(error))) => console::note(format_args!("note: the program was not watched: {error}")),
            Some(Err(_)) | None => console::note(format_args!("note: the program was not watched to its end")),
        }
        Ok(std::process::ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    fn say_homes(
        &self,
        console: &mut Console,
        place: Option<crate::destination::Destination>,
        report: &LiveHomes,
    ) -> Result<(), Failure> {
        let text = if console.json() {
            super::json(report)?
        } else {
            watching::text(report)
                .lines()
                .map(|line| format!("domicile: {line}\n"))
                .collect()
        };
        self.put(console, place, &text, false)
    }
}
