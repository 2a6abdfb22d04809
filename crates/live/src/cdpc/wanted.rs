//! The color that each page is to get.

use std::collections::{BTreeSet, HashSet};

use policy::cdpc::{Loop, Machine, Malformed, Program, Room, first_touches};

use super::dealing::{Dealing, as_touched};
use super::{Coloring, Fresh, fit};
use crate::PAGE_BYTES;

impl Coloring {
    /// Colors for pages that have none, and for those that are to change theirs if the budget allows. `at`: the loop that was
    /// described last.
    pub(super) fn wanted(
        &mut self,
        fresh: &Fresh,
        at: Option<usize>,
        first: bool,
    ) -> Result<Vec<(u64, u16)>, Malformed> {
        let mut wanted = match self.dealing {
            Dealing::Touches { .. } => self.as_touched(fresh, at.filter(|_| !first && self.pending <= 1))?,
            Dealing::Hints { .. } if first || self.budget.may_compute(self.preferred.len()) => {
                self.all_together(fresh, first)?
            }
            Dealing::Hints { weigh } => {
                let ways = weigh.then(|| self.colors.ways());
                self.behind_the_others(fresh, at, ways)?
            }
        };
        // Memory that is new at an old address gets the color that its page had, unless that changes anyway.
        if !fresh.anew.is_empty() {
            let has: HashSet<u64> = wanted.iter().map(|&(page, _)| page).collect();
            let again = fresh.anew.iter().filter(|page| !has.contains(page));
            let again = again.filter_map(|page| Some((*page, *self.preferred.get(page)?)));
            wanted.extend(again.collect::<Vec<_>>());
        }
        wanted.sort_unstable();
        Ok(wanted)
    }

    /// Colors for the pages that the loop `at`, or all loops, would touch first of all.
    fn as_touched(&mut self, fresh: &Fresh, at: Option<usize>) -> Result<Vec<(u64, u16)>, Malformed> {
        let wrong = |known: &Loop| first_touches(std::slice::from_ref(known), PAGE_BYTES as u64, |_| false);
        loop {
            let Dealing::Touches { policy, world } = &mut self.dealing else {
                return Ok(Vec::new());
            };
            let loops = match at {
                Some(at) => std::slice::from_ref(&self.program.loops()[at]),
                None => self.program.loops(),
            };
            let (preferred, mut seen) = (&self.preferred, HashSet::new());
            let is_new = |page: u64| (fresh.new.contains(&page) || !preferred.contains_key(&page)) && seen.insert(page);
            let error = match as_touched(policy.as_mut(), world, loops, is_new) {
                Ok(dealt) => {
                    self.nothing_pending();
                    return Ok(dealt);
                }
                Err(error) => error,
            };
            // An impossible loop must not take the others with it.
            let dropped = self.program.retain(wrong);
            if dropped.is_empty() || at.is_some() {
                return Err(error);
            }
            for wrong in dropped {
                self.refuse(wrong.to_string());
            }
        }
    }

    fn nothing_pending(&mut self) {
        self.pending = 0;
        self.passed_over.clear();
    }

    fn machine(&self, program: &Program) -> Machine {
        Machine {
            page_bytes: PAGE_BYTES as u64,
            colors: self.colors.count(),
            cpus: program.threads(),
            fit: true,
        }
    }

    /// When all loops are seen together.
    fn all_together(&mut self, fresh: &Fresh, first: bool) -> Result<Vec<(u64, u16)>, Malformed> {
        let machine = self.machine(&self.program);
        let ways = match self.dealing {
            Dealing::Hints { weigh: true } => Some(self.colors.ways()),
            _ => None,
        };
        let (hints, dropped) = self.program.hints(&machine, ways)?;
        for wrong in dropped {
            self.refuse(wrong.to_string());
        }
        let all: Vec<(u64, u16)> = hints.touched().map(|hint| (hint.page, hint.color as u16)).collect();
        let differs = |&(page, color): &(u64, u16)| self.preferred.get(&page).is_some_and(|&was| was != color);
        let changed = all
            .iter()
            .filter(|hint| differs(hint) && !fresh.contains(hint.0))
            .count();
        let may_change = first || self.budget.may_change(changed, self.preferred.len());
        self.budget.computed(all.len());
        let is_wanted = |hint: &(u64, u16)| {
            let new = fresh.new.contains(&hint.0) || !self.preferred.contains_key(&hint.0);
            new || ((may_change || fresh.anew.contains(&hint.0)) && differs(hint))
        };
        let wanted = all.iter().copied().filter(is_wanted).collect();
        if may_change {
            self.nothing_pending();
            self.budget.changed(changed, self.program.loops().len());
            self.weighed = hints.named_choices();
        }
        Ok(wanted)
    }

    /// The new pages alone, colored on from where the others end.
    fn behind_the_others(
        &self,
        fresh: &Fresh,
        at: Option<usize>,
        ways: Option<u32>,
    ) -> Result<Vec<(u64, u16)>, Malformed> {
        let Some(newest) = at.and_then(|at| self.program.loops().get(at)) else {
            return Ok(Vec::new());
        };
        let mut alone = Program::default();
        alone.add(newest.clone(), &mut Room::endless())?;
        let machine = self.machine(&alone);
        let (mut hints, _) = alone.hints(&machine, ways)?;
        hints.turn((self.preferred.len() % self.colors.count() as usize) as u32);
        let is_new = |page: u64| fresh.new.contains(&page) || !self.preferred.contains_key(&page);
        let new = hints.touched().filter(|hint| is_new(hint.page));
        Ok(new.map(|hint| (hint.page, hint.color as u16)).collect())
    }

    /// Pages that a loop touches, that have a color, and whose memory has changed: they lost their frames, or have
    /// frames of other colors, as when the array was freed and another took its address.
    ///
    /// If this process does not see the colors of its frames, it notices only pages without a frame.
    pub(super) fn anew(&mut self, at: usize) -> BTreeSet<u64> {
        let mut seen = HashSet::new();
        let described = std::slice::from_ref(&self.program.loops()[at]);
        let pages = first_touches(described, PAGE_BYTES as u64, |page| seen.insert(page));
        let mut had: Vec<(u64, u16)> = pages
            .unwrap_or_default()
            .into_iter()
            .filter(|page| self.left.get(page).is_none_or(|why| why == fit::UNMAPPED))
            .filter_map(|page| Some((page, *self.preferred.get(&page)?)))
            .collect();
        had.sort_unstable();
        let mut anew = BTreeSet::new();
        let mut parts: Vec<&[(u64, u16)]> = had.chunk_by(|a, b| a.0 + 1 == b.0).collect();
        while let Some(part) = parts.pop() {
            match self.wrong(part) {
                0 => {}
                wrong if wrong == part.len() => anew.extend(part.iter().map(|hint| hint.0)),
                _ => {
                    let (one, other) = part.split_at(part.len() / 2);
                    parts.extend([one, other]);
                }
            }
        }
        anew
    }

    /// The number of some pages in a row that are not in frames of their colors.
    fn wrong(&mut self, part: &[(u64, u16)]) -> usize {
        let Some(&(first, _)) = part.first() else { return 0 };
        let pages = crate::Pages {
            start: first as usize * PAGE_BYTES,
            count: part.len(),
        };
        let wish = crate::Wish::Hints(part.iter().enumerate().map(|(at, hint)| (at, hint.1)).collect());
        match self.engine.census_of(pages, &wish) {
            Ok(census) if self.supplied => census.wrong + census.absent + census.unknown,
            Ok(census) => census.wrong + census.absent,
            // A process that cannot look finds nothing.
            Err(_) => 0,
        }
    }
}
