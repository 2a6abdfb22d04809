//! The two steps of Ding11 section 3.2 on the ledger: on which caches, and which colors there.

use super::allocator::{Allocator, NONE, Piece, Slot};
use super::choose::{Prefer, frames_of, holds, keep, members, population};
use super::{ColorSet, Free, Kind, Refused};

impl Allocator {
    /// Finds the caches of these cpus.
    pub(super) fn concern(&mut self, cpus: &[u32]) -> Result<(), Refused> {
        self.concerned.clear();
        for &cpu in cpus {
            match self.cache_of.get(cpu as usize) {
                Some(&cache) if cache != NONE => self.concerned.push(cache),
                _ => return Err(Refused::UnknownCpu(cpu)),
            }
        }
        self.concerned.sort_unstable();
        self.concerned.dedup();
        if self.concerned.is_empty() {
            return Err(Refused::NoCpus);
        }
        Ok(())
    }

    /// The colors that `slot` has where it is now to be used, or could have again.
    pub(super) fn of_slot(&self, slot: &Slot, pages: u64, frames: &[u64]) -> Result<Option<ColorSet>, Refused> {
        let Some(any) = slot.pieces.first() else {
            return Ok(None);
        };
        let here = |piece: &&Piece| self.concerned.contains(&piece.cache);
        let mut fixed = slot.pieces.iter().filter(here);
        let Some(first) = fixed.next() else {
            let needed = pages.div_ceil(u64::from(slot.colors));
            let same = &any.colors;
            let can = self
                .concerned
                .iter()
                .all(|&cache| self.taken(cache, same, slot.kind) == 0)
                && same.iter().all(|color| frames_of(frames, color) >= needed);
            return Ok(can.then(|| same.clone()));
        };
        if let Some(other) = fixed.find(|piece| piece.colors != first.colors) {
            let caches = (first.cache as usize, other.cache as usize);
            return Err(Refused::Apart { caches });
        }
        for &cache in &self.concerned {
            if slot.pieces.iter().any(|piece| piece.cache == cache) {
                continue;
            }
            let taken = self.taken(cache, &first.colors, slot.kind);
            if taken > 0 {
                return Err(Refused::Taken {
                    cache: cache as usize,
                    taken,
                    asked: slot.colors,
                });
            }
        }
        Ok(Some(first.colors.clone()))
    }

    /// The number of these colors that a slot of this kind cannot have on a cache.
    fn taken(&self, cache: u32, colors: &ColorSet, kind: Kind) -> u32 {
        let used = &self.used[cache as usize];
        let taken = |&color: &u32| holds(&used.private, color) || (kind == Kind::Private && holds(&used.shared, color));
        colors.iter().filter(taken).count() as u32
    }

    /// The smallest number of shared colors that have the frames.
    pub(super) fn few_shared(&mut self, pages: u64, frames: &[u64]) -> Result<ColorSet, Refused> {
        self.free_for(Kind::Shared);
        let free = population(&self.free);
        let mut count = 1;
        if !frames.is_empty() && free > 0 && !members(&self.free).any(|color| frames_of(frames, color) >= pages) {
            let mut at_hand: Vec<u64> = members(&self.free).map(|color| frames_of(frames, color)).collect();
            at_hand.sort_unstable_by(|a, b| b.cmp(a));
            let enough = |&count: &u32| at_hand[count as usize - 1] >= pages.div_ceil(u64::from(count));
            // If none is enough, as many as there are; the check below refuses this and says what
            // is missing.
            count = (1..=free).find(enough).unwrap_or(free);
        }
        self.choose(Kind::Shared, count, pages.div_ceil(u64::from(count)), frames)
    }

    /// Chooses `count` colors, each with `needed` frames, for the caches concerned.
    pub(super) fn choose(&mut self, kind: Kind, count: u32, needed: u64, frames: &[u64]) -> Result<ColorSet, Refused> {
        self.free_for(kind);
        let free = population(&self.free);
        if free < count {
            return Err(Refused::Full {
                kind,
                asked: count,
                color_bytes: self.caches.color_bytes,
                free: self.free_colors(),
                together: free,
            });
        }
        if !frames.is_empty() {
            keep(&mut self.free, |color| frames_of(frames, color) >= needed);
            let enough = population(&self.free);
            if enough < count {
                return Err(Refused::Frames {
                    asked: count,
                    needed,
                    enough,
                    free,
                });
            }
        }
        let colors = self.caches.colors;
        let mut chosen = ColorSet::new();
        if kind == Kind::Private {
            self.choice
                .add(&mut chosen, &self.free, colors, count, frames, Prefer::Fewest);
            return Ok(chosen);
        }
        // Colors shared on all the caches first, then on fewer and fewer of them.
        let mut missing = count;
        let mut reach = self.concerned.len();
        loop {
            self.shared_on(reach);
            let here = population(&self.eligible).min(missing);
            self.choice
                .add(&mut chosen, &self.eligible, colors, here, frames, Prefer::Most);
            missing -= here;
            if missing == 0 || reach == 0 {
                return Ok(chosen);
            }
            reach -= 1;
        }
    }

    /// Finds the colors that a slot of this kind may have on all the caches concerned.
    pub(super) fn free_for(&mut self, kind: Kind) {
        self.free.fill(u64::MAX);
        if let (Some(last), rest @ 1..) = (self.free.last_mut(), self.caches.colors % 64) {
            *last = (1 << rest) - 1;
        }
        for &cache in &self.concerned {
            let used = &self.used[cache as usize];
            for (at, free) in self.free.iter_mut().enumerate() {
                *free &= !used.private[at];
                if kind == Kind::Private {
                    *free &= !used.shared[at];
                }
            }
        }
    }

    /// Finds those of the free colors that are shared on exactly `reach` of the caches concerned.
    fn shared_on(&mut self, reach: usize) {
        self.eligible.clone_from(&self.free);
        let all = self.concerned.len();
        let used = |cache: u32| &self.used[cache as usize].shared;
        if reach == all || reach == 0 {
            for &cache in &self.concerned {
                for (eligible, shared) in self.eligible.iter_mut().zip(used(cache)) {
                    *eligible &= if reach == 0 { !shared } else { *shared };
                }
            }
            return;
        }
        keep(&mut self.eligible, |color| {
            let shared = self.concerned.iter().filter(|&&cache| holds(used(cache), color));
            shared.count() == reach
        });
    }

    pub(super) fn free_colors(&self) -> Vec<Free> {
        let free_in = |&cache: &u32| {
            let used = &self.used[cache as usize];
            let (private, shared) = (population(&used.private), population(&used.shared));
            Free {
                cache: cache as usize,
                cpus: self.caches.cpus[cache as usize].clone(),
                unspecified: self.caches.colors - private - shared,
                shared,
            }
        };
        self.concerned.iter().map(free_in).collect()
    }
}
