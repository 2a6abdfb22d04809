//! Sections 5.2 and 5.5: processes that share the caches of a machine, as the scheduler places them and as policy
//! `regions` does.

use sim::{Config, Detail, Item as Reference, Streams, Window};
use trace::Event;

use super::{read, spec};
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::region_items::{Process, Regions};
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;
use crate::watch::Step;
use machine::Machine;

/// Reads of a process.
const READS: u64 = 3_000_000;
/// Counting begins with the second half.
const COUNTED: &str = "counted";

impl Reproduction<'_> {
    /// Nanoseconds of each process for a read, by the machines' names and the columns.
    pub(super) fn processes(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let mut rows: Vec<(String, Vec<Vec<f64>>)> = Vec::new();
        for variant in &regions.machines {
            let machine = machine::load(&variant.preset)?;
            let of_machine = |process: &&Process| process.machine == variant.name;
            let processes: Vec<&Process> = regions.processes.iter().filter(of_machine).collect();
            let mut found: Vec<Vec<Vec<f64>>> = Vec::new();
            for recording in 0..self.recordings() {
                (self.watch)(Step::Simulating {
                    what: &variant.name,
                    done: recording,
                    total: self.recordings(),
                });
                let key = format!("{processes:?} {:?} {recording}\n{}", regions.set, machine.to_toml());
                found.push(self.kept(&key, || ways(&machine, &processes, &regions.set, recording))?);
            }
            for (at, process) in processes.iter().enumerate() {
                let of = found.iter().map(|ways| ways.iter().map(|way| way[at]).collect());
                rows.push((format!("{}, {}", variant.name, process.name), of.collect()));
            }
        }
        let several = |row: &str, column: &str| {
            let found = rows.iter().find(|(name, _)| name == row);
            let found = found.map_or(&[][..], |(_, found)| found);
            Several(found.iter().map(|ways| number(ways, column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| {
                let percent = column.starts_with("faster") || column.starts_with("lower");
                (if percent { "percent" } else { "ns a read" }, several(name, column))
            });
        }
        section.notes.push(format!(
            "made-up processes that read at random, {READS} times each, the second half counted, what a read waits and its instructions; \
             `unaware`: threads in their order on the cpus, so that the first two are under one cache; policy `regions` with {}; {}",
            regions.set.join(" "),
            self.recordings_in_words()
        ));
        Ok(())
    }
}

/// From nanoseconds alone, unaware and under policy `regions`.
fn number(ways: &[f64], column: &str) -> Result<f64, String> {
    let [alone, unaware, regions] = ways else {
        return Err("it was not simulated".to_string());
    };
    match column {
        "alone" => Ok(*alone),
        "unaware" => Ok(*unaware),
        "regions" => Ok(*regions),
        "faster" => Ok((unaware / regions - 1.0) * 100.0),
        "lower" => Ok((1.0 - regions / unaware) * 100.0),
        other => Err(format!("`{other}` is not counted")),
    }
}

/// Each process alone, and all together in both ways.
fn ways(
    machine: &Machine,
    processes: &[&Process],
    set: &[String],
    recording: u64,
) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let all: Vec<Vec<Reference>> = (0..)
        .zip(processes)
        .map(|(at, process)| reads(process, at, recording))
        .collect();
    let mut alone = Vec::new();
    for (thread, process) in all.iter().zip(processes) {
        alone.extend(simulated(
            machine,
            &[process],
            vec![thread.clone()],
            "first-touch",
            &[],
        )?);
    }
    Ok(vec![
        alone,
        simulated(machine, processes, all.clone(), "first-touch", &[])?,
        simulated(machine, processes, all, "regions", set)?,
    ])
}

/// Nanoseconds that each process takes for a read.
fn simulated(
    machine: &Machine,
    processes: &[&Process],
    threads: Vec<Vec<Reference>>,
    policy: &str,
    set: &[String],
) -> Result<Vec<f64>, ReproduceError> {
    let mut streams = Streams::new(threads);
    streams.spaces = (0..processes.len() as u32).collect();
    let config = Config {
        classes: false,
        detail: Detail {
            threads: true,
            ..Detail::default()
        },
        window: Some(Window {
            from_phase: Some(COUNTED.to_string()),
            to_phase: None,
        }),
        ..Config::new(machine.clone(), vec![spec(policy, set)?])
    };
    let failed = |source| ReproduceError::Simulate {
        line: "processes".to_string(),
        source,
    };
    let runs = sim::simulate_refs(&streams, &config).map_err(failed)?;
    let threads = runs.into_iter().next().and_then(|run| run.outcome.threads);
    let threads = threads.ok_or_else(|| ReproduceError::Host(format!("policy {policy}: threads were not counted")))?;
    let ns = (0..).zip(processes).map(|(number, process)| {
        let thread = threads.iter().find(|thread| thread.thread == number);
        let waits = thread.map_or(0.0, |thread| thread.stall_ns as f64 / thread.references.max(1) as f64);
        waits + f64::from(process.instructions) * 1000.0 / machine.clock_mhz
    });
    Ok(ns.collect())
}

/// A process reads at random in its data; the first process marks the beginning of counting.
fn reads(process: &Process, number: u64, recording: u64) -> Vec<Reference> {
    let mut state = 88172645463325252 ^ (recording * 64 + number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let lines = (process.kb << 10) / 64;
    let mut items = Vec::with_capacity(READS as usize + 1);
    for at in 0..READS {
        if at == READS / 2 {
            items.push(Reference::Event(Event::Phase {
                name: COUNTED.to_string(),
            }));
        }
        // First the data is read in order, as a program fills it.
        let line = if at < lines { at } else { below(lines) };
        let addr = (1 << 32) + recording * 7 * 4096 + line * 64;
        items.push(read(addr, process.instructions));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_faster_and_what_is_lower() {
        let ways = [10.0, 40.0, 20.0];
        assert_eq!(number(&ways, "alone"), Ok(10.0));
        assert_eq!(number(&ways, "faster"), Ok(100.0));
        assert_eq!(number(&ways, "lower"), Ok(50.0));
        assert!(number(&[], "lower").is_err());
        assert!(number(&ways, "higher").is_err());
    }
}
