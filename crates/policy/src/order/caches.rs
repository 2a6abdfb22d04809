//! The cache at which each bin runs, run after run.

use std::ops::Range;

use crate::regions::balance::{Item, balance};

/// A cache for each bin of a tour. `weights`: the cost of running each, in any unit; `now`: the cache that it ran at
/// before.
///
/// If no bin has run before, each cache gets a part of the tour, so that bins that follow one another share a cache. Later a
/// bin stays at the cache that has its block, by the rule that gives regions their caches ([`balance`]): it moves only if the
/// fullest cache would be fuller by more than an eighth than it need be.
pub fn caches_of(weights: &[u64], now: &[Option<u32>], caches: u32) -> Vec<u32> {
    if now.iter().all(Option::is_none) {
        let parts = (0..).zip(cut(weights, caches as usize));
        return parts.flat_map(|(cache, part)| part.map(move |_| cache)).collect();
    }
    let item = |(&bytes, &now): (&u64, &Option<u32>)| Item { bytes, now };
    let items: Vec<Item> = weights.iter().zip(now).map(item).collect();
    let all: Vec<u32> = (0..caches).collect();
    balance(&items, &all, &vec![0; caches as usize])
}

/// Cuts a row of weights into parts of about the same weight. The last part has the rest.
pub fn cut(weights: &[u64], parts: usize) -> Vec<Range<usize>> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let (mut to, mut before) = (0, 0u128);
    let part = |number: usize| {
        let from = to;
        while to < weights.len() && (number == parts || before < total * number as u128 / parts as u128) {
            before += u128::from(weights[to]);
            to += 1;
        }
        from..to
    };
    (1..=parts).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_neighbors_share_a_cache() {
        assert_eq!(caches_of(&[1, 1, 1, 1], &[None; 4], 2), [0, 0, 1, 1]);
        assert_eq!(caches_of(&[3, 1, 1, 1], &[None; 4], 2), [0, 1, 1, 1]);
        assert!(caches_of(&[], &[], 2).is_empty());
        assert_eq!(cut(&[0, 0], 3), [0..0, 0..0, 0..2]);
    }

    #[test]
    fn a_bin_stays_where_its_block_is_until_a_cache_is_too_full() {
        let now = [Some(1), Some(0), Some(1), Some(0)];
        assert_eq!(caches_of(&[10, 10, 11, 10], &now, 2), [1, 0, 1, 0]);
        // A new bin goes to the emptier one.
        assert_eq!(
            caches_of(&[10, 10, 9, 10, 9], &[now[0], now[1], now[2], now[3], None], 2)[4],
            1
        );
        let all = caches_of(&[10, 10, 10, 10], &[Some(0); 4], 2);
        assert_eq!(all.iter().filter(|cache| **cache == 0).count(), 2, "{all:?}");
    }
}
