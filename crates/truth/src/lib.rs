//! Predictions held against the clock: pairs of programs before and after a known change, measured in turn on this machine, recorded,
//! and simulated. A prediction that nobody holds against a clock is a belief.
//!
//! All pairs are measured first, with nothing beside them; then several are predicted at once.
#![forbid(unsafe_code)]

mod clock;
mod experiments;
mod pairs;
mod prediction;
mod programs;
mod ratio;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use machine::{Kind, Machine, MachineError};
use measured::CoreShare;
use results::{Truth, TruthAbout, TruthBeside, TruthFailed, TruthPair, TruthRange};
use thiserror::Error;

pub use pairs::{Pair, Whose, quick, read};

use prediction::Predictor;
use programs::{Builder, Commands};

#[derive(Debug, Error)]
pub enum TruthError {
    #[error("{0}")]
    List(String),
    #[error("{0}")]
    Command(String),
    #[error("{0}")]
    Pair(String),
    /// Nothing more is to be done.
    #[error("interrupted")]
    Interrupted,
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error(transparent)]
    Machine(#[from] machine::MachineError),
    #[error(transparent)]
    Record(#[from] capture::CaptureError),
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
    #[error(transparent)]
    Simulate(#[from] sim::SimError),
}

impl TruthError {
    fn file(path: &Path, error: std::io::Error) -> TruthError {
        TruthError::File(path.to_path_buf(), error)
    }
}

/// How pairs are measured and predicted.
pub struct Asked<'a> {
    pub pairs: &'a [Pair],
    /// The file of the pairs, if it is not the built-in list: sources are beside it.
    pub list: Option<&'a Path>,
    /// How often each side is measured.
    pub rounds: u32,
    /// The machine that is predicted on, with the name that it was asked for by; `None`: the clock alone.
    pub machine: Option<(&'a str, &'a Machine)>,
    /// The same machine as it is at that moment, asked for three times while each pair is measured: the part that
    /// neighbors leave changes.
    pub beside: Option<&'a (dyn Fn() -> Result<Machine, MachineError> + 'a)>,
    /// Times that were measured before, which are taken as they are, and the machine as it was then.
    pub measured: Option<&'a Truth>,
    /// The folder for programs and recordings.
    pub folder: &'a Path,
    /// Recordings stay there, and those that are there are taken.
    pub keep: bool,
    /// Pairs that miss are predicted once more with each figure of the machine changed.
    pub experiments: bool,
    /// How many pairs are predicted at once.
    pub jobs: usize,
}

/// The step in progress.
pub enum Step<'a> {
    Measuring(&'a str),
    Predicting(&'a str),
    /// Of measuring or predicting.
    Done(&'a str),
}

/// Measures and predicts. A pair that fails is named in the result, and the others go on.
///
/// Pre: the process has no other children that end meanwhile, since processor time is that of all of them.
/// Errors: nothing can be built, or recorded; it was interrupted.
pub fn hold(asked: &Asked, watch: &(dyn Fn(Step) + Sync)) -> Result<Truth, TruthError> {
    let mut truth = Truth {
        about: about(asked),
        ..Truth::default()
    };
    if asked.machine.is_some() {
        capture::find_tool(None)?;
    }
    let builder = Builder::new(asked.list, asked.folder)?;
    let mut share = CoreShare::new();
    let mut measured = Vec::new();
    for pair in asked.pairs {
        if let Some(before) = asked.measured {
            match of_before(asked, before, pair, &builder) {
                Ok(one) => measured.push(one),
                Err(error) => truth.failed.push(failed(pair, &error)),
            }
            watch(Step::Done(&pair.name));
            continue;
        }
        watch(Step::Measuring(&pair.name));
        let mut machines = Vec::new();
        let mut between = || {
            machines.extend(asked.beside.map(|beside| beside()).transpose()?);
            Ok(())
        };
        let done = builder.commands(pair).and_then(|commands| {
            let by_clock = clock::measure(pair, &commands, asked.rounds, &mut share, &mut between)?;
            Ok((by_clock, commands))
        });
        let machine = middle(machines);
        match done {
            Ok((by_clock, commands)) => measured.push(Measured {
                pair,
                commands,
                described: TruthPair {
                    beside: machine.as_ref().map(beside),
                    ..described(pair, by_clock)
                },
                machine,
            }),
            Err(error) => truth.failed.push(failed(pair, &error)),
        }
        watch(Step::Done(&pair.name));
    }
    match asked.machine {
        None => truth.pairs = measured.into_iter().map(|one| one.described).collect(),
        Some((_, machine)) => {
            let predictor = Predictor {
                folder: builder.folder.clone(),
                keep: asked.keep,
                experiments: asked.experiments,
                recorder: Mutex::default(),
            };
            predict(&predictor, machine, measured, asked.jobs, watch, &mut truth)?;
        }
    }
    // One half of a list is held back from models. The built-in pairs ask about the machine, and all of them say something of it.
    truth.range = ratio::range(&truth.pairs, |pair| asked.list.is_none() || pair.half == "build");
    Ok(truth)
}

/// The machine at the moment whose last level kept lines neither longest nor shortest: the part of it that a neighbor
/// leaves halves and doubles within seconds.
fn middle(mut machines: Vec<Machine>) -> Option<Machine> {
    let kept = |machine: &Machine| {
        let left = beside(machine);
        // The time that a line is kept while others bring theirs.
        (
            left.last_level_bytes as f64 / left.others_gbps.max(f64::MIN_POSITIVE),
            left.last_level_bytes,
        )
    };
    machines.sort_by(|one, other| kept(one).partial_cmp(&kept(other)).unwrap_or(std::cmp::Ordering::Equal));
    let at = machines.len() / 2;
    (at < machines.len()).then(|| machines.swap_remove(at))
}

/// A pair as it was measured before, with its programs.
fn of_before<'a>(asked: &Asked, before: &Truth, pair: &'a Pair, builder: &Builder) -> Result<Measured<'a>, TruthError> {
    let known = before.pairs.iter().find(|known| known.name == pair.name);
    let known = known.ok_or_else(|| TruthError::Pair("the file of measured times does not have it".to_string()))?;
    let machine = asked
        .machine
        .zip(known.beside)
        .map(|((_, machine), beside)| as_it_was(machine, &beside));
    Ok(Measured {
        pair,
        commands: builder.commands(pair)?,
        described: TruthPair {
            beside: known.beside,
            again: known.again.clone(),
            ..described(pair, known.measured.clone())
        },
        machine,
    })
}

