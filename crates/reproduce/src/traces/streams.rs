//! The streams of misses: each is recorded once for a machine, and everything that the paper's items need from it is
//! computed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use machine::Machine;
use policy::Cost;
use serde::{Deserialize, Serialize};
use sim::misses::{self, MissStream};
use sim::{Config, PolicySpec, Scheduling, SimError};
use trace::Trace;

use super::measure::Node;
use super::{Bar, Curve, Traces};
use crate::error::ReproduceError;
use crate::record::{hash_file, keep};
use crate::reproduce::Reproduction;
use crate::watch::Step;

/// Lengths of read chains, and percentages of pages, at which curves are kept.
pub const CHAINS: [u64; 14] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
pub const HOT: [u64; 9] = [1, 2, 5, 10, 15, 20, 30, 50, 100];
/// The folder of `make traces`, in the source tree that this was built from.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/traces");

/// The whole-system recorder's mark in its traces (crates/qemu).
const WHOLE: &str = "capture qemu";

/// The results of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub kinds: Kinds,
    /// How threads got cpus, and how often one continued on another.
    pub schedule: Scheduling,
    pub moves: Option<u64>,
    /// By the definition of a bar; or why it is unavailable.
    pub runs: BTreeMap<String, Result<Run, String>>,
    /// Percentages in the order of [`CHAINS`].
    pub chains: Vec<f64>,
    /// Percentages in the order of [`HOT`]: pages by their cache misses, and by their TLB misses.
    pub hot: [Vec<f64>; 2],
    /// True if the references include instructions.
    pub fetches: bool,
    /// True if the trace covers a whole system: its threads are cpus, which a kernel gives to processes.
    pub whole: bool,
}

/// The composition of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds {
    pub references: u64,
    /// Of them: reads and writes.
    pub data: u64,
    pub read_misses: u64,
    pub write_misses: u64,
    pub fetch_misses: u64,
    pub tlb_reads: u64,
    pub tlb_writes: u64,
    /// Pages on which a fetch missed.
    pub instruction_pages: u64,
}

/// One bar: nanoseconds of all cpus together, without waiting for other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Everything that policies of homes do not change: computing, caches, the TLB.
    pub user: u64,
    pub local_stall: u64,
    /// Of that, for requests to write lines that others hold: they are not misses.
    #[serde(default)]
    pub upgrades: u64,
    pub remote_stall: u64,
    pub overhead: u64,
    pub local: u64,
    pub remote: u64,
    pub migrations: u64,
    pub replications: u64,
    pub collapses: u64,
    pub pages: u64,
    pub pages_max: u64,
    pub pages_average: f64,
}

impl Kinds {
    fn of(stream: &MissStream, machine: &Machine) -> Kinds {
        let mut kinds = Kinds {
            references: stream.run.references,
            data: of_data(&stream.run, machine),
            ..Kinds::default()
        };
        let mut fetched = vec![false; stream.pages.len()];
        for miss in &stream.misses {
            let of = match (miss.is_of_tlb(), miss.is_fetch(), miss.is_write()) {
                (true, _, false) => &mut kinds.tlb_reads,
                (true, _, true) => &mut kinds.tlb_writes,
                (_, true, _) => {
                    fetched[miss.page() as usize] = true;
                    &mut kinds.fetch_misses
                }
                (_, _, true) => &mut kinds.write_misses,
                (_, _, false) => &mut kinds.read_misses,
            };
            *of += 1;
        }
        kinds.instruction_pages = fetched.iter().filter(|&&fetched| fetched).count() as u64;
        kinds
    }

    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses + self.fetch_misses
    }
}

impl Run {
    fn of(outcome: &results::Outcome) -> Run {
        let (time, memory) = (&outcome.time_ns, &outcome.memory);
        Run {
            user: time.busy + time.cache_stall + time.tlb_stall + time.prefetch_stall,
            local_stall: time.local_stall,
            upgrades: outcome.caches.iter().map(|cache| cache.stall_ns.upgrade).sum(),
            remote_stall: time.remote_stall,
            overhead: time.policy_overhead,
            local: memory.local,
            remote: memory.remote,
            migrations: memory.migrations,
            replications: memory.replications,
            collapses: memory.collapses,
            pages: memory.pages,
            pages_max: memory.pages_max,
            pages_average: memory.pages_average.unwrap_or(memory.pages as f64),
        }
    }

