//! A program whose threads are kept under chosen caches, and a comparison of the ways to place them.

use std::ffi::{OsStr, OsString};
use std::iter::once;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use live::placement::{Family, Here};
use results::{MeasuredWay, PlacedRun, Placement, PlacementWay};
use sys::affinity;
use sys::supervise::Supervisor;

use super::{Run, started};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::Done;

/// The time between two checks for a program's threads: at first, after each new thread, and at most.
const SOON: Duration = Duration::from_micros(200);
const LATE: Duration = Duration::from_millis(20);

/// Linux's own placement, among the measured ways.
const UNPLACED: &str = "unplaced";

impl Run {
    /// Runs the program with its threads placed as a file says, or measures the ways of the file.
    pub fn place(&self, console: &mut Console, file: &Path) -> Done {
        if self.children || self.force_colors.is_some() || self.skip_missing || !self.watching.is_unused() {
            return Err(Failure::usage(
                "`--placement` keeps threads of one process under caches: leave out --children, --force-colors, --skip-missing, \
                 --set, --interval, --source and --observations",
            ));
        }
        let placement = read(file)?;
        let program = Path::new(&placement.program).file_name();
        if program.is_some() && program != Path::new(&self.command[0]).file_name() {
            console::note(format_args!(
                "note: the placement is of {}; {} is taken for it unless it starts that",
                placement.program,
                self.command[0].to_string_lossy()
            ));
        }
        let given = || self.command[1..].iter().map(|word| word.to_string_lossy());
        let of = placement.arguments.as_ref();
        let other = of.filter(|of| !given().eq(of.iter().map(String::as_str)));
        if let Some(of) = other.filter(|_| program == Path::new(&self.command[0]).file_name()) {
            console::note(format_args!(
                "note: the placement is of a run of `{}`, and other arguments may start other threads",
                results::command_line(once(&placement.program).chain(of))
            ));
        }
        let report = self.report_file()?;
        let (mut outcome, code) = match self.rounds {
            None => {
                let way = &placement.ways[0];
                may_have(&placement, way)?;
                self.placed_run(&placement, way)?
            }
            Some(rounds) => (self.measure(&placement, rounds)?, 0),
        };
        outcome.exit_code = Some(code);
        // The file may be for another program, or for the same one under another name.
        let words = self.command.iter().map(|word| word.to_string_lossy());
        outcome.program = results::command_line(words);
        let text = if console.json() {
            super::json(&outcome)?
        } else if outcome.measured.is_empty() {
            format!("domicile: {}\n", report::placed(&outcome))
        } else {
            report::measured_ways(&outcome)
                .section(console.columns())
                .trim_start()
                .to_string()
        };
        // The user asked for the table.
        let put = match (outcome.measured.is_empty(), &self.report) {
            (false, None) => console.text(&text),
            _ => self.put(console, report, &text, outcome.placed == 0),
        };
        if let Err(failure) = put {
            failure.report();
        }
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    /// Runs the program visibly to its user.
    fn placed_run(&self, placement: &Placement, way: &PlacementWay) -> Result<(PlacedRun, i32), Failure> {
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        let mut beside = None;
        let status = supervisor.run_with(command(&self.command)?, |child| {
            beside = Some(Beside::begin(child, &self.command[0], placement, way));
        });
        let status = status.map_err(|error| cannot_run(&self.command, &error))?;
        let outcome = beside.map(Beside::end).unwrap_or_default();
        Ok((outcome, started::code(status)))
    }

    /// Runs the program in each way, in turns. It reads nothing, and its output is discarded.
    fn measure(&self, placement: &Placement, rounds: u32) -> Result<PlacedRun, Failure> {
        for way in &placement.ways {
            may_have(placement, way)?;
        }
        let mut ways = vec![MeasuredWay {
            name: UNPLACED.to_string(),
            ..MeasuredWay::default()
        }];
        ways.extend(placement.ways.iter().map(|way| MeasuredWay {
            name: way.name.clone(),
            predicted_ns: Some(way.predicted_ns),
            rounds: Vec::new(),
        }));
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        let mut best = PlacedRun::default();
        for round in 0..rounds as usize {
            // Each round begins with another way: a fixed first one would bear all changes over the rounds.
            for at in 0..ways.len() {
                let at = (at + round) % ways.len();
                let way = at.checked_sub(1).map(|at| &placement.ways[at]);
                let (ns, outcome) = self.timed(&mut supervisor, placement, way)?;
                ways[at].rounds.push(ns);
                if at == 1 {
                    best = outcome;
                }
            }
        }
        best.measured = ways;
        Ok(best)
    }

    /// One run: nanoseconds from its start to its end. A signal that ends this process ends the program.
    fn timed(
        &self,
        supervisor: &mut Supervisor,
        placement: &Placement,
        way: Option<&PlacementWay>,
    ) -> Result<(u64, PlacedRun), Failure> {
        let mut command = command(&self.command)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut beside = None;
        let began = Instant::now();
        let status = supervisor.run_with(command, |child| {
            beside = way.map(|way| Beside::begin(child, &self.command[0], placement, way));
        });
        let took = began.elapsed();
        let status = status.map_err(|error| cannot_run(&self.command, &error))?;
        let outcome = beside.map(Beside::end).unwrap_or_default();
        if !status.success() {
            let name = self.command[0].to_string_lossy();
            let code = u8::try_from(started::code(status)).unwrap_or(1);
            return Err(Failure::Program(
                format!("{name} failed ({status}); nothing was measured"),
                code,
            ));
        }
        Ok((u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), outcome))
    }
}

