//! Numbers of pages, and which of them count as accessed: Linux shows no access bits of single pages.

use std::collections::BTreeMap;

use policy::{Accessed, Nature, Page};

/// A page that was closed so often and that nobody has ever touched then counts as not accessed. Others do from then on, so
/// that working sets do not shrink.
const TIMES: u32 = 32;

/// The record of a page.
struct Known {
    index: u32,
    /// The number of times that it was closed without a touch; `None`: it was touched.
    in_vain: Option<u32>,
}

#[derive(Default)]
pub struct Moments {
    pages: BTreeMap<u64, Known>,
    /// The pages of the programs that the process ran before this one have numbers, too.
    next: u32,
}

impl Moments {
    /// The number of a page, from 0 without gaps.
    pub fn index(&mut self, page: u64) -> u32 {
        self.known(page).index
    }

    fn known(&mut self, page: u64) -> &mut Known {
        let next = &mut self.next;
        self.pages.entry(page).or_insert_with(|| {
            *next += 1;
            Known {
                index: *next - 1,
                in_vain: Some(0),
            }
        })
    }

    pub fn touched(&mut self, page: u64) {
        self.known(page).in_vain = None;
    }

    pub fn closed(&mut self, page: u64) {
        if let Some(times) = &mut self.known(page).in_vain {
            *times += 1;
        }
    }

    /// The present pages that count as accessed. Pages that stay absent are forgotten.
    pub fn accessed(&mut self, space: u32, present: impl Iterator<Item = u64>) -> Vec<Accessed> {
        let mut accessed = Vec::new();
        for number in present {
            let known = self.known(number);
            if known.in_vain.is_none_or(|times| times < TIMES) {
                accessed.push(Accessed {
                    page: Page { space, number },
                    index: known.index,
                    nature: Nature::Data,
                });
            }
        }
        accessed
    }

    /// Another program begins.
    pub fn begin_anew(&mut self) {
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_until_it_was_closed_in_vain() {
        let mut moments = Moments::default();
        let pages = |moments: &mut Moments| -> Vec<u64> {
            let accessed = moments.accessed(0, [4u64, 9].into_iter());
            accessed.iter().map(|accessed| accessed.page.number).collect()
        };
        assert_eq!(pages(&mut moments), [4, 9]);
        for _ in 0..TIMES {
            moments.closed(4);
            moments.closed(9);
        }
        moments.touched(9);
        assert_eq!(pages(&mut moments), [9]);
        moments.touched(4);
        assert_eq!(pages(&mut moments), [4, 9]);
        assert_eq!((moments.index(9), moments.index(77)), (1, 2));
        moments.begin_anew();
        assert_eq!(moments.index(9), 3);
    }
}
