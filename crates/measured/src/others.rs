//! What others bring into a last level that this process shares with them: programs in other virtual machines, or beside this one.
//!
//! A shared cache has no size that is one's own. Others bring lines in all the time, and what is not used for a while makes room for
//! them. So a working set is brought in, nothing is done for some time, and then the loads that find nothing any more are counted by their time.
//! The larger the working set, the sooner half of it is gone: after `(bytes - working set) / rate`, where lines leave in the
//! order of their last use. That is a line through several working sets. Its ends are the bytes that all have together and the rate of the others.

use std::hint::black_box;
use std::iter;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Effort;
use crate::chase::{Lines, Random, link, shuffled_pages, walk};
use crate::processor::{median, rounds};

/// What others do to the last level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Bytes that they and this process have together.
    pub bytes: u64,
    /// Gigabytes (10^9 bytes) a second that they bring in.
    pub gbps: f64,
    /// Nanoseconds a load that it serves: of what was brought in just before. A walk that is slow itself finds some of its lines gone.
    pub ns: f64,
}

/// The largest working set that is brought in.
const SET_MAX: u64 = 128 << 20;

/// Nothing is done for so long. What is kept longer than the last of these is lost to nobody.
const WAITS_MS: [f64; 8] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Loads that look at what is left: few beside the working set, so that they take no time in which more is lost.
const LOADS: u64 = 2000;

/// A working set of which so much was lost need not be looked at after a longer wait.
const ENOUGH: f64 = 0.8;

/// `private`: bytes that the levels before hold; `largest`: those that the last level is said to have. `outside_ns`: a load that memory
/// serves, of every other line. None where nothing is lost while this process waits, where there is no such level, and where even twice
/// `private` is lost as fast as it comes in, so that nobody can tell what the level serves.
///
/// Working sets double from twice `private` on, until one is lost as fast as it comes in: this process never has that much.
pub fn others(private: u64, largest: u64, page_bytes: u64, outside_ns: f64, effort: Effort) -> Option<Others> {
    if largest < 8 * private {
        return None;
    }
    let mut random = Random(0x9fb2_1c65_1e98_df25);
    let sets = iter::successors(Some(2 * private), |bytes| Some(2 * bytes));
    let (mut kept, mut least_lost) = (Vec::new(), largest);
    // A working set as large as the level before still has a part of itself there: the least of the larger ones counts.
    let (mut smallest_ns, mut ns) = (outside_ns, outside_ns);
    for bytes in sets.take_while(|&bytes| bytes <= (largest / 2).min(SET_MAX)) {
        let set = WorkingSet::new(bytes, page_bytes, &mut random);
        let mut lost = Vec::new();
        let mut inside_ns = outside_ns;
        for wait_ms in WAITS_MS {
            let taken = median((0..rounds(effort)).map(|_| set.left(wait_ms, &mut random)).collect());
            if wait_ms == 0.0 {
                match kept.len() {
                    0 => (smallest_ns, inside_ns) = (taken, taken),
                    // Nearer to memory than to the smallest: there is nothing inside to compare with.
                    1 if taken > f64::midpoint(smallest_ns, outside_ns) => inside_ns = smallest_ns,
                    _ => (ns, inside_ns) = (ns.min(taken), ns.min(taken)),
                }
            }
            let part = (taken - inside_ns) / (outside_ns - inside_ns).max(0.1);
            lost.push((wait_ms * 1e6, part.clamp(0.0, 1.0)));
            if part > ENOUGH {
                break;
            }
        }
        let after = half_lost(&lost);
        if after == Some(0.0) {
            least_lost = bytes;
            break;
        }
        kept.push((bytes, after));
    }
    let ns = if kept.len() > 1 { ns } else { smallest_ns };
    if outside_ns < 2.0 * ns {
        return None;
    }
    let (bytes, gbps) = fitting(&kept, least_lost)?;
    Some(Others { bytes, gbps, ns })
}

/// Memory that is brought in as a whole. Every other line is looked at, since processors bring the other line of a pair along.
struct WorkingSet {
    room: Vec<u32>,
    all: Vec<u32>,
    looked_at: Vec<u32>,
}

impl WorkingSet {
    fn new(bytes: u64, page_bytes: u64, random: &mut Random) -> WorkingSet {
        let mut room = Lines::All.room(bytes);
        let all = shuffled_pages(Lines::All, bytes, page_bytes, random);
        let looked_at = shuffled_pages(Lines::Apart, bytes / 2, page_bytes, random);
        link(&mut room, &looked_at);
        WorkingSet { room, all, looked_at }
    }

