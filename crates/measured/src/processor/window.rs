//! The number of instructions that a cpu has under way: those that it begins while an earlier load waits for memory.
//!
//! Two chains of loads are followed in turn, with other instructions between one load and the next. As long as the next
//! one lies within the window, both wait at the same time; beyond, one after the other, and a turn takes twice as long
//! (H. Wong, "Measuring Reorder Buffer Capacity", 2013). The other instructions have the needs of real programs: half
//! of them need a register to write to. If registers run out before the window does, programs meet that limit, too.

use std::hint::black_box;

use super::chains::Room;
use super::{Effort, median, rounds};
use crate::CoreShare;

/// Turns of one trial.
const TURNS: u32 = 250;

/// Instructions of a turn that are no others: a load, its bounds' check and the loop's.
const LOADING: u32 = 5;

/// The instructions under way; none if that is not known: on other processors than x86-64, and if no number of
/// instructions made a turn clearly longer.
pub fn window(room: &Room, core: &mut CoreShare, effort: Effort) -> Option<u32> {
    let _here = sys::affinity::pin_here();
    let trials = trials();
    let mut at: [u32; 2] = room.apart();
    let mut seen = vec![Vec::new(); trials.len()];
    for _ in 0..2 * rounds(effort) {
        for ((_, turns), seen) in trials.iter().zip(&mut seen) {
            core.wait_here();
            let begin = sys::clock::thread_time();
            turns(&room.places, &mut at);
            let taken = sys::clock::thread_time() - begin;
            seen.push(taken.as_secs_f64() * 1e9 / f64::from(TURNS));
        }
    }
    black_box(at);
    let points: Vec<(u32, f64)> = (trials.iter().zip(seen))
        .map(|((instructions, _), seen)| (instructions + LOADING, median(seen)))
        .collect();
    rise(&points)
}

/// The point from which times stay more than half-way between their first value and twice that.
fn rise(points: &[(u32, f64)]) -> Option<u32> {
    let near = points.get(..3)?.iter().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
    let half_way = 1.5 * near;
    let beyond = points.iter().rposition(|(_, ns)| *ns < half_way)? + 1;
    let (first, last) = (points.get(beyond - 1)?, points.get(beyond)?);
    let part = (half_way - first.1) / (last.1 - first.1);
    Some(first.0 + (part * f64::from(last.0 - first.0)).round() as u32)
}

type Turns = fn(&[u32], &mut [u32; 2]);

#[cfg(target_arch = "x86_64")]
fn trials() -> Vec<(u32, Turns)> {
    macro_rules! with {
        ($($groups:literal)*) => {
            vec![$(($groups * sys::instructions::IN_A_GROUP, turns::<$groups> as Turns)),*]
        };
    }
    with!(8 12 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 144 160)
}

#[cfg(not(target_arch = "x86_64"))]
fn trials() -> Vec<(u32, Turns)> {
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn turns<const GROUPS: usize>(places: &[u32], at: &mut [u32; 2]) {
    use sys::instructions::between_loads;
    let [mut one, mut other] = *at;
    for _ in 0..TURNS {
        one = between_loads::<GROUPS>(places[one as usize]);
        other = between_loads::<GROUPS>(places[other as usize]);
    }
    *at = [one, other];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_where_loads_no_longer_wait_together() {
        let points = [
            (20, 101.0),
            (60, 100.0),
            (100, 104.0),
            (140, 103.0),
            (180, 197.0),
            (220, 201.0),
        ];
        assert_eq!(rise(&points), Some(160));
        // A moment in which something else ran is no rise.
        let busy = [
            (20, 101.0),
            (60, 100.0),
            (100, 190.0),
            (140, 103.0),
            (180, 197.0),
            (220, 201.0),
        ];
        assert_eq!(rise(&busy), Some(160));
        assert_eq!(rise(&points[..4]), None, "all of them wait together");
        assert_eq!(rise(&[]), None);
    }
}
