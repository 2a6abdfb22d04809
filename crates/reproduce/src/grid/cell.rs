//! One cell: a program with a number of threads, recorded once, simulated on each machine under each policy.

use std::path::Path;

use machine::Machine;
use serde::{Deserialize, Serialize};

use super::Grid;
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::programs::{Build, Program, Programs};
use crate::record::Recording;
use crate::reproduce::Reproduction;

/// The phase that is counted, and the one that ends it: the first time step is not counted.
const FROM: &str = "steady";
const TO: &str = "done";
/// The options of every program: one step before, one counted.
const STEPS: [&str; 4] = ["--warm", "1", "--iterations", "1"];

/// The counts of one simulation of a cell, in nanoseconds of all cpus together unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    pub policy: String,
    pub instructions: u64,
    pub clock_mhz: f64,
    /// Of the longest cpu.
    pub wall: u64,
    /// All of the following.
    pub total: u64,
    pub busy: u64,
    pub stall: Stall,
    pub tlb: u64,
    /// For room among the prefetches in progress.
    pub prefetch: u64,
    pub imbalance: u64,
    pub sequential: u64,
    pub synchronization: u64,
    pub misses: Misses,
    pub bus: Bus,
    pub hints: Hints,
    pub prefetches: Prefetches,
}

/// Waiting for memory, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// For data that the external cache had.
    pub on_chip: u64,
    pub cold: u64,
    pub capacity: u64,
    pub conflict: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
    pub upgrade: u64,
    /// For prefetched lines that had not arrived yet.
    pub late: u64,
}

/// Misses of the external caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Misses {
    pub all: u64,
    pub cold: u64,
    pub capacity: u64,
    pub conflict: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
}

/// The percentage of the wall's time in which the bus was occupied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bus {
    pub occupancy: f64,
    pub data: f64,
    pub writebacks: f64,
    pub upgrades: f64,
}

/// Pages for which policy `cdpc` requested a color, and those that got it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hints {
    pub asked: u64,
    pub honoured: u64,
    /// Parallel loops that the compiler summarised.
    pub loops: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefetches {
    pub issued: u64,
    pub dropped: u64,
    pub brought: u64,
    pub useful: u64,
    pub late: u64,
}

impl Stall {
    /// Misses that another cache, or other placement, would not have had: the paper's "replacement".
    pub fn replacement(&self) -> u64 {
        self.cold + self.capacity + self.conflict
    }

    pub fn all(&self) -> u64 {
        self.on_chip + self.replacement() + self.true_sharing + self.false_sharing + self.upgrade + self.late
    }
}

impl Simulated {
    pub fn of(outcome: &results::Outcome, clock_mhz: f64) -> Simulated {
        let time = &outcome.time_ns;
        // A fresh outcome always has it.
        let by = time.stall_by_class.unwrap_or_default();
        let last = outcome.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
        let caches = || outcome.caches.iter().filter(|cache| cache.level == last);
        let sum = |of: &dyn Fn(&results::Cache) -> Option<u64>| caches().filter_map(of).sum();
        let share = |ns: u64| 100.0 * ns as f64 / time.wall.max(1) as f64;
        let bus = outcome.bus.as_ref().map(|bus| Bus {
            occupancy: bus.occupancy_percent,
            data: share(bus.data),
            writebacks: share(bus.writebacks),
            upgrades: share(bus.upgrades),
        });
        let hints = outcome.cdpc.as_ref().map(|made| Hints {
            asked: made.asked,
            honoured: made.honoured,
            loops: made.loops,
        });
        let prefetches = outcome.prefetch.as_ref().map(|counts| Prefetches {
            issued: counts.issued,
            dropped: counts.dropped_tlb + counts.dropped_unmapped,
            brought: counts.brought,
            useful: counts.useful,
            late: counts.late,
        });
        Simulated {
            policy: outcome.policy.clone(),
            // If a trace does not count them, the busy time stands for them.
            instructions: outcome
                .instructions
                .unwrap_or((time.busy as f64 * clock_mhz / 1e3) as u64),
            clock_mhz,
            wall: time.wall,
            total: time.total,
            busy: time.busy + time.policy_overhead,
            stall: Stall {
                on_chip: by.on_chip,
                cold: by.cold.unwrap_or(0) + by.unclassed,
                capacity: by.capacity.unwrap_or(0),
                conflict: by.conflict.unwrap_or(0),
                true_sharing: by.true_sharing.unwrap_or(0),
                false_sharing: by.false_sharing.unwrap_or(0),
                upgrade: by.upgrade,
                late: by.late_prefetch,
            },
            tlb: time.tlb_stall,
            prefetch: time.prefetch_stall,
            imbalance: time.imbalance,
            sequential: time.sequential,
            synchronization: time.synchronization,
            misses: Misses {
                all: caches().map(|cache| cache.misses).sum(),
                cold: sum(&|cache| cache.cold),
                capacity: sum(&|cache| cache.capacity),
                conflict: sum(&|cache| cache.conflict),
                true_sharing: sum(&|cache| cache.true_sharing),
                false_sharing: sum(&|cache| cache.false_sharing),
            },
            bus: bus.unwrap_or_default(),
            hints: hints.unwrap_or_default(),
            prefetches: prefetches.unwrap_or_default(),
        }
    }

