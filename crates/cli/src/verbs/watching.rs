//! How processes are watched so that their pages can follow them: options shared by `run` and `daemon`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use live::homes::{Config, HomesError, Prepared, prepare};
use policy::Name;
use results::LiveHomes;

use crate::console;
use crate::destination::Overwrite;
use crate::failure::Failure;

/// Columns that the names of facts take.
const NAMES: usize = 11;
/// Shorter intervals only cost time; longer ones are useless.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

#[derive(Args)]
#[command(next_help_heading = "Pages that follow their users")]
pub struct Watching {
    /// Set a parameter of a policy that moves pages between nodes, as in migrate.trigger=64; can be repeated
    #[arg(long = "set", value_name = "POLICY.PARAM=VALUE")]
    sets: Vec<String>,

    /// Watch processes for this long before each decision [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,

    /// Source of the observations of touched pages: hardware, damon, hint-faults, write-faults or soft-dirty; for
    /// `daemon --regions` and `run --regions-with`: referenced, damon or resctrl [default: the first of them that works
    /// here]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Write the policy's observations and requests to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    observations: Option<PathBuf>,
}

/// The destination of the policy's observations.
pub type Observations = Option<Box<dyn Write + Send>>;

/// A new file of observations.
pub fn created(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    let file = File::create(path);
    let file =
        file.map_err(|error| Failure::work(format!("cannot write the observations to {}: {error}", path.display())))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = results::quantities::duration(text)?;
    if INTERVALS.contains(&time) {
        return Ok(time);
    }
    Err("an interval is 10ms to 1h".to_string())
}

impl Watching {
    /// Returns true if none of these options is given.
    pub fn is_unused(&self) -> bool {
        self.sets.is_empty() && self.interval.is_none() && self.source.is_none() && self.observations.is_none()
    }

    /// The given parameters of the policy.
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    pub fn interval(&self) -> Option<Duration> {
        self.interval
    }

    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    pub fn observations(&self) -> Option<&PathBuf> {
        self.observations.as_ref()
    }

    /// Chooses the source of observations, and begins the file of observations.
    pub fn prepare(
        &self,
        policy: &Name,
        duration: Option<Duration>,
        overwrite: Overwrite,
    ) -> Result<(Prepared, Observations), Failure> {
        let mut config = Config::new(policy.clone());
        config.settings.clone_from(&self.sets);
        config.duration = duration;
        if let Some(interval) = self.interval {
            config.interval = interval;
        }
        if let Some(path) = &self.observations {
            overwrite.allows(path, "the observations")?;
        }
        let prepared = prepare(config, self.source.as_deref()).map_err(failure)?;
        let log = self.observations.as_deref().map(created).transpose()?;
        Ok((prepared, log))
    }
}

/// An error in the command line is the user's to correct.
pub fn failure(error: HomesError) -> Failure {
    match error {
        HomesError::Policy(error) => error.into(),
        HomesError::Still(..) | HomesError::Colors(_) | HomesError::Prices(_) | HomesError::UnknownSource(..) => {
            Failure::usage(error)
        }
        error => Failure::work(error),
    }
}

/// The facts of a report.
pub fn text(report: &LiveHomes) -> String {
    report::live_homes(report).facts(NAMES)
}

/// Names the source of observations to a waiting user.
pub fn announce(source: &str) {
    console::note(format_args!("pages are watched by {source}"));
}
