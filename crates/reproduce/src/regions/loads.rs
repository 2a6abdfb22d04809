//! Figure 18: the contents of the caches for one program before the policy unifies them, and after.

use machine::Machine;
use policy::Random;
use serde::{Deserialize, Serialize};
use sim::{Config, Item as Reference, Streams};

use super::{read, spec};
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::region_items::Regions;
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;
use crate::watch::Step;

/// Reads in all.
const READS: u64 = 12_000_000;
const LINE: u64 = 64;

/// The state after a phase: the time in ms, each cache's contents in MB, and how often the thread has moved until then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Moment {
    at_ms: f64,
    loads_mb: Vec<f64>,
    moves: u64,
}

impl Reproduction<'_> {
    /// Loads of the two fullest caches before the program is unified and after, by the machines' names.
    pub(super) fn loads(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let mut rows: Vec<(String, Vec<Vec<Moment>>)> = Vec::new();
        let mut timelines = Vec::new();
        for variant in &regions.machines {
            let machine = machine::load(&variant.preset)?;
            let (kb, stay) = variant.sizes_kb.first().zip(variant.stays.first()).ok_or_else(|| {
                ReproduceError::Host(format!("{} says no size and no stay of a region", variant.name))
            })?;
            let set = [&regions.set[..], &variant.set].concat();
            let mut found = Vec::new();
            for recording in 0..self.recordings() {
                (self.watch)(Step::Simulating {
                    what: &variant.name,
                    done: recording,
                    total: self.recordings(),
                });
                let key = format!("loads {READS} {kb} {stay} {set:?} {recording}\n{}", machine.to_toml());
                found.push(self.kept(&key, || moments(&machine, *kb << 10, *stay, &set, recording))?);
            }
            if let Some(first) = found.first() {
                timelines.push(format!(
                    "{}, the first recording, with {}: {}",
                    variant.name,
                    set.join(" "),
                    over_time(first)
                ));
            }
            rows.push((variant.name.clone(), found));
        }
        let several = |row: &str, column: &str| {
            let of_row = rows.iter().find(|(name, _)| name == row);
            let found = of_row.map_or(&[][..], |(_, found)| found);
            Several(found.iter().map(|moments| number(moments, column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| (unit(column), several(name, column)));
        }
        section.notes.extend(timelines);
        section.notes.push(format!(
            "memlat with two regions, read at random, {READS} reads in all; loads as the policy's balancer sees them when a phase ends; {}",
            self.recordings_in_words()
        ));
        Ok(())
    }
}

fn unit(column: &str) -> &'static str {
    match column {
        "moves" => "a second",
        _ => "MB",
    }
}

/// `before`: the contents of the fuller cache and of the other after the first phase. `after`: the medians from the
/// phase on after which both hold something.
fn number(moments: &[Moment], column: &str) -> Result<f64, String> {
    let first = moments.first().ok_or("there was no phase")?;
    let unified = moments.iter().position(|moment| load(moment, 1) > 0.0);
    let after = &moments[unified.unwrap_or(moments.len() - 1)..];
    let median = |place| {
        let mut loads: Vec<f64> = after.iter().map(|moment| load(moment, place)).collect();
        loads.sort_by(f64::total_cmp);
        loads[(loads.len() - 1) / 2]
    };
    match column {
        "first, before" => Ok(load(first, 0)),
        "second, before" => Ok(load(first, 1)),
        "first, after" => Ok(median(0)),
        "second, after" => Ok(median(1)),
        "moves" => {
            let (begun, ended) = (&after[0], &after[after.len() - 1]);
            let seconds = (ended.at_ms - begun.at_ms) / 1000.0;
            Ok((ended.moves - begun.moves) as f64 / seconds.max(f64::MIN_POSITIVE))
        }
        other => Err(format!("`{other}` is not counted")),
    }
}

/// The load of the fullest cache, of the next one.
fn load(moment: &Moment, place: usize) -> f64 {
    let mut loads = moment.loads_mb.clone();
    loads.sort_by(|a, b| b.total_cmp(a));
    loads.get(place).copied().unwrap_or(0.0)
}

/// The loads in words, where they change.
fn over_time(moments: &[Moment]) -> String {
    let in_words = |moment: &Moment| {
        let loads = moment.loads_mb.iter().map(|mb| format!("{mb:.1}"));
        loads.collect::<Vec<_>>().join(" + ")
    };
    let mut text = Vec::new();
    let mut before = String::new();
    for moment in moments {
        let now = in_words(moment);
        if now != before {
            text.push(format!("{now} MB from {:.0} ms on", moment.at_ms));
        }
        before = now;
    }
    text.join(", ")
}

/// A run of `memlat` under the policy.
fn moments(
    machine: &Machine,
    bytes: u64,
    stay: u32,
    set: &[String],
    recording: u64,
) -> Result<Vec<Moment>, ReproduceError> {
    let config = Config {
        classes: false,
        ..Config::new(machine.clone(), vec![spec("regions", set)?])
    };
    let failed = |source| ReproduceError::Simulate {
        line: "memlat".to_string(),
        source,
    };
    let runs = sim::simulate_refs(&Streams::new(vec![reads(bytes, stay, recording)]), &config).map_err(failed)?;
    let regions = runs
        .into_iter()
        .next()
        .and_then(|run| run.outcome.regions)
        .unwrap_or_default();
    let moment = |moment: &results::RegionsMoment| Moment {
        at_ms: moment.at_ns as f64 / 1e6,
        loads_mb: moment
            .load_bytes
            .iter()
            .map(|&bytes| bytes as f64 / f64::from(1 << 20))
            .collect(),
        moves: moment.switches,
    };
    Ok(regions.moments.iter().map(moment).collect())
}

/// Two regions, first filled in order, then read at random, `2^stay` reads in one before the other's turn.
fn reads(bytes: u64, stay: u32, recording: u64) -> Vec<Reference> {
    let mut random = Random::new(recording + 1);
    let lines = bytes / LINE;
    let start = (1 << 32) + recording * 7 * 4096;
    let filled = (0..2 * lines).map(|line| start + line * LINE);
    let at_random = (0..READS).map(|at| {
        let region = (at + recording * 1000) >> stay & 1;
        start + region * bytes + u64::from(random.below(lines as u32)) * LINE
    });
    filled.chain(at_random).map(|addr| read(addr, 3)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_those_of_the_first_phase_and_of_those_after_unification() {
        let moment = |at_ms, loads: [f64; 2], moves| Moment {
            at_ms,
            loads_mb: loads.to_vec(),
            moves,
        };
        let moments = [
            moment(20.0, [0.0, 6.5], 0),
            moment(40.0, [3.0, 3.5], 0),
            moment(60.0, [1.0, 3.5], 10),
            moment(80.0, [3.0, 3.0], 20),
        ];
        let numbers = [
            "first, before",
            "second, before",
            "first, after",
            "second, after",
            "moves",
        ];
        let numbers = numbers.map(|column| number(&moments, column).unwrap());
        assert_eq!(numbers, [6.5, 0.0, 3.5, 3.0, 500.0]);
        assert_eq!(number(&moments[..1], "second, after"), Ok(0.0));
        let text = "0.0 + 6.5 MB from 20 ms on, 3.0 + 3.5 MB from 40 ms on";
        assert_eq!(over_time(&moments[..2]), text);
        assert!(number(&[], "moves").is_err());
    }
}
