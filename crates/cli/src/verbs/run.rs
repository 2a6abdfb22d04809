//! `domicile run`: runs an unmodified program with cache slots for its data; or with the arrays of its parallel loops
//! in frames of suitable colors, or on the nodes that use them; or with its pages following it between nodes.

mod arrays;
mod copies;
mod follow;
mod homes;
mod named;
mod outcome;
mod paired;
mod placed;
#[cfg(target_arch = "x86_64")]
mod regions;
mod started;
mod ways;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use capture::locate::Program;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use live::daemon::Client;
use live::discovery::ColorsFrom;
use live::homes::moving;
use live::protocol::Alignment;
use live::resctrl::Instead;
use live::{Colors, Source};
use policy::Name;
use policy::slots::Plan;

use super::Done;
use super::watching::Watching;
use crate::console::{self, Console};
use crate::destination::{Destination, Overwrite, apart};
use crate::failure::Failure;
use crate::suggested;

/// The largest plan that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Run a program with its data in chosen parts of the cache, or with its pages near their users
///
/// `--slots FILE` follows a plan. `--policy cdpc` and `--policy summary-homes` use the program's summaries of its
/// parallel loops. `--policy migrate` moves pages between memory nodes. `--regions-with NAME` gives the program a cache
/// of its own beside others.
///
/// A plan (TOML) says which arrays get which slot of the shared cache, by the names that `domicile advise` uses;
/// `domicile advise --write-slots FILE` writes one. The names are looked up in the program's files before it starts. A
/// run-time that is loaded into the program then gives the data frames of the slots' colors: static data before main,
/// blocks of the heap as they are allocated. The program ends as it would by itself. `domicile run` exits with the
/// program's exit status, with 128 plus the signal number if a signal killed the program, or with 1 if the program
/// could not be started this way. Signals that are sent to `domicile run` are passed on to the program. At the end, a
/// report on the plan goes to standard error.
///
/// If the machine has no page colors, and Linux's resctrl can be used, the program as a whole gets ways of the last
/// cache instead, for its private slots together. This separates its threads from other programs, but not its data from
/// each other.
///
/// A program built with `domicile-cc` or `domicile-fc` describes how its parallel loops distribute their arrays over
/// threads (other programs can do so by hand: domicile_parallel_loop(3)). `--policy cdpc` colors the arrays' pages by
/// these summaries, before main as far as they are known then, so that the data of one processor does not compete for
/// its cache. The other color policies serve for comparison: they color the same pages.
///
/// On a machine with several memory nodes, `--policy summary-homes` gives these pages homes by the same summaries: each
/// page goes to the node whose cpus' iterations touch it most, before it is touched; pages that already exist move.
/// Thread t of a team is assumed to run on the t-th of the cpus that the program may use. Threads of OpenMP are bound
/// there (by OMP_PLACES and OMP_PROC_BIND, unless one of them is set); the report says if nothing binds the threads. On
/// a machine with one node, the program runs unchanged.
///
/// On a machine with several memory nodes, `--policy migrate` moves pages to the node that uses them while the program
/// runs, without a change to the program. `replicate` and `migrate-replicate` also decide on copies; Linux has no
/// transparent copies, so these are counted but not made. Some pages can be copied: under these policies, the
/// program's text, and everything else in its files that is never written, come from a copy on the node that each
/// process begins on (`--text`). The report also covers data for which a program requests its node's copy
/// (domicile_replicated_create(3)). The report says which of these ran and what they cost.
///
/// On a machine with several caches of one level, `--regions-with` pairs the program, and other processes beside it,
/// with caches. If all cpus share each cache, the program is not started. Processes of a given name that start later
/// are also paired.
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile run --slots cg.toml -- ./cg\n  \
                  domicile run --slots cg.toml --report cg.json --json -- ./cg\n  \
                  domicile run --policy cdpc -- ./swim\n  \
                  domicile run --policy summary-homes -- ./swim\n  \
                  domicile run --policy migrate --children -- make -j8\n  \
                  domicile run --placement threads.toml --rounds 7 -- ./pairs\n  \
                  domicile run --regions-with redis-server -- ./load")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["slots", "policy", "placement", "regions_with"]))]
pub struct Run {
    /// The plan: slots, and the data in each
    #[arg(long, value_name = "FILE")]
    slots: Option<PathBuf>,

