//! The colors of pages, from a wish.

use policy::slots::ColorSet;

use crate::{Colors, Error};

/// The colors that the pages of a range are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Any of the set for each page, about as many pages of each color.
    Set(ColorSet),
    /// Pages, counted from the start of the range, and the color of each; all other pages stay as
    /// they are.
    Hints(Vec<(usize, u16)>),
}

/// A page to color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    /// Counted from the start of the range.
    pub page: usize,
    pub color: u16,
}

impl Wish {
    /// The pages to color, ascending, and their colors. Pages whose color is in the set already
    /// keep it, up to the color's even share; the others get the colors that the fewest pages have,
    /// in turn.
    ///
    /// `now`: the color of each page where it is known. Also returns how many pages may keep
    /// their frames.
    pub(super) fn targets(
        &self,
        pages: usize,
        colors: &Colors,
        now: Option<&[Option<u16>]>,
    ) -> Result<(Vec<Target>, usize), Error> {
        let exists = |color: u32| {
            let count = colors.count();
            let missing = || Error::Wish(format!("color {color} does not exist: there are {count}, from 0 on"));
            if color < count { Ok(()) } else { Err(missing()) }
        };
        let has = |page: usize| now.and_then(|now| now.get(page).copied().flatten());
        match self {
            Wish::Set(set) => {
                let members: Vec<u32> = set.iter().collect();
                members.iter().try_for_each(|&color| exists(color))?;
                if members.is_empty() {
                    return Err(Error::Wish("the set of colors is empty".into()));
                }
                // Frames come in runs: without a limit a slot of many colors could be left with one.
                let (limit, mut over) = (pages / members.len(), pages % members.len());
                let mut share = vec![0usize; colors.count() as usize];
                let mut keeps = |page: &usize| {
                    let color = has(*page).filter(|&color| set.contains(u32::from(color)))?;
                    let share = &mut share[usize::from(color)];
                    if *share == limit {
                        over = over.checked_sub(1)?;
                    }
                    (*share <= limit).then(|| *share += 1)
                };
                let rest: Vec<usize> = (0..pages).filter(|page| keeps(page).is_none()).collect();
                let kept = pages - rest.len();
                let turns = turns(&members, &mut share, rest.len());
                let targets = rest.into_iter().zip(turns).map(|(page, color)| Target { page, color });
                Ok((targets.collect(), kept))
            }
            Wish::Hints(hints) => {
                let mut targets = Vec::with_capacity(hints.len());
                for &(page, color) in hints {
                    exists(u32::from(color))?;
                    if page >= pages {
                        return Err(Error::Wish(format!("page {page} of a range of {pages} pages")));
                    }
                    targets.push(Target { page, color });
                }
                targets.sort_unstable();
                if let Some(twice) = targets.windows(2).find(|two| two[0].page == two[1].page) {
                    return Err(Error::Wish(format!("page {} has two colors", twice[0].page)));
                }
                let all = targets.len();
                targets.retain(|target| has(target.page) != Some(target.color));
                let kept = all - targets.len();
                Ok((targets, kept))
            }
        }
    }

    /// The pages, of so many, that are to have a color.
    pub(super) fn pages(&self, pages: usize) -> Vec<bool> {
        match self {
            Wish::Set(_) => vec![true; pages],
            Wish::Hints(hints) => {
                let mut wished = vec![false; pages];
                for &(page, _) in hints {
                    if let Some(wished) = wished.get_mut(page) {
                        *wished = true;
                    }
                }
                wished
            }
        }
    }

    /// The color that a page is to have, for each of so many pages that is to have one. (Of a set any will do.)
    pub(super) fn colors_wished(&self, pages: usize, colors: &Colors) -> Result<Vec<Option<u16>>, Error> {
        match self {
            Wish::Set(_) => Ok(vec![Some(0); pages]),
            Wish::Hints(_) => {
                let mut wished = vec![None; pages];
                for target in self.targets(pages, colors, None)?.0 {
                    wished[target.page] = Some(target.color);
                }
                Ok(wished)
            }
        }
    }

