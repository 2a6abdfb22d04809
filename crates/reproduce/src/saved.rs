//! Figures of misses that cache slots save (Ding11, figures 6, 8, 10 and 12).
//!
//! Each run is recorded once, with the slots that the program requests. It is simulated with policy `random`, which is
//! plain Linux (frames of any color; the paper's baseline), and with policy `slots`, which follows the program's
//! requests: both with several seeds of the frames, since a single draw of colors is no result.

use std::collections::BTreeMap;
use std::path::Path;

use policy::{Kind, Name};
use serde::{Deserialize, Serialize};

use crate::counts::percent_saved;
use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::{Item, Run};
use crate::programs::{Build, Program, Programs};
use crate::record::Recording;
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;

/// Data structures that a note names.
const NAMED: usize = 8;

/// Seeds of frames by default.
const SEEDS: usize = 5;

/// Both simulations of one run, with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub references: u64,
    pub random: Simulated,
    pub slots: Simulated,
}

/// The counts of one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Of the last level.
    pub misses: u64,
    pub wall_ns: u64,
    /// Misses of the last level by the name of the data structure.
    pub structures: BTreeMap<String, u64>,
    /// The program's slots that were refused, and why; the first few.
    #[serde(default)]
    pub refused: Vec<String>,
}

impl Simulated {
    fn of(outcome: &results::Outcome) -> Simulated {
        let last = outcome.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
        let caches = outcome.caches.iter().filter(|cache| cache.level == last);
        let mut structures = BTreeMap::new();
        for structure in outcome.structures.iter().flatten() {
            let misses = structure.caches.iter().filter(|cache| cache.level == last);
            *structures.entry(structure.name.clone()).or_default() += misses.map(|cache| cache.misses).sum::<u64>();
        }
        Simulated {
            misses: caches.map(|cache| cache.misses).sum(),
            wall_ns: outcome.time_ns.wall,
            structures,
            refused: outcome.slots.iter().flat_map(|slots| slots.refused.clone()).collect(),
        }
    }
}

impl Saved {
    /// Percent of the misses.
    pub fn misses(&self) -> f64 {
        percent_saved(self.random.misses as f64, self.slots.misses as f64)
    }

    /// Percent of the simulated time.
    pub fn time(&self) -> f64 {
        percent_saved(self.random.wall_ns as f64, self.slots.wall_ns as f64)
    }

