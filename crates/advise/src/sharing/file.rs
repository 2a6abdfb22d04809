//! The placements of an advice in the form that `domicile run --placement` reads.

use results::{Placement, PlacementThread, PlacementWay, SharingAdvice, ThreadPlacement};

use super::IN_ORDER;
use super::forms::kept;

/// All simulated placements. `arguments`: the program's, in the recorded run. `numbers`: Linux's numbers of the
/// machine's cpus, if known. Error: why there is no such file, and what to do.
pub fn placement(
    advice: &SharingAdvice,
    arguments: &[String],
    machine: &str,
    numbers: Option<&[u32]>,
) -> Result<Placement, String> {
    let threads = &advice.graph.threads;
    let first = threads.first().ok_or("no thread was looked at")?;
    if advice.graph.left_out > 0 {
        return Err(format!(
            "{} threads were not looked at, and a placement would say nothing of them",
            advice.graph.left_out
        ));
    }
    if threads.iter().any(|thread| thread.process != first.process) {
        return Err(
            "the trace is of several processes, and `domicile run` starts one; write it as taskset, cpuset or systemd"
                .to_string(),
        );
    }
    let width = advice.cpus_per_cache.max(1);
    let number = |cpu: u32| {
        numbers
            .and_then(|numbers| numbers.get(cpu as usize).copied())
            .unwrap_or(cpu)
    };
    let under = |cpu: &u32| {
        let first = cpu / width * width;
        let mut cpus: Vec<u32> = (first..first + width).map(number).collect();
        cpus.sort_unstable();
        cpus
    };
    // If two ways are equal, one is enough: others are compared with the order of the simulation.
    let in_order = advice.placement(IN_ORDER).map(|way| &way.cpus);
    let is_other = |at: usize, way: &ThreadPlacement| {
        let before = &advice.placements[..at];
        way.name == IN_ORDER || Some(&way.cpus) != in_order && before.iter().all(|other| other.cpus != way.cpus)
    };
    let ways = advice.placements.iter().enumerate();
    let ways = ways
        .filter(|(at, way)| is_other(*at, way))
        .map(|(_, way)| PlacementWay {
            name: way.name.clone(),
            predicted_ns: way.wall_ns,
            cpus: way.cpus.iter().map(under).collect(),
        });
    Ok(Placement {
        program: first.program.clone(),
        arguments: Some(arguments.to_vec()),
        machine: machine.to_string(),
        cache: advice.cache.clone(),
        threads: threads
            .iter()
            .map(|thread| PlacementThread {
                name: kept(&thread.name).to_string(),
            })
            .collect(),
        ways: ways.collect(),
    })
}