/// A machine with the caches and memory that neighbors left of it at another moment.
fn as_it_was(machine: &Machine, left: &TruthBeside) -> Machine {
    let mut machine = machine.clone();
    let data = machine
        .caches
        .iter_mut()
        .filter(|cache| cache.kind != Kind::Instruction);
    if let Some(last) = data.max_by_key(|cache| cache.level) {
        // Less of a cache is fewer ways.
        let way_bytes = last.bytes / u64::from(last.ways.max(1));
        last.ways = (left.last_level_bytes / way_bytes.max(1)).max(1) as u32;
        last.bytes = way_bytes * u64::from(last.ways);
        last.hit_ns = left.last_level_ns;
        last.others_gbps = left.others_gbps;
    }
    machine.memory.local_ns = left.memory_ns;
    // Earlier results do not have all of these.
    let looked_at = |ns: f64| (ns > 0.0).then_some(ns);
    if let Some(gbps) = looked_at(left.memory_gbps) {
        machine.memory.bandwidth_gbps = gbps;
    }
    if let Some(tlb) = &mut machine.tlb {
        tlb.refill_ns = looked_at(left.page_walk_ns).unwrap_or(tlb.refill_ns);
        tlb.huge_refill_ns = looked_at(left.huge_page_walk_ns).or(tlb.huge_refill_ns);
        for far in &mut tlb.far {
            far.refill_ns = far.refill_ns.max(tlb.refill_ns);
        }
    }
    if let Some(core) = &mut machine.core {
        core.instructions_per_clock = left.instructions_per_clock;
        core.line_ns = looked_at(left.line_ns).unwrap_or(core.line_ns);
        core.memory_line_ns = looked_at(left.memory_line_ns).unwrap_or(core.memory_line_ns);
        core.huge_memory_line_ns = looked_at(left.huge_memory_line_ns).unwrap_or(core.huge_memory_line_ns);
    }
    machine
}

/// A pair that was measured.
struct Measured<'a> {
    pair: &'a Pair,
    commands: Commands,
    described: TruthPair,
    /// As the machine was meanwhile.
    machine: Option<Machine>,
}