    /// Nanoseconds of a load after the working set was brought in and a wait.
    fn left(&self, wait_ms: f64, random: &mut Random) -> f64 {
        // Loads that do not wait for each other bring it in before others take much of it away.
        for _ in 0..2 {
            let read = self.all.iter().map(|&index| self.room[index as usize]);
            black_box(read.fold(0, u32::wrapping_add));
        }
        let until = Instant::now() + Duration::from_secs_f64(wait_ms / 1e3);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let from = self.looked_at[random.below(self.looked_at.len() as u64) as usize];
        let begin = Instant::now();
        black_box(walk(&self.room, from, LOADS));
        begin.elapsed().as_secs_f64() * 1e9 / LOADS as f64
    }
}

/// When half of it was lost, in nanoseconds, between two waits; none where it was not.
fn half_lost(lost: &[(f64, f64)]) -> Option<f64> {
    let at = lost.iter().position(|&(_, part)| part >= 0.5)?;
    let (to_ns, to) = lost[at];
    let Some(&(from_ns, from)) = at.checked_sub(1).and_then(|before| lost.get(before)) else {
        return Some(to_ns);
    };
    Some(from_ns + (to_ns - from_ns) * (0.5 - from) / (to - from))
}

/// The bytes and the rate that fit working sets and the times after which half of each was lost. The bytes are more than
/// what was kept, and `most` at the most; of two that fit as well the larger.
fn fitting(kept: &[(u64, Option<f64>)], most: u64) -> Option<(u64, f64)> {
    let most_kept = kept.iter().map(|(bytes, _)| *bytes).max()?;
    let lost: Vec<(u64, f64)> = kept
        .iter()
        .filter_map(|&(bytes, after)| Some((bytes, after?)))
        .collect();
    if lost.is_empty() {
        return None;
    }
    let smaller = |bytes: &f64| Some(bytes / STEP).filter(|&bytes| bytes > most_kept as f64);
    let candidates = iter::successors(Some(most.max(most_kept + 1) as f64), smaller);
    let fitted = candidates.map(|bytes| {
        let left = |set: u64| bytes - set as f64;
        let gbps = median(lost.iter().map(|&(set, ns)| left(set) / ns).collect());
        let misfit: f64 = lost.iter().map(|&(set, ns)| (left(set) / gbps / ns).ln().abs()).sum();
        ((bytes as u64, gbps), misfit)
    });
    let better = |one: ((u64, f64), f64), other: ((u64, f64), f64)| if other.1 + SAME < one.1 { other } else { one };
    fitted.reduce(better).map(|(found, _)| found)
}

/// Misfits no further apart are rounding.
const SAME: f64 = 1e-9;

/// From one size that is tried to the next.
const STEP: f64 = 1.0905;

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn half_is_lost_between_two_waits() {
        assert_eq!(half_lost(&[(0.0, 0.0), (1e6, 0.1), (2e6, 0.9)]), Some(1.5e6));
        assert_eq!(half_lost(&[(0.0, 0.7)]), Some(0.0));
        assert_eq!(half_lost(&[(0.0, 0.0), (64e6, 0.2)]), None);
    }

    #[test]
    fn bytes_and_rate_are_those_of_the_times() {
        for (bytes, gbps) in [(32 * M, 2.5), (24 * M, 1.0), (16 * M, 10.0)] {
            let kept = [2, 4, 8, 12].map(|set| (set * M, Some((bytes - set * M) as f64 / gbps)));
            let found = fitting(&kept, 32 * M).unwrap();
            assert!((found.0 as f64 / bytes as f64).ln().abs() < 0.05, "{found:?}");
            assert!((found.1 / gbps).ln().abs() < 0.1, "{found:?}");
        }
        // A set that is kept for good has its place, however soon the others are lost.
        let of_5 = [2 * M, 4 * M].map(|set| (set, Some((5 * M - set) as f64)));
        assert!(fitting(&of_5, 8 * M).unwrap().0 < 6 * M);
        let kept = [of_5[0], of_5[1], (6 * M, None)];
        let found = fitting(&kept, 8 * M).unwrap().0;
        assert!((6 * M..13 * M / 2).contains(&found), "{found}");
        // A single time tells nothing of the bytes: the most that may be.
        let (bytes, gbps) = fitting(&[(2 * M, Some(6e6))], 8 * M).unwrap();
        assert_eq!((bytes, gbps), (8 * M, (6 * M) as f64 / 6e6));
        // Nobody else is there.
        assert_eq!(fitting(&[(2 * M, None), (4 * M, None)], 32 * M), None);
        assert_eq!(fitting(&[], 32 * M), None);
    }

    #[test]
    fn this_machine_is_looked_at() {
        let others = others(512 << 10, 16 * M, 4096, 100.0, Effort::Quick);
        assert!(
            others.is_none_or(|others| others.gbps > 0.0 && others.bytes <= 16 * M),
            "{others:?}"
        );
        assert_eq!(super::others(512 << 10, 2 * M, 4096, 100.0, Effort::Quick), None);
    }
}
