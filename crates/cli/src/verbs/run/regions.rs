//! A program whose thread follows its data from cache to cache: an experiment.

use std::process::{Command, ExitCode};

use live::following::{self, Asked, Closing, FollowingError};
use policy::Name;
use results::LiveFollowing;
use sys::supervise::Supervisor;

use super::Run;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::Done;
use crate::verbs::machine::load;
use crate::verbs::model::HOST;

/// Columns that the names of facts take.
const NAMES: usize = 11;

impl Run {
    /// Runs the program and moves its thread to the cache of its data.
    pub fn follow_data(&self, console: &mut Console, policy: &Name) -> Done {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        if self.align.is_some() || self.force_colors.is_some() || self.children || self.text.is_some() {
            return Err(Failure::usage(format!(
                "policy `{policy}` moves the thread of one program and gives its pages no frames: leave out --align, --force-colors, \
                 --children and --text"
            )));
        }
        let wants_bounds = policy::build(policy, self.watching.sets())?.wants_bounds();
        let domains = sys::cache_domains::usable().map_err(Failure::work)?;
        let place = self.report_file()?;
        let closing = self.close_by.as_deref().map(|by| match by {
            "keys" => Closing::Keys,
            _ => Closing::Protection,
        });
        let move_ns =
            following::move_ns(Command::new("true"), &domains, closing, !self.let_cpus_sleep).map_err(Failure::work)?;
        let bounds = match wants_bounds {
            // The sizes and stays that gain are simulated on the machine as last probed, with the time of a move here.
            true => {
                let mut machine = load(HOST)?;
                machine.regions = Some(machine::Regions {
                    switch_ns: move_ns as f64,
                    gains: None,
                });
                sim::calibrate::following(&machine).map_err(Failure::work)?.bounds
            }
            false => None,
        };
        let asked = Asked {
            policy: policy.clone(),
            settings: self.watching.sets().to_vec(),
            domains,
            closing,
            awake: !self.let_cpus_sleep,
            bounds,
        };
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        let mut command = Command::new(program);
        command.args(arguments);
        supervisor.prepare(&mut command);
        console::note(format_args!(
            "note: policy `{policy}` on a running program is an experiment; the program runs traced, and stops for each system call while \
             pages are closed"
        ));
        let report = supervisor
            .attend(|started| following::run(command, &asked, started))
            .map_err(|error| Failure::work(format!("cannot run {}: {error}", program.to_string_lossy())))?;
        let report = report.map_err(|error| match error {
            FollowingError::Policy(error) => Failure::from(error),
            error => Failure::work(format!("{}: {error}", program.to_string_lossy())),
        })?;
        let code = report.exit_code.unwrap_or(1);
        // The program has run: errors from here on do not change its exit status.
        if let Err(failure) = self.say_followed(console, place, &report) {
            failure.report();
        }
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    fn say_followed(
        &self,
        console: &mut Console,
        place: Option<crate::destination::Destination>,
        report: &LiveFollowing,
    ) -> Result<(), Failure> {
        let text = match console.json() {
            true => super::json(report)?,
            false => {
                let verdict = report.regions.as_ref().map(advise::regions_in_words);
                let facts = report::live_following(report, verdict).facts(NAMES);
                facts.lines().map(|line| format!("domicile: {line}\n")).collect()
            }
        };
        self.put(console, place, &text, false)
    }
}
