//! The order of work, against oracles that are too slow or too simple to ship.

use std::collections::{HashMap, HashSet};

use policy::order::{Bins, BinsError, Block, HINTS_MAX, Limit, Shape, ShapeError, Tour, default_block};
use proptest::prelude::*;

const TOURS: [Tour; 3] = [Tour::FirstFork, Tour::Nearest, Tour::Hilbert];

/// Philbin96, section 2.4: vectors of one unit, a cache of four, and so blocks of two by two.
#[test]
fn the_papers_four_bins_in_its_order() {
    let mut bins = Bins::new(Shape::new(&[2, 2]).unwrap());
    let mut held: Vec<Vec<u64>> = Vec::new();
    for thread in 0..16u64 {
        let bin = bins.bin(&[thread / 4, thread % 4]).unwrap() as usize;
        held.resize(held.len().max(bin + 1), Vec::new());
        held[bin].push(thread + 1);
    }
    assert_eq!(held, [[1, 2, 5, 6], [3, 4, 7, 8], [9, 10, 13, 14], [11, 12, 15, 16]]);
    assert_eq!(bins.tour(Tour::FirstFork), [0, 1, 2, 3]);
}

/// Philbin96, section 2.3: folding leaves half of the off-diagonal blocks.
#[test]
fn folding_puts_symmetric_hints_into_one_bin() {
    let mut bins = Bins::new(Shape::new(&[10, 10]).unwrap().fold().unwrap());
    for one in 0..8u64 {
        for other in 0..8u64 {
            bins.bin(&[one * 10, other * 10 + 9]).unwrap();
        }
    }
    assert_eq!(bins.len(), 8 * 9 / 2);
    assert_eq!(bins.bin(&[70, 15]), bins.bin(&[15, 70]));
}

#[test]
fn impossible_shapes_are_refused() {
    assert_eq!(Shape::new(&[]), Err(ShapeError::Dimensions(0)));
    assert_eq!(Shape::new(&[1; HINTS_MAX + 1]), Err(ShapeError::Dimensions(9)));
    assert_eq!(Shape::new(&[4, 0]), Err(ShapeError::Empty(1)));
    let uneven = Shape::new(&[4, 8]).unwrap();
    assert_eq!(
        uneven.clone().fold(),
        Err(ShapeError::Fold {
            dimension: 1,
            side: 8,
            first: 4
        })
    );
    assert_eq!(
        uneven.clone().within(&[8]),
        Err(ShapeError::Levels { outer: 1, inner: 2 })
    );
    let multiple = ShapeError::Multiple {
        dimension: 1,
        outer: 12,
        inner: 8,
    };
    assert_eq!(uneven.clone().within(&[8, 12]), Err(multiple));
    let third = uneven
        .within(&[8, 16])
        .unwrap()
        .within(&[16, 16])
        .unwrap()
        .within(&[16, 24]);
    assert_eq!(
        third,
        Err(ShapeError::Multiple {
            dimension: 1,
            outer: 24,
            inner: 16
        })
    );
    let mut bins = Bins::new(Shape::new(&[4, 4]).unwrap());
    assert_eq!(bins.bin(&[1]), Err(BinsError::Hints { expected: 2, given: 1 }));
    assert_eq!(bins.reserve(usize::MAX / 2), Err(BinsError::OutOfMemory));
    assert!(bins.is_empty());
}

