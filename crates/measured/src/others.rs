//! What others bring into a last level that this process shares with them: programs in other virtual machines, or
//! beside this one.
//!
//! A shared cache has no size that is one's own. Others bring lines in all the time, and what is not used for a while
//! makes room for them. So a working set is brought in, nothing is done for some time, and then the loads that find
//! nothing any more are counted by their time.
//!
//! One pass does not bring it in. Last levels of today favor lines that are used again (set dueling: Qureshi and
//! others 2007; RRIP: Jaleel and others 2010). On a Granite Rapids four of five lines that were read once are gone at
//! once, and lines that were read twice stay for 14 ms, thrice for 27. Of 64 MB read in turn nothing is kept for four
//! passes, and all of it after ten. So passes are made until they get no shorter.
//!
//! The larger the working set, the sooner half of it is gone. Where lines leave in the order of their last use, the
//! line in its middle leaves once half of the working set and what others brought since are as much as all have
//! together. This process comes to the second half for as long as that takes, and then waits. With the `coming` time:
//! `bytes = set / 2 + rate * (coming / 2 + wait)`. Several working sets give the bytes and the rate.

use std::hint::black_box;
use std::iter;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Effort;
use crate::chase::{Lines, Random, Room, link, walk};
use crate::rounds::{median, rounds};

/// What others do to the last level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Bytes that they and this process have together.
    pub bytes: u64,
    /// Gigabytes (10^9 bytes) a second that they bring in.
    pub gbps: f64,
    /// Nanoseconds a load that it serves: of what was brought in just before. A walk that is slow itself finds some of
    /// its lines gone.
    pub ns: f64,
    /// Part of the lines that it still has after one read, once they were driven out of the levels before.
    pub kept_once: f64,
}

/// The largest working set that is brought in.
const SET_MAX: u64 = 128 << 20;

/// Nothing is done for so long. What is kept longer than the last of these is lost to nobody.
const WAITS_MS: [f64; 8] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Loads that look at what is left: few beside the working set, so that they take no time in which more is lost.
const LOADS: u64 = 2000;

/// Passes that bring a working set in, at most.
const PASSES_MAX: usize = 24;

/// A pass is shorter if it takes less than this part of the shortest before it.
const SHORTER: f64 = 0.97;

/// After so many passes that are no shorter the working set is in. The first few may all find nothing.
const PASSES_NO_SHORTER: usize = 5;

/// A working set of which so much was lost need not be looked at after a longer wait.
const ENOUGH: f64 = 0.8;