fn beside(machine: &Machine) -> TruthBeside {
    let data = machine.caches.iter().filter(|cache| cache.kind != Kind::Instruction);
    let last = data.max_by_key(|cache| cache.level);
    TruthBeside {
        last_level_bytes: last.map_or(0, |cache| cache.bytes),
        last_level_ns: last.map_or(0.0, |cache| cache.hit_ns),
        others_gbps: last.map_or(0.0, |cache| cache.others_gbps),
        memory_ns: machine.memory.local_ns,
        instructions_per_clock: machine.core.map_or(1.0, |core| core.instructions_per_clock),
        memory_gbps: machine.memory.bandwidth_gbps,
        line_ns: machine.core.map_or(0.0, |core| core.line_ns),
        memory_line_ns: machine.core.map_or(0.0, |core| core.memory_line_ns),
        huge_memory_line_ns: machine.core.map_or(0.0, |core| core.huge_memory_line_ns),
        page_walk_ns: machine.tlb.as_ref().map_or(0.0, |tlb| tlb.refill_ns),
        huge_page_walk_ns: machine.tlb.as_ref().and_then(|tlb| tlb.huge_refill_ns).unwrap_or(0.0),
    }
}

fn described(pair: &Pair, measured: results::TruthMeasured) -> TruthPair {
    TruthPair {
        name: pair.name.clone(),
        kind: pair.kind.clone(),
        whose: pair.whose.name().to_string(),
        of: pair.of.clone(),
        half: pair.half().to_string(),
        explained: pair.explained.clone(),
        measured,
        ..TruthPair::default()
    }
}

fn failed(pair: &Pair, error: &TruthError) -> TruthFailed {
    TruthFailed {
        name: pair.name.clone(),
        why: error.to_string(),
    }
}

/// The file of a machine's own range.
const KEPT: &str = "truth.toml";

/// Keeps how far predictions are off on this machine until it boots again. Returns whether that could be kept.
pub fn keep(range: &TruthRange) -> bool {
    measured::keep_beside(KEPT, range)
}

/// The error range of predictions found on this machine.
pub fn kept() -> Option<TruthRange> {
    measured::kept_beside(KEPT)
}

/// Several at once: predictions do not depend on other load.
fn predict(
    predictor: &Predictor,
    machine: &Machine,
    measured: Vec<Measured>,
    jobs: usize,
    watch: &(dyn Fn(Step) + Sync),
    truth: &mut Truth,
) -> Result<(), TruthError> {
    let next = AtomicUsize::new(0);
    let predicted = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some((at, one)) = next_of(&next, &measured) {
                    let pair = one.pair;
                    watch(Step::Predicting(&pair.name));
                    let machine = one.machine.as_ref().unwrap_or(machine);
                    let done = predictor.predict(pair, &one.commands, machine, &one.described.measured);
                    if matches!(done, Err(TruthError::Interrupted)) {
                        next.store(measured.len(), Ordering::Relaxed);
                    }
                    watch(Step::Done(&pair.name));
                    // Nobody panics while it is held.
                    if let Ok(mut predicted) = predicted.lock() {
                        predicted.push((at, done));
                    }
                }
            });
        }
    });
    let mut predicted = predicted.into_inner().unwrap_or_default();
    predicted.sort_by_key(|(at, _)| *at);
    for (
        Measured {
            pair, mut described, ..
        },
        (_, done),
    ) in measured.into_iter().zip(predicted)
    {
        match done {
            Ok((said, close)) => {
                described.predicted = Some(said);
                described.experiments = close;
            }
            Err(TruthError::Interrupted) => return Err(TruthError::Interrupted),
            Err(error) => truth.failed.push(failed(pair, &error)),
        }
        ratio::judge(&mut described);
        truth.pairs.push(described);
    }
    Ok(())
}

/// The next of them, and its place.
fn next_of<'a, T>(next: &AtomicUsize, of: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    of.get(at).map(|one| (at, one))
}

/// The machine on which times were measured, and the one that is predicted on.
fn about(asked: &Asked) -> TruthAbout {
    let measured = asked.measured.map(|before| before.about.clone());
    let mut about = measured.unwrap_or_else(|| at_hand(asked.rounds));
    about.machine = asked.machine.map_or(String::new(), |(name, _)| name.to_string());
    about
}

