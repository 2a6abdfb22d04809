//! The addresses of a data set, and the pages that they cover whole.

use std::collections::BTreeMap;

use super::Error;
use crate::{PAGE_BYTES, Pages};

/// Ranges of bytes; overlapping and neighbouring ones are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// End, by start.
    ends: BTreeMap<usize, usize>,
}

/// The highest address that Linux gives to a program (x86-64 with five levels of page tables), plus 1.
const ADDRESS_LIMIT: usize = 1 << 56;

impl Ranges {
    pub(super) fn add(&mut self, address: usize, bytes: usize) -> Result<(), Error> {
        let end = address.saturating_add(bytes);
        let why = match () {
            () if bytes == 0 => "no bytes",
            () if end > ADDRESS_LIMIT || end == usize::MAX => "beyond the addresses of a program",
            () => "",
        };
        if !why.is_empty() {
            return Err(Error::Range {
                start: address,
                end,
                why,
            });
        }
        let (mut start, mut end) = (address, end);
        while let Some((&other, &other_end)) = self.ends.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ends.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.ends.insert(start, end);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.iter().map(|(start, end)| (end - start) as u64).sum()
    }

    /// Starts and ends.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.ends.iter().map(|(&start, &end)| (start, end))
    }

    /// The pages covered whole, lowest first, no two runs neighbours.
    pub(super) fn pages(&self) -> Vec<Pages> {
        let whole = |(start, end): (usize, usize)| {
            let start = start.next_multiple_of(PAGE_BYTES);
            let count = (end / PAGE_BYTES).saturating_sub(start / PAGE_BYTES);
            (count > 0).then_some(Pages { start, count })
        };
        self.iter().filter_map(whole).collect()
    }
}

/// The pages of each data set.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// End and data set, by start.
    runs: BTreeMap<usize, (usize, u64)>,
}

impl Taken {
    /// Notes that these pages are a data set's; its earlier pages are forgotten. Refused as a whole if another data set
    /// has one of them.
    pub(super) fn take(&mut self, set: u64, runs: &[Pages]) -> Result<(), Error> {
        for run in runs {
            let others = self.runs.range(..run.end()).rev();
            let mut meets = others.take_while(|(_, (end, _))| *end > run.start);
            if let Some((&start, &(end, _))) = meets.find(|(_, (_, other))| *other != set) {
                return Err(Error::Overlap {
                    start: start.max(run.start),
                    end: end.min(run.end()),
                });
            }
        }
        self.forget(set);
        for run in runs {
            self.runs.insert(run.start, (run.end(), set));
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, set: u64) {
        self.runs.retain(|_, (_, other)| *other != set);
    }

    /// All pages of all data sets.
    pub(super) fn all(&self) -> impl Iterator<Item = Pages> + '_ {
        self.runs.iter().map(|(&start, &(end, _))| Pages {
            start,
            count: (end - start) / PAGE_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_that_are_covered_in_part_are_left_out() {
        let mut ranges = Ranges::default();
        ranges.add(100, 4096).unwrap();
        assert_eq!(ranges.pages(), []);
        // Its neighbour covers the rest of the second page.
        ranges.add(4196, 8092).unwrap();
        assert_eq!(ranges.pages(), [Pages { start: 4096, count: 2 }]);
        assert_eq!((ranges.len(), ranges.bytes()), (1, 12188));
        assert!(ranges.add(5, 0).is_err() && ranges.add(usize::MAX - 5, 10).is_err());
    }

    #[test]
    fn a_page_has_one_data_set() {
        let page = |start, count| Pages {
            start: start * PAGE_BYTES,
            count,
        };
        let mut taken = Taken::default();
        taken.take(1, &[page(10, 10), page(30, 5)]).unwrap();
        taken.take(2, &[page(20, 10)]).unwrap();
        let error = taken.take(3, &[page(40, 1), page(25, 3)]).unwrap_err().to_string();
        assert!(error.contains("0x19000 to 0x1c000"), "{error}");
        assert!(taken.take(3, &[page(0, 11)]).is_err() && taken.take(3, &[page(34, 1)]).is_err());
        // A data set may take its own again, and more.
        taken.take(1, &[page(5, 15), page(30, 5)]).unwrap();
        taken.forget(1);
        taken.take(3, &[page(0, 20)]).unwrap();
        assert_eq!(taken.all().collect::<Vec<_>>(), [page(0, 20), page(20, 10)]);
    }

    proptest! {
        #[test]
        fn ranges_are_the_bytes_that_were_added(added in prop::collection::vec((0usize..60, 1usize..20), 1..12)) {
            // Each flag of `bytes` stands for a quarter of a page.
            let unit = PAGE_BYTES / 4;
            let mut ranges = Ranges::default();
            let mut bytes = [false; 80];
            for (start, len) in added {
                ranges.add(start * unit, len * unit).unwrap();
                bytes[start..start + len].fill(true);
            }
            let pages: Vec<usize> =
                ranges.pages().iter().flat_map(|run| (0..run.count).map(move |at| run.start / PAGE_BYTES + at)).collect();
            let expected: Vec<usize> = (0..20).filter(|&page| bytes[page * 4..page * 4 + 4].iter().all(|&b| b)).collect();
            prop_assert_eq!(pages, expected);
            let count = bytes.iter().filter(|&&byte| byte).count();
            prop_assert_eq!(ranges.bytes(), (count * unit) as u64);
        }
    }
}
