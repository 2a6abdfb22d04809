//! Values of pages, in ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A map with at most one value for each page. Pages are addresses divided by the bytes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for PageMap<T> {
    fn default() -> PageMap<T> {
        PageMap(BTreeMap::new())
    }
}

impl<T: Clone + PartialEq> PageMap<T> {
    /// The number of pages that have a value.
    pub fn pages(&self) -> u64 {
        self.0.iter().map(|(start, (end, _))| end - start).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &T)> {
        self.0.iter().map(|(&start, (end, what))| (start..*end, what))
    }

    /// The parts of `pages` that have a value, ascending.
    pub fn within(&self, pages: &Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> {
        let (start, end) = (pages.start, pages.end.max(pages.start));
        let before = self.0.range(..start).next_back();
        let parts = before.into_iter().chain(self.0.range(start..end));
        parts.filter_map(move |(&from, (to, what))| {
            let part = from.max(start)..(*to).min(end);
            (!part.is_empty()).then_some((part, what))
        })
    }

    /// The parts of `pages` without a value.
    pub fn gaps(&self, pages: &Range<u64>) -> Vec<Range<u64>> {
        self.lacking(pages, |_| true)
    }

    /// The parts that have another value, or none.
    pub fn differing(&self, pages: &Range<u64>, what: &T) -> Vec<Range<u64>> {
        self.lacking(pages, |said| said == what)
    }

    fn lacking(&self, pages: &Range<u64>, counts: impl Fn(&T) -> bool) -> Vec<Range<u64>> {
        let (mut lacking, mut at) = (Vec::new(), pages.start);
        for (part, _) in self.within(pages).filter(|(_, what)| counts(what)) {
            if at < part.start {
                lacking.push(at..part.start);
            }
            at = part.end;
        }
        if at < pages.end {
            lacking.push(at..pages.end);
        }
        lacking
    }

    pub fn set(&mut self, pages: Range<u64>, what: T) {
        if !pages.is_empty() {
            self.clear(&pages);
            self.0.insert(pages.start, (pages.end, what));
        }
    }

    pub fn clear(&mut self, pages: &Range<u64>) {
        let met: Vec<u64> = self.within(pages).map(|(part, _)| part.start).collect();
        for at in met {
            let Some((&start, _)) = self.0.range(..=at).next_back() else {
                continue;
            };
            let Some((end, what)) = self.0.remove(&start) else {
                continue;
            };
            if start < pages.start {
                self.0.insert(start, (pages.start, what.clone()));
            }
            if pages.end < end {
                self.0.insert(pages.end, (end, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn of_each_page_the_last_word_counts(
            said in prop::collection::vec((0u64..60, 0u64..20, prop::option::of(0u32..3)), 0..20),
            look in (0u64..60, 0u64..20),
        ) {
            let (mut map, mut each) = (PageMap::default(), BTreeMap::new());
            for (start, pages, what) in said {
                let pages = start..start + pages;
                for page in pages.clone() {
                    each.remove(&page);
                    each.extend(what.map(|what| (page, what)));
                }
                match what {
                    Some(what) => map.set(pages, what),
                    None => map.clear(&pages),
                }
            }
            let of_ranges = |(part, what): (Range<u64>, &u32)| part.map(|page| (page, *what)).collect::<Vec<_>>();
            let all: Vec<_> = map.iter().flat_map(of_ranges).collect();
            prop_assert_eq!(&all, &each.iter().map(|(page, what)| (*page, *what)).collect::<Vec<_>>());
            prop_assert_eq!(map.pages(), each.len() as u64);
            let look = look.0..look.0 + look.1;
            let within: Vec<_> = map.within(&look).flat_map(of_ranges).collect();
            let expected: Vec<_> = each.range(look.clone()).map(|(page, what)| (*page, *what)).collect();
            prop_assert_eq!(within, expected);
            let gaps: Vec<u64> = map.gaps(&look).into_iter().flatten().collect();
            prop_assert_eq!(gaps, look.clone().filter(|page| !each.contains_key(page)).collect::<Vec<_>>());
            let differing: Vec<u64> = map.differing(&look, &1).into_iter().flatten().collect();
            prop_assert_eq!(differing, look.filter(|page| each.get(page) != Some(&1)).collect::<Vec<_>>());
        }
    }
}
