//! Sections 5.5 and 5.6: recorded programs that share the caches of a machine, as the scheduler places them and as
//! policy `regions` does.
//!
//! A workload's programs are recorded at once (`workloads/servers/together/run`). Only the processes that the item
//! names are simulated; shells and clients are left out, because the paper's load comes from elsewhere. All begin at
//! once.

use std::path::Path;

use results::{Outcome, RegionsProcess};
use serde::{Deserialize, Serialize};
use sim::{Config, Detail, PolicySpec};
use trace::Trace;

use super::parts::{threads_of, write_part};
use super::programs::{Varied, hashed, lines_of, word};
use super::spec;
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::record::Recording;
use crate::region_items::{Member, Regions, Variant};
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;
use crate::watch::Step;
use machine::Machine;

/// The row of all processes of a machine.
const ALL: &str = "all";

/// The time of one process, or of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Took {
    references: u64,
    /// The time of its threads in memory and instructions; for all: from the beginning to the end of the last.
    ns: f64,
    /// Of the outermost cache.
    misses: u64,
}

/// The parts of a row: alone, together unaware, and together under policy `regions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ways {
    alone: Option<Took>,
    unaware: Took,
    regions: Took,
    /// The policy's actions, in words.
    did: String,
}

impl Reproduction<'_> {
    /// A row for each process and machine, and one of all processes.
    pub(super) fn together(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let Some(name) = &regions.workload else {
            return Ok(());
        };
        let mut rows: Vec<(String, Vec<Ways>)> = Vec::new();
        for variant in &regions.machines {
            let mut names: Vec<&str> = members(regions, variant).map(|member| member.name.as_str()).collect();
            names.push(ALL);
            rows.extend(
                names
                    .into_iter()
                    .map(|name| (format!("{}, {name}", variant.name), Vec::new())),
            );
        }
        match self.recordings_together(name, regions) {
            Ok(recordings) => {
                for found in recordings {
                    for ((_, of_row), ways) in rows.iter_mut().zip(found) {
                        of_row.push(ways);
                    }
                }
            }
            Err(error) => {
                section.failures.push(format!("{name}: {error}"));
                return Ok(());
            }
        }
        let several = |row: &str, column: &str| {
            let found = rows.iter().find(|(name, _)| name == row);
            let found = found.map_or(&[][..], |(_, found)| found);
            Several(found.iter().map(|ways| ways.number(column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| {
                (unit(name, column), several(name, column))
            });
        }
        for (name, found) in &rows {
            if let Some(ways) = found.first() {
                section.notes.push(format!("{name}, the first recording: {}", ways.did));
            }
        }
        section.notes.push(format!(
            "Debian's programs, recorded at once, prepared by `make traces`; ns: what the threads of a process wait for memory and execute, for a \
             reference, its turns on a cpu not counted; of all: ms until the last has ended; `unaware`: threads in their order on the cpus, so that \
             the first two are under one cache; policy `regions` with {}; numbers are medians of {} recordings, which differ in environment, growth \
             of the heap, seeds, and what is asked in which order",
            regions.set.join(" "),
            self.recordings()
        ));
        Ok(())
    }

    /// The results of each recording: all rows.
    fn recordings_together(&self, name: &str, regions: &Regions) -> Result<Vec<Vec<Ways>>, ReproduceError> {
        let inputs = self.prepared().join("inputs");
        let folder = inputs.join(format!("together-{name}-small"));
        let words = lines_of(&folder.join("command"))?;
        let files = hashed(&lines_of(&folder.join("files"))?)?;
        let machines: Vec<(&Variant, Machine)> = regions
            .machines
            .iter()
            .map(|variant| Ok((variant, machine::load(&variant.preset)?)))
            .collect::<Result<_, ReproduceError>>()?;
        let texts: Vec<String> = machines.iter().map(|(_, machine)| machine.to_toml()).collect();
        let mut all = Vec::new();
        for recording in 0..self.recordings() {
            (self.watch)(Step::Simulating {
                what: name,
                done: recording,
                total: self.recordings(),
            });
            let (set, members, variants) = (&regions.set, &regions.together, &regions.machines);
            let key = format!(
                "{words:?} {files:x} {recording} {set:?} {members:?} {variants:?}\n{}",
                texts.concat()
            );
            let varied = Varied {
                name,
                words: &words,
                recording,
                inputs: Some(inputs.clone()),
            };
            all.push(self.kept(&key, || {
                self.with_recording(&varied, |recorder, trace| rows_of(recorder, trace, &machines, regions))
            })?);
        }
        Ok(all)
    }
}

/// The processes that run in a row.
fn members<'a>(regions: &'a Regions, variant: &'a Variant) -> impl Iterator<Item = &'a Member> {
    let runs = |member: &&Member| !variant.leaves_out.contains(&member.name);
    regions.together.iter().filter(runs)
}

/// Simulates all rows of a recording.
fn rows_of(
    recorder: &Recording,
    recorded: &Path,
    machines: &[(&Variant, Machine)],
    regions: &Regions,
) -> Result<Vec<Ways>, ReproduceError> {
    let trace = Trace::open(recorded)?;
    let part = recorded.with_extension("part");
    let unaware = || spec("first-touch", &[]);
    let mut rows = Vec::new();
    // The time of a process alone, by machine.
    let mut known: Vec<(&str, &str, Took)> = Vec::new();
    // Rows of the same processes on the same machine are simulated at once.
    let alike = |one: &(&Variant, Machine), other: &(&Variant, Machine)| {
        one.0.preset == other.0.preset && one.0.leaves_out == other.0.leaves_out
    };
    for group in machines.chunk_by(alike) {
        let (variant, machine) = &group[0];
        let mut alone = Vec::new();
        let mut processes = Vec::new();
        for member in members(regions, variant) {
            let threads = threads_of(&trace, member)?;
            let same = |(name, preset, _): &&(&str, &str, Took)| *name == member.name && *preset == variant.preset;
            let took = match known.iter().find(same) {
                Some((_, _, took)) => *took,
                None => {
                    let instructions = write_part(&trace, std::slice::from_ref(&threads), &part)?;
                    let runs = took(recorder, &part, machine, &instructions, vec![unaware()?])?;
                    known.push((&member.name, &variant.preset, runs[0].each[0]));
                    runs[0].each[0]
                }
            };
            alone.push(took);
            processes.push(threads);
        }
        let instructions = write_part(&trace, &processes, &part)?;
        let sets = group
            .iter()
            .map(|(variant, _)| [&regions.set[..], &variant.set].concat());
        let ours = sets.map(|set| spec("regions", &set));
        let specs = std::iter::once(unaware()).chain(ours).collect::<Result<_, _>>()?;
        let runs = took(recorder, &part, machine, &instructions, specs)?;
        let Some((first, ours)) = runs.split_first() else {
            continue;
        };
        for run in ours {
            for (at, alone) in alone.iter().enumerate() {
                rows.push(Ways {
                    alone: Some(*alone),
                    unaware: first.each[at],
                    regions: run.each[at],
                    did: run.did.get(at).cloned().unwrap_or_default(),
                });
            }
            rows.push(Ways {
                alone: None,
                unaware: first.all,
                regions: run.all,
                did: format!("{} phases, {} moves", run.phases, run.moves),
            });
        }
    }
    Ok(rows)
}

/// The result of a policy.
struct Run {
    each: Vec<Took>,
    all: Took,
    /// For policy `regions`: its verdict on each process, and the cache that the process got.
    did: Vec<String>,
    phases: u64,
    moves: u64,
}

/// Simulates a part of a recording under several policies.
fn took(
    recorder: &Recording,
    part: &Path,
    machine: &Machine,
    instructions: &[u64],
    policies: Vec<PolicySpec>,
) -> Result<Vec<Run>, ReproduceError> {
    let config = Config {
        classes: false,
        detail: Detail {
            threads: true,
            ..Detail::default()
        },
        ..Config::new(machine.clone(), policies)
    };
    let runs = recorder.simulate(part, &config)?.into_iter().map(|run| {
        let outcome = run.outcome;
        let each = of_processes(&outcome, instructions, machine.clock_mhz)
            .ok_or_else(|| ReproduceError::Host("threads were not counted".to_string()))?;
        let regions = outcome.regions.unwrap_or_default();
        Ok(Run {
            all: Took {
                references: outcome.references,
                ns: outcome.time_ns.wall as f64,
                misses: each.iter().map(|took| took.misses).sum(),
            },
            each,
            did: regions.processes.iter().map(did).collect(),
            phases: regions.phases,
            moves: regions.switches,
        })
    });
    runs.collect()
}

/// A verdict, and the cache that a process was given.
fn did(process: &RegionsProcess) -> String {
    let verdict = word(process.verdict);
    match process.cache {
        Some(cache) => format!("`{verdict}`, cache {cache}"),
        None => format!("`{verdict}`, no cache of its own"),
    }
}

/// Threads put together by process.
fn of_processes(outcome: &Outcome, instructions: &[u64], clock_mhz: f64) -> Option<Vec<Took>> {
    let mut each: Vec<Took> = instructions
        .iter()
        .map(|&instructions| Took {
            ns: instructions as f64 * 1000.0 / clock_mhz,
            ..Took::default()
        })
        .collect();
    for thread in outcome.threads.as_ref()? {
        let took = each.get_mut(thread.process as usize)?;
        took.references += thread.references;
        took.ns += thread.stall_ns as f64;
        let outermost = thread.caches.iter().max_by_key(|cache| cache.level);
        took.misses += outermost.map_or(0, |cache| cache.misses);
    }
    Some(each)
}

impl Ways {
    fn number(&self, column: &str) -> Result<f64, String> {
        let alone = || self.alone.ok_or_else(|| "all are not one".to_string());
        // For all processes, the time itself.
        let time = |took: &Took| match self.alone {
            Some(_) => took.ns / took.references.max(1) as f64,
            None => took.ns / 1e6,
        };
        let misses = |took: &Took| took.misses as f64 * 1000.0 / took.references.max(1) as f64;
        let less = |of: &dyn Fn(&Took) -> f64| (1.0 - of(&self.regions) / of(&self.unaware)) * 100.0;
        match column {
            "alone" => alone().map(|took| time(&took)),
            "unaware" => Ok(time(&self.unaware)),
            "regions" => Ok(time(&self.regions)),
            "lower" => Ok(less(&time)),
            // The part of the others' cost that is regained.
            "regained" => {
                let [alone, unaware, ours] = [alone()?, self.unaware, self.regions].map(|took| time(&took));
                match alone < unaware && ours < unaware {
                    true => Ok((unaware - ours) / (unaware - alone) * 100.0),
                    false => Err("nothing is regained".to_string()),
                }
            }
            "misses alone" => alone().map(|took| misses(&took)),
            "misses unaware" => Ok(misses(&self.unaware)),
            "misses with regions" => Ok(misses(&self.regions)),
            "fewer misses" => Ok(less(&misses)),
            other => Err(format!("`{other}` is not counted")),
        }
    }
}

fn unit(row: &str, column: &str) -> &'static str {
    match column {
        "lower" | "regained" | "fewer misses" => "percent",
        column if column.starts_with("misses") => "of 1000 references",
        _ if row.ends_with(ALL) => "ms",
        _ => "ns a reference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_a_reference_but_of_all_processes_in_ms() {
        let took = |ns, misses| Took {
            references: 1_000_000,
            ns,
            misses,
        };
        let mut ways = Ways {
            alone: Some(took(2e6, 500)),
            unaware: took(8e6, 2000),
            regions: took(4e6, 1500),
            did: String::new(),
        };
        let of =
            |ways: &Ways| ["alone", "unaware", "regions", "lower", "fewer misses"].map(|column| ways.number(column));
        assert_eq!(of(&ways), [2.0, 8.0, 4.0, 50.0, 25.0].map(Ok));
        assert_eq!(ways.number("misses alone"), Ok(0.5));
        assert_eq!(ways.number("regained").map(f64::round), Ok(67.0));
        let back = Ways {
            regions: took(9e6, 0),
            ..ways.clone()
        };
        assert!(back.number("regained").is_err());
        ways.alone = None;
        assert_eq!(of(&ways)[1..], [8.0, 4.0, 50.0, 25.0].map(Ok));
        assert!(of(&ways)[0].is_err() && ways.number("higher").is_err());
        let process = RegionsProcess {
            cache: Some(1),
            ..RegionsProcess::default()
        };
        assert!(did(&process).ends_with("`, cache 1"));
        assert_eq!(unit("clovertown, all", "unaware"), "ms");
        assert_eq!(unit("clovertown, server", "unaware"), "ns a reference");
    }
}
