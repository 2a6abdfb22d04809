//! The addresses of a data set, and the pages that they cover whole.

use std::collections::BTreeMap;

use crate::page::Page;

/// Ranges of bytes in address spaces; overlapping and neighbouring ones are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// End, by space and start.
    ends: BTreeMap<(u32, u64), u64>,
}

impl Ranges {
    pub fn add(&mut self, space: u32, addr: u64, bytes: u64) {
        let (mut start, mut end) = (addr, addr.saturating_add(bytes));
        if start == end {
            return;
        }
        while let Some((&(other_space, other), &other_end)) = self.ends.range(..=(space, end)).next_back() {
            if other_space != space || other_end < start {
                break;
            }
            self.ends.remove(&(space, other));
            start = start.min(other);
            end = end.max(other_end);
        }
        self.ends.insert((space, start), end);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// First pages and numbers of pages of the runs that are covered whole, the lowest first.
    pub fn pages(&self, page_bytes: u64) -> Vec<(Page, u64)> {
        let whole = |(&(space, start), &end): (&(u32, u64), &u64)| {
            let number = start.div_ceil(page_bytes);
            let pages = (end / page_bytes).saturating_sub(number);
            (pages > 0).then_some((Page { space, number }, pages))
        };
        self.ends.iter().filter_map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_covered_whole_however_they_were_given() {
        let mut ranges = Ranges::default();
        let pages = |ranges: &Ranges| {
            let one = |(page, pages): (Page, u64)| (page.space, page.number, pages);
            ranges.pages(4096).into_iter().map(one).collect::<Vec<_>>()
        };
        ranges.add(0, 100, 4096);
        assert_eq!(pages(&ranges), []);
        ranges.add(0, 4196, 4096);
        ranges.add(1, 8192, 4096);
        assert_eq!(pages(&ranges), [(0, 1, 1), (1, 2, 1)]);
        ranges.add(0, 20_480, 4096);
        ranges.add(0, 0, 20_480);
        ranges.add(0, 50, 3);
        ranges.add(0, 50, 0);
        assert_eq!(pages(&ranges), [(0, 0, 6), (1, 2, 1)]);
        assert_eq!(ranges.len(), 2);
        ranges.add(2, u64::MAX - 10, 100);
        assert_eq!(ranges.len(), 3);
    }
}