#[test]
fn the_default_block_is_limited_by_the_cache_or_by_the_tlb() {
    let cache = default_block(2 << 20, None, 2);
    assert_eq!((cache.bytes, cache.limit), (1 << 20, Limit::Cache));
    assert!(
        cache.reason.contains("2097152") && cache.reason.contains("not known"),
        "{}",
        cache.reason
    );
    // Power Indigo2: 384 entries of 4 KB reach less than its 2 MB cache.
    let tlb = default_block(2 << 20, Some(384 * 4096), 3);
    assert_eq!((tlb.bytes, tlb.limit), (512 << 10, Limit::TlbReach));
    assert!(
        tlb.reason.contains("1572864") && tlb.reason.contains("2097152"),
        "{}",
        tlb.reason
    );
    let both = default_block(8 << 20, Some(16 << 20), 1);
    assert_eq!((both.bytes, both.limit), (8 << 20, Limit::Cache));
    assert!(both.reason.contains("covers"), "{}", both.reason);
    assert_eq!(default_block(0, Some(0), 0).bytes, 1);
}

/// On a full grid whose sides are powers of two, every step of a Hilbert curve goes to a neighbour.
#[test]
fn hilbert_visits_a_full_grid_by_steps_of_one() {
    for (dimensions, bits) in [(1, 6), (2, 5), (3, 3), (4, 2), (5, 2), (8, 1)] {
        let side = 1u64 << bits;
        let blocks: Vec<Block> = (0..1u64 << (bits * dimensions as u32))
            .map(|number| {
                let mut block = Block::default();
                for d in 0..dimensions {
                    // Starts at an offset, because real blocks do not begin at 0.
                    block.0[d] = 1000 + (number >> (bits * d as u32)) % side;
                }
                block
            })
            .collect();
        let order = Tour::Hilbert.of(&blocks, dimensions);
        assert_eq!(order.iter().collect::<HashSet<_>>().len(), blocks.len());
        for pair in order.windows(2) {
            let step = apart(&blocks[pair[0] as usize], &blocks[pair[1] as usize]);
            assert_eq!(step, 1, "{dimensions} dimensions of {side}");
        }
    }
}

/// A hundred thousand bins are toured in the time of a test.
#[test]
fn nearest_neighbour_tours_a_hundred_thousand_bins() {
    let blocks: Vec<Block> = (0..317u64 * 317)
        .map(|at| block(&[at * 7919 % 317, at / 317]))
        .collect();
    let order = Tour::Nearest.of(&blocks, 2);
    assert_eq!(order.iter().collect::<HashSet<_>>().len(), blocks.len());
    let length: u128 = order
        .windows(2)
        .map(|p| apart(&blocks[p[0] as usize], &blocks[p[1] as usize]))
        .sum();
    let first_fork: u128 = blocks.windows(2).map(|pair| apart(&pair[0], &pair[1])).sum();
    assert!(
        length < 2 * blocks.len() as u128,
        "{length} steps, {first_fork} in order of first fork"
    );
}

/// The same holds for bins scattered in three dimensions, most of them in two dense clouds.
#[test]
fn nearest_neighbour_tours_fifty_thousand_scattered_bins() {
    let mut seed = 1u64;
    let mut draw = |below: u64| {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) % below
    };
    let points: Vec<Vec<u64>> = (0..50_000)
        .map(|at| match at % 5 {
            0 => (0..3).map(|_| draw(100_000)).collect(),
            cloud => (0..3).map(|_| 40_000 * (cloud % 2) + draw(200)).collect(),
        })
        .collect();
    let blocks = distinct(&points);
    let order = Tour::Nearest.of(&blocks, 3);
    assert_eq!(order.iter().collect::<HashSet<_>>().len(), blocks.len());
}

fn block(at: &[u64]) -> Block {
    let mut block = Block::default();
    block.0[..at.len()].copy_from_slice(at);
    block
}

fn apart(one: &Block, other: &Block) -> u128 {
    one.0
        .iter()
        .zip(&other.0)
        .map(|(a, b)| u128::from(a.abs_diff(*b)))
        .sum()
}

/// Greedy, by looking at all that are left.
fn slow_nearest(blocks: &[Block]) -> Vec<u32> {
    let mut left: Vec<u32> = (1..blocks.len() as u32).collect();
    let mut order = vec![0];
    while !left.is_empty() {
        let here = blocks[order[order.len() - 1] as usize];
        let (at, _) = left
            .iter()
            .enumerate()
            .min_by_key(|&(_, &b)| (apart(&here, &blocks[b as usize]), b))
            .unwrap();
        order.push(left.remove(at));
    }
    order
}

