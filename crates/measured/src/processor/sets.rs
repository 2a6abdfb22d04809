//! How fast lines come to one set of the first cache, or to one bank of it: where many compete for it, one after the
//! other, on processors that fetch many lines at once elsewhere.
//!
//! It reads a column whose rows all go to one set, several times as many as it has ways, and another one whose rows are
//! spread over all sets. The extra time of a load is the set's turn. A column that is written takes longer still: the
//! line of a store may have been replaced by loads that ran ahead, and is fetched again.
//!
//! Caches have banks, too. A Granite Rapids takes 0.4 ns from line to line that its second cache holds, 0.7 where only
//! even lines are read, and 0.9 where the lines' numbers are a multiple of four, whatever their sets and their order.

use std::hint::black_box;

use machine::{HostReport, Kind};
use serde::{Deserialize, Serialize};
use sys::clock::thread_time;

use super::{Effort, median, rounds};
use crate::CoreShare;

/// Times of one set of the first cache, in nanoseconds; 0 where it is no slower than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sets {
    /// From line to line.
    pub refill_ns: f64,
    /// The time that a store adds to that.
    pub rewrite_ns: f64,
    /// From line to line of one bank: lines whose numbers are the same modulo 4, in whatever sets.
    #[serde(default)]
    pub bank_refill_ns: f64,
}

/// Rows of a column, as a multiple of the ways: loads that run ahead are to meet no line twice.
const ROWS: usize = 8;
/// Lines of a bank that are visited: more than its sets hold, and no more than the second cache.
const OF_BANK: usize = 1024;
/// Words of a line that are visited, one column after the other.
const COLUMNS: usize = 8;
/// Visits of one trial.
const VISITS: usize = 1 << 18;
/// A set that is hardly slower than all together has no turns.
const SLOWER: f64 = 1.5;

pub fn sets(host: &HostReport, core: &mut CoreShare, effort: Effort) -> Sets {
    let _here = sys::affinity::pin_here();
    let caches = host.machine.caches.iter();
    let first = caches
        .filter(|cache| cache.kind != Kind::Instruction)
        .min_by_key(|cache| cache.level);
    let Some(first) = first else {
        return Sets::default();
    };
    let rows = first.ways as usize * ROWS;
    let way = (first.bytes / u64::from(first.ways)) as usize / size_of::<u64>();
    let line = first.line_bytes as usize / size_of::<u64>();
    let mut words = vec![1u64; (rows * (way + line)).max(OF_BANK * 5 * line)];
    let mut seen = [const { Vec::new() }; 5];
    for _ in 0..rounds(effort) {
        core.wait_here();
        seen[0].push(read(&words, rows, way + line));
        seen[1].push(read(&words, rows, way));
        seen[2].push(write(&mut words, rows, way));
        // Every fourth line, and as many of all banks.
        seen[3].push(self::read(&words, OF_BANK, 4 * line));
        seen[4].push(self::read(&words, OF_BANK, 5 * line));
    }
    let [spread, read, written, bank, banks] = seen.map(median);
    Sets {
        bank_refill_ns: if bank >= SLOWER * banks { bank } else { 0.0 },
        ..of_times(spread, read, written)
    }
}

/// A load of lines that are spread over all sets, of those in one, and a load and a store there.
fn of_times(spread: f64, read: f64, written: f64) -> Sets {
    match read >= SLOWER * spread {
        true => Sets {
            refill_ns: read,
            rewrite_ns: (written - read).max(0.0),
            bank_refill_ns: 0.0,
        },
        false => Sets::default(),
    }
}

/// Nanoseconds of a load.
fn read(words: &[u64], rows: usize, pitch: usize) -> f64 {
    visits(rows, pitch, |at| {
        black_box(words[at]);
    })
}

/// Nanoseconds of a load and a store.
fn write(words: &mut [u64], rows: usize, pitch: usize) -> f64 {
    visits(rows, pitch, |at| words[at] = black_box(words[at]) + 1)
}

fn visits(rows: usize, pitch: usize, mut visit: impl FnMut(usize)) -> f64 {
    let rounds = VISITS / (rows * COLUMNS);
    let begin = thread_time();
    for _ in 0..rounds {
        for column in 0..COLUMNS {
            for row in 0..rows {
                visit(row * pitch + column);
            }
        }
    }
    (thread_time() - begin).as_secs_f64() * 1e9 / (rounds * rows * COLUMNS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_as_fast_as_all_has_no_turns() {
        assert_eq!(of_times(0.3, 0.35, 0.4), Sets::default());
        let turns = Sets {
            refill_ns: 1.75,
            rewrite_ns: 9.25,
            bank_refill_ns: 0.0,
        };
        assert_eq!(of_times(0.3, 1.75, 11.0), turns);
    }

    #[test]
    fn each_place_is_visited_as_often_as_others() {
        let mut seen = vec![0usize; 64];
        visits(4, 16, |at| seen[at] += 1);
        let visited: Vec<usize> = (0..64).filter(|at| seen[*at] > 0).collect();
        let expected: Vec<usize> = (0..64).filter(|at| at % 16 < COLUMNS).collect();
        assert_eq!(visited, expected);
        assert!(visited.iter().all(|at| seen[*at] == seen[0]));
    }
}