    pub fn stall(&self) -> u64 {
        self.local_stall + self.remote_stall
    }

    pub fn time(&self) -> u64 {
        self.user + self.stall() + self.overhead
    }

    /// The average waiting time of a miss; none if there was no such miss.
    pub fn latency_ns(&self, node: Node) -> Option<f64> {
        let (stall, misses) = match node {
            Node::Local => (self.local_stall - self.upgrades.min(self.local_stall), self.local),
            Node::Remote => (self.remote_stall, self.remote),
        };
        (misses > 0).then(|| stall as f64 / misses as f64)
    }

    pub fn local_percent(&self) -> f64 {
        100.0 * self.local as f64 / (self.local + self.remote).max(1) as f64
    }
}

/// The definition of a bar, independent of its name.
pub(crate) fn key(bar: &Bar, page_us: u32) -> String {
    let memory = if bar.half_memory { ", half" } else { "" };
    format!("{} {}, {page_us} us{memory}", bar.policy, bar.set.join(" "))
}

impl Replayed {
    pub fn run(&self, traces: &Traces, bar: &Bar) -> Result<&Run, String> {
        match self.runs.get(&key(bar, traces.page_us)) {
            Some(Ok(run)) => Ok(run),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(format!("{} was not replayed", bar.name)),
        }
    }

    /// A curve's value in one of its rows and at one of its columns.
    pub fn at(&self, curve: Curve, row: usize, column: &str) -> Result<f64, String> {
        let (places, values) = match curve {
            Curve::Chains => (&CHAINS[..], &self.chains),
            Curve::Hot => (&HOT[..], &self.hot[row]),
        };
        let at = places.iter().position(|place| place.to_string() == column);
        at.and_then(|at| values.get(at).copied())
            .ok_or_else(|| format!("the curve is not known at {column}"))
    }

    /// The first of this many recordings, in words.
    pub fn described(&self, workload: &str, recordings: usize) -> String {
        let kinds = &self.kinds;
        let moved = match self.schedule {
            _ if self.whole => "a whole system, whose kernel moved processes itself".to_string(),
            Scheduling::Stay => "threads stay on their cpus".to_string(),
            Scheduling::Next { every_ns } => {
                format!("each thread goes to the next cpu every {} ms", every_ns / 1_000_000)
            }
            scheduled => {
                let often = self.moves.map_or(String::new(), |moves| format!(" {moves} times"));
                format!("a small scheduler of the simulator, no real one ({scheduled}), moved threads{often}")
            }
        };
        let fetches = match (self.fetches, self.whole) {
            (true, _) => "",
            (false, true) => "; without instructions",
            (false, false) => "; recorded without instructions (make traces TRACES_FLAGS=--fetches)",
        };
        let recordings = match recordings {
            1 => String::new(),
            many => format!("; medians of {many} recordings, of which this is the first"),
        };
        let misses = match kinds.misses() {
            0 => String::new(),
            misses => format!(", {:.0} thousand misses", misses as f64 / 1e3),
        };
        format!(
            "{workload}: {:.0} million references{misses}; {moved}{fetches}{recordings}",
            kinds.references as f64 / 1e6
        )
    }
}