    /// The structures with most misses, each with those of both policies.
    fn by_structure(&self) -> String {
        let of = |simulated: &Simulated, name: &str| simulated.structures.get(name).copied().unwrap_or(0);
        let mut names: Vec<&String> = self
            .random
            .structures
            .keys()
            .chain(self.slots.structures.keys())
            .collect();
        let most = |name: &str| of(&self.random, name).max(of(&self.slots, name));
        names.sort_by(|a, b| most(b).cmp(&most(a)).then(a.cmp(b)));
        names.dedup();
        let thousands = |count: u64| format!("{:.0}", count as f64 / 1000.0);
        let named = names.iter().take(NAMED).map(|name| {
            let (random, slots) = (of(&self.random, name), of(&self.slots, name));
            format!("{name} {} -> {}", thousands(random), thousands(slots))
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

impl Reproduction<'_> {
    /// A figure of misses.
    pub(crate) fn saved(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let programs = Programs::find(self.options.programs.as_deref())?;
        let runs: Vec<_> = item.runs.iter().map(|run| self.both(&programs, item, run)).collect();
        for (run, (both, _)) in item.runs.iter().zip(&runs) {
            if let Err(reason) = both {
                section.failures.push(format!("{}: {reason}", run.of));
            }
        }
        let mut rows = |name: &str, unit: &str, value: &dyn Fn(&Saved) -> f64| {
            for (index, (column, (both, line))) in item.columns.iter().zip(&runs).enumerate() {
                let paper = item.rows.iter().find(|row| row.name == name);
                let paper = paper.and_then(|row| row.value(index));
                let ours = Several::of(both.as_ref().map_err(Clone::clone), |both| {
                    both.iter().map(value).collect()
                });
                let place = self.place(item, name, column, unit);
                section.lines.push(Line::of_several(place, paper, &ours).of_run(line));
            }
        };
        rows("misses saved", &item.unit, &Saved::misses);
        rows("L2 misses, random", "thousands", &|both| {
            both.random.misses as f64 / 1000.0
        });
        rows("L2 misses, slots", "thousands", &|both| {
            both.slots.misses as f64 / 1000.0
        });
        rows("simulated time saved", &item.unit, &Saved::time);
        for (column, (both, _)) in item.columns.iter().zip(&runs) {
            if let Some(both) = both.as_ref().ok().and_then(|both| both.first()) {
                let misses = both.by_structure();
                section.notes.push(format!(
                    "{column}, first seed, thousands of misses, random -> slots: {misses}"
                ));
                let refused = both.slots.refused.iter();
                section
                    .notes
                    .extend(refused.map(|why| format!("{column}, not as the program asks: {why}")));
            }
        }
        section.notes.push(format!(
            "simulated on {}, thread after thread on cpus that share a cache; random is Linux as it is, slots what the program \
             asks for; {}; {}",
            self.paper.about.machine,
            match self.seeds() {
                1 => "one seed of frames".to_string(),
                many => format!("medians of {many} seeds of frames"),
            },
            if self.options.full {
                "the paper's whole size"
            } else {
                "part of the work at the paper's sizes of data and cache (--full: all of it)"
            }
        ));
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        Ok(())
    }

    /// With how many seeds of frames a run is simulated.
    fn seeds(&self) -> usize {
        self.options.rounds.unwrap_or(SEEDS)
    }

    /// Both simulations of a run of a figure of misses with each seed, or why there are none; and the command.
    pub(crate) fn both(&self, programs: &Programs, item: &Item, run: &Run) -> (Result<Vec<Saved>, String>, String) {
        let program = match self.slots_program(programs, Build::Count, item, run) {
            Ok(program) => program,
            Err(reason) => return (Err(reason), String::new()),
        };
        let what = format!("{} {}", item.name, run.of);
        let recording = Recording {
            program: &program,
            machine: &self.machine,
            keeping: &self.options.keeping,
            what: &what,
            expected: 0,
            prefetches: false,
            children: false,
            watch: self.watch,
        };
        let seeds = self.seeds();
        let names = policies().map(|name| name.to_string()).join(" ");
        let both = recording.kept(&format!("{names}, {seeds} seeds"), |trace| {
            simulate(&recording, trace, seeds)
        });
        (both.map_err(|error| error.to_string()), program.line())
    }

    /// The version with slots of an item's program, with a run's arguments.
    fn slots_program(&self, programs: &Programs, build: Build, item: &Item, run: &Run) -> Result<Program, String> {
        let name = item.job.program.as_deref().unwrap_or_default();
        let version = run
            .version
            .as_deref()
            .ok_or_else(|| run.absent.clone().unwrap_or_default())?;
        let own = match &run.full {
            Some(full) if self.options.full => full,
            _ => &run.arguments,
        };
        let arguments = [&item.job.arguments[..], own].concat();
        let program = programs.program(build, name, version, arguments);
        program.map_err(|error| error.to_string())
    }
}

/// The two policies, the baseline first.
fn policies() -> [Name; 2] {
    [
        Name::first(&[Kind::Color], |traits| traits.linux),
        Name::first(&[Kind::Color], |traits| traits.slots),
    ]
}

/// Everything in one pass over the trace: for each seed the two policies, one after the other.
fn simulate(recording: &Recording, trace: &Path, seeds: usize) -> Result<Vec<Saved>, ReproduceError> {
    let spec = |seed: usize| {
        policies().map(|name| sim::PolicySpec {
            sets: vec![format!("{name}.seed={}", seed + 1)],
            ..sim::PolicySpec::new(name)
        })
    };
    let mut config = sim::Config::new(recording.machine.clone(), (0..seeds).flat_map(spec).collect());
    // Misses are counted by structure; classes would take several times as long.
    config.classes = false;
    config.detail.structures = true;
    let runs = recording.simulate(trace, &config)?;
    let (both, rest) = runs.as_chunks::<2>();
    if both.len() != seeds || !rest.is_empty() {
        return Err(ReproduceError::Host("not every policy was simulated".to_string()));
    }
    let saved = both.iter().map(|[random, slots]| Saved {
        references: random.outcome.references,
        random: Simulated::of(&random.outcome),
        slots: Simulated::of(&slots.outcome),
    });
    Ok(saved.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(misses: u64, structures: &[(&str, u64)]) -> Simulated {
        Simulated {
            misses,
            wall_ns: 10 * misses,
            structures: structures
                .iter()
                .map(|&(name, misses)| (name.to_string(), misses))
                .collect(),
            refused: Vec::new(),
        }
    }

    #[test]
    fn what_is_saved_is_a_part_of_the_baseline() {
        let both = Saved {
            references: 1,
            random: simulated(200_000, &[("a", 150_000), ("p", 50_000)]),
            slots: simulated(150_000, &[("a", 148_000), ("q", 2_000)]),
        };
        assert_eq!((both.misses(), both.time()), (25.0, 25.0));
        assert_eq!(both.by_structure(), "a 150 -> 148, p 50 -> 0, q 0 -> 2");
        assert_eq!(percent_saved(2.0, 3.0), -50.0);
    }
}