/// `private`: bytes that the levels before hold; `largest`: those that the last level is said to have. `outside_ns`: a
/// load that memory serves, of every other line. None where nothing is lost while this process waits, where there is
/// no such level, and where even twice `private` is lost as fast as it comes in, so that nobody can tell what the
/// level serves.
///
/// Working sets double from twice `private` on, until one is lost as fast as it comes in: this process never has that
/// much.
pub fn others(private: u64, largest: u64, page_bytes: u64, outside_ns: f64, effort: Effort) -> Option<Others> {
    if largest < 8 * private {
        return None;
    }
    let mut random = Random(0x9fb2_1c65_1e98_df25);
    let sets = iter::successors(Some(2 * private), |bytes| Some(2 * bytes));
    let (mut kept, mut lost_at_once) = (Vec::new(), None);
    // A working set as large as the level before still has a part of itself there: the least of the larger ones counts.
    let (mut smallest_ns, mut ns) = (outside_ns, outside_ns);
    for bytes in sets.take_while(|&bytes| bytes <= (largest / 2).min(SET_MAX)) {
        let set = WorkingSet::new(bytes, page_bytes, &mut random);
        let (mut lost, mut coming) = (Vec::new(), Vec::new());
        let mut inside_ns = outside_ns;
        for wait_ms in WAITS_MS {
            let seen = (0..rounds(effort)).map(|_| set.left(wait_ms, &mut random));
            let (came, times): (Vec<f64>, Vec<f64>) = seen.unzip();
            coming.extend(came);
            let taken = median(times);
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
        let coming_ns = median(coming);
        if after == Some(0.0) {
            lost_at_once = Some(Kept {
                bytes,
                coming_ns,
                half_ns: after,
            });
            break;
        }
        kept.push(Kept {
            bytes,
            coming_ns,
            half_ns: after,
        });
    }
    let ns = if kept.len() > 1 { ns } else { smallest_ns };
    if outside_ns < 2.0 * ns {
        return None;
    }
    let (bytes, gbps) = fitting(&kept, lost_at_once, largest.min(SET_MAX))?;
    let gone = Duration::from_secs_f64((2.0 * bytes as f64 / gbps / 1e9).min(GONE_MAX));
    let lost = lost_once(2 * private, page_bytes, [ns, outside_ns], gone, &mut random);
    Some(Others {
        bytes,
        gbps,
        ns,
        kept_once: 1.0 - lost,
    })
}

/// Part of the lines that were read once, and are gone after as many others were read. `times`: nanoseconds of a load
/// that the last level serves, and of one that memory serves. `gone`: nothing is kept for so long.
fn lost_once(bytes: u64, page_bytes: u64, times: [f64; 2], gone: Duration, random: &mut Random) -> f64 {
    let mut room = Room::of(Lines::All, bytes * CHUNKS);
    let part = (room.places.len() as u64 / CHUNKS) as u32;
    let mut order = |lines: Lines, bytes: u64, chunk: u64| -> Vec<u32> {
        let order = room.order(lines, bytes, page_bytes, random).into_iter();
        order.map(|index| index + part * chunk as u32).collect()
    };
    let all: Vec<Vec<u32>> = (0..CHUNKS).map(|chunk| order(Lines::All, bytes, chunk)).collect();
    let looked_at: Vec<Vec<u32>> = (0..CHUNKS).map(|chunk| order(Lines::Apart, bytes / 2, chunk)).collect();
    for ring in &looked_at {
        link(&mut room.places, ring);
    }
    // All of it was written just now, which is a use.
    let begin = Instant::now();
    while begin.elapsed() < gone {
        std::hint::spin_loop();
    }
    let read = |indices: &[u32]| {
        let read = indices.iter().map(|&index| room.places[index as usize]);
        black_box(read.fold(0, u32::wrapping_add));
    };
    // The last chunk drives the others out of the levels before.
    let (drives_out, read_once) = (&all[all.len() - 1], &all[..all.len() - 1]);
    let [inside_ns, outside_ns] = times;
    let lost = read_once.iter().zip(&looked_at).map(|(lines, ring)| {
        read(lines);
        read(drives_out);
        let begin = Instant::now();
        black_box(walk(&room.places, ring[ring.len() / 2], LOADS));
        let load_ns = begin.elapsed().as_secs_f64() * 1e9 / LOADS as f64;
        ((load_ns - inside_ns) / (outside_ns - inside_ns).max(0.1)).clamp(0.0, 1.0)
    });
    median(lost.collect())
}

/// Seconds that are waited at most until nothing is kept.
const GONE_MAX: f64 = 1.0;

/// Pieces of memory that are read once each, and one that is read between them.
const CHUNKS: u64 = 10;

/// Memory that is brought in as a whole. Every other line is looked at, since processors bring the other line of a
/// pair along.
struct WorkingSet {
    room: Room,
    all: Vec<u32>,
    looked_at: Vec<u32>,
}

impl WorkingSet {
    fn new(bytes: u64, page_bytes: u64, random: &mut Random) -> WorkingSet {
        let mut room = Room::of(Lines::All, bytes);
        let all = room.order(Lines::All, bytes, page_bytes, random);
        let looked_at = room.order(Lines::Apart, bytes / 2, page_bytes, random);
        link(&mut room.places, &looked_at);
        WorkingSet { room, all, looked_at }
    }

    /// Reads it until five passes in a row get no shorter, and returns the time of the last one.
    fn bring_in(&self) -> Duration {
        let (mut came, mut least, mut no_shorter) = (Duration::ZERO, Duration::MAX, 0);
        for _ in 0..PASSES_MAX {
            // Loads that do not wait for each other bring it in before others take much of it away.
            let begin = Instant::now();
            let read = self.all.iter().map(|&index| self.room.places[index as usize]);
            black_box(read.fold(0, u32::wrapping_add));
            came = begin.elapsed();
            no_shorter = if came < least.mul_f64(SHORTER) {
                0
            } else {
                no_shorter + 1
            };
            least = least.min(came);
            if no_shorter == PASSES_NO_SHORTER {
                break;
            }
        }
        came
    }

    /// Nanoseconds of the last pass that brought the working set in, and those of a load after a wait.
    fn left(&self, wait_ms: f64, random: &mut Random) -> (f64, f64) {
        let came = self.bring_in();
        let until = Instant::now() + Duration::from_secs_f64(wait_ms / 1e3);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let from = self.looked_at[random.below(self.looked_at.len() as u64) as usize];
        let begin = Instant::now();
        black_box(walk(&self.room.places, from, LOADS));
        let load_ns = begin.elapsed().as_secs_f64() * 1e9 / LOADS as f64;
        (came.as_secs_f64() * 1e9, load_ns)
    }
}

/// A working set that was there when it had come in, or was not.
#[derive(Clone, Copy, Debug)]
struct Kept {
    bytes: u64,
    /// Nanoseconds in which it comes in.
    coming_ns: f64,
    /// Nanoseconds after which half of it was lost; none where it was not.
    half_ns: Option<f64>,
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

/// The bytes and the rate that fit working sets and the times after which half of each was lost. The bytes are more
/// than those of the largest half that was kept, and `most` at the most. A working set that was lost as fast as it
/// came in bounds them, too: they are no more than that set and what others bring during one pass. Times differ from
/// one moment to the next, and where all working sets are lost after the same time, any bytes fit: so they are the
/// most that fit no worse than the best by [`NOISE`].
fn fitting(kept: &[Kept], lost_at_once: Option<Kept>, most: u64) -> Option<(u64, f64)> {
    let most_kept = kept.iter().map(|set| set.bytes / 2).max()?;
    // Half a working set, and the time in which others bring the rest.
    let lost: Vec<(f64, f64)> = kept
        .iter()
        .filter_map(|set| Some((set.bytes as f64 / 2.0, set.coming_ns / 2.0 + set.half_ns?)))
        .collect();
    if lost.is_empty() {
        return None;
    }
    let smaller = |bytes: &f64| Some(bytes / STEP).filter(|&bytes| bytes > most_kept as f64);
    let candidates = iter::successors(Some(most.max(most_kept + 1) as f64), smaller);
    let fitted = candidates.map(|bytes| {
        let gbps = median(lost.iter().map(|&(half, ns)| (bytes - half) / ns).collect());
        let misfit: f64 = lost
            .iter()
            .map(|&(half, ns)| ((bytes - half) / gbps / ns).ln().abs())
            .sum();
        ((bytes as u64, gbps), misfit)
    });
    let may_be = |((bytes, gbps), _): &((u64, f64), f64)| {
        lost_at_once.is_none_or(|set| *bytes as f64 <= set.bytes as f64 + gbps * set.coming_ns)
    };
    let fitted: Vec<((u64, f64), f64)> = fitted.filter(may_be).collect();
    let best = fitted.iter().map(|&(_, misfit)| misfit).reduce(f64::min)?;
    let as_good = best + NOISE * lost.len() as f64;
    // The largest is the first.
    let mut fitted = fitted.into_iter();
    fitted.find(|&(_, misfit)| misfit <= as_good).map(|(found, _)| found)
}

/// Times after which half of a working set was lost differ by so much (a logarithm) from one moment to the next.
const NOISE: f64 = 0.15;

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

    /// A cache of so many bytes, of which lines leave in the order of their last use: when half of a working set is
    /// lost, found by moving lines.
    fn half_of(set: u64, bytes: u64, gbps: f64, coming_ns: f64) -> Kept {
        const LINES: u64 = 1 << 12;
        let line = set as f64 / LINES as f64;
        let gone = |wait_ns: f64| {
            let is_gone = |number: &u64| {
                let since = (LINES - number) as f64;
                let others = gbps * (since / LINES as f64 * coming_ns + wait_ns);
                since * line + others >= bytes as f64
            };
            (0..LINES).filter(is_gone).count() as u64
        };
        let half = (0..400_000)
            .map(|tenth| f64::from(tenth) * 100.0)
            .find(|&ns| gone(ns) >= LINES / 2);
        Kept {
            bytes: set,
            coming_ns,
            half_ns: half,
        }
    }

    #[test]
    fn bytes_and_rate_are_those_of_the_times() {
        for (bytes, gbps) in [(32 * M, 2.5), (24 * M, 1.0), (16 * M, 10.0)] {
            let kept = [M / 2, 2 * M, bytes, 3 * bytes / 2].map(|set| half_of(set, bytes, gbps, set as f64 / 200.0));
            assert!(kept.iter().all(|set| set.half_ns.is_some()), "{kept:?}");
            let found = fitting(&kept, None, 4 * bytes).unwrap();
            // The most that fit within the noise of the times. What others bring grows alike, so that lines are kept
            // as long.
            let more = found.0 as f64 / bytes as f64;
            assert!((0.95..1.4).contains(&more), "{found:?}");
            assert!((found.1 / gbps / more).ln().abs() < 0.3, "{found:?}");
        }
    }

    #[test]
    fn what_is_kept_for_good_bounds_the_bytes() {
        let set = |bytes: u64, half_ns: Option<f64>| Kept {
            bytes,
            coming_ns: 0.0,
            half_ns,
        };
        // A line a nanosecond into 5 MB, as the two say that were lost; half of the third has its place, however soon
        // they are.
        let of_5 = [2 * M, 4 * M].map(|bytes| set(bytes, Some((5 * M - bytes / 2) as f64)));
        // Working sets that differ more tell more: half of 9 MB is gone sixteen times as soon as half of 2 MB.
        let far = [2 * M, 9 * M].map(|bytes| set(bytes, Some((5 * M - bytes / 2) as f64)));
        assert!(fitting(&far, None, 8 * M).unwrap().0 < 6 * M);
        let least = |most| fitting(&[of_5[0], of_5[1], set(12 * M, None)], None, most).unwrap().0;
        assert_eq!(least(4 * M), 6 * M + 1);
        // A single time tells nothing of the bytes: the most that may be.
        let alone = fitting(&[set(2 * M, Some(7e6))], None, 8 * M);
        assert_eq!(alone, Some((8 * M, (7 * M) as f64 / 7e6)));
        // A working set that is lost as fast as it comes in bounds the bytes: what comes between two uses of a line
        // drives it out.
        let lost = Kept {
            coming_ns: 1e6,
            ..set(6 * M, Some(0.0))
        };
        let found = fitting(&[set(2 * M, Some(7e6))], Some(lost), 8 * M).unwrap();
        assert!(
            found.0 < 7 * M && found.0 as f64 <= (6 * M) as f64 + found.1 * 1e6,
            "{found:?}"
        );
        // Nobody else is there.
        assert_eq!(fitting(&[set(2 * M, None), set(4 * M, None)], None, 32 * M), None);
        assert_eq!(fitting(&[], None, 32 * M), None);
    }

    #[test]
    fn this_machine_is_looked_at() {
        let others = others(512 << 10, 16 * M, 4096, 100.0, Effort::Quick);
        assert!(
            others.is_none_or(|others| {
                others.gbps > 0.0 && others.bytes <= 16 * M && (0.0..=1.0).contains(&others.kept_once)
            }),
            "{others:?}"
        );
        assert_eq!(super::others(512 << 10, 2 * M, 4096, 100.0, Effort::Quick), None);
    }
}
