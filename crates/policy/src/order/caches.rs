//! Which cache each bin runs at, run after run.

use crate::regions::balance::{Item, balance};

/// A cache for each bin of a tour. `weights`: what running each takes, in any unit; `now`: the cache that it ran at before.
///
/// Where no bin has run before, each cache gets a part of the tour, so that bins that follow one another share a cache. Later a
/// bin stays where its block is, by the rule that gives regions their caches ([`balance`]): it moves only where the fullest
/// cache would be fuller by more than an eighth than it need be.
pub fn caches_of(weights: &[u64], now: &[Option<u32>], caches: u32) -> Vec<u32> {
    if now.iter().all(Option::is_none) {
        return parts(weights, caches);
    }
    let item = |(&bytes, &now): (&u64, &Option<u32>)| Item { bytes, now };
    let items: Vec<Item> = weights.iter().zip(now).map(item).collect();
    let all: Vec<u32> = (0..caches).collect();
    balance(&items, &all, &vec![0; caches as usize])
}

/// The number of the part that each lies in, where a row of weights is cut into parts of about the same weight.
pub fn parts(weights: &[u64], parts: u32) -> Vec<u32> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let mut before = 0u128;
    let mut part = 0;
    let cut = |&weight: &u64| {
        // A part is full once it has its share of what there is.
        while part + 1 < parts && before * u128::from(parts) >= total * u128::from(part + 1) {
            part += 1;
        }
        before += u128::from(weight);
        part
    };
    weights.iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_neighbors_share_a_cache() {
        assert_eq!(caches_of(&[1, 1, 1, 1], &[None; 4], 2), [0, 0, 1, 1]);
        assert_eq!(caches_of(&[3, 1, 1, 1], &[None; 4], 2), [0, 1, 1, 1]);
        assert!(caches_of(&[], &[], 2).is_empty());
        assert_eq!(parts(&[0, 0], 3), [2, 2]);
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
