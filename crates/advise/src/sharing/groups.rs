//! Groups of threads that belong under one cache: greedy clustering of the sharing graph.
//!
//! Each thread begins as its own group. Repeatedly, the two groups that share most are merged, on average over the
//! pairs of their threads: agglomerative clustering by average linkage, over what Tam, Azimi and Stumm ("Thread
//! Clustering: Sharing-Aware Scheduling on SMP-CMP-SMT Multiprocessors", EuroSys 2007) sampled and clustered. The
//! sharing of two threads is the sum of their misses and the lines that both touched. Two groups stay apart if
//!
//! - they have more threads than a cache's part of them;
//! - each fits a cache, and both together do not;
//! - their average is less than a third of what the threads within one of them share on average: another group, that both
//!   happen to know;
//! - their average is less than a hundredth of the most that two threads share.
//!
//! The lowest threads decide between equals, so the same graph gives the same groups.

use results::{SharingGraph, SharingGroup};
use sim::{Sharing, ThreadSet};

/// As a part of the most that two threads share; less is chance.
const CHANCE: f64 = 0.01;
/// As a part of what threads of a group share; less is another group.
const OTHERS: f64 = 1.0 / 3.0;

struct Group {
    threads: Vec<u32>,
    set: ThreadSet,
    /// Bytes that any of them touched.
    bytes: u64,
    /// The total sharing of its pairs.
    within: u64,
}

impl Group {
    /// The average over its pairs; `None` for one thread.
    fn cohesion(&self) -> Option<f64> {
        let threads = self.threads.len() as f64;
        (self.threads.len() > 1).then(|| self.within as f64 / (threads * (threads - 1.0) / 2.0))
    }
}

/// Groups of at most `most` threads, for caches of `capacity` bytes; those with most misses first.
pub fn groups(sharing: &Sharing, most: usize, capacity: u64) -> Vec<SharingGroup> {
    let graph = &sharing.graph;
    let count = graph.threads.len();
    // The sharing of each two groups, by the groups' positions.
    let mut shared = vec![vec![0u64; count]; count];
    for edge in &graph.edges {
        let weight = edge.misses + edge.bytes / graph.line_bytes.max(1);
        shared[edge.a as usize][edge.b as usize] = weight;
        shared[edge.b as usize][edge.a as usize] = weight;
    }
    let least = shared.iter().flatten().max().map_or(0.0, |most| *most as f64 * CHANCE);
    let alone = |thread: u32| {
        let mut set = ThreadSet::default();
        set.add(thread);
        Some(Group {
            threads: vec![thread],
            set,
            bytes: graph.threads[thread as usize].bytes,
            within: 0,
        })
    };
    let mut groups: Vec<Option<Group>> = (0..count as u32).map(alone).collect();
    let mut refused = vec![vec![false; count]; count];
    while let Some((a, b)) = next(&groups, &shared, &refused, most, least) {
        let (Some(one), Some(other)) = (groups[a].take(), groups[b].take()) else {
            break;
        };
        let mut set = one.set;
        other.threads.iter().for_each(|thread| set.add(*thread));
        let bytes = touched(sharing, &set);
        if bytes > capacity && one.bytes <= capacity && other.bytes <= capacity {
            refused[a][b] = true;
            (groups[a], groups[b]) = (Some(one), Some(other));
            continue;
        }
        let within = one.within + other.within + shared[a][b];
        let mut threads = [one.threads, other.threads].concat();
        threads.sort_unstable();
        groups[a] = Some(Group {
            threads,
            set,
            bytes,
            within,
        });
        for place in 0..count {
            let both = shared[a][place] + shared[b][place];
            (shared[a][place], shared[place][a]) = (both, both);
            (refused[a][place], refused[place][a]) = (false, false);
        }
    }
    let mut found: Vec<SharingGroup> = groups.into_iter().flatten().map(|group| report(group, graph)).collect();
    found.sort_by_key(|group| {
        (
            std::cmp::Reverse((group.threads.len() > 1, group.misses)),
            group.threads[0],
        )
    });
    found
}

/// The next two groups to merge, by their positions, the lower one first.
fn next(
    groups: &[Option<Group>],
    shared: &[Vec<u64>],
    refused: &[Vec<bool>],
    most: usize,
    least: f64,
) -> Option<(usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for (a, one) in groups.iter().enumerate() {
        let Some(one) = one else { continue };
        for (b, other) in groups.iter().enumerate().skip(a + 1) {
            let Some(other) = other else { continue };
            let pairs = one.threads.len() * other.threads.len();
            let average = shared[a][b] as f64 / pairs as f64;
            let enough = |group: &Group| group.cohesion().is_none_or(|within| average >= OTHERS * within);
            if shared[a][b] > 0
                && one.threads.len() + other.threads.len() <= most
                && average >= least
                && !refused[a][b]
                && best.is_none_or(|(known, ..)| average > known)
                && enough(one)
                && enough(other)
            {
                best = Some((average, a, b));
            }
        }
    }
    best.map(|(_, a, b)| (a, b))
}

/// Bytes of the lines that any of these threads touched.
fn touched(sharing: &Sharing, threads: &ThreadSet) -> u64 {
    let of = sharing.sets.iter().filter(|(set, _)| set.meets(threads));
    of.map(|(_, bytes)| bytes).sum()
}

fn report(group: Group, graph: &SharingGraph) -> SharingGroup {
    let within = |thread: u32| group.set.has(thread);
    let edges = graph.edges.iter().filter(|edge| within(edge.a) && within(edge.b));
    SharingGroup {
        misses: edges.map(|edge| edge.misses).sum(),
        bytes: group.bytes,
        threads: group.threads,
        ..SharingGroup::default()
    }
}
