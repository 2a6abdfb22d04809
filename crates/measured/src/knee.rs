//! Finds where a curve of times over working sets rises: pure arithmetic, no clock.

use super::{Far, Point};

/// A capacity, and the times of loads within and beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    pub bytes: u64,
    pub inside_ns: f64,
    pub outside_ns: f64,
}

/// The largest working set that is served rather by caches than by memory: the last point before
/// the curve crosses the geometric mean of the two times for good.
///
/// The time within the last level is that of the working set halfway (geometrically) between `private`, the bytes of
/// the level before, and the capacity: the level before still serves part of a smaller one. If the first working set
/// beyond `private` is already as slow as memory, the last level gives this process nothing and the capacity is that of
/// the levels before.
pub fn capacity(curve: &[Point], private: u64) -> Knee {
    let curve = rising(curve);
    let first = crossing(&curve, at_first(&curve, private));
    let middle = (private as f64 * first.bytes as f64).sqrt() as u64;
    let halfway = curve
        .iter()
        .rfind(|point| point.bytes > private && point.bytes <= middle);
    crossing(&curve, halfway.map_or(first.inside_ns, |point| point.ns))
}

/// The time of the first working set beyond `private`, or of the last within where that is as slow as memory.
fn at_first(curve: &[Point], private: u64) -> f64 {
    let outside_ns = curve.last().map_or(0.0, |point| point.ns);
    let behind = curve.iter().find(|point| point.bytes > private);
    let within = curve.iter().rfind(|point| point.bytes <= private);
    let mut inside_ns = behind.or(within).map_or(outside_ns, |point| point.ns);
    // Half of memory's time is more than any cache takes.
    if inside_ns > outside_ns / 2.0 {
        inside_ns = within.map_or(inside_ns, |point| point.ns);
    }
    inside_ns
}

/// The point at which a rising curve crosses the geometric mean of a time and its last one.
fn crossing(curve: &[Point], inside_ns: f64) -> Knee {
    let outside_ns = curve.last().map_or(0.0, |point| point.ns);
    let limit = (inside_ns * outside_ns).sqrt();
    let inside = curve.iter().take_while(|point| point.ns <= limit);
    let bytes = inside.last().or(curve.first()).map_or(0, |point| point.bytes);
    Knee {
        bytes,
        inside_ns,
        outside_ns,
    }
}

/// The time of a load within `private` bytes, the levels before the last one: that of their own last level, halfway to their end.
pub fn within(curve: &[Point], private: u64) -> f64 {
    let half = curve.iter().rfind(|point| point.bytes <= private / 2);
    half.or(curve.first()).map_or(0.0, |point| point.ns)
}

/// The curve without busy moments: no working set is served faster than a smaller one, and any longer time of a smaller
/// one had another cause.
fn rising(curve: &[Point]) -> Vec<Point> {
    let mut rising = curve.to_vec();
    let mut least = f64::INFINITY;
    for point in rising.iter_mut().rev() {
        least = least.min(point.ns);
        point.ns = least;
    }
    rising
}

/// Working sets, in whole pages, between the last that is still inside and the first that is not: each an eighth larger
/// than the one before, at most. None where the curve does not rise.
pub fn close_by(curve: &[Point], private: u64, page_bytes: u64) -> Vec<u64> {
    let inside = capacity(curve, private).bytes;
    let Some(outside) = curve.iter().map(|point| point.bytes).find(|&bytes| bytes > inside) else {
        return Vec::new();
    };
    let step = (inside / 8).next_multiple_of(page_bytes).max(page_bytes);
    (1..)
        .map(|steps| inside + steps * step)
        .take_while(|&bytes| bytes < outside)
        .collect()
}

/// The capacity of each level for this process, the innermost first, given the bytes that each is said to have: for
/// each the knee of the part of the curve that ends well within the next level.
pub fn levels(curve: &[Point], described: &[u64]) -> Vec<Knee> {
    let of = |level: usize| {
        let before = if level == 0 { 0 } else { described[level - 1] };
        let end = match described.get(level + 1) {
            // Clearly beyond this level, clearly within the next one, as far as both can be had.
            Some(&next) => {
                ((described[level] as f64 * next as f64).sqrt() as u64).min(described[level].saturating_mul(4))
            }
            None => u64::MAX,
        };
        let part: Vec<Point> = curve.iter().copied().take_while(|point| point.bytes <= end).collect();
        capacity(&part, before)
    };
    (0..described.len()).map(of).collect()
}

