//! Uniform access sets, and step 2: their order (Bugnion96, section 5.2).
//!
//! Sets are nodes of a graph, adjacent where their cpus intersect. Those of one or two cpus are put in a greedy path.
//! Of several adjacent ones the path takes the one with the fewest cpus, then the one with the lowest: from the pages
//! of cpus 0 and 1 it goes to those of cpu 1 alone and not past them. It starts, and starts again where it is stuck, with
//! the lowest cpu alone, as far as there are such.
//!
//! Every other set is inserted next to the one with which it has the most cpus in common: the first of these in the path,
//! and on the side where the neighbour has more in common with it. They are inserted from few cpus to many, and those
//! inserted before count too. A set without cpus comes last.

use std::collections::BTreeMap;

use super::path::path;
use super::segments::Segment;

/// Segments that the same cpus touch.
#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) cpus: u128,
    /// Indices, by address.
    pub(super) segments: Vec<usize>,
}

/// Comparisons of sets of more than two cpus with each other, as long as each has its [`LEAST`].
const MOST: usize = 1 << 22;
const LEAST: usize = 16;

/// The segments, which are sorted by address, grouped by their cpus; the sets in the order of preference.
pub(super) fn group(segments: &[Segment]) -> Vec<Members> {
    let mut sets: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
    for (index, segment) in segments.iter().enumerate() {
        sets.entry(segment.cpus).or_default().push(index);
    }
    let mut sets: Vec<Members> = sets
        .into_iter()
        .map(|(cpus, segments)| Members { cpus, segments })
        .collect();
    sets.sort_by_key(|set| preference(set.cpus));
    sets
}

/// Fewest cpus first, then the lowest; no cpus at all last.
fn preference(cpus: u128) -> (u32, u128) {
    let many = if cpus == 0 { u32::MAX } else { cpus.count_ones() };
    (many, cpus.reverse_bits() ^ u128::MAX)
}

/// The sets, which come as [`group`] makes them, in the order of the path.
pub(super) fn in_order(sets: Vec<Members>) -> Vec<Members> {
    let order = places(&sets.iter().map(|set| set.cpus).collect::<Vec<_>>());
    let mut sets: Vec<Option<Members>> = sets.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| sets[index].take()).collect()
}

/// Indices of the sets in the order of the path. `cpus` are in the order of preference.
fn places(cpus: &[u128]) -> Vec<usize> {
    let few = cpus.partition_point(|cpus| (1..=2).contains(&cpus.count_ones()));
    let untouched = cpus.partition_point(|&cpus| cpus != 0);
    let members = |set: &u128| (0..128).filter(|cpu| set >> cpu & 1 == 1).collect();
    let groups: Vec<Vec<u32>> = cpus[..few].iter().map(members).collect();
    let path = path(&groups, 128);
    // The path as a ring of links, in which `end` stands for both ends.
    let end = cpus.len();
    let (mut next, mut last) = (vec![end; end + 1], vec![end; end + 1]);
    for &set in &path {
        let tail = last[end];
        (next[tail], last[set], next[set], last[end]) = (set, tail, end, set);
    }
    let line = Path::new(&path, &groups);
    let compared = (MOST / (untouched - few).max(1)).max(LEAST);
    for set in few..untouched {
        let common = |other: usize| match other == end {
            true => 0,
            false => (cpus[other] & cpus[set]).count_ones(),
        };
        let members: Vec<usize> = (0..128).filter(|cpu| cpus[set] >> cpu & 1 == 1).collect();
        let (mut near, mut most) = line.nearest(&members).unzip();
        for inserted in few.max(set.saturating_sub(compared))..set {
            if common(inserted) > most.unwrap_or(0) {
                (near, most) = (Some(inserted), Some(common(inserted)));
            }
        }
        let (before, after) = match near {
            None => (last[end], end),
            Some(near) if common(last[near]) > common(next[near]) => (last[near], near),
            Some(near) => (near, next[near]),
        };
        (next[before], last[set], next[set], last[after]) = (set, before, after, set);
    }
    let walk = std::iter::successors(Some(next[end]), |&set| Some(next[set]));
    walk.take_while(|&set| set != end).chain(untouched..end).collect()
}

