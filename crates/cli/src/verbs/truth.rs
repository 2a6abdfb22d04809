//! `domicile truth`: compares predictions with the clock on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use ::measured::processor::processor;
use ::measured::{Effort, measured_afresh};
use ::truth::{Asked, Pair, Step, TruthError};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use report::{Column, Role, Table};
use results::saved;

use super::Done;
use super::machine::load;
use super::model::HOST;
use crate::console::{self, Console};
use crate::destination::Overwrite;
use crate::failure::Failure;
use crate::progress;
use crate::suggested;

/// A range is kept only if it comes from at least this many pairs, each measured this many times.
const PAIRS: u32 = 5;
const ROUNDS: u32 = 6;

/// Compare predictions with measured times on this machine
///
/// Builds ten small C programs by `cc`, each before and after a known change (order of a walk, layout, padding, false
/// sharing ...), measures them in turn, records them, and simulates them on the machine as it is probed now. This takes
/// a few minutes. The table says which gains are predicted well here. The error of the predictions is kept until the
/// machine boots again: `domicile advise` prints it as the range beside a gain. It is kept only for all ten pairs and
/// at least six rounds. Nothing else should run meanwhile.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile truth\n  domicile truth --only padded-rows,walk-order-c")]
pub struct Truth {
    /// Other pairs (TOML; the book's page `Predicted and measured` has the fields), with their sources in `programs` beside the file
    #[arg(value_name = "PAIRS")]
    file: Option<PathBuf>,

    /// List the pairs, and run none
    #[arg(long)]
    list: bool,

    /// These pairs only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Only one half of the pairs: those from which models are made, or those held back to test them
    #[arg(long, value_enum)]
    half: Option<Half>,

    /// How often each side is measured
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = results::quantities::small_in(1..=1000))]
    rounds: u32,

    /// The machine to predict for
    #[arg(long, value_name = "NAME|FILE|host", default_value = HOST, value_parser = suggested::machines(), hide_possible_values = true)]
    machine: String,

    /// Use what is known of `host`; otherwise it is probed first, and three times beside each pair
    #[arg(long)]
    as_probed: bool,

    /// Measure nothing: take the times from this result (`-o`) of the same pairs, with its data on the machine beside
    /// each pair, and predict anew; everything else about the machine is as it was probed last
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clock_only", "rounds"])]
    measured: Option<PathBuf>,

    /// Print the ratios of an earlier result (`-o`) of the same pairs beside these, and count how many are within 20%:
    /// on a shared machine, measured times do not always repeat that closely. Can be repeated
    #[arg(long, value_name = "FILE")]
    again: Vec<PathBuf>,

    /// Repeat each missed prediction with one value of the machine changed at a time, and name the changes that bring
    /// it within 20%: these are the values that the miss depends on. Takes several times as long as the prediction
    #[arg(long, conflicts_with = "clock_only")]
    experiments: bool,

    /// Predict nothing; the result (`-o`) has everything that `--measured` takes
    #[arg(long)]
    clock_only: bool,

    /// Write the result (JSON) to this file too
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Keep programs and recordings in this folder, and use the recordings that are there
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Half {
    Build,
    Held,
}

impl Half {
    fn name(self) -> &'static str {
        match self {
            Half::Build => "build",
            Half::Held => "held",
        }
    }
}

