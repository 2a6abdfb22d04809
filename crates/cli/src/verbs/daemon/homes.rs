//! `domicile daemon --homes`: pages follow running processes between memory nodes.

use std::process::ExitCode;

use clap::Args;
use live::homes::{Whom, moving};
use policy::Name;
use results::saved;
use sys::service;
use sys::signals::{self, Caught};

use super::watched::Watched;
use crate::console::Console;
use crate::failure::Failure;
use crate::suggested;
use crate::verbs::Done;
use crate::verbs::watching;

#[derive(Args)]
#[command(next_help_heading = "Pages that follow their users")]
pub struct Homes {
    /// Instead of serving frames, move pages of chosen processes to the memory nodes that use them
    #[arg(long, group = "kind", requires = "whom", conflicts_with_all = ["socket", "stock", "quota", "metrics", "log", "verbose"])]
    homes: bool,

    /// The policy: migrate, replicate or migrate-replicate; the copies of the last two are counted but not made
    #[arg(long, value_name = "NAME", default_value = "migrate", requires = "homes", hide_possible_values = true,
          value_parser = suggested::policy(moving()))]
    policy: Name,
}

impl Homes {
    pub fn is_wanted(&self) -> bool {
        self.homes
    }

    /// Watches until no process is left, the time is up, or a signal asks to end.
    pub fn run(&self, watched: &Watched, console: &mut Console) -> Done {
        let whom = match watched.group() {
            Some(group) => Whom::Group(group),
            None => Whom::Processes(watched.pid.clone()),
        };
        let (prepared, log) = watched
            .watching
            .prepare(&self.policy, watched.duration, watched.overwrite)?;
        let mut signals = Caught::begin().map_err(|error| Failure::work(format!("signals: {error}")))?;
        let source = prepared.source();
        let mut host = prepared.watch(whom, log).map_err(watching::failure)?;
        watching::announce(source);
        // Without a service manager there is nothing to notify.
        let _ = service::notify("READY=1");
        let done = host.run(|| {
            let mut came = std::iter::from_fn(|| signals.take());
            came.any(|signal| signal.number != signals::HANGUP)
        });
        let _ = service::notify("STOPPING=1");
        let report = host.report().map_err(watching::failure)?;
        if console.json() {
            console.line(&saved(&report))?;
        } else {
            console.text(&watching::text(&report))?;
        }
        done.map_err(watching::failure)?;
        Ok(ExitCode::SUCCESS)
    }
}
