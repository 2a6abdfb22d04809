//! The iterations of a parallel loop that a thread has (Bugnion96, section 5.1: array partitioning).
//!
//! A thread's part is described in a few progressions, however many pieces it has, so that a loop that is dealt in pieces of one
//! iteration costs no more than one in pieces of a thousand.

use super::{Direction, Loop, Schedule};

/// Pieces of `length` iterations; the first begins at iteration `first`, each next one `every` later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    pub(super) first: u64,
    /// At least 1.
    pub(super) length: u64,
    /// At least `length`, so that no two overlap.
    pub(super) every: u64,
    /// At least 1.
    pub(super) count: u64,
}

/// The iterations that `thread` works on, moved `distance` on, around the end of the loop. All are different.
pub(super) fn of(a_loop: &Loop, thread: u32, distance: i64) -> Vec<Pieces> {
    let total = a_loop.iterations;
    if total == 0 || thread >= a_loop.threads {
        return Vec::new();
    }
    let distance = i128::from(distance).rem_euclid(i128::from(total)) as u64;
    // Iterations before the cut stay before the end when they are moved; the others come around to the beginning.
    let cut = total - distance;
    let mut moved = Vec::new();
    for pieces in dealt(a_loop, thread) {
        moved.extend(within(pieces, 0, cut).map(|it| Pieces {
            first: it.first + distance,
            ..it
        }));
        moved.extend(within(pieces, cut, total).map(|it| Pieces {
            first: it.first - cut,
            ..it
        }));
    }
    moved
}

/// The iterations as the schedule deals them: a progression of whole pieces, and a last shorter one.
fn dealt(a_loop: &Loop, thread: u32) -> impl Iterator<Item = Pieces> {
    let (total, threads) = (a_loop.iterations, u64::from(a_loop.threads));
    let turn = u64::from(match a_loop.direction {
        Direction::Forward => thread,
        Direction::Reverse => a_loop.threads - 1 - thread,
    });
    let one = |first: u64, length: u64| {
        (length > 0).then_some(Pieces {
            first,
            length,
            every: length,
            count: 1,
        })
    };
    let [whole, rest] = match a_loop.schedule {
        Schedule::Even => {
            let (each, more) = (total / threads, total % threads);
            [one(turn * each + turn.min(more), each + u64::from(turn < more)), None]
        }
        Schedule::Blocked => {
            let each = total.div_ceil(threads);
            let first = turn.saturating_mul(each).min(total);
            [one(first, each.min(total - first)), None]
        }
        Schedule::Chunked(chunk) => {
            let first = turn.saturating_mul(chunk).min(total);
            let every = threads.saturating_mul(chunk);
            let count = match (total - first).checked_sub(chunk) {
                Some(left) => left / every + 1,
                None => 0,
            };
            // It cannot overflow while there is another piece: that begins before the end of the loop.
            let last = match count {
                0 => Some(first),
                _ => (first + (count - 1) * every).checked_add(every),
            };
            let rest = last.filter(|&last| last < total);
            let whole = (count > 0).then_some(Pieces {
                first,
                length: chunk,
                every,
                count,
            });
            [whole, rest.and_then(|last| one(last, (total - last).min(chunk)))]
        }
    };
    [whole, rest].into_iter().flatten()
}

/// The part of `pieces` from `low` to `high`: the whole pieces, and the cut piece at each end.
fn within(pieces: Pieces, low: u64, high: u64) -> impl Iterator<Item = Pieces> {
    let Pieces {
        first,
        length,
        every,
        count,
    } = pieces;
    let begin = low.saturating_sub(first).div_ceil(every).min(count);
    let end = match high.checked_sub(length).and_then(|last| last.checked_sub(first)) {
        Some(last) => (last / every + 1).min(count),
        None => 0,
    };
    let whole = (begin < end).then(|| Pieces {
        first: first + begin * every,
        length,
        every,
        count: end - begin,
    });
    let cut = |piece: u64| {
        let from = (first + piece * every).max(low);
        let to = (first + piece * every).saturating_add(length).min(high);
        (from < to).then(|| Pieces {
            first: from,
            length: to - from,
            every: to - from,
            count: 1,
        })
    };
    let before = begin.checked_sub(1).filter(|_| begin > 0).and_then(cut);
    let after = (end < count && begin.checked_sub(1) != Some(end))
        .then(|| cut(end))
        .flatten();
    // If no piece is whole, `begin` may be beyond `end`; the two that are cut are all there is.
    [before, whole, after].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The thread that has iteration `i`, one at a time, as the schedules are defined.
    fn owner(a_loop: &Loop, i: u64) -> u32 {
        let (total, threads) = (a_loop.iterations, u64::from(a_loop.threads));
        let turn = match a_loop.schedule {
            Schedule::Even => {
                let mut end = 0;
                let share = |t: u64| total / threads + u64::from(t < total % threads);
                (0..threads).find(|&t| {
                    end += share(t);
                    i < end
                })
            }
            Schedule::Blocked => Some(i / total.div_ceil(threads)),
            Schedule::Chunked(chunk) => Some(i / chunk % threads),
        };
        let turn = turn.unwrap() as u32;
        match a_loop.direction {
            Direction::Forward => turn,
            Direction::Reverse => a_loop.threads - 1 - turn,
        }
    }

    proptest! {
        #[test]
        fn every_iteration_is_with_its_thread_once(
            threads in 1u32..9,
            iterations in 0u64..60,
            schedule in prop_oneof![
                Just(Schedule::Even), Just(Schedule::Blocked), (1u64..70).prop_map(Schedule::Chunked)
            ],
            reverse in any::<bool>(),
            distance in -70i64..70,
        ) {
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            let a_loop = Loop { place: String::new(), threads, iterations, schedule, direction, summaries: Vec::new() };
            for thread in 0..threads {
                let mut mine: Vec<u64> = of(&a_loop, thread, distance)
                    .into_iter()
                    .flat_map(|it| (0..it.count).flat_map(move |k| (0..it.length).map(move |j| it.first + k * it.every + j)))
                    .collect();
                mine.sort_unstable();
                let mut expected: Vec<u64> = (0..iterations)
                    .filter(|&i| owner(&a_loop, i) == thread)
                    .map(|i| (i as i128 + i128::from(distance)).rem_euclid(i128::from(iterations)) as u64)
                    .collect();
                expected.sort_unstable();
                prop_assert_eq!(mine, expected);
            }
        }
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        for schedule in [
            Schedule::Even,
            Schedule::Blocked,
            Schedule::Chunked(1),
            Schedule::Chunked(u64::MAX),
        ] {
            let a_loop = Loop {
                place: String::new(),
                threads: 128,
                iterations: u64::MAX,
                schedule,
                direction: Direction::Reverse,
                summaries: Vec::new(),
            };
            let all = (0..128).flat_map(|thread| of(&a_loop, thread, i64::MIN));
            let total: u128 = all.map(|it| u128::from(it.length) * u128::from(it.count)).sum();
            assert_eq!(total, u128::from(u64::MAX), "{schedule:?}");
        }
    }
}
