//! The hot pages (Verghese96, figure 7.2): the share of the misses that the pages with most of them take, and whether
//! TLB misses find the same pages.

use policy::MissLevel;

use super::stream::{Miss, MissStream};

/// Cache misses of the hottest pages, by two ways to find out which these are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotPages {
    /// Cache misses on the first page, on the first two, and so on: pages with most cache misses first.
    by_cache: Vec<u64>,
    /// The same, pages with most TLB misses first.
    by_tlb: Vec<u64>,
}

impl HotPages {
    /// The percentage of the cache misses that are on the first `percent` of the pages, by their cache misses.
    pub fn by_cache(&self, percent: f64) -> f64 {
        share(&self.by_cache, percent)
    }

    /// The same by their TLB misses.
    pub fn by_tlb(&self, percent: f64) -> f64 {
        share(&self.by_tlb, percent)
    }
}

/// Of the pages for which `counts` holds; a page counts as one of these even if nothing missed on it.
pub fn hot_pages(stream: &MissStream, counts: impl Fn(Miss) -> bool) -> HotPages {
    let mut cache = vec![0u64; stream.pages.len()];
    let mut tlb = cache.clone();
    for miss in stream.misses.iter().filter(|&&miss| counts(miss)) {
        let of = match miss.level() {
            MissLevel::Cache => &mut cache,
            MissLevel::Tlb => &mut tlb,
        };
        of[miss.page() as usize] += 1;
    }
    HotPages {
        by_cache: sums(&cache, &cache),
        by_tlb: sums(&cache, &tlb),
    }
}

/// Sums of `misses` in the descending order of `by`; of pages with as many, the one that was touched first comes first.
fn sums(misses: &[u64], by: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..misses.len()).collect();
    order.sort_by_key(|&page| std::cmp::Reverse(by[page]));
    let running = order.into_iter().scan(0, |sum, page| {
        *sum += misses[page];
        Some(*sum)
    });
    running.collect()
}

fn share(sums: &[u64], percent: f64) -> f64 {
    let pages = (percent / 100.0 * sums.len() as f64).round() as usize;
    let all = sums.last().copied().unwrap_or(0);
    if all == 0 || pages == 0 {
        return 0.0;
    }
    100.0 * sums[pages.min(sums.len()) - 1] as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::super::stream::tests::{READ, TLB, stream};
    use super::*;

    #[test]
    fn the_tlb_may_find_other_pages() {
        // Cache misses: page 0 has 1, page 1 has 6, page 2 has 3, page 3 none. TLB misses: 0, 1, 4 and 2.
        let mut misses = vec![(0, 0, READ)];
        misses.extend([(1, 0, READ); 6]);
        misses.extend([(2, 1, READ); 3]);
        misses.extend([(1, 0, TLB)]);
        misses.extend([(2, 0, TLB); 4]);
        misses.extend([(3, 0, TLB); 2]);
        let hot = hot_pages(&stream(4, &misses), |_| true);
        assert_eq!(
            [0.0, 25.0, 50.0, 75.0, 100.0].map(|percent| hot.by_cache(percent)),
            [0.0, 60.0, 90.0, 100.0, 100.0]
        );
        // Page 2, page 3, page 1, page 0.
        assert_eq!(
            [25.0, 50.0, 75.0, 100.0].map(|percent| hot.by_tlb(percent)),
            [30.0, 30.0, 90.0, 100.0]
        );
    }
}