/// The places of the sets of one or two cpus in their path.
struct Path<'a> {
    path: &'a [usize],
    /// For each two cpus the place of their set; rows of 128.
    pairs: Vec<Option<usize>>,
    /// The first place of each cpu.
    first: [Option<usize>; 128],
}

impl Path<'_> {
    fn new<'a>(path: &'a [usize], members: &[Vec<u32>]) -> Path<'a> {
        let (mut pairs, mut first) = (vec![None; 128 * 128], [None; 128]);
        for (place, &set) in path.iter().enumerate() {
            for &cpu in &members[set] {
                first[cpu as usize].get_or_insert(place);
            }
            if let [low, high] = members[set][..] {
                pairs[low as usize * 128 + high as usize] = Some(place);
            }
        }
        Path { path, pairs, first }
    }

    /// The first set with the most cpus in common, and how many those are.
    fn nearest(&self, cpus: &[usize]) -> Option<(usize, u32)> {
        let pairs = cpus.iter().enumerate().flat_map(|(at, low)| {
            cpus[at + 1..]
                .iter()
                .filter_map(move |high| self.pairs[low * 128 + high])
        });
        let one = || {
            cpus.iter()
                .filter_map(|&cpu| self.first[cpu])
                .min()
                .map(|place| (place, 1))
        };
        let best = pairs.min().map(|place| (place, 2)).or_else(one);
        best.map(|(place, common)| (self.path[place], common))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets as lists of cpus, before and after.
    fn ordered(sets: &[&[u32]]) -> Vec<Vec<u32>> {
        let mut cpus: Vec<u128> = sets.iter().map(|set| set.iter().map(|cpu| 1 << cpu).sum()).collect();
        cpus.sort_by_key(|&cpus| preference(cpus));
        let list = |set: usize| (0..128).filter(|cpu| cpus[set] >> cpu & 1 == 1).collect();
        places(&cpus).into_iter().map(list).collect()
    }

    #[test]
    fn what_two_cpus_share_lies_between_what_each_has_alone() {
        assert_eq!(
            ordered(&[&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 2]]),
            [vec![0], vec![0, 1], vec![1], vec![1, 2], vec![2], vec![0, 2]]
        );
    }

    #[test]
    fn many_cpus_go_next_to_the_largest_overlap_and_none_go_last() {
        assert_eq!(
            ordered(&[
                &[],
                &[0],
                &[1],
                &[2],
                &[3],
                &[1, 2],
                &[1, 2, 3],
                &[0, 1, 2, 3],
                &[5, 6, 7]
            ]),
            [
                vec![0],
                vec![1],
                vec![1, 2],
                vec![0, 1, 2, 3],
                vec![1, 2, 3],
                vec![2],
                vec![3],
                vec![5, 6, 7],
                vec![]
            ]
        );
    }

    #[test]
    fn no_set_is_lost_among_thousands() {
        let mut cpus: Vec<u128> = (1..6000u128)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_1234_5678_9abc_def1))
            .collect();
        cpus.sort_by_key(|&cpus| preference(cpus));
        cpus.dedup();
        let mut order = places(&cpus);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..cpus.len()));
    }

    proptest::proptest! {
        /// Step 2 in the paper's words, looking at all sets in the path each time.
        #[test]
        fn sets_are_inserted_next_to_the_largest_overlap(sets in proptest::collection::btree_set(1u128..64, 0..30)) {
            let mut cpus: Vec<u128> = sets.into_iter().collect();
            cpus.sort_by_key(|&cpus| preference(cpus));
            let small = cpus.partition_point(|cpus| cpus.count_ones() <= 2);
            let mut expected = places(&cpus[..small]);
            let path = expected.clone();
            for set in small..cpus.len() {
                let common = |other: Option<&usize>| other.map_or(0, |&other| (cpus[other] & cpus[set]).count_ones());
                let candidates = path.iter().copied().chain(small..set);
                let nearest = candidates.rev().max_by_key(|other| common(Some(other)));
                let Some(nearest) = nearest.filter(|other| common(Some(other)) > 0) else {
                    expected.push(set);
                    continue;
                };
                let at = expected.iter().position(|&other| other == nearest).unwrap();
                let before = at.checked_sub(1).map_or(0, |before| common(expected.get(before)));
                expected.insert(if before > common(expected.get(at + 1)) { at } else { at + 1 }, set);
            }
            proptest::prop_assert_eq!(places(&cpus), expected);
        }
    }
}