/// The cost of a refill is read this far beyond the reach: most loads miss, and the page tables are still in the
/// caches.
const BEYOND: u64 = 4;

/// The most bytes of pages that the TLB holds; none if no walk of the page tables was seen.
///
/// Entries of a second-level TLB add less to a load than `private_ns`, a load from the last cache before the last
/// level. A walk adds more. The reach is where the curve crosses the geometric mean of that and of what a walk adds.
/// The curve rises once more, and much higher, when the tables leave the caches: that is no reach.
pub fn reach(curve: &[Point], private_ns: f64) -> Option<Knee> {
    let curve = rising(curve);
    let beyond = |bytes: u64| {
        let point = curve.iter().find(|point| point.bytes >= bytes * BEYOND);
        point.or(curve.last()).copied()
    };
    let held = curve.iter().rfind(|point| point.ns <= private_ns)?;
    let walked = beyond(held.bytes)?;
    let limit = (private_ns * walked.ns).sqrt();
    let inside = curve.iter().rfind(|point| point.ns <= limit)?;
    let outside = beyond(inside.bytes)?;
    (walked.ns > private_ns).then_some(Knee {
        bytes: inside.bytes,
        inside_ns: inside.ns,
        outside_ns: outside.ns,
    })
}

/// Page tables are said to leave a cache if a walk over twice as many pages adds this many times as much.
const STEP: f64 = 1.5;

