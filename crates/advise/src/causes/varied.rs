//! How much a gain depends on unknown conditions: the frames that the system gives, what neighbours leave of the last
//! cache, the speed of memory.

use machine::Machine;
use rayon::prelude::*;
use results::{ProgramChange, Time};
use sim::Config;
use trace::Trace;

use super::gains::side_by_side;
use crate::faults;
use crate::settings::Settings;
use crate::words::saved;

/// How many changes are varied: as many as an advice prints.
const MOST: usize = 3;
/// Measured or published, memory is assumed this many times as slow or as fast.
const MEMORY: f64 = 1.25;

/// The least and the most that changes save.
pub type Varied = Vec<(Vec<ProgramChange>, [f64; 2])>;

/// The least and the most that each of the best changes saves with slightly different frames and machine, including the
/// gain itself.
///
/// `gains`: what changes gain, of any order. Three variations: other frames; half of the last cache, and slower memory; faster memory.
pub fn varied(trace: &Trace, settings: &Settings, config: &Config, gains: &[(Vec<ProgramChange>, f64)]) -> Varied {
    let mut best: Vec<&(Vec<ProgramChange>, f64)> = gains.iter().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    best.truncate(MOST);
    // Without a core, times only compare placements.
    if best.is_empty() || config.machine.core.is_none() {
        return Vec::new();
    }
    // A slightly smaller machine may have no room for the program: then this shows nothing.
    let time = |config: &Config, changes: &[ProgramChange]| -> Option<Time> {
        let config = Config {
            changes: changes.to_vec(),
            ..config.clone()
        };
        let runs = settings.simulate(trace, &config).ok()?;
        runs.first().map(|run| run.outcome.time_ns)
    };
    let runs: Vec<(Config, &[ProgramChange])> = variations(config)
        .into_iter()
        .flat_map(|config| {
            let changed = best.iter().map(|(changes, _)| &changes[..]);
            let all: Vec<_> = std::iter::once(&[][..]).chain(changed).collect();
            all.into_iter().map(move |changes| (config.clone(), changes))
        })
        .collect();
    let times: Vec<Option<Time>> = side_by_side(|| {
        (runs.par_iter())
            .map(|(config, changes)| time(config, changes))
            .collect()
    });
    let mut found: Varied = best
        .iter()
        .map(|(changes, gain)| (changes.clone(), [*gain; 2]))
        .collect();
    for of_one in times.chunks(best.len() + 1) {
        let (base, changed) = of_one.split_at(1);
        for ((changes, [least, most]), time) in found.iter_mut().zip(changed) {
            let Some((base, time)) = base[0].as_ref().zip(time.as_ref()) else {
                continue;
            };
            let gain = saved(base.wall, faults::wall_of(time, base, changes));
            (*least, *most) = (least.min(gain), most.max(gain));
        }
    }
    found
}

fn variations(config: &Config) -> Vec<Config> {
    let on = |machine: Machine| Config {
        machine,
        ..config.clone()
    };
    let mut all = vec![Config {
        seed: config.seed.wrapping_add(1),
        ..config.clone()
    }];
    let machines = [slower(&config.machine), faster(&config.machine)];
    all.extend(machines.into_iter().filter(|machine| machine.check().is_ok()).map(on));
    all
}

fn slower(machine: &Machine) -> Machine {
    let mut machine = memory(machine, MEMORY);
    if let Some(last) = machine.caches.iter_mut().max_by_key(|cache| cache.level)
        && last.level > 1
        && last.ways > 1
    {
        let ways = last.ways / 2;
        last.bytes = last.bytes / u64::from(last.ways) * u64::from(ways);
        last.ways = ways;
    }
    machine
}

fn faster(machine: &Machine) -> Machine {
    memory(machine, 1.0 / MEMORY)
}

fn memory(machine: &Machine, times: f64) -> Machine {
    let mut machine = machine.clone();
    let memory = &mut machine.memory;
    memory.local_ns *= times;
    memory.remote_ns *= times;
    memory.dirty_remote_ns *= times;
    memory.bandwidth_gbps /= times;
    for tier in &mut memory.tiers {
        tier.latency_ns *= times;
        tier.far_latency_ns *= times;
        tier.bandwidth_gbps /= times;
    }
    if let Some(core) = &mut machine.core {
        core.memory_line_ns *= times;
        core.huge_memory_line_ns *= times;
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variations_are_machines() {
        for preset in machine::presets() {
            let name = preset.name;
            let machine = machine::load(name).unwrap();
            let config = Config::new(machine.clone(), Vec::new());
            let all = variations(&config);
            assert!(all.len() >= 2, "{name}");
            assert!(all[0].seed != config.seed && all[0].machine == machine);
            assert!(
                all[1..]
                    .iter()
                    .all(|one| one.machine != machine && one.seed == config.seed)
            );
        }
    }

    #[test]
    fn half_of_the_last_cache_is_left() {
        let machine = machine::load("zen3-milan").unwrap();
        let (before, after) = (machine.outermost().unwrap(), slower(&machine));
        let after = after.outermost().unwrap();
        assert_eq!((after.bytes, after.ways), (before.bytes / 2, before.ways / 2));
    }
}