impl Reproduction<'_> {
    /// The results of a recording of a workload on a machine, counted from 1: computed now, or found.
    pub(crate) fn replayed(
        &mut self,
        workload: &str,
        recording: usize,
        traces: &Traces,
    ) -> Result<Rc<Replayed>, ReproduceError> {
        let trace = self.recorded(workload, recording)?;
        let machine = traces.described()?;
        let known = (trace.clone(), machine.to_toml());
        if let Some(replayed) = self.replayed.get(&known) {
            return Ok(replayed.clone());
        }
        let keeping = &self.options.keeping;
        let name = trace.file_stem().unwrap_or_default().to_string_lossy();
        let kept = keeping
            .folder
            .join(format!("{name}-{:016x}.json", identity(&trace, &known.1)?));
        let found = fs::read(&kept).ok().filter(|_| !keeping.afresh);
        let found = found.and_then(|text| serde_json::from_slice::<Replayed>(&text).ok());
        let replayed = match found {
            Some(replayed) => replayed,
            None => {
                let replayed = self.replay(workload, &machine, &trace)?;
                let written = fs::create_dir_all(&keeping.folder).and_then(|()| keep(&kept, &replayed));
                if let Err(error) = written {
                    let why = format!("cannot keep the counts in {}: {error}", kept.display());
                    (self.watch)(Step::Unkept { what: &name, why: &why });
                }
                replayed
            }
        };
        let replayed = Rc::new(replayed);
        self.replayed.insert(known, replayed.clone());
        Ok(replayed)
    }

    /// How many recordings of a workload there are; one if the first is missing, so that using it reports that.
    pub(crate) fn recordings_there(&self, workload: &str) -> usize {
        let there = (1..).take_while(|&recording| self.recorded(workload, recording).is_ok());
        there.count().max(1)
    }

    /// The trace of a recording of a workload, with instructions if there is such a trace.
    fn recorded(&self, workload: &str, recording: usize) -> Result<PathBuf, ReproduceError> {
        let folder = self.options.traces.clone().unwrap_or_else(|| RECORDED.into());
        let size = if self.options.full { "book" } else { "small" };
        let further = match recording {
            1 => String::new(),
            further => format!("-{further}"),
        };
        let names = [
            format!("{workload}-{size}-fetches{further}.dtr"),
            format!("{workload}-{size}{further}.dtr"),
        ];
        // All recordings are of the same kind as the first.
        let fetches = folder.join(format!("{workload}-{size}-fetches.dtr")).is_file();
        let found = Some(folder.join(&names[usize::from(!fetches)])).filter(|path| path.is_file());
        found.ok_or_else(|| ReproduceError::NoTrace {
            name: names[0].clone(),
            folder,
            flags: format!("--size {size} --fetches {workload}"),
        })
    }

    /// Simulates the caches, once, and replays the bars of all items of the paper that are of the machine.
    fn replay(&self, workload: &str, machine: &Machine, file: &Path) -> Result<Replayed, ReproduceError> {
        let trace = Trace::open(file)?;
        let failed = |source| ReproduceError::Simulate {
            line: file.display().to_string(),
            source,
        };
        let treated = self.paper.about.workloads.iter().find(|other| other.name == workload);
        let schedule = treated.map_or(Scheduling::Stay, |treated| treated.schedule);
        let config = Config {
            schedule,
            ..Config::new(machine.clone(), Vec::new())
        };
        let items = self.paper.items.iter().filter_map(|item| item.traces.as_ref());
        let bars: Vec<(&Bar, u32)> = items
            .filter(|traces| traces.described().is_ok_and(|described| described == *machine))
            .flat_map(|traces| traces.bars.iter().map(|bar| (bar, traces.page_us)))
            .collect();
        // With contention, all references are simulated again for each cost of a page.
        let passes = match machine.memory.is_contended() {
            true => bars.iter().map(|(_, page_us)| page_us).collect::<BTreeSet<_>>().len() as u64,
            false => 1,
        };
        let what = format!("{workload} on {}", machine.name);
        let (done, total) = (std::sync::atomic::AtomicU64::new(0), passes * trace.references());
        let progress = |references: u64| {
            let done = done.fetch_add(references, std::sync::atomic::Ordering::Relaxed) + references;
            (self.watch)(Step::Simulating {
                what: &what,
                done,
                total,
            });
        };
        if machine.memory.is_contended() {
            return wholes(&trace, &config, &bars, &progress).map_err(failed);
        }
        let (stream, _) = misses::record_to_replay(&trace, &config, &progress).map_err(failed)?;
        let chains = misses::read_chains(&stream);
        let hot = misses::hot_pages(&stream, |_| true);
        let kinds = Kinds::of(&stream, &config.machine);
        let mut replayed = Replayed {
            fetches: kinds.fetch_misses > 0,
            whole: trace.header().origin == WHOLE,
            kinds,
            schedule,
            moves: Some(stream.thread_moves()),
            runs: BTreeMap::new(),
            chains: CHAINS.map(|length| chains.percent_from(length)).to_vec(),
            hot: [
                HOT.map(|percent| hot.by_cache(percent as f64)).to_vec(),
                HOT.map(|percent| hot.by_tlb(percent as f64)).to_vec(),
            ],
        };
        // The halved memory must be known first.
        for half in [false, true] {
            for (bar, page_us) in bars.iter().filter(|(bar, _)| bar.half_memory == half) {
                let key = key(bar, *page_us);
                if replayed.runs.contains_key(&key) {
                    continue;
                }
                let run = one(&stream, &config, bar, *page_us, &replayed);
                replayed.runs.insert(key, run);
            }
        }
        Ok(replayed)
    }
}

