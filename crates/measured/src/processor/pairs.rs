//! Pairs of lines: a load from memory may bring the other line of its 128 bytes, too.
//!
//! Two lines side by side are read one after the other, the one further on first, and then two others anywhere else. If
//! the other line of a pair is brought along, the second load finds it in a near cache. Lines of two pairs that lie
//! side by side are the control: a processor that brings the line before, regardless of its pair, reads them as fast.

use serde::{Deserialize, Serialize};
use sys::clock::thread_time;

use super::{Effort, median, rounds};
use crate::CoreShare;
use crate::chase::{Lines, Random, Room, link, walk};

/// Nanoseconds of the second load of two lines side by side, and of a line anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// Both are of one pair of 128 bytes.
    pub within_ns: f64,
    /// They are of two.
    pub across_ns: f64,
    pub alone_ns: f64,
}

impl Pairs {
    /// True if the other line of a pair is brought along into a near cache, and a line of another pair is not.
    ///
    /// Memory itself answers sooner where the line beside was just read: a Granite Rapids in a guest takes 160 ns for a line alone, and
    /// 60 to 90 for the second of either two lines. A near cache takes a small part of a load from memory.
    pub fn brought(&self) -> bool {
        self.within_ns < self.alone_ns / 4.0 && self.across_ns > 2.0 * self.within_ns
    }
}

/// Half of the lines are read: more than the last level gives one process.
const BYTES: u64 = 256 << 20;
/// Loads of one trial.
const LOADS: u64 = 20_000;
/// Indices in a line.
const LINE: u32 = 16;

pub fn pairs(core: &mut CoreShare, effort: Effort) -> Pairs {
    let _here = sys::affinity::pin_here();
    let mut random = Random(0x6a09_e667_f3bc_c909);
    let mut room = Room::of(Lines::All, BYTES);
    // Two lines of each four.
    let fours: Vec<u32> = (0..(BYTES / 64 / 4) as u32).map(|four| four * 4 * LINE).collect();
    let mut alone: Vec<u32> = fours.iter().flat_map(|four| [*four, four + 2 * LINE]).collect();
    random.shuffle(&mut alone);
    let mut side_by_side = |first: u32, second: u32| {
        let mut fours = fours.clone();
        random.shuffle(&mut fours);
        let both = fours
            .into_iter()
            .flat_map(|four| [four + first * LINE, four + second * LINE]);
        both.collect()
    };
    let mut rings: [(Vec<u32>, Vec<f64>); 3] =
        [alone, side_by_side(1, 0), side_by_side(2, 1)].map(|ring| (ring, Vec::new()));
    for _ in 0..rounds(effort) {
        for (ring, seen) in &mut rings {
            core.wait_here();
            link(&mut room.places, ring);
            let from = ring[(random.below(ring.len() as u64 / 2) * 2) as usize];
            let begin = thread_time();
            std::hint::black_box(walk(&room.places, from, LOADS));
            seen.push((thread_time() - begin).as_secs_f64() * 1e9 / LOADS as f64);
        }
    }
    let [alone_ns, within, across] = rings.map(|(_, seen)| median(seen));
    // Of two loads the first takes as long as one alone.
    let second = |of_both: f64| (2.0 * of_both - alone_ns).max(0.0);
    Pairs {
        within_ns: second(within),
        across_ns: second(across),
        alone_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_brought_where_its_second_line_alone_is_near() {
        let of = |within_ns, across_ns| Pairs {
            within_ns,
            across_ns,
            alone_ns: 160.0,
        };
        assert!(of(20.0, 150.0).brought());
        assert!(!of(70.0, 150.0).brought(), "memory was sooner");
        assert!(!of(20.0, 25.0).brought(), "whatever lies before is brought");
        assert!(!Pairs::default().brought());
    }

    #[test]
    fn this_machine_is_measured() {
        let pairs = pairs(&mut CoreShare::new(), Effort::Quick);
        assert!(pairs.alone_ns > 0.0, "{pairs:?}");
    }
}
