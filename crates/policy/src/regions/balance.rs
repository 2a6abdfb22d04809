//! The cache that each region gets: the largest region first, each to the cache with the least load (Lee12, sections
//! 2.1 and 4).

/// Something that gets a cache: a region, or an address space with all its regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its working set.
    pub bytes: u64,
    /// The cache that it has.
    pub now: Option<u32>,
}

/// The load of each cache: the load that was there already, and the working sets that it has been given.
pub fn loads(items: &[Item], given: &[u32], taken: &[u64]) -> Vec<u64> {
    let mut loads = taken.to_vec();
    for (item, &cache) in items.iter().zip(given) {
        loads[cache as usize] += item.bytes;
    }
    loads
}

/// A cache for each item, of those that `allowed` names (by number; at least one). `taken`: load that is there already.
///
/// An item that has a cache keeps it as long as the fullest cache is then fuller by at most an eighth than it need be: an item
/// that moves has to be brought into its new cache once.
pub fn balance(items: &[Item], allowed: &[u32], taken: &[u64]) -> Vec<u32> {
    let anew = greedy(items, allowed, taken, false);
    let kept = greedy(items, allowed, taken, true);
    let fullest = |given: &[u32]| {
        let loads = loads(items, given, taken);
        allowed.iter().map(|&cache| loads[cache as usize]).max().unwrap_or(0)
    };
    let bound = fullest(&anew) + fullest(&anew) / 8;
    match fullest(&kept) <= bound {
        true => kept,
        false => anew,
    }
}

fn greedy(items: &[Item], allowed: &[u32], taken: &[u64], keep: bool) -> Vec<u32> {
    let stays = |at: usize| items[at].now.filter(|now| keep && allowed.contains(now));
    let rank = |_: usize, cache: u32, _: &[Option<u32>]| allowed.contains(&cache).then_some(());
    let given = largest_first(items, taken, stays, rank);
    given.into_iter().map(|cache| cache.unwrap_or(allowed[0])).collect()
}

/// A cache for each item: those that stay first, then the largest, each to the cache of the lowest rank, and of these to the
/// one with the least load.
///
/// `stays` names the cache that an item keeps. `rank` ranks a cache for an item, by the load of the others so far;
/// `None` if the item may not have it. An item that may have none gets none.
pub fn largest_first<R: Ord>(
    items: &[Item],
    taken: &[u64],
    stays: impl Fn(usize) -> Option<u32>,
    rank: impl Fn(usize, u32, &[Option<u32>]) -> Option<R>,
) -> Vec<Option<u32>> {
    let mut loads = taken.to_vec();
    let mut order: Vec<usize> = (0..items.len()).collect();
    // Items that stay come first, since their load is there in any case.
    order.sort_by_key(|&at| (stays(at).is_none(), std::cmp::Reverse(items[at].bytes), at));
    let mut given = vec![None; items.len()];
    for at in order {
        let item = &items[at];
        let emptiest = || {
            let caches = (0..taken.len() as u32).filter_map(|cache| Some((rank(at, cache, &given)?, cache)));
            let key = |(rank, cache): (R, u32)| (rank, loads[cache as usize], Some(cache) != item.now, cache);
            caches.map(key).min().map(|(.., cache)| cache)
        };
        let Some(cache) = stays(at).or_else(emptiest) else {
            continue;
        };
        loads[cache as usize] += item.bytes;
        given[at] = Some(cache);
    }
    given
}

/// The caches that each of several address spaces may use, by their working sets.
///
/// With a preferred one (unfair partitioning, section 4): it has as many caches to itself as its working set fills, at least one,
/// and leaves at least one; the others share the rest. Without: each gets caches of its own as long as there are enough, those
/// that use more before others; else all may use all.
pub fn partition(working_sets: &[u64], preferred: Option<usize>, caches: u32, cache_bytes: u64) -> Vec<Vec<u32>> {
    let all: Vec<u32> = (0..caches).collect();
    let spaces = working_sets.len();
    if spaces < 2 || caches < 2 {
        return vec![all; spaces];
    }
    if let Some(preferred) = preferred.filter(|&preferred| preferred < spaces) {
        let filled = working_sets[preferred].div_ceil(cache_bytes.max(1));
        let own = filled.clamp(1, u64::from(caches) - 1) as usize;
        let (own, rest) = all.split_at(own);
        let of = |space| if space == preferred { own } else { rest };
        return (0..spaces).map(|space| of(space).to_vec()).collect();
    }
    if spaces > all.len() {
        return vec![all; spaces];
    }
    let mut counts = vec![1u32; spaces];
    for _ in spaces as u32..caches {
        // The next one goes to the space that has the most for each cache so far; the earlier of equals.
        let most = (0..spaces).max_by_key(|&space| {
            let each = working_sets[space] / u64::from(counts[space]);
            (each, std::cmp::Reverse(space))
        });
        counts[most.unwrap_or(0)] += 1;
    }
    let mut next = 0;
    let mut deal = |count: u32| {
        next += count;
        (next - count..next).collect()
    };
    counts.into_iter().map(&mut deal).collect()
}
