//! Chains of loads: within a chain each load waits for the one before, and chains wait for nothing of each other.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use sys::arrays::Array;
use sys::clock::thread_time;

use super::{Effort, least, rounds};
use crate::CoreShare;
use crate::chase::{self, Lines, Random, link};

/// The time of a load while this many chains are followed at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chains {
    pub chains: u32,
    /// Nanoseconds a load, of all chains together.
    pub ns: f64,
}

/// More than any last-level cache gives one process, and little enough to be set up in a second.
pub(super) const BYTES: u64 = 96 << 20;

/// Most chains that are followed at once: more than any cpu has lines on their way.
const MOST: usize = 32;

/// Loads of one chain in one trial. Chains take turns, so that in all rounds of all trials none reaches the start of
/// the next one.
const LOADS: u64 = 600;

/// An area in which each place of a ring leads to the next.
pub(super) struct Room {
    pub places: Array<u32>,
    ring: Vec<u32>,
}

impl Room {
    /// So many bytes of such lines.
    pub fn of(lines: Lines, bytes: u64) -> Room {
        let mut random = Random(0x5851_f42d_4c95_7f2d);
        let mut room = chase::Room::of(lines, bytes);
        let ring = room.order_of_several(lines, bytes, 4096, &mut random);
        link(&mut room.places, &ring);
        Room {
            places: room.places,
            ring,
        }
    }

    /// Places far from each other on the ring.
    pub fn apart<const N: usize>(&self) -> [u32; N] {
        let apart = self.ring.len() / N;
        std::array::from_fn(|chain| self.ring[chain * apart])
    }
}

pub(super) fn chains(room: &Room, core: &mut CoreShare, effort: Effort) -> Vec<Chains> {
    let _here = sys::affinity::pin_here();
    // Each trial goes on where the last one ended, so that it meets lines that have not been used.
    let mut at: [u32; MOST] = room.apart();
    let trials: [(u32, Walk); 10] = [
        (1, walk::<1>),
        (2, walk::<2>),
        (3, walk::<3>),
        (4, walk::<4>),
        (6, walk::<6>),
        (8, walk::<8>),
        (12, walk::<12>),
        (16, walk::<16>),
        (24, walk::<24>),
        (32, walk::<32>),
    ];
    let mut seen = vec![Vec::new(); trials.len()];
    for _ in 0..rounds(effort) {
        for ((count, walk), seen) in trials.iter().zip(&mut seen) {
            core.wait_here();
            let begin = thread_time();
            walk(&room.places, &mut at, LOADS);
            let taken = thread_time() - begin;
            seen.push(taken.as_secs_f64() * 1e9 / (LOADS * u64::from(*count)) as f64);
            at.rotate_left(*count as usize % MOST);
        }
    }
    black_box(at);
    let of = |((chains, _), seen): (&(u32, Walk), Vec<f64>)| Chains {
        chains: *chains,
        ns: least(seen),
    };
    trials.iter().zip(seen).map(of).collect()
}

type Walk = fn(&[u32], &mut [u32; MOST], u64);

/// Follows the first `N` chains side by side.
fn walk<const N: usize>(room: &[u32], all: &mut [u32; MOST], loads: u64) {
    let mut at: [u32; N] = std::array::from_fn(|chain| all[chain]);
    for _ in 0..loads {
        for chain in &mut at {
            *chain = room[*chain as usize];
        }
    }
    all[..N].copy_from_slice(&at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_followed_apart() {
        let mut room = vec![0u32; 64];
        link(&mut room, &[0, 10, 20, 30]);
        let mut at = [0; MOST];
        (at[1], at[2]) = (20, 30);
        walk::<2>(&room, &mut at, 1);
        assert_eq!(at[..3], [10, 30, 30], "the third was not followed");
    }
}