/// The thread that places a program's threads while it runs.
struct Beside {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<PlacedRun>,
}

impl Beside {
    fn begin(child: u32, command: &OsStr, placement: &Placement, way: &PlacementWay) -> Beside {
        let (command, placement, way) = (command.to_os_string(), placement.clone(), way.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let processes = Here::default();
            let everywhere = affinity::allowed(None).unwrap_or_default();
            let mut family = Family::new(&placement, &way, everywhere, child, Path::new(&command));
            let mut pause = SOON;
            while !ended.load(Ordering::Relaxed) {
                pause = match family.look(&processes) {
                    true => SOON,
                    false => (pause * 5 / 4).min(LATE),
                };
                thread::park_timeout(pause);
            }
            family.outcome()
        });
        Beside { stop, thread }
    }

    fn end(self) -> PlacedRun {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn command(words: &[OsString]) -> Result<Command, Failure> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| Failure::usage("no program was given"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

fn cannot_run(words: &[OsString], error: &std::io::Error) -> Failure {
    Failure::work(format!("cannot run {}: {error}", words[0].to_string_lossy()))
}

/// The placement in a file.
fn read(file: &Path) -> Result<Placement, Failure> {
    let text = super::text_of(file, "placement")?;
    let refused = |why: String| Failure::work(format!("{} is no placement of threads: {why}", file.display()));
    let placement: Placement = toml::from_str(&text).map_err(|error| {
        let place = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
        refused(format!(
            "line {place}: {}; `domicile advise --write-placement FILE.toml` writes one",
            in_words(error.message())
        ))
    })?;
    placement.check().map_err(refused)?;
    Ok(placement)
}

/// A parser's message about a number, without the names of types.
fn in_words(message: &str) -> String {
    let is_number = ["u32", "u64"]
        .iter()
        .any(|kind| message.ends_with(&format!("expected {kind}")));
    let number = message
        .split('`')
        .nth(1)
        .filter(|_| is_number && message.contains("integer"));
    match number {
        Some(number) if number.starts_with('-') => format!("{number} is below 0"),
        Some(number) => format!("{number} is too large a number"),
        None => message.replace("integer number overflowed", "a number is too large"),
    }
}

/// Checks that this process may use the cpus of a way, since its children may use no others.
fn may_have(placement: &Placement, way: &PlacementWay) -> Result<(), Failure> {
    let Ok(allowed) = affinity::allowed(None) else {
        return Ok(());
    };
    let lacks = |cpus: &&Vec<u32>| !cpus.iter().any(|cpu| allowed.contains(cpu));
    match way.cpus.iter().find(lacks) {
        Some(cpus) => Err(Failure::work(format!(
            "cpus {} of way `{}` cannot be used here, which has {}: the placement is for {}",
            sys::cpus::list(cpus),
            way.name,
            sys::cpus::list(&allowed),
            placement.machine
        ))),
        None => Ok(()),
    }
}