    /// Color the arrays of parallel loops: cdpc by the five steps of compiler-directed page coloring, or as one of the
    /// next two if that is predicted to be better; page-coloring by address; bin-hopping in turn, in the order in which
    /// loops reach the pages; random. Give these pages homes on the nodes that use them: summary-homes. Move pages
    /// between memory nodes: migrate, replicate, migrate-replicate. As an experiment, move the thread to the cache of
    /// its data: regions
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = suggested::policy(names()))]
    policy: Option<Name>,

    /// Keep each thread under its cache, as this file says (TOML); `domicile advise --write-placement FILE.toml` writes
    /// one. Threads are identified by name if their names differ, else by the order in which they begin
    #[arg(long, value_name = "FILE")]
    placement: Option<PathBuf>,

    /// Run the program this many times under each way of the placement, and as Linux places it, in turns, and print
    /// predictions beside measurements
    #[arg(long, value_name = "N", requires = "placement", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Pair the program, with all that it starts, and these running processes with caches: each process gets the cpus
    /// of one cache, so that their working sets share the machine's caches evenly. All processes get their previous
    /// cpus back when the program ends. `domicile daemon --regions` does the same for running processes alone
    #[arg(long, value_name = "PID|NAME", num_args = 1.., value_delimiter = ',',
          conflicts_with_all = ["align", "force_colors", "skip_missing", "children", "text", "rounds"])]
    regions_with: Vec<String>,

    /// The cpus of each cache, as lists such as 0-3 4-7 (also as '0-3;4-7'), if Linux does not show them [default: the
    /// outermost level of which the machine has several caches]
    #[arg(long, value_name = "CPUS", num_args = 1.., value_delimiter = ';', requires = "regions_with")]
    domains: Vec<String>,

    /// Give programs with this name caches of their own: the started program, or one beside it
    #[arg(long, value_name = "NAME", requires = "regions_with", value_parser = NonEmptyStringValueParser::new())]
    preferred: Option<String>,

    /// A file in which a program reports how many units of its work it has done: a number that grows. If a unit takes
    /// over 3% more processor time after a change, the change is undone. Without this file, instructions are the units,
    /// if the processor counts them
    #[arg(long, value_name = "FILE", requires = "regions_with")]
    progress: Option<PathBuf>,

    /// Folder that keeps the previous cpus of threads until the threads have them back [default: /run/domicile for
    /// root, else $XDG_RUNTIME_DIR/domicile]
    #[arg(long, value_name = "FOLDER", requires = "regions_with")]
    state: Option<PathBuf>,

    /// Begin large blocks of the heap on lines of the on-chip cache, at different places in it: yes, no, or the bytes
    /// of a line and of a way [default: what DOMICILE_ALIGN says, else yes]
    #[arg(long, value_name = "yes|no|LINE:WAY", requires = "policy")]
    align: Option<String>,

    /// Write the report to this file; - is standard output [default: standard error]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Use these colors, whatever was found out about this machine: lowest bit of a frame's address, number of bits,
    /// bytes of cache for each color
    #[arg(long, value_name = "BIT:BITS:BYTES")]
    force_colors: Option<String>,

    /// Continue if the program has no data with a name in the plan
    #[arg(long, conflicts_with = "policy")]
    skip_missing: bool,

    /// Also do this in the processes that the program starts, if they run the same program; if pages move between
    /// nodes, in all of them
    #[arg(long)]
    children: bool,

    /// Take the program's text from a copy on the node that it begins on: yes or no [default: yes with replicate and
    /// migrate-replicate]
    #[arg(long, value_name = "yes|no", requires = "policy", hide_possible_values = true, value_parser = ["yes", "no"])]
    text: Option<String>,

    /// Method of closing pages to cpus under policy regions: keys (protection keys) or mprotect, which takes longer
    /// [default: keys if the processor has them]
    #[arg(long, value_name = "keys|mprotect", requires = "policy", hide_possible_values = true, value_parser = ["keys", "mprotect"])]
    close_by: Option<String>,

    /// Under policy regions, let cpus sleep if they have nothing to run: a sleeping cpu may lose the contents of its
    /// cache
    #[arg(long, requires = "policy")]
    let_cpus_sleep: bool,

    #[command(flatten)]
    watching: Watching,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Run {
    pub fn run(&self, console: &mut Console) -> Done {
        if let Some(file) = &self.placement {
            return self.place(console, file);
        }
        if !self.regions_with.is_empty() {
            return self.pair(console);
        }
        if self.rounds.is_some() {
            return Err(Failure::usage(
                "`--rounds` measures a placement of threads: add `--placement FILE`",
            ));
        }
        match &self.policy {
            #[cfg(target_arch = "x86_64")]
            Some(policy) if policy.is(|traits| traits.follows) => return self.follow_data(console, policy),
            Some(policy) if self.close_by.is_some() || self.let_cpus_sleep => {
                let option = if self.let_cpus_sleep {
                    "--let-cpus-sleep"
                } else {
                    "--close-by"
                };
                return Err(Failure::usage(format!(
                    "`{option}` is for `--policy regions`; policy `{policy}` closes no pages"
                )));
            }
            Some(policy) if policy.is(|traits| traits.later.on_misses()) => return self.follow(console, policy),
            Some(policy) if policy.is(|traits| traits.summaries) => return self.at_home(console, policy),
            policy if self.text.is_some() => {
                copies::are_wanted(self.text.as_deref(), policy.as_ref())?;
            }
            _ if !self.watching.is_unused() => {
                return Err(Failure::usage(format!(
                    "--set, --interval, --source and --observations are for pages that move between nodes: add `--policy` with \
                     one of {}. All but --set are for `--regions-with`, too",
                    moving().join(", ")
                )));
            }
            _ => {}
        }
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        let given = self.given_colors()?;
        let align = self.alignment()?;
        let plan = self.slots.as_deref().map(planned).transpose()?;
        let found = Program::find(program).map_err(Failure::work)?;
        if let Some(script) = &found.script {
            console::note(format_args!(
                "note: {} is a script: names are those of its interpreter, {}",
                script.display(),
                found.path.display()
            ));
        }
        let named = match &plan {
            Some(plan) => named::Named::find(plan, &found, self.skip_missing)?,
            None => named::Named::none(&found),
        };
        let forced = self.force_colors.as_ref().map(|colors| format!("force:{colors}"));
        let means = match colors(given.map_or(ColorsFrom::Measured, ColorsFrom::Given)) {
            Ok(colors) => Means::Colors(colors),
            Err(error) => Means::Ways(instead(error, plan.is_some())?),
        };
        for note in &named.notes {
            console::note(format_args!("note: {note}"));
        }
        // A report that cannot be written is refused before a program runs for hours.
        let report = self.report_file()?;
        let plan = plan.unwrap_or_default();
        let colors = match means {
            Means::Colors(colors) => colors,
            Means::Ways(instead) => {
                let outcome = ways::run(&instead, &plan, program, arguments)?;
                return Ok(self.ended(console, report, &outcome));
            }
        };
        let start = started::Start {
            command: program,
            arguments,
            environment: Vec::new(),
            children: self.children,
            colors: Some(colors.clone()),
            forced,
            plan,
            directed: self
                .policy
                .clone()
                .map(|policy| live::protocol::Directed { policy, align }),
            homed: None,
        };
        let ended = start.run(&found, named)?;
        for note in &ended.notes {
            console::note(format_args!("note: {note}"));
        }
        let outcome = outcome::run(ended.code, &colors, ended.reports);
        Ok(self.ended(console, report, &outcome))
    }

    /// The exit status is the program's, even if the report fails.
    fn ended(&self, console: &mut Console, report: Option<Destination>, outcome: &results::run::Run) -> ExitCode {
        if let Err(failure) = self.report_outcome(console, report, outcome) {
            failure.report();
        }
        ExitCode::from(u8::try_from(outcome.exit_code).unwrap_or(1))
    }

    /// Errors in them are reported before anything else.
    fn given_colors(&self) -> Result<Option<Colors>, Failure> {
        let Some(text) = &self.force_colors else {
            return Ok(None);
        };
        let colors = Colors::forced(text).map_err(|why| {
            Failure::usage(format!(
                "`--force-colors {text}`: {why}; it is written BIT:BITS:BYTES, such as 12:4:65536"
            ))
        });
        colors.map(Some)
    }

    /// How blocks of the heap are kept apart; by default as this machine's on-chip cache requires.
    fn alignment(&self) -> Result<Option<Alignment>, Failure> {
        let variable = std::env::var(Alignment::ENVIRONMENT).ok();
        let (from, text) = match (&self.align, &variable) {
            (Some(text), _) => ("--align", text.as_str()),
            (None, Some(text)) => (Alignment::ENVIRONMENT, text.as_str()),
            (None, None) => ("--align", "yes"),
        };
        Alignment::read(text, arrays::on_chip()).map_err(|error| Failure::usage(format!("{from}: {error}")))
    }

    /// The destination of the report, if it is a file.
    fn report_file(&self) -> Result<Option<Destination>, Failure> {
        let path = self.report.as_ref().filter(|path| path.as_os_str() != "-");
        apart(&[
            ("`--slots`", self.slots.as_deref()),
            ("`--placement`", self.placement.as_deref()),
            ("`--report`", path.map(PathBuf::as_path)),
            ("`--observations`", self.watching.observations().map(PathBuf::as_path)),
        ])?;
        if self.overwrite.force && path.is_none() && self.watching.observations().is_none() {
            return Err(Failure::usage(
                "`--force` is for a file that is written; add `--report FILE`",
            ));
        }
        let place = path.map(|path| self.overwrite.destination(path, "the report"));
        place.transpose()
    }

    fn report_outcome(
        &self,
        console: &mut Console,
        report: Option<Destination>,
        outcome: &results::run::Run,
    ) -> Result<(), Failure> {
        let text = if console.json() {
            json(outcome)?
        } else {
            outcome::text(outcome)
        };
        self.put(console, report, &text, outcome::placed_nothing(outcome))
    }

    /// Writes a report to its destination; a `grave` one is printed even with --quiet.
    fn put(&self, console: &Console, place: Option<Destination>, text: &str, grave: bool) -> Result<(), Failure> {
        match (&self.report, place) {
            // If its file cannot be written, the report is printed.
            (Some(_), Some(place)) => place.write_text(text).inspect_err(|_| console::say(text)),
            (Some(_), None) => console::print(text),
            // JSON and grave reports are printed even with --quiet.
            (None, _) if console.json() || grave => {
                console::say(text);
                Ok(())
            }
            (None, _) => {
                console::note_lines(text);
                Ok(())
            }
        }
    }
}