fn at_hand(rounds: u32) -> TruthAbout {
    let root = sys::Root::default();
    let first_line = |text: String| text.lines().next().unwrap_or_default().trim().to_string();
    let load = root.text("proc/loadavg").unwrap_or_default();
    TruthAbout {
        date: programs::call(std::process::Command::new("date").args(["-u", "+%F"])).map_or(String::new(), first_line),
        processor: sys::cpuinfo::processor(&root)
            .unwrap_or_default()
            .model
            .unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        kernel: first_line(root.text("proc/sys/kernel/osrelease").unwrap_or_default()),
        compiler: programs::call(std::process::Command::new("cc").arg("--version")).map_or(String::new(), first_line),
        machine: String::new(),
        rounds,
        load: load
            .split_whitespace()
            .next()
            .and_then(|load| load.parse().ok())
            .unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Each pair has the middle of the machine as it was during its own rounds.
    #[test]
    fn the_machine_is_asked_for_three_times_beside_each_pair() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.toml");
        let pair = |name: &str| {
            let counting = r#"["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]"#;
            format!(
                "[[pair]]\nname = \"{name}\"\nkind = \"k\"\nof = \"sh\"\nwhose = \"foreign\"\nbefore = {counting}\nafter = {counting}\n"
            )
        };
        std::fs::write(&list, [pair("a"), pair("b")].concat()).unwrap();
        let pairs = read(&list).unwrap();
        let asked = Cell::new(0);
        let machine = || {
            asked.set(asked.get() + 1);
            let mut machine = machine::load("zen3-milan")?;
            machine.memory.local_ns = f64::from(asked.get());
            // 4, 1, 2 MB beside the first pair, 8, 5, 6 beside the second.
            let megabytes = [4u64, 1, 2, 8, 5, 6][asked.get() as usize - 1];
            machine.caches.last_mut().unwrap().bytes = megabytes << 20;
            Ok(machine)
        };
        let truth = hold(
            &Asked {
                pairs: &pairs,
                list: Some(&list),
                rounds: 4,
                machine: None,
                beside: Some(&machine),
                measured: None,
                folder: folder.path(),
                keep: false,
                experiments: false,
                jobs: 1,
            },
            &|_| {},
        )
        .unwrap();
        let beside: Vec<f64> = truth.pairs.iter().map(|pair| pair.beside.unwrap().memory_ns).collect();
        assert_eq!(beside, [3.0, 6.0], "{:?}", truth.failed);
        assert_eq!(truth.pairs[0].beside.unwrap().last_level_bytes, 2 << 20);
    }

    /// Times that were measured before are taken, with the machine as it was; a pair that has none is named.
    #[test]
    fn times_that_were_measured_before_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.toml");
        let pair = |name: &str| {
            format!(
                "[[pair]]\nname = \"{name}\"\nkind = \"k\"\nof = \"sh\"\nwhose = \"foreign\"\nbefore = [\"false\"]\nafter = [\"false\"]\n"
            )
        };
        std::fs::write(&list, [pair("a"), pair("b")].concat()).unwrap();
        let pairs = read(&list).unwrap();
        let before = Truth {
            pairs: vec![TruthPair {
                name: "a".to_string(),
                measured: results::TruthMeasured {
                    ratio: 3.0,
                    ..results::TruthMeasured::default()
                },
                ..TruthPair::default()
            }],
            ..Truth::default()
        };
        let asked = Asked {
            pairs: &pairs,
            list: Some(&list),
            rounds: 4,
            machine: None,
            beside: None,
            measured: Some(&before),
            folder: folder.path(),
            keep: false,
            experiments: false,
            jobs: 1,
        };
        let truth = hold(&asked, &|_| {}).unwrap();
        assert_eq!((truth.pairs.len(), truth.pairs[0].measured.ratio), (1, 3.0));
        assert!(truth.failed[0].why.contains("does not have it"), "{:?}", truth.failed);
        let zen = machine::load("zen3-milan").unwrap();
        let left = TruthBeside {
            last_level_bytes: zen.caches.last().unwrap().bytes / 2,
            last_level_ns: 30.0,
            others_gbps: 2.5,
            memory_ns: 200.0,
            instructions_per_clock: 2.5,
            memory_gbps: 12.5,
            line_ns: 3.0,
            memory_line_ns: 5.0,
            huge_memory_line_ns: 4.0,
            page_walk_ns: 44.0,
            huge_page_walk_ns: 22.0,
        };
        let then = as_it_was(&zen, &left);
        assert!(then.check().is_ok());
        assert_eq!(beside(&then), left);
        let earlier = TruthBeside {
            memory_gbps: 0.0,
            line_ns: 0.0,
            memory_line_ns: 0.0,
            huge_memory_line_ns: 0.0,
            page_walk_ns: 0.0,
            huge_page_walk_ns: 0.0,
            ..left
        };
        let then = beside(&as_it_was(&zen, &earlier));
        assert_eq!(
            (then.line_ns, then.huge_page_walk_ns),
            (beside(&zen).line_ns, beside(&zen).huge_page_walk_ns)
        );
        assert_eq!(
            (then.memory_gbps, then.page_walk_ns),
            (beside(&zen).memory_gbps, beside(&zen).page_walk_ns)
        );
    }
}
