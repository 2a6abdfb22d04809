//! The greedy path of steps 2 and 3 (Bugnion96, section 5.2): visits each node of a graph once, along edges while it can.
//!
//! Both graphs of the paper are given by groups: two nodes are adjacent if some group has both. Sets of cpus are
//! adjacent where a cpu is in both, arrays where a loop uses both. So edges are not stored, of which there may be as
//! many as pairs.
//!
//! The paper leaves open where to start and which of several adjacent nodes to take. Here nodes come numbered in the
//! order of preference, and the lowest number is taken each time; the callers say which order and why.

/// The nodes in the order of the path. `groups[node]` are the groups of each node, numbered below `count`.
///
/// Time and memory are linear in the memberships.
pub(super) fn path(groups: &[Vec<u32>], count: usize) -> Vec<usize> {
    // Members in ascending order: the first that has not been visited is the one to take.
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (node, groups) in groups.iter().enumerate() {
        for &group in groups {
            members[group as usize].push(node);
        }
    }
    let mut visited = vec![false; groups.len()];
    let mut looked = vec![0; count];
    let mut path: Vec<usize> = Vec::with_capacity(groups.len());
    let mut fresh = 0;
    while path.len() < groups.len() {
        let adjacent = path.last().and_then(|&last: &usize| {
            let best = groups[last].iter().filter_map(|&group| {
                let (members, looked) = (&members[group as usize], &mut looked[group as usize]);
                while members.get(*looked).is_some_and(|&node| visited[node]) {
                    *looked += 1;
                }
                members.get(*looked).copied()
            });
            best.min()
        });
        let next = adjacent.unwrap_or_else(|| {
            while visited[fresh] {
                fresh += 1;
            }
            fresh
        });
        visited[next] = true;
        path.push(next);
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn goes_along_edges_and_then_starts_again() {
        // 0 and 3 by group 0, 3 and 1 by group 1, 2 alone.
        let groups = [vec![0], vec![1], vec![], vec![0, 1]];
        assert_eq!(path(&groups, 2), [0, 3, 1, 2]);
        assert_eq!(path(&[], 0), [0usize; 0]);
    }

    proptest! {
        /// The same choice by looking at all nodes each time.
        #[test]
        fn is_the_greedy_path(groups in prop::collection::vec(prop::collection::btree_set(0u32..6, 0..4), 0..12)) {
            let groups: Vec<Vec<u32>> = groups.into_iter().map(|set| set.into_iter().collect()).collect();
            let mut left: Vec<usize> = (0..groups.len()).collect();
            let mut expected: Vec<usize> = Vec::new();
            while !left.is_empty() {
                let adjacent = expected.last().and_then(|&last: &usize| {
                    left.iter().position(|&node| groups[node].iter().any(|group| groups[last].contains(group)))
                });
                expected.push(left.remove(adjacent.unwrap_or(0)));
            }
            prop_assert_eq!(path(&groups, 6), expected);
        }
    }
}
