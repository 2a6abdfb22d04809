//! Walks through memory in order: as fast as prefetchers and the memory's bandwidth allow.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sys::clock::thread_time;
use sys::mappings::details;
use sys::memory::{Area, Size};

use super::chains::BYTES;
use super::{Effort, least, median, rounds};
use crate::Point;
use crate::chase::link;

/// The rate at which memory can be read, in gigabytes (10^9 bytes) a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// By one cpu, which sums the data that it reads.
    pub one_cpu_gbps: f64,
    /// By all of them at once.
    pub all_cpus_gbps: f64,
    /// By one cpu, from data that the last level holds and no cache before it; 0: not known.
    #[serde(default)]
    pub last_level_gbps: f64,
    /// Nanoseconds a line of 64 bytes when one cpu reads in order from memory, on small pages and on huge ones; 0: not
    /// known. They are medians: the neighbors' use of the memory is part of them.
    #[serde(default)]
    pub memory_line_ns: f64,
    #[serde(default)]
    pub huge_memory_line_ns: f64,
}

impl Stream {
    /// Nanoseconds between two lines of 64 bytes that come to a core from beyond its second level; none if that is not
    /// known.
    pub fn line_ns(self) -> Option<f64> {
        let most = self.last_level_gbps.max(self.one_cpu_gbps);
        (self.last_level_gbps > 0.0).then(|| 64.0 / most)
    }
}

/// The most cpus that read at once: fewer reach the full rate of a node.
const READERS_MAX: u32 = 32;

/// Bytes of all readers together.
const SHARED: u64 = 256 << 20;

/// `beyond`: bytes that the second level does not hold, and the last one does; 0 where there is no third.
pub fn stream(cpus: u32, beyond: u64, effort: Effort) -> Stream {
    let one = of_readers(1, effort);
    let readers = cpus.clamp(1, READERS_MAX);
    let [memory_line_ns, huge_memory_line_ns] = lines(effort);
    Stream {
        one_cpu_gbps: one,
        all_cpus_gbps: if readers == 1 {
            one
        } else {
            of_readers(readers, effort).max(one)
        },
        last_level_gbps: if beyond == 0 { 0.0 } else { again(beyond, effort) },
        memory_line_ns,
        huge_memory_line_ns,
    }
}

/// The rate of this many threads together.
fn of_readers(readers: u32, effort: Effort) -> f64 {
    let each = (SHARED / u64::from(readers)).min(BYTES) / 8;
    let gate = Barrier::new(readers as usize);
    let work = || {
        let words = vec![1u64; each as usize];
        let mut seen = Vec::new();
        for _ in 0..rounds(effort) {
            gate.wait();
            let begin = Instant::now();
            black_box(sum(&words));
            seen.push(begin.elapsed().as_secs_f64());
        }
        // Any other work of the machine only slows them.
        least(seen)
    };
    let slowest = std::thread::scope(|scope| {
        let started: Vec<_> = (0..readers).map(|_| scope.spawn(work)).collect();
        let times = started.into_iter().filter_map(|thread| thread.join().ok());
        times.fold(0.0, f64::max)
    });
    (each * 8 * u64::from(readers)) as f64 / slowest / 1e9
}

/// Nanoseconds a line on small pages, and on huge ones, read in turn; 0 if the system gives none.
fn lines(effort: Effort) -> [f64; 2] {
    let mut areas = [Size::Small, Size::Huge].map(|size| Area::map(BYTES as usize, size).ok());
    for area in areas.iter_mut().flatten() {
        area.as_mut_slice().fill(1);
    }
    // The system may have small ones only.
    let huge = |area: &mut Area| details(area.span()).map(|all| all.iter().map(|of| of.huge_bytes).sum());
    if areas[1]
        .as_mut()
        .is_some_and(|area| !huge(area).is_ok_and(|bytes: u64| bytes >= BYTES))
    {
        areas[1] = None;
    }
    let mut seen = [const { Vec::new() }; 2];
    for _ in 0..2 * rounds(effort) {
        for (area, seen) in areas.iter_mut().zip(&mut seen) {
            let Some(area) = area else { continue };
            let begin = thread_time();
            black_box(sum_of_bytes(area.as_mut_slice()));
            seen.push((thread_time() - begin).as_secs_f64() * 1e9 / (BYTES / 64) as f64);
        }
    }
    seen.map(median)
}

fn sum_of_bytes(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words
        .iter()
        .fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// Gigabytes a second of reading `bytes` bytes again and again.
fn again(bytes: u64, effort: Effort) -> f64 {
    let words = vec![1u64; (bytes / 8) as usize];
    black_box(sum(&words));
    let round = |_| {
        let begin = thread_time();
        black_box(sum(black_box(&words)));
        (thread_time() - begin).as_secs_f64()
    };
    let seen = (0..4 * rounds(effort)).map(round).collect();
    bytes as f64 / least(seen).max(1e-9) / 1e9
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Strides that are walked: 64 bytes to 8 KiB, 64 KiB and 1 MiB.
const STRIDE_BITS: [u32; 10] = [6, 7, 8, 9, 10, 11, 12, 13, 16, 20];

/// Loads of one round.
const LOADS: u64 = 1 << 16;

/// Lines that are walked: odd, so that steps of a power of two lead to all of them before they lead to one again, and no stride is
/// of lines that a cache still holds. A third of a step is over at the end, so that the next time round is not beside this one.
const LINES: u64 = BYTES / 64 - (1 << 14) + 0b01_0101_0101_0101;

/// Loads that each wait for the one before, each the same number of bytes further on: the effect of a prefetcher on a
/// stride.
pub fn strides(effort: Effort) -> Vec<Point> {
    let mut room = vec![0u32; (BYTES / 4) as usize];
    let mut points = Vec::new();
    for bits in STRIDE_BITS {
        let stride = 1u64 << bits;
        let ring: Vec<u32> = (0..LINES).map(|at| (at * (stride / 64) % LINES * 16) as u32).collect();
        link(&mut room, &ring);
        let mut at = follow(&room, 0);
        let mut seen = Vec::new();
        for _ in 0..rounds(effort) {
            let begin = thread_time();
            at = follow(&room, at);
            seen.push((thread_time() - begin).as_secs_f64() * 1e9 / LOADS as f64);
        }
        black_box(at);
        points.push(Point {
            bytes: stride,
            ns: least(seen),
        });
    }
    points
}

fn follow(room: &[u32], from: u32) -> u32 {
    (0..LOADS).fold(from, |at, _| next(room, at))
}

/// One instruction makes all loads: prefetchers tell strides by instruction, and an unrolled loop has several.
#[inline(never)]
fn next(room: &[u32], at: u32) -> u32 {
    room[at as usize]
}
