//! The clock that a cpu really runs at, and the instructions that it carries out in one clock.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use sys::clock::thread_time;

use super::{Effort, rounds};

/// How fast a cpu is while it waits for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    pub clock_mhz: f64,
    /// Instructions a clock of short loops as compilers make them, which wait for nothing; none where this processor's are not known.
    pub instructions_per_clock: Option<f64>,
}

const STEPS: u64 = 2_000_000;

pub fn pace(effort: Effort) -> Pace {
    let mut chains = Vec::new();
    let mut loops = Vec::new();
    let mut value = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..rounds(effort) {
        let begin = thread_time();
        value = chain(value, STEPS);
        chains.push((thread_time() - begin).as_secs_f64());
        loops.extend(instructions());
    }
    black_box(value);
    // Whatever else the machine does only slows them.
    let hz = (STEPS * CLOCKS_A_STEP) as f64 / chains.into_iter().fold(f64::INFINITY, f64::min);
    let most = loops.into_iter().max_by(f64::total_cmp);
    Pace {
        clock_mhz: hz / 1e6,
        instructions_per_clock: most.map(|most| most / hz),
    }
}

/// Clocks that a step of [`chain`] takes: three operations of one clock each that wait for each other, on all
/// processors of the last twenty years (Agner Fog, "Instruction tables").
const CLOCKS_A_STEP: u64 = 3;

fn chain(mut value: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        value = (value >> 1).wrapping_add(value) ^ 0x55;
    }
    value
}

/// Instructions in a second.
#[cfg(target_arch = "x86_64")]
fn instructions() -> Option<f64> {
    const ROUNDS: u64 = 2000;
    let begin = thread_time();
    let done = sys::instructions::short_loops(ROUNDS);
    let taken = (thread_time() - begin).as_secs_f64();
    Some(done as f64 / taken)
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Option<f64> {
    None
}