/// The means by which a program gets its part of the cache.
enum Means {
    Colors(Colors),
    Ways(Instead),
}

/// A report as a line of JSON.
fn json(report: &impl serde::Serialize) -> Result<String, Failure> {
    let line = serde_json::to_string(&results::saved(report));
    Ok(line.map_err(|error| Failure::work(format!("cannot print JSON: {error}")))? + "\n")
}

/// The policies that give pages homes by the program's summaries of its parallel loops.
fn homes() -> impl Iterator<Item = &'static str> {
    let by_summaries = policy::registry().iter().filter(|entry| entry.traits.summaries);
    by_summaries.map(|entry| entry.name)
}

fn names() -> impl Iterator<Item = &'static str> {
    // The thread's registers and the pages' protection are those of x86-64.
    let threads = policy::registry()
        .iter()
        .filter(|entry| cfg!(target_arch = "x86_64") && entry.traits.follows);
    live::cdpc::policies()
        .map(|entry| entry.name)
        .chain(homes())
        .chain(moving())
        .chain(threads.map(|entry| entry.name))
}

/// The plan in a file.
fn planned(path: &Path) -> Result<Plan, Failure> {
    let text = text_of(path, "plan")?;
    Plan::read(&text, &path.display().to_string()).map_err(Failure::work)
}

