//! Section 5.1: the cost of the mechanism.

use sim::calibrate::{Memlat, Walk};
use sim::{Config, Item as Reference, Streams};

use super::{read, spec};
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::region_items::Regions;
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;
use machine::Machine;

/// One recording's numbers, in percent of the time of a thread that stays, except for `move_us`.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Taken {
    /// The time of a move by the machine's description.
    move_us: f64,
    /// A thousand moves a second: by the time of a move, and by the run's slowdown, which includes cold inner caches.
    thousand: f64,
    thousand_in_all: f64,
    /// 700 moves a second, each of which changes the entries of both regions' pages.
    without_tables: f64,
    /// Ten scans and a phase a second.
    looks_and_phase: f64,
}

impl Taken {
    fn number(&self, column: &str) -> Result<f64, String> {
        match column {
            "a move" => Ok(self.move_us),
            "1000 moves" => Ok(self.thousand),
            "1000 moves, cold caches too" => Ok(self.thousand_in_all),
            "700 moves without tables" => Ok(self.without_tables),
            "10 looks and a phase" => Ok(self.looks_and_phase),
            "all" => Ok(self.thousand + self.looks_and_phase),
            other => Err(format!("`{other}` is not counted")),
        }
    }
}

/// A phase is 1 percent of this time, a twentieth of the paper's second: the cost of scans and phases does not depend
/// on the time between them.
const PERIOD_US: u64 = 50_000;

impl Reproduction<'_> {
    pub(super) fn mechanism(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let mut rows = Vec::new();
        for variant in &regions.machines {
            let machine = machine::load(&variant.preset)?;
            let bytes = variant.sizes_kb.first().copied().unwrap_or(1024) << 10;
            let mut all = Vec::new();
            for recording in 0..self.recordings() {
                all.push(self.taken(&machine, bytes, recording)?);
            }
            rows.push((variant.name.clone(), all));
        }
        let several = |row: &str, column: &str| {
            let all = rows.iter().find(|(name, _)| name == row);
            let all = all.map_or(&[][..], |(_, all)| all);
            Several(all.iter().map(|taken| taken.number(column)).collect())
        };
        for (name, _) in &rows {
            self.several(item, name, section, |column| {
                let unit = if column == "a move" { "us" } else { "percent" };
                (unit, several(name, column))
            });
        }
        section.notes.push(
            "what a move takes is the paper's and no result of ours: the machines' descriptions have it. An entry of a page table takes 20 ns, an \
             access bit 10, a change of tables 500, which are ours (`regions.entry`, `read`, `flush`); all else follows"
                .to_string(),
        );
        section.notes.push(format!(
            "two regions that fit into one cache together; looks and phases from a run of policy `regions` that is made to spread them \
             (`one-cache=1`), a twentieth of a second apart, and put down to a second: a phase is half a millisecond there, 10 in the paper, in which more is touched; {}",
            self.recordings_in_words()
        ));
        Ok(())
    }

    fn taken(&self, machine: &Machine, bytes: u64, recording: u64) -> Result<Taken, ReproduceError> {
        let switch_ns = machine.regions.map_or(0.0, |regions| regions.switch_ns);
        let memlat = |stay| Memlat {
            walk: Walk::Random,
            bytes,
            stay,
            recording,
        };
        // The time of a read, and from that the reads in a millisecond.
        let read_ns = self.point(machine, &memlat(1 << 14))?.confined_ns / f64::from(1 << 14);
        let longer = |machine: &Machine, moves: f64| -> Result<f64, ReproduceError> {
            let stay = (1e9 / moves / read_ns).round().max(1.0) as u64;
            let point = self.point(machine, &memlat(stay))?;
            Ok((point.followed_ns / point.confined_ns - 1.0) * 100.0)
        };
        let entries = 2.0 * bytes as f64 / machine.page_bytes as f64 * 2.0;
        let mut without = machine.clone();
        if let Some(regions) = &mut without.regions {
            regions.switch_ns += entries * ENTRY_NS;
        }
        let spent_ns = self.kept(&format!("mechanism {bytes} {recording}\n{}", machine.to_toml()), || {
            looks_and_phase_ns(machine, bytes, recording)
        })?;
        Ok(Taken {
            move_us: switch_ns / 1e3,
            thousand: switch_ns * 1000.0 / 1e9 * 100.0,
            thousand_in_all: longer(machine, 1000.0)?,
            without_tables: longer(&without, 700.0)?,
            looks_and_phase: spent_ns / 1e9 * 100.0,
        })
    }
}

/// As the default of `regions.entry`.
const ENTRY_NS: f64 = 20.0;

/// The time of ten scans and a phase: the mean of each, in a run that is forced to spread the regions.
fn looks_and_phase_ns(machine: &Machine, bytes: u64, recording: u64) -> Result<f64, ReproduceError> {
    let set = [
        format!("period={PERIOD_US}"),
        format!("scan={}", PERIOD_US / 10),
        "share=10".to_string(),
        "eager=0".to_string(),
        "one-cache=1".to_string(),
    ];
    let config = Config {
        classes: false,
        ..Config::new(machine.clone(), vec![spec("regions", &set)?])
    };
    // More than two periods at 10 ns a read, the fastest.
    let streams = Streams::new(vec![reads(bytes, 1 << 14, PERIOD_US * 1000 / 4, recording)]);
    let failed = |source| ReproduceError::Simulate {
        line: "memlat".to_string(),
        source,
    };
    let runs = sim::simulate_refs(&streams, &config).map_err(failed)?;
    let run = runs.into_iter().next();
    let outcome = run.map(|run| run.outcome).unwrap_or_default();
    let regions = outcome.regions.unwrap_or_default();
    if regions.phases == 0 {
        return Err(ReproduceError::Host(format!(
            "no regioning phase in {} ns",
            outcome.time_ns.wall
        )));
    }
    let looks = outcome.time_ns.wall / (PERIOD_US * 100);
    let look_ns = regions.spent.scanning_ns as f64 / looks.max(1) as f64;
    let phase_ns = (regions.spent.regioning_ns + regions.spent.tables_ns) as f64 / regions.phases.max(1) as f64;
    Ok(10.0 * look_ns + phase_ns)
}

/// Two regions of this many bytes, read at random, `stay` reads in each in turn.
fn reads(bytes: u64, stay: u64, count: u64, recording: u64) -> Vec<Reference> {
    let mut state = 88172645463325252 ^ recording.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let line = |at: u64| {
        let region = at / stay % 2;
        ((region + 1) << 32) + below(bytes / 64) * 64
    };
    (0..count).map(line).map(|addr| read(addr, 3)).collect()
}