/// The points at which page tables leave the caches, step by step: the curve crosses the geometric mean of the time
/// that a walk adds before and after.
pub fn far(curve: &[Point], reach: &Knee) -> Vec<Far> {
    let curve = rising(curve);
    let from = |bytes: u64| curve.iter().find(|point| point.bytes >= bytes);
    let (mut steps, mut before) = (Vec::new(), reach.outside_ns);
    let mut bytes = reach.bytes * BEYOND;
    while let Some(twice) = from(2 * bytes) {
        if twice.ns >= STEP * before {
            let limit = (before * twice.ns).sqrt();
            steps.extend(curve.iter().rfind(|point| point.ns <= limit).map(|inside| Far {
                bytes: inside.bytes,
                refill_ns: twice.ns,
            }));
            before = twice.ns;
        }
        bytes *= 2;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;

    fn curve(points: &[(u64, f64)]) -> Vec<Point> {
        points.iter().map(|&(bytes, ns)| Point { bytes, ns }).collect()
    }

    #[test]
    fn a_last_level_that_is_all_there() {
        let curve = curve(&[
            (32 * K, 1.2),
            (512 * K, 4.0),
            (M, 12.0),
            (16 * M, 15.0),
            (32 * M, 30.0),
            (64 * M, 80.0),
            (128 * M, 95.0),
        ]);
        let knee = capacity(&curve, 512 * K);
        assert_eq!((knee.bytes, knee.inside_ns, knee.outside_ns), (32 * M, 12.0, 95.0));
    }

    #[test]
    fn a_busy_moment_is_no_level() {
        let curve = curve(&[
            (512 * K, 4.0),
            (M, 25.0),
            (2 * M, 40.0),
            (4 * M, 16.0),
            (8 * M, 90.0),
            (64 * M, 110.0),
        ]);
        let knee = capacity(&curve, 512 * K);
        assert_eq!((knee.bytes, knee.inside_ns, knee.outside_ns), (4 * M, 16.0, 110.0));
    }

    #[test]
    fn a_last_level_that_others_use() {
        let curve = curve(&[
            (32 * K, 1.2),
            (512 * K, 4.0),
            (M, 14.0),
            (4 * M, 30.0),
            (8 * M, 70.0),
            (32 * M, 90.0),
            (128 * M, 100.0),
        ]);
        assert_eq!(capacity(&curve, 512 * K).bytes, 4 * M);
    }

    #[test]
    fn the_end_of_a_level_is_looked_at_closely() {
        let mut points = vec![(M, 14.0), (4 * M, 16.0), (6 * M, 17.0), (9 * M, 88.0), (32 * M, 90.0)];
        let between = close_by(&curve(&points), 512 * K, 4 * K);
        assert_eq!(between, [6912 * K, 7680 * K, 8448 * K]);
        points.splice(3..3, [(between[0], 17.0), (between[1], 18.0), (between[2], 60.0)]);
        assert_eq!(capacity(&curve(&points), 512 * K).bytes, 7680 * K);
        // A flat curve ends nowhere, and neighbouring pages have none between them.
        assert!(close_by(&curve(&[(M, 14.0), (2 * M, 14.0)]), 512 * K, 4 * K).is_empty());
        assert!(close_by(&curve(&[(4 * K, 1.0), (8 * K, 9.0)]), 0, 4 * K).is_empty());
    }

    #[test]
    fn a_last_level_that_gives_nothing() {
        let curve = curve(&[
            (32 * K, 1.2),
            (512 * K, 4.0),
            (M, 90.0),
            (32 * M, 95.0),
            (128 * M, 100.0),
        ]);
        let knee = capacity(&curve, 512 * K);
        assert_eq!((knee.bytes, knee.inside_ns), (512 * K, 4.0));
    }

    #[test]
    fn each_level_has_its_knee() {
        let curve = curve(&[
            (16 * K, 1.0),
            (32 * K, 1.0),
            (64 * K, 3.6),
            (128 * K, 4.0),
            (512 * K, 4.2),
            (M, 5.0),
            (2 * M, 15.0),
            (4 * M, 20.0),
            (8 * M, 70.0),
            (32 * M, 95.0),
            (64 * M, 100.0),
        ]);
        let described = [48 * K, M, 32 * M];
        let got: Vec<u64> = levels(&curve, &described).iter().map(|knee| knee.bytes).collect();
        assert_eq!(got, [32 * K, M, 4 * M]);
        assert!(levels(&[], &described).iter().all(|knee| knee.bytes == 0));
        assert!(levels(&curve, &[]).is_empty());
    }

    #[test]
    fn the_time_within_a_level_is_read_where_the_one_before_serves_nothing() {
        // A Granite Rapids guest: 2 MiB of L2, 17 MB of the last level.
        let curve = curve(&[
            (1152 * K, 4.9),
            (1536 * K, 7.0),
            (2304 * K, 16.8),
            (3 * M, 20.6),
            (4608 * K, 23.4),
            (9 * M, 27.4),
            (16896 * K, 29.5),
            (24 * M, 49.9),
            (36 * M, 80.9),
            (256 * M, 111.6),
        ]);
        let knee = capacity(&curve, 2 * M);
        assert_eq!((knee.bytes, knee.inside_ns), (24 * M, 23.4));
    }

    #[test]
    fn the_reach_of_a_tlb() {
        let rises = curve(&[
            (64 * K, 0.0),
            (256 * K, 0.1),
            (M, 3.0),
            (6 * M, 4.0),
            (8 * M, 11.0),
            (64 * M, 12.0),
        ]);
        let knee = reach(&rises, 4.0).unwrap();
        assert_eq!((knee.bytes, knee.outside_ns), (6 * M, 12.0));
        let flat = curve(&[(64 * K, 0.0), (64 * M, 0.4)]);
        assert_eq!(reach(&flat, 4.0), None);
        assert_eq!(reach(&[], 4.0), None);
    }

    /// The second step is that of tables that leave the caches. The last level answers as late as a walk takes.
    #[test]
    fn the_reach_is_at_the_first_step() {
        let steps = curve(&[
            (256 * K, 0.0),
            (512 * K, 2.0),
            (4 * M, 3.6),
            (6 * M, 7.0),
            (8 * M, 9.7),
            (10 * M, 14.7),
            (32 * M, 17.7),
            (64 * M, 26.0),
            (128 * M, 41.6),
        ]);
        let knee = reach(&steps, 4.8).unwrap();
        assert_eq!((knee.bytes, knee.outside_ns), (6 * M, 17.7));
        let tables = curve(&[
            (256 * K, 0.0),
            (4 * M, 3.6),
            (6 * M, 5.2),
            (8 * M, 10.6),
            (10 * M, 16.3),
            (32 * M, 16.8),
            (64 * M, 19.4),
            (80 * M, 55.7),
            (96 * M, 67.0),
            (128 * M, 72.8),
            (256 * M, 155.8),
        ]);
        let knee = reach(&tables, 4.8).unwrap();
        let steps = far(&tables, &knee);
        let steps: Vec<(u64, f64)> = steps.iter().map(|far| (far.bytes, far.refill_ns)).collect();
        assert_eq!(steps, [(64 * M, 67.0), (128 * M, 155.8)]);
    }
}