    /// Clocks for each instruction of `ns` nanoseconds of all cpus.
    pub fn per_instruction(&self, ns: u64) -> f64 {
        ns as f64 * self.clock_mhz / 1e3 / self.instructions.max(1) as f64
    }

    /// Time in which no cpu advances the program: waiting for others, and the operating system's part.
    pub fn overhead(&self) -> u64 {
        self.tlb + self.imbalance + self.sequential + self.synchronization
    }
}

impl Reproduction<'_> {
    /// A program of a grid's item, built in this way, with this many threads.
    pub(crate) fn team(
        &self,
        programs: &Programs,
        name: &str,
        version: &str,
        cpus: u32,
    ) -> Result<Program, ReproduceError> {
        let steps = STEPS.map(String::from).into_iter();
        let arguments = steps.chain(["--threads".to_string(), cpus.to_string()]);
        let mut program = programs.program(Build::Count, name, version, arguments.collect())?;
        // The compiler's descriptions before `main` are for teams of this size.
        program.environment = vec![("OMP_NUM_THREADS".to_string(), cpus.to_string())];
        Ok(program)
    }

    /// The result of a program on each machine of the grid under each policy: by machine, by policy.
    pub(crate) fn cell(
        &self,
        item: &Item,
        grid: &Grid,
        program: &Program,
        cpus: u32,
        prefetches: bool,
    ) -> Result<Vec<Vec<Simulated>>, ReproduceError> {
        let machines: Vec<Machine> = grid
            .machines
            .iter()
            .map(|variant| variant.machine(cpus))
            .collect::<Result<_, _>>()?;
        let what = format!("{} {}", item.name, program.line());
        let recording = self.recording(program, &what, prefetches);
        recording.kept_each(
            &machines,
            &format!("grid {}", grid.policies_in_words()),
            |machine, trace| {
                let runs = recording.simulate(trace, &config(grid, machine))?;
                Ok(runs
                    .iter()
                    .map(|run| Simulated::of(&run.outcome, machine.clock_mhz))
                    .collect())
            },
        )
    }

    pub(crate) fn recording<'r>(&'r self, program: &'r Program, what: &'r str, prefetches: bool) -> Recording<'r> {
        Recording {
            program,
            machine: &self.machine,
            keeping: &self.options.keeping,
            what,
            expected: 0,
            prefetches,
            children: false,
            watch: self.watch,
        }
    }
}

/// A simulation of the steady phase under the grid's policies.
pub(crate) fn config(grid: &Grid, machine: &Machine) -> sim::Config {
    // The paper's policy does not compare before it decides.
    let policy = |name: &policy::Name| sim::PolicySpec {
        sets: vec!["cdpc.weigh=no".to_string()],
        ..sim::PolicySpec::new(name.clone())
    };
    let policies = grid.policies.iter().map(policy).collect();
    let mut config = sim::Config::new(machine.clone(), policies);
    config.detail.per_cpu = false;
    config.window = Some(sim::Window {
        from_phase: Some(FROM.to_string()),
        to_phase: Some(TO.to_string()),
    });
    config
}

/// Opens a trace and simulates it, with the color of each page, and the cpus that touched it.
pub(crate) fn mapped(
    recording: &Recording,
    trace: &Path,
    config: &sim::Config,
) -> Result<results::PageMap, ReproduceError> {
    let runs = recording.simulate(trace, config)?;
    let opened = trace::Trace::open(trace)?;
    sim::page_map(&opened, config, &runs).map_err(|source| ReproduceError::Simulate {
        line: recording.program.line(),
        source,
    })
}