/// Each bar over all references, if cpus wait for one another at memory: the misses of a stream do not.
fn wholes(trace: &Trace, config: &Config, bars: &[(&Bar, u32)], progress: sim::Progress) -> Result<Replayed, SimError> {
    let mut replayed = Replayed {
        whole: trace.header().origin == WHOLE,
        schedule: config.schedule,
        ..Replayed::default()
    };
    let mut by_cost: BTreeMap<u32, BTreeMap<String, &Bar>> = BTreeMap::new();
    for (bar, page_us) in bars {
        by_cost.entry(*page_us).or_default().insert(key(bar, *page_us), bar);
    }
    for (page_us, bars) in by_cost {
        let config = Config {
            costs: costs(config, page_us),
            policies: bars.values().map(|bar| spec(bar)).collect(),
            ..config.clone()
        };
        let simulated = sim::simulate(trace, &config, progress)?;
        for (key, simulated) in bars.into_keys().zip(&simulated) {
            let outcome = &simulated.outcome;
            replayed.kinds.references = outcome.references;
            replayed.kinds.data = of_data(outcome, &config.machine);
            replayed.fetches = replayed.kinds.data < outcome.references;
            replayed.runs.insert(key, Ok(Run::of(outcome)));
        }
    }
    Ok(replayed)
}

/// Data references: the look-ups in the first level's data caches.
fn of_data(outcome: &results::Outcome, machine: &Machine) -> u64 {
    let of_data = |cache: &&results::Cache| {
        let mut described = machine.caches.iter().filter(|other| other.level == 1);
        described.any(|other| other.name == cache.name && other.kind != machine::Kind::Instruction)
    };
    outcome.caches.iter().filter(of_data).map(|cache| cache.accesses).sum()
}

fn spec(bar: &Bar) -> PolicySpec {
    PolicySpec {
        sets: bar.set.iter().map(|set| format!("{}.{set}", bar.policy)).collect(),
        ..PolicySpec::new(bar.policy.clone())
    }
}

fn costs(config: &Config, page_us: u32) -> Cost {
    let page_ns = f64::from(page_us) * 1e3;
    Cost {
        move_page_ns: page_ns,
        copy_page_ns: page_ns,
        collapse_ns: page_ns,
        ..config.costs
    }
}

/// One bar over the stream.
fn one(stream: &MissStream, config: &Config, bar: &Bar, page_us: u32, before: &Replayed) -> Result<Run, String> {
    let mut config = Config {
        costs: costs(config, page_us),
        policies: vec![spec(bar)],
        ..config.clone()
    };
    if bar.half_memory {
        let whole = Bar {
            half_memory: false,
            ..bar.clone()
        };
        let whole = before.runs.get(&key(&whole, page_us));
        let whole = whole.and_then(|run| run.as_ref().ok());
        let whole = whole.ok_or("what it takes with enough memory is not known")?;
        config.frames_together = Some(whole.pages + (whole.pages_max - whole.pages) / 2);
    }
    let outcomes = misses::replay(stream, &config).map_err(|error| error.to_string())?;
    let outcome = outcomes.first().ok_or("nothing was replayed")?;
    Ok(Run::of(outcome))
}

/// A hash of everything that the figures depend on: the trace, the machine, and this program, which contains the items.
fn identity(trace: &Path, machine: &str) -> Result<u64, ReproduceError> {
    let mut hasher = DefaultHasher::new();
    if let Ok(own) = std::env::current_exe() {
        hash_file(&own, &mut hasher)?;
    }
    let unreadable = |source| ReproduceError::File {
        path: trace.to_path_buf(),
        what: "cannot be read",
        source,
    };
    let about = fs::metadata(trace).map_err(unreadable)?;
    let written = about
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    hasher.write(trace.as_os_str().as_encoded_bytes());
    hasher.write_u64(about.len());
    hasher.write_u128(written.unwrap_or_default().as_nanos());
    hasher.write(machine.as_bytes());
    Ok(hasher.finish())
}
