//! `domicile sweep`: many simulations, as a file specifies.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ::sweep::{Limits, Minimum, Row, Rows, Spec, SweepError};
use clap::{Args, ValueEnum};

use super::Done;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::progress;

/// How many of the best and of the failed rows are printed.
const SHOWN: usize = 5;

/// Simulate all combinations of machines, policies, parameters and changes over traces
///
/// The file (TOML) has the lists `traces`, `machines` and `policies`. Optional are the lists `cpus`, `seeds` and
/// `changes` (each a list of values of `simulate --change`), and a table `[set]` of parameters, each with a value, a
/// list, or text such as "16..128..16". All combinations are simulated; a parameter belongs to the policies that have
/// it. `fast = true` is `simulate --fast`.
///
/// Results are rows of a Parquet file, which can be read at any time. The same command resumes an interrupted sweep: it
/// simulates the combinations that are not in the file yet, and repeats those that failed. A combination that cannot be
/// simulated is a row with its error; the exit status is 1 if no combination could be simulated.
#[derive(Args)]
#[command(
    after_help = "Example (sweep.toml):\n  traces = [\"sort.dtr\"]\n  machines = [\"flash-cc-numa\"]\n  \
                        policies = [\"first-touch\", \"migrate-replicate\"]\n  [set]\n  \"migrate-replicate.trigger\" = [64, 128, 256]\n\n  \
                        domicile sweep sweep.toml -o sweep.parquet"
)]
pub struct Sweep {
    /// The specification of the sweep (TOML)
    spec: PathBuf,

    /// Write the rows to this file [default: the name of the specification, with .parquet]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Simulate on this many threads, at most one for each cpu [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = results::quantities::small_in(1..=u32::MAX))]
    threads: Option<u32>,

    /// Simulate on the workers of a Dask cluster, whose scheduler has this address. The Python package must be
    /// installed both here (DOMICILE_PYTHON names the interpreter, else python3) and there
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["threads", "minimise"])]
    dask: Option<String>,

    /// Search, by Optuna, for the parameters that minimise this in the run of one trace, machine and policy, instead of
    /// trying all. The Python package must be installed
    #[arg(long, value_enum, value_name = "WHAT", requires = "over", conflicts_with_all = ["threads", "output"])]
    minimise: Option<What>,

    /// A parameter to search for, with its minimum and maximum, as in trigger=16..1024; can be repeated
    #[arg(long, value_name = "PARAM=FROM..TO", value_parser = over, requires = "minimise")]
    over: Vec<String>,

    /// Number of settings to try
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = results::quantities::small_in(1..=1_000_000), requires = "minimise")]
    trials: u32,

    /// Seed for the choice of these settings
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = results::quantities::count, requires = "minimise")]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Time that all threads wait for caches, memory and the TLB
    Stall,
    /// Time from the first reference to the end
    Time,
    /// Time that the policy takes
    Overhead,
}

impl Sweep {
    pub fn run(&self, console: &mut Console) -> Done {
        let spec = Spec::read(&self.spec).map_err(failure)?;
        if let Some(what) = self.minimise.and_then(|what| what.to_possible_value()) {
            return self.minimum(console, what.get_name());
        }
        let output = match &self.output {
            Some(output) => output.clone(),
            None => self.spec.with_extension("parquet"),
        };
        if output == self.spec {
            return Err(Failure::usage(
                "the rows would be written over the specification: name another file with `-o`",
            ));
        }
        if let Some(address) = &self.dask {
            let on = [
                "--output".as_ref(),
                output.as_os_str(),
                "--dask".as_ref(),
                address.as_ref(),
            ];
            self.in_python(on)?;
            return ended(console, &Rows::open(&output, &spec).map_err(failure)?, &output);
        }
        ::sweep::check(&spec).map_err(failure)?;
        let mut rows = Rows::open(&output, &spec).map_err(failure)?;
        let before = rows.rows().len();
        // A file that cannot be written is reported before the work.
        rows.save().map_err(failure)?;
        let bar = progress::known("sweeping", 0);
        let progress = |done: u64, all: u64| {
            bar.set_length(all);
            bar.set_position(done);
            if done as usize == before {
                // The remaining time is estimated from the work that is done now.
                bar.reset_eta();
            }
        };
        let limits = Limits {
            threads: self.threads.map(|threads| threads as usize),
            progress: &progress,
        };
        let done = ::sweep::run(&spec, &mut rows, &limits);
        bar.finish_and_clear();
        done.map_err(failure)?;
        if before > 0 {
            console::note(format_args!(
                "note: {before} of these points were in {} already",
                output.display()
            ));
        }
        ended(console, &rows, &output)
    }