fn distinct(points: &[Vec<u64>]) -> Vec<Block> {
    let mut seen = HashSet::new();
    points
        .iter()
        .map(|point| block(point))
        .filter(|block| seen.insert(*block))
        .collect()
}

/// Coordinates near one another, far apart, and at the ends of their range.
fn coordinate() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..6u64, 2 => 0..1000u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn points() -> impl Strategy<Value = (usize, Vec<Vec<u64>>)> {
    (1..=HINTS_MAX).prop_flat_map(|k| {
        (
            Just(k),
            prop::collection::vec(prop::collection::vec(coordinate(), k), 1..200),
        )
    })
}

proptest! {
    #[test]
    fn a_block_is_the_quotient(hint in coordinate(), side in prop_oneof![1..20u64, any::<u64>().prop_map(|s| s.max(1))]) {
        prop_assert_eq!(Shape::new(&[side]).unwrap().block(&[hint]).0[0], hint / side);
    }

    #[test]
    fn bins_are_the_blocks_in_order_of_first_use(
        (k, points) in points(),
        side in prop_oneof![Just(1u64), Just(2), Just(3), Just(64)],
        fold: bool,
    ) {
        let mut shape = Shape::new(&vec![side; k]).unwrap();
        if fold {
            shape = shape.fold().unwrap();
        }
        let mut bins = Bins::new(shape.clone());
        let mut oracle: HashMap<Vec<u64>, u32> = HashMap::new();
        for point in &points {
            let mut key: Vec<u64> = point.iter().map(|hint| hint / side).collect();
            if fold {
                key.sort_unstable();
            }
            let next = oracle.len() as u32;
            let expected = *oracle.entry(key.clone()).or_insert(next);
            prop_assert_eq!(bins.bin(point), Ok(expected));
            prop_assert_eq!(&bins.block(expected).0[..k], &key[..]);
            prop_assert_eq!(bins.block(expected), shape.block(point));
            prop_assert_eq!(bins.find(&shape.block(point)), Some(expected));
        }
        prop_assert_eq!(bins.len(), oracle.len());
        bins.clear();
        prop_assert_eq!(bins.find(&shape.block(&points[0])), None);
        prop_assert_eq!(bins.bin(&points[0]), Ok(0));
    }

    #[test]
    fn tours_are_permutations((k, points) in points()) {
        let blocks = distinct(&points);
        for tour in TOURS {
            let mut order = tour.of(&blocks, k);
            order.sort_unstable();
            prop_assert_eq!(order, (0..blocks.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nearest_is_nearest((k, points) in points()) {
        let blocks = distinct(&points);
        prop_assert_eq!(Tour::Nearest.of(&blocks, k), slow_nearest(&blocks));
    }

    /// With levels, bins that share an outer block are never interrupted, at any level.
    #[test]
    fn levels_keep_outer_bins_together((k, points) in points()) {
        let shape = Shape::new(&vec![2; k]).unwrap().within(&vec![4; k]).unwrap().within(&vec![12; k]).unwrap();
        let mut bins = Bins::new(shape);
        for point in &points {
            bins.bin(point).unwrap();
        }
        for tour in TOURS {
            let order = bins.tour(tour);
            prop_assert_eq!(order.iter().collect::<HashSet<_>>().len(), bins.len());
            for held in [2, 6] {
                let mut visited: Vec<Vec<u64>> =
                    order.iter().map(|&bin| bins.block(bin).0.iter().map(|at| at / held).collect()).collect();
                visited.dedup();
                let outer: HashSet<Vec<u64>> = visited.iter().cloned().collect();
                prop_assert_eq!(outer.len(), visited.len());
            }
        }
    }
}