/// The text of a file that is `what`.
fn text_of(path: &Path, what: &str) -> Result<String, Failure> {
    use std::io::Read;
    let unread = |error: std::io::Error| Failure::work(format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(unread)?;
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unread)?;
    if text.len() as u64 > MOST_BYTES {
        let why = format!("{} is no {what}: more than {MOST_BYTES} bytes", path.display());
        return Err(Failure::work(why));
    }
    Ok(text)
}

/// The colors to use.
fn colors(from: ColorsFrom) -> Result<Colors, live::Error> {
    from.decide(|| Some(Client::find().ok()?.colors().clone()))
}

/// Ways instead of colors, for the slots of a plan; or why there are neither.
fn instead(error: live::Error, planned: bool) -> Result<Instead, Failure> {
    if let (live::Error::NoColors { why }, true) = (&error, planned)
        && let Some(instead) = Instead::of(why, &sys::Root::default()).map_err(Failure::work)?
    {
        return Ok(instead);
    }
    Err(Failure::work(format!(
        "{error}\nThe program was not started. `domicile probe` says more; --force-colors BIT:BITS:BYTES goes on all \
         the same, for instance 12:4:65536."
    )))
}

/// Returns true if the user forced these colors.
fn is_forced(colors: &Colors) -> bool {
    colors.source == Source::Forced
}
