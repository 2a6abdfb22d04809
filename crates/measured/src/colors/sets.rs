//! Sets of pages that should compete for one color, and sets that should not; pure.

use std::collections::HashMap;

use crate::chase::Random;
use machine::Colors;

/// Lowest bit of an address that the choice of a frame decides.
pub const FIRST_BIT: u32 = Colors::FIRST_BIT;
/// Lines of 64 bytes in a page of 4 KiB.
pub const LINES: u32 = 64;
/// Words of 8 bytes in a line.
pub const WORDS: u32 = 8;

/// A page, and what is known of its frame's physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its place in the area that is walked.
    pub page: u32,
    /// The address, of which only the known bits count.
    pub address: u64,
}

/// Pages by the value of some bits of their frames' addresses.
pub struct Sorted {
    /// The first bit, and the number of bits.
    first: u32,
    bits: u32,
    by_value: HashMap<u64, Vec<u32>>,
}

impl Sorted {
    pub fn new(pages: &[Known], first: u32, bits: u32) -> Sorted {
        let mut by_value: HashMap<u64, Vec<u32>> = HashMap::new();
        for known in pages {
            let value = known.address >> first & ((1 << bits) - 1);
            by_value.entry(value).or_default().push(known.page);
        }
        Sorted { first, bits, by_value }
    }

    /// The lowest bit of the address that the values begin with.
    pub fn first(&self) -> u32 {
        self.first
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The most pages that a set of equal pages can have wherever it is looked for.
    pub fn most(&self) -> usize {
        if self.by_value.len() < 1 << self.bits {
            return 0;
        }
        self.by_value.values().map(Vec::len).min().unwrap_or(0)
    }

    /// `count` pages that agree in all bits except those of `mask` (whose lowest bit is the first of these bits): one
    /// half has them as they are, the other half all flipped. A mask of 0 gives pages that agree in everything.
    ///
    /// Requires: `count` is at most [`Sorted::most`].
    pub fn agreeing(&self, value: u64, mask: u64, count: usize, random: &mut Random) -> Vec<u32> {
        let flipped = if mask == 0 { 0 } else { count / 2 };
        let mut pages = self.some(value, count - flipped, random);
        if flipped > 0 {
            pages.extend(self.some(value ^ mask, flipped, random));
        }
        pages
    }

    /// `count` pages that take every value of these bits in turn.
    pub fn mixed(&self, count: usize, random: &mut Random) -> Vec<u32> {
        let values = 1u64 << self.bits;
        let begin = random.below(values);
        let turns = count.div_ceil(values as usize);
        let mut order: Vec<u32> = (0..values.min(1 << 20) as u32).collect();
        random.shuffle(&mut order);
        let mut pages = Vec::with_capacity(count);
        for value in order {
            if pages.len() >= count {
                break;
            }
            let wanted = turns.min(count - pages.len());
            pages.extend(self.some((u64::from(value) + begin) % values, wanted, random));
        }
        pages
    }

    /// A value, at random.
    pub fn value(&self, random: &mut Random) -> u64 {
        random.below(1 << self.bits)
    }

    fn some(&self, value: u64, count: usize, random: &mut Random) -> Vec<u32> {
        let all = self.by_value.get(&value).map_or(&[][..], Vec::as_slice);
        let mut chosen: Vec<u32> = (0..all.len() as u32).collect();
        random.shuffle(&mut chosen);
        chosen.truncate(count);
        chosen.into_iter().map(|place| all[place as usize]).collect()
    }
}

/// The first word of every line of each page (words counted from the area's start), all in random
/// order: the next load's page says nothing of its line, and no prefetcher finds a pattern.
pub fn dense(pages: &[u32], random: &mut Random) -> Vec<u32> {
    let mut words: Vec<u32> = pages
        .iter()
        .flat_map(|page| (page * LINES..(page + 1) * LINES).map(|line| line * WORDS))
        .collect();
    random.shuffle(&mut words);
    words
}

/// Every word of one line of each page, all in random order, with the lines spread over the sets of the innermost
/// cache: the cost of translation alone for the same pages, visited again and again in random order.
///
/// One visit a page would not do: pages in a cycle are the worst that a TLB can meet, and pages at
/// random are not.
pub fn sparse(pages: &[u32], random: &mut Random) -> Vec<u32> {
    let mut words: Vec<u32> = pages
        .iter()
        .zip(0u32..)
        .flat_map(|(page, place)| {
            let line = (page * LINES + place % LINES) * WORDS;
            line..line + WORDS
        })
        .collect();
    random.shuffle(&mut words);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<Known> {
        let at = |page: u32| Known {
            page,
            // Frames in another order than pages.
            address: u64::from(page * 7 % 1024) << 12 | 1 << 40,
        };
        (0..1024).map(at).collect()
    }

    #[test]
    fn equal_pages_agree_and_flipped_ones_differ_in_the_mask_alone() {
        let pages = pages();
        let sorted = Sorted::new(&pages, 13, 4);
        assert_eq!(sorted.most(), 64);
        let mut random = Random(3);
        let value = |page: u32| pages[page as usize].address >> 13 & 15;
        for mask in 0..16u64 {
            let set = sorted.agreeing(5, mask, 31, &mut random);
            assert_eq!(set.len(), 31);
            let flipped = set.iter().filter(|&&page| value(page) == 5 ^ mask).count();
            assert_eq!(flipped, if mask == 0 { 31 } else { 15 });
            assert!(set.iter().all(|&page| value(page) == 5 || value(page) == 5 ^ mask));
            let mut once = set.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), 31, "a page came twice");
        }
    }

    #[test]
    fn mixed_pages_take_all_values_equally() {
        let pages = pages();
        let sorted = Sorted::new(&pages, 12, 3);
        let set = sorted.mixed(40, &mut Random(4));
        for value in 0..8 {
            let of = set
                .iter()
                .filter(|&&page| pages[page as usize].address >> 12 & 7 == value);
            assert_eq!(of.count(), 5);
        }
        assert_eq!(sorted.mixed(3, &mut Random(4)).len(), 3);
    }

    #[test]
    fn a_value_that_no_page_has_allows_no_sets() {
        let pages: Vec<Known> = pages()
            .into_iter()
            .filter(|known| known.address >> 12 & 3 != 2)
            .collect();
        assert_eq!(Sorted::new(&pages, 12, 2).most(), 0);
    }

    #[test]
    fn walks_visit_what_they_should() {
        let mut words = dense(&[3, 9], &mut Random(5));
        words.sort_unstable();
        let lines: Vec<u32> = (192..256).chain(576..640).collect();
        assert_eq!(words, lines.iter().map(|line| line * 8).collect::<Vec<u32>>());
        let mut words = sparse(&[3, 9, 4], &mut Random(5));
        words.sort_unstable();
        let lines = [192, 258, 577];
        assert_eq!(
            words,
            lines
                .iter()
                .flat_map(|line| line * 8..line * 8 + 8)
                .collect::<Vec<u32>>()
        );
    }
}