impl Truth {
    pub fn run(&self, console: &mut Console) -> Done {
        let pairs = self.pairs()?;
        if self.list {
            console.text(&list(&pairs).section(console.columns()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let place = self
            .output
            .as_ref()
            .map(|file| self.overwrite.destination(file, "the result"));
        let place = place.transpose()?;
        let earlier = self.again.iter().map(|file| Ok((file, earlier(file)?)));
        let earlier: Vec<(&PathBuf, results::Truth)> = earlier.collect::<Result<_, Failure>>()?;
        let machine = match self.clock_only {
            true => None,
            false => Some(self.probed()?),
        };
        if machine.as_ref().is_some_and(|machine| machine.core.is_none()) {
            self.has_no_core();
        }
        let temporary;
        let folder = match &self.keep {
            Some(folder) => folder.as_path(),
            None => {
                temporary =
                    tempfile::tempdir().map_err(|error| Failure::work(format!("no temporary folder: {error}")))?;
                temporary.path()
            }
        };
        let mut truth = self.held(&pairs, machine.as_ref(), folder)?;
        for (file, earlier) in &earlier {
            if let Err(why) = truth.measured_again(earlier) {
                console::say(&format!("domicile: {}: {why}\n", file.display()));
            }
        }
        let all = self.file.is_none() && self.only.is_empty() && self.half.is_none();
        let good = truth.about.rounds >= ROUNDS && truth.failed.is_empty();
        let range = truth
            .range
            .filter(|range| good && all && self.machine == HOST && range.pairs >= PAIRS);
        let kept = range.is_some_and(|range| ::truth::keep(&range));
        match console.json() {
            true => console.line(&saved(&truth))?,
            false => console.text(&report::truth(&truth, kept, console.columns()))?,
        }
        console.flush()?;
        if let Some(place) = place {
            place.write(|out| {
                serde_json::to_writer(&mut *out, &saved(&truth))?;
                out.write_all(b"\n")
            })?;
        }
        for failed in &truth.failed {
            console::say(&format!("domicile: {}: {}\n", failed.name, failed.why));
        }
        Ok(ExitCode::from(u8::from(!truth.failed.is_empty())))
    }

    fn pairs(&self) -> Result<Vec<Pair>, Failure> {
        let pairs = match &self.file {
            Some(file) => ::truth::read(file),
            None => ::truth::quick(),
        };
        let mut pairs = pairs.map_err(failure)?;
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| pairs.iter().all(|pair| pair.name != **name))
        {
            let names: Vec<&str> = pairs.iter().map(|pair| pair.name.as_str()).collect();
            let names = names.join(", ");
            return Err(Failure::usage(format!(
                "no pair is called `{unknown}`; there are {names}"
            )));
        }
        pairs.retain(|pair| self.only.is_empty() || self.only.contains(&pair.name));
        pairs.retain(|pair| self.half.is_none_or(|half| pair.half() == half.name()));
        match pairs.is_empty() {
            true => Err(Failure::usage("no pair is left; leave `--only` or `--half` out")),
            false => Ok(pairs),
        }
    }

    /// The machine in its current state.
    fn probed(&self) -> Result<::machine::Machine, Failure> {
        if self.machine == HOST && !self.as_probed && self.measured.is_none() {
            let progress = progress::unknown("probing this machine");
            measured_afresh(Effort::Careful);
            let host = ::machine::host(&sys::Root::default()).map_err(Failure::work)?;
            processor(&host, Effort::Careful, true);
            progress.finish_and_clear();
        }
        load(&self.machine)
    }

    /// Each miss waits by itself then, which takes many times as long.
    fn has_no_core(&self) {
        match self.machine == HOST {
            true => console::warn(
                "the processor is not probed since this machine booted, or not by this version: without its core and its prefetchers \
                 predicted times are many times too long; `domicile probe` measures them",
            ),
            false => console::note(format!(
                "{} is described without a core: each miss waits by itself, and predicted times are many times too long",
                self.machine
            )),
        }
    }

    fn held(
        &self,
        pairs: &[Pair],
        machine: Option<&::machine::Machine>,
        folder: &Path,
    ) -> Result<results::Truth, Failure> {
        let before = self.measured.as_deref().map(earlier).transpose()?;
        let beside = || ::measured::at_this_moment(Effort::Quick).map(|host| host.machine);
        let asked = Asked {
            pairs,
            beside: (self.machine == HOST && !self.as_probed && before.is_none()).then_some(&beside as _),
            measured: before.as_ref(),
            list: self.file.as_deref(),
            rounds: self.rounds,
            machine: machine.map(|machine| (self.machine.as_str(), machine)),
            folder,
            keep: self.keep.is_some(),
            experiments: self.experiments,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let bar: Mutex<Option<ProgressBar>> = Mutex::default();
        let watch = |step: Step| {
            let Ok(mut bar) = bar.lock() else { return };
            let bar = bar.get_or_insert_with(|| {
                let passes = 1 + u64::from(machine.is_some());
                progress::known("truth", passes * pairs.len() as u64)
            });
            match step {
                Step::Measuring(name) => bar.set_message(format!("measuring {name}")),
                Step::Predicting(name) => bar.set_message(format!("predicting {name}")),
                Step::Done(_) => bar.inc(1),
            }
        };
        let truth = ::truth::hold(&asked, &watch);
        if let Some(bar) = bar.lock().ok().and_then(|mut bar| bar.take()) {
            bar.finish_and_clear();
        }
        truth.map_err(failure)
    }
}

fn failure(error: TruthError) -> Failure {
    match error {
        TruthError::List(_) => Failure::usage(error),
        TruthError::Interrupted => Failure::GivenUp(error.to_string()),
        error => Failure::work(error),
    }
}

/// An earlier result whose times are used.
fn earlier(file: &Path) -> Result<results::Truth, Failure> {
    let text =
        std::fs::read(file).map_err(|error| Failure::work(format!("cannot read {}: {error}", file.display())))?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::usage(format!(
            "{} is no result of `domicile truth -o FILE`: {error}",
            file.display()
        ))
    })
}

/// The available pairs.
fn list(pairs: &[Pair]) -> Table {
    let columns = ["pair", "change", "whose", "half"].map(|title| Column::new(Role::Label, title));
    let mut table = Table::new(format!("{} pairs", pairs.len()), columns);
    for pair in pairs {
        table.row([
            pair.name.as_str().into(),
            pair.kind.as_str().into(),
            format!("{}: {}", pair.whose.name(), pair.of).into(),
            pair.half().into(),
        ]);
    }
    table
}