    fn minimum(&self, console: &mut Console, what: &str) -> Done {
        let (trials, seed) = (self.trials.to_string(), self.seed.to_string());
        let mut words = vec!["--minimise", what, "--trials", &trials, "--seed", &seed];
        words.extend(self.over.iter().flat_map(|over| ["--over", over]));
        let said = self.in_python(words)?;
        let found: Minimum = serde_json::from_slice(&said).map_err(|error| {
            let said = String::from_utf8_lossy(&said);
            Failure::work(format!(
                "the Python package is not of this version: it said {said:?}: {error}"
            ))
        })?;
        if console.json() {
            console.line(&found)?;
        } else {
            let set: String = found
                .set
                .iter()
                .map(|(name, value)| format!(" --set {name}={value}"))
                .collect();
            let Minimum {
                minimised,
                value_ns,
                trials,
                ..
            } = &found;
            console.text(&format!(
                "{minimised} {value_ns} ns with{set} ({trials} settings tried)\n"
            ))?;
        }
        console.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the Python package; returns its output.
    fn in_python(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Vec<u8>, Failure> {
        let python = std::env::var_os("DOMICILE_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&python);
        command.args(["-m", "domicile.sweeps"]).arg(&self.spec).args(words);
        let done = command.output().map_err(|error| {
            Failure::work(format!(
                "cannot start {}: {error}; name a Python in DOMICILE_PYTHON",
                python.display()
            ))
        })?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let last = said.trim().lines().last().unwrap_or_default();
            let hint = match last.contains("No module named") {
                true => {
                    "; install Domicile's Python package (make wheel), or name a Python that has it in DOMICILE_PYTHON"
                }
                false => "",
            };
            return Err(Failure::work(format!(
                "{}{hint}",
                last.trim_start_matches("domicile: ")
            )));
        }
        Ok(done.stdout)
    }
}

/// Checks a parameter and its bounds.
fn over(text: &str) -> Result<String, String> {
    let bounds = text.split_once('=').and_then(|(_, bounds)| bounds.split_once(".."));
    let bounds = bounds.and_then(|(from, to)| Some((from.parse::<i64>().ok()?, to.parse::<i64>().ok()?)));
    match bounds {
        Some((from, to)) if from <= to => Ok(text.to_string()),
        _ => Err("give the least and the most, as in trigger=16..1024".to_string()),
    }
}

/// Prints the rows; the exit status is 1 if no point could be simulated.
fn ended(console: &mut Console, rows: &Rows, output: &Path) -> Done {
    let of = |row: &Row| Some((row.trace.clone(), row.incomplete.clone()?));
    let incomplete: BTreeSet<(String, String)> = rows.rows().iter().filter_map(of).collect();
    for (trace, incomplete) in incomplete {
        console::warn(format_args!(
            "note: {trace}: {incomplete}; the rows are of what is there"
        ));
    }
    match console.json() {
        true => rows.rows().iter().try_for_each(|row| console.line(row))?,
        false => console.text(&text(rows.rows(), output))?,
    }
    console.flush()?;
    match rows.rows().iter().all(|row| row.error.is_some()) {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn failure(error: SweepError) -> Failure {
    match error {
        SweepError::Settings(_) | SweepError::Spec { .. } => Failure::usage(error),
        other => Failure::work(other),
    }
}

/// The result of the sweep: the fastest of each trace and machine, and the failures.
fn text(rows: &[Row], output: &Path) -> String {
    let failed: Vec<&Row> = rows.iter().filter(|row| row.error.is_some()).collect();
    let points = if rows.len() == 1 { "point" } else { "points" };
    let mut text = format!("{} {points} in {}", rows.len(), output.display());
    if !failed.is_empty() {
        text += &format!(", of which {} failed", failed.len());
    }
    text += "\n";
    let mut first: HashMap<(&str, &str), &Row> = HashMap::new();
    for row in rows.iter().filter(|row| row.time_ns.is_some()) {
        let of = (row.trace.as_str(), row.machine.as_str());
        let best = first.entry(of).or_insert(row);
        if row.time_ns < best.time_ns {
            *best = row;
        }
    }
    let mut best: Vec<&Row> = first.into_values().collect();
    best.sort_by_key(|row| row.number);
    for row in best.iter().take(SHOWN) {
        let time = results::time(row.time_ns.unwrap_or_default());
        text += &format!(
            "fastest for {} on {}: {time} with {}\n",
            row.trace,
            row.machine,
            named(row)
        );
    }
    if best.len() > SHOWN {
        text += &format!("... and {} more; the file has all\n", best.len() - SHOWN);
    }
    for row in failed.iter().take(SHOWN) {
        let error = row.error.as_deref().unwrap_or_default();
        text += &format!(
            "failed: {} on {} with {}: {error}\n",
            row.trace,
            row.machine,
            named(row)
        );
    }
    if failed.len() > SHOWN {
        text += &format!("... and {} more failed\n", failed.len() - SHOWN);
    }
    text
}

/// The properties that distinguish a point from the others of its trace and machine.
fn named(row: &Row) -> String {
    let cpus = row.cpus.map(|cpus| format!("{cpus} cpus"));
    let parts = [
        Some(row.policy.clone()),
        Some(row.settings.clone()),
        cpus,
        Some(row.changes.clone()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}
