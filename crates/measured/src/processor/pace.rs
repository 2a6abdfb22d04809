//! The real clock of a cpu, the instructions that it carries out in one clock, and the cost of a mispredicted branch.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use sys::clock::thread_time;

use super::{Effort, median, rounds};
use crate::CoreShare;
use crate::chase::Random;

/// The speed of a cpu while it waits for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    pub clock_mhz: f64,
    /// Instructions a clock of straight code that waits for nothing; none if this processor's are not known. Short
    /// loops do less: a recording gives the clocks of each.
    pub instructions_per_clock: Option<f64>,
    /// A mispredicted branch, on data in the first cache; 0 if there was none.
    #[serde(default)]
    pub misprediction_ns: f64,
}

const STEPS: u64 = 2_000_000;

pub fn pace(core: &mut CoreShare, effort: Effort) -> Pace {
    let _here = sys::affinity::pin_here();
    let mut chains = Vec::new();
    let mut loops = Vec::new();
    let mut mispredictions = Vec::new();
    let mut value = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..rounds(effort) {
        core.wait_here();
        let begin = thread_time();
        value = chain(value, STEPS);
        chains.push((thread_time() - begin).as_secs_f64());
        loops.extend(instructions());
        mispredictions.push(misprediction_ns());
    }
    black_box(value);
    // Any other work of the machine only slows them.
    let hz = (STEPS * CLOCKS_A_STEP) as f64 / chains.into_iter().fold(f64::INFINITY, f64::min);
    let most = loops.into_iter().max_by(f64::total_cmp);
    Pace {
        clock_mhz: hz / 1e6,
        instructions_per_clock: most.map(|most| most / hz),
        misprediction_ns: median(mispredictions).max(0.0),
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

/// Half of the branches on random bits are mispredicted, and none of those on bits that are all the same.
fn misprediction_ns() -> f64 {
    const BRANCHES: usize = 8 << 10;
    const PASSES: u64 = 32;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut bits = vec![0u8; BRANCHES];
    let (mut certain, mut by_chance) = (0.0, 0.0);
    for _ in 0..PASSES {
        // Either way, half of the time.
        bits.fill(0);
        certain += branches(&bits) / 2.0;
        bits.fill(1);
        certain += branches(&bits) / 2.0;
        // New ones each time, so that none is remembered.
        for bit in &mut bits {
            *bit = random.below(2) as u8;
        }
        by_chance += branches(&bits);
    }
    (by_chance - certain) * 1e9 / (PASSES as f64 * BRANCHES as f64 / 2.0)
}

/// Seconds for a branch on each of these.
#[inline(never)]
fn branches(bits: &[u8]) -> f64 {
    let begin = thread_time();
    for bit in bits {
        // No compiler can merge these two ways.
        if *bit != 0 {
            black_box(1u64);
        } else {
            black_box(2u64);
            black_box(3u64);
        }
    }
    (thread_time() - begin).as_secs_f64()
}

/// Instructions in a second.
#[cfg(target_arch = "x86_64")]
fn instructions() -> Option<f64> {
    const ROUNDS: u64 = 100_000;
    let begin = thread_time();
    let done = sys::instructions::straight_code(ROUNDS);
    let taken = (thread_time() - begin).as_secs_f64();
    Some(done as f64 / taken)
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Option<f64> {
    None
}