    pub(super) fn allows(&self, color: u16, wanted: u16) -> bool {
        match self {
            Wish::Set(set) => set.contains(u32::from(color)),
            Wish::Hints(_) => color == wanted,
        }
    }
}

/// Deals so many pages to the colors, in turn, those with the fewest first.
fn turns(members: &[u32], share: &mut [usize], pages: usize) -> Vec<u16> {
    let mut dealt = Vec::with_capacity(pages);
    while dealt.len() < pages {
        let least = members.iter().map(|&color| share[color as usize]).min().unwrap_or(0);
        for &color in members {
            if share[color as usize] == least && dealt.len() < pages {
                share[color as usize] += 1;
                dealt.push(color as u16);
            }
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use proptest::prelude::*;

    fn colors(bits: u32) -> Colors {
        Colors {
            first_bit: 12,
            bits,
            color_bytes: 65536,
            cache: "L2".into(),
            source: Source::Forced,
        }
    }

    #[test]
    fn no_color_keeps_more_than_its_share() {
        let (now, set) = (vec![Some(0); 8], Wish::Set([0, 1, 2, 3].into_iter().collect()));
        let (targets, kept) = set.targets(8, &colors(2), Some(&now)).unwrap();
        assert_eq!(kept, 2);
        let given: Vec<u16> = targets.iter().map(|target| target.color).collect();
        assert_eq!(given, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn what_cannot_be_wished_for_is_refused() {
        let wrong = |wish: Wish| matches!(wish.targets(4, &colors(2), None), Err(Error::Wish(_)));
        assert!(wrong(Wish::Set(ColorSet::new())));
        assert!(wrong(Wish::Set([4].into_iter().collect())));
        assert!(wrong(Wish::Hints(vec![(0, 4)])));
        assert!(wrong(Wish::Hints(vec![(4, 0)])));
        assert!(wrong(Wish::Hints(vec![(1, 0), (1, 1)])));
    }

    #[test]
    fn hints_leave_the_pages_that_have_their_color() {
        let wish = Wish::Hints(vec![(2, 1), (0, 3)]);
        let now = [Some(3), None, Some(0)];
        let (targets, kept) = wish.targets(3, &colors(2), Some(&now)).unwrap();
        assert_eq!((targets, kept), (vec![Target { page: 2, color: 1 }], 1));
    }

    proptest! {
        #[test]
        fn every_page_has_a_color_of_the_set_and_colors_are_dealt_evenly(
            now in proptest::collection::vec(proptest::option::of(0u16..8), 0..200),
            members in proptest::collection::btree_set(0u32..8, 1..8),
        ) {
            let set: ColorSet = members.iter().copied().collect();
            let (targets, kept) = Wish::Set(set.clone()).targets(now.len(), &colors(3), Some(&now)).unwrap();
            prop_assert_eq!(targets.len() + kept, now.len());
            let mut after = now.clone();
            for target in &targets {
                prop_assert!(now[target.page] != Some(target.color));
                after[target.page] = Some(target.color);
            }
            prop_assert!(after.iter().all(|color| color.is_some_and(|color| set.contains(u32::from(color)))));
            let count = |color: u32| after.iter().filter(|&&has| has == Some(color as u16)).count();
            let most = members.iter().map(|&color| count(color)).max().unwrap_or(0);
            let least = members.iter().map(|&color| count(color)).min().unwrap_or(0);
            prop_assert!(most <= least + 1);
            // A page goes only where its color has more than its share.
            for target in &targets {
                if let Some(color) = now[target.page].filter(|&color| set.contains(u32::from(color))) {
                    prop_assert!(count(u32::from(color)) >= now.len() / members.len());
                }
            }
        }
    }
}
