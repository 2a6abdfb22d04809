//! Walks that end soon: how many lines in order it takes until the lines ahead are brought.
//!
//! Some lines in order are read in a page that was not touched for long, each by an instruction of its own, so that only a prefetcher of
//! the page can follow. A moment later one line ahead is timed, and the rest of the page is left alone. AMD's region prefetcher learns
//! which lines follow that of an instruction, and would answer for itself: so walks of one length are made for a long time, and the line
//! that is timed is another each time.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Effort, median, rounds};
use crate::chase::{Lines, Random, Room};

/// The parts of lines two and three ahead that were near after walks of 1, 2, 3 ... steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Walks {
    pub brought: Vec<f64>,
}

impl Walks {
    /// The steps from line to line after which lines ahead are brought. `None`: they are after none, or that cannot be told.
    pub fn after(&self) -> Option<u32> {
        let most = self.brought.iter().copied().fold(0.0, f64::max);
        let first = self.brought.iter().position(|part| *part >= most / 2.0)?;
        if most < BROUGHT {
            return None;
        }
        Some(first as u32 + 1)
    }
}

/// What is brought less often than this after walks of any length here is brought by chance. On a Zen 3 it is nothing after one step, a
/// quarter after two, a third after three, and from four steps on two thirds and more.
const BROUGHT: f64 = 0.25;
/// Half of it is walked in, and half is read before, which is more than the last level gives one process.
const BYTES: u64 = 256 << 20;
/// Indices in a line, and in a page.
const LINE: usize = 16;
const PAGE: usize = 1024;
/// The walks' longest, in steps.
const STEPS: usize = 6;
/// Lines ahead of which one is timed.
const AHEAD: u64 = 24;
/// From so many lines ahead on none is brought after such short walks. They lie in the same page: a load from another takes longer.
const FAR: usize = 21;
/// Walks at first that do not count: what was learned from longer ones is forgotten by then.
const FORGOTTEN: usize = 1000;
/// Lines are brought by then.
const MOMENT: Duration = Duration::from_micros(1);
/// A near line and one from memory are told apart by the clock if they differ by more.
const APART_NS: f64 = 30.0;

/// Reads the line so many lines on, by an instruction of its own.
#[inline(never)]
fn load<const AT: usize>(places: &[u32], from: usize) -> usize {
    places[from + AT * LINE] as usize
}

/// One load for each line of the longest walk.
const LOADS: [fn(&[u32], usize) -> usize; STEPS + 1] = [
    load::<0>, load::<1>, load::<2>, load::<3>, load::<4>, load::<5>, load::<6>,
];

pub fn walks(effort: Effort) -> Walks {
    let mut random = Random(0xbb67_ae85_84ca_a73b);
    let room = Room::of(Lines::All, BYTES);
    let (places, others) = room.places.split_at(room.places.len() / 2);
    let mut pages: Vec<u32> = (0..(places.len() / PAGE) as u32).collect();
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let mut ahead: Vec<Vec<f64>> = vec![Vec::new(); STEPS];
    for _ in 0..rounds(effort) {
        random.shuffle(&mut pages);
        std::hint::black_box(others.iter().step_by(LINE).fold(0, |sum, place| sum | place));
        let each = pages.len() / STEPS;
        for (at, page) in pages[..each * STEPS].iter().enumerate() {
            let steps = at / each + 1;
            let distance = random.below(AHEAD) as usize + 1;
            let first = *page as usize * PAGE + (4 + random.below(28) as usize) * LINE;
            // Each load waits for the one before: all of them read 0.
            let mut read = 0;
            for load in &LOADS[..=steps] {
                read = std::hint::black_box(load(places, first + read));
            }
            let began = Instant::now();
            while began.elapsed() < MOMENT {
                std::hint::spin_loop();
            }
            let mut time = |at: usize| {
                let began = Instant::now();
                read = std::hint::black_box(places[at + read] as usize);
                began.elapsed().as_nanos() as f64
            };
            let ns = time(first + (steps + distance) * LINE);
            match distance {
                _ if at % each < FORGOTTEN => {}
                2 | 3 => {
                    ahead[steps - 1].push(ns);
                    near.push(time(first));
                }
                FAR.. => far.push(ns),
                _ => {}
            }
        }
    }
    told_apart(&ahead, median(near), median(far))
}

fn told_apart(ahead: &[Vec<f64>], near_ns: f64, far_ns: f64) -> Walks {
    if far_ns - near_ns < APART_NS {
        return Walks::default();
    }
    let is_near = |ns: &&f64| **ns < f64::midpoint(near_ns, far_ns);
    let part = |seen: &Vec<f64>| seen.iter().filter(is_near).count() as f64 / seen.len().max(1) as f64;
    Walks {
        brought: ahead.iter().map(part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_followed_once_lines_ahead_are_near() {
        let ahead = [
            vec![170.0, 180.0],
            vec![165.0, 30.0, 171.0, 174.0],
            vec![31.0, 169.0, 33.0],
        ];
        let walks = told_apart(&ahead, 30.0, 170.0);
        assert_eq!(walks.brought, [0.0, 0.25, 2.0 / 3.0]);
        assert_eq!(walks.after(), Some(3));
        assert_eq!(told_apart(&ahead, 30.0, 50.0).after(), None, "the clock does not tell");
        assert_eq!(told_apart(&ahead[..1], 30.0, 170.0).after(), None);
    }

    #[test]
    fn this_machine_is_measured() {
        let walks = walks(Effort::Quick);
        assert!(walks.brought.iter().all(|part| (0.0..=1.0).contains(part)), "{walks:?}");
        assert!(walks.brought.is_empty() || walks.brought.len() == STEPS, "{walks:?}");
    }
}
