//! Keeping the caches of several cores coherent: MESI, by blocks.

use crate::cache::{BROUGHT, DIRTY, PERM, WATCH};
use crate::clock::Units;
use crate::engine::Engine;
use crate::layout::Off;
use crate::overlap::From;
use crate::pieces::Access;
use crate::steps::Step;

/// The supplier of a piece that is found nowhere on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    Memory,
    /// Another core's cache, through a cache that both share and that takes so long.
    Cache(Units),
    /// Another core's cache, through memory's network.
    DirtyRemote,
}

impl Supply {
    /// The time of a piece that was found at a step.
    pub fn found(self, step: &Step) -> Units {
        match self {
            Supply::Cache(transfer) => step.hit.max(transfer),
            Supply::Memory | Supply::DirtyRemote => step.hit,
        }
    }
}

/// Dirty data that was taken from an instance off the path and needs a place.
#[derive(Clone, Copy, Debug)]
pub struct Deposit {
    instance: u32,
    line: u32,
}

/// The cpus of some instances, `[from, to)`; empty at first.
#[derive(Clone, Copy)]
struct Span {
    from: u32,
    to: u32,
}

impl Span {
    const NONE: Span = Span { from: u32::MAX, to: 0 };

    fn cover(&mut self, from: u32, to: u32) {
        self.from = self.from.min(from);
        self.to = self.to.max(to);
    }
}

/// The copies found off the path.
struct Found {
    any: bool,
    /// Cpus of the instances that held a line of the block, and of those that held one dirty.
    holders: Span,
    dirty: Span,
}

const NOTHING: Found = Found {
    any: false,
    holders: Span::NONE,
    dirty: Span::NONE,
};

/// The fate of lines off the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// They stay, clean and without the right to write.
    Share,
    /// The same; one is enough to know.
    ShareAny,
    /// They are removed.
    Invalidate,
}

impl Engine {
    /// A hit in the first cache that is more than a lookup: a write without permission or into a
    /// write-through cache, a fetch from a cache that cores share, or any access to a block with
    /// records of sharing.
    #[cold]
    #[inline(never)]
    pub fn hit_with_care<const COHERENT: bool, const CLASSES: bool>(&mut self, a: &Access, step: &Step, at: usize) {
        let mut base = step.hit;
        if COHERENT {
            let waits = CLASSES && self.seen(a);
            base = self.agree(a, Some(step)).found(step);
            if step.software_prefetch && self.caches[step.instance as usize].state(at) & BROUGHT != 0 {
                self.hit_software_prefetched(a, step, at, false);
            }
            let cache = &mut self.caches[step.instance as usize];
            if !waits {
                cache.clear_state(at, WATCH);
            }
            if !a.fetch && self.writes_freely(a) {
                self.caches[step.instance as usize].set_state(at, PERM);
            }
        }
        let stall = self.served(a, base, From::Cache, Some((step, at)));
        self.counts[step.counts as usize].hit_stall += stall;
        self.cpus[a.who.cpu as usize].spent.cache += stall;
        if COHERENT && !self.deposits.is_empty() {
            self.deposit(a);
        }
        if a.write {
            match step.write_back {
                true => self.caches[step.instance as usize].set_state(at, DIRTY),
                false => self.pass_on::<COHERENT, CLASSES>(a, 0),
            }
        }
    }

    #[inline(always)]
    pub fn block(&self, a: &Access) -> u32 {
        a.line_of(self.layout.page_bits - self.layout.block_bits, self.layout.block_bits)
    }

    /// Returns whether the core may write the block without notice to others.
    #[inline(always)]
    pub fn writes_freely(&self, a: &Access) -> bool {
        self.directory.get(self.block(a)).is_free_for(a.core)
    }

    /// The protocol: the effect on the other cores' copies of a piece that was found in `found` (a kind of cache), or
    /// nowhere on its route, and its supplier. If it was found, others supply it only if their line is modified, and
    /// the machine gives the time of that.
    #[inline]
    pub fn agree(&mut self, a: &Access, found: Option<&Step>) -> Supply {
        let block = self.block(a);
        let owned = self.directory.get(block).is_owned_by(a.core);
        if !a.write {
            let private = found.is_some_and(|step| step.private);
            return match private || owned {
                true => Supply::Memory,
                false => self.share(a, block, found.is_some()),
            };
        }
        let supply = match owned {
            true => Supply::Memory,
            false => self.take_ownership(a, block, found),
        };
        if self.classes && self.directory.has_records(block) {
            let words = self.words(a);
            self.directory.records.wrote(block, words);
        }
        supply
    }

    /// A read that no cache of its core could serve: others lose the right to write.
    fn share(&mut self, a: &Access, block: u32, hit: bool) -> Supply {
        let mine = self.directory.bit(a.core);
        let state = self.directory.get(block);
        let uncertain = state.owner().is_some() || state.is_dirty();
        let mut found = NOTHING;
        if state.cores() & !mine != 0 || self.directory.is_coarse() {
            found = match uncertain {
                true => self.off_path(a, block, Then::Share),
                false => self.off_path(a, block, Then::ShareAny),
            };
        }
        if state.owner().is_some() {
            self.give_written(block, a.core);
        }
        let mut state = self.directory.get(block);
        if uncertain {
            state = state.with_dirty(self.dirty_on_path(a, block));
        }
        let owner = (!found.any).then_some(a.core);
        let state = state.with_owner(owner).with_cores(state.cores() | mine);
        self.directory.put(block, state);
        match hit {
            true => self.transfer(a, &found),
            false => self.supply(a, &found),
        }
    }

    /// A write by a core that does not own the block: all others lose it.
    fn take_ownership(&mut self, a: &Access, block: u32, hit: Option<&Step>) -> Supply {
        self.give_written(block, a.core);
        let mine = self.directory.bit(a.core);
        let mut found = NOTHING;
        if self.directory.get(block).cores() & !mine != 0 || self.directory.is_coarse() {
            found = self.off_path(a, block, Then::Invalidate);
        }
        let state = self.directory.get(block);
        let state = state.with_owner(Some(a.core)).with_cores(mine);
        self.directory.put(block, state);
        if self.classes && state.has_records() {
            self.directory.records.forget_written(block);
            if found.any {
                self.detail_took(a);
            }
        }
        let Some(step) = hit else {
            return self.supply(a, &found);
        };
        let transfer = self.transfer(a, &found);
        self.upgrade(a, step, &found, transfer != Supply::Memory);
        transfer
    }

    /// A write that was found on the path had to be announced to others; with a transfer, that is part of it.
    fn upgrade(&mut self, a: &Access, step: &Step, found: &Found, transferred: bool) {
        let announced = found.any && !transferred;
        let shared = match announced {
            true => self.meeting(a, found.holders),
            false => None,
        };
        let cost = match (announced, shared) {
            (false, _) => 0,
            (true, Some(kind)) => self.layout.caches[kind].hit,
            (true, None) => {
                let home = self.copies[a.copy as usize].node();
                self.memory.upgrade(home, a.now) + self.memory.local()
            }
        };
        self.counts[step.counts as usize].upgrades += 1;
        self.upgrade_takes(a, cost, step.counts, shared.is_some());
    }

    /// Goes through the lines of the block in instances off the path.
    fn off_path(&mut self, a: &Access, block: u32, then: Then) -> Found {
        let mut found = NOTHING;
        let mine = self.directory.bit(a.core);
        let mut bits = self.directory.get(block).cores();
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let mut holds = false;
            for core in self.directory.cores_of(bit) {
                if core == a.core || core >= self.layout.cores() {
                    continue;
                }
                let mut i = 0;
                while let Some(off) = self.layout.off(a.core, core, i) {
                    i += 1;
                    holds |= self.off_lines(a, block, &off, then, &mut found);
                    if holds && then == Then::ShareAny {
                        found.any = true;
                        return found;
                    }
                }
            }
            found.any |= holds;
            if !holds && 1 << bit != mine && then != Then::Invalidate {
                let state = self.directory.get(block);
                self.directory.put(block, state.with_cores(state.cores() & !(1 << bit)));
            }
        }
        found
    }

    /// The same in one instance; returns whether it held one.
    #[inline(always)]
    fn off_lines(&mut self, a: &Access, block: u32, off: &Off, then: Then, found: &mut Found) -> bool {
        let instance = off.held.instance as usize;
        if self.caches[instance].is_empty() {
            return false;
        }
        let address = match off.virtual_index {
            true => a.virtual_address,
            false => a.physical_address,
        };
        let start = address & !((1 << self.layout.block_bits) - 1);
        let mut holds = false;
        for part in 0..1 << off.finer {
            let line = block << off.finer | part;
            let set = off.set(&self.layout, start | u64::from(part) << off.line_bits);
            let cache = &mut self.caches[instance];
            let Some(at) = cache.find(set, line) else { continue };
            let state = cache.state(at);
            holds = true;
            found.holders.cover(off.from, off.to);
            if state & DIRTY != 0 {
                found.dirty.cover(off.from, off.to);
                let instance = instance as u32;
                self.deposits.push(Deposit { instance, line });
            }
            if then == Then::Invalidate {
                cache.take(set, at);
                if self.classes {
                    self.lost(block, line, off);
                }
            } else {
                cache.clear_state(at, off.rights.into());
            }
        }
        holds
    }

    /// Returns whether a cache on the core's own path holds the block dirty.
    fn dirty_on_path(&self, a: &Access, block: u32) -> bool {
        self.layout.paths[a.core as usize].iter().any(|&instance| {
            let instance = instance as usize;
            let place = &self.layout.places[instance];
            let finer = self.layout.block_bits - self.layout.caches[place.cache].line_bits;
            !place.private
                && (block << finer..(block + 1) << finer).any(|line| {
                    let at = self.caches[instance].find(self.set_of(place.cache, line), line);
                    at.is_some_and(|at| self.caches[instance].state(at) & DIRTY != 0)
                })
        })
    }

    /// The innermost kind of cache on the cpu's route for data that serves these cpus too.
    fn meeting(&self, a: &Access, span: Span) -> Option<usize> {
        let serves = |&kind: &usize| {
            let place = &self.layout.places[self.instance(a.who.cpu, kind)];
            place.from <= span.from && place.to >= span.to
        };
        self.layout.data.iter().copied().find(serves)
    }

    /// The innermost cache that also serves the cpus of the copies found dirty; `None` if none was.
    fn dirty_meeting(&self, a: &Access, found: &Found) -> Option<Option<usize>> {
        (found.dirty.from < found.dirty.to).then(|| self.meeting(a, found.dirty))
    }

    fn supply(&self, a: &Access, found: &Found) -> Supply {
        match self.dirty_meeting(a, found) {
            None => Supply::Memory,
            Some(None) => Supply::DirtyRemote,
            Some(Some(kind)) => {
                let cache = &self.layout.caches[kind];
                Supply::Cache(if cache.transfer > 0 { cache.transfer } else { cache.hit })
            }
        }
    }

    /// The same of a piece that was found.
    fn transfer(&self, a: &Access, found: &Found) -> Supply {
        let meeting = self.dirty_meeting(a, found).flatten();
        match meeting.map_or(0, |kind| self.layout.caches[kind].transfer) {
            0 => Supply::Memory,
            transfer => Supply::Cache(transfer),
        }
    }

    /// Dirty data that was taken from others goes to a cache that both share, or to memory.
    pub fn deposit(&mut self, a: &Access) {
        for i in 0..self.deposits.len() {
            let deposit = self.deposits[i];
            let from = self.layout.places[deposit.instance as usize];
            let from_bits = self.layout.caches[from.cache].line_bits;
            for position in 0..self.layout.data.len() {
                let kind = self.layout.data[position];
                let instance = self.instance(a.who.cpu, kind);
                let place = &self.layout.places[instance];
                let shape = &self.layout.caches[kind];
                if place.from > from.from || place.to < from.to || !shape.write_back || shape.line_bits < from_bits {
                    continue;
                }
                let line = deposit.line >> (shape.line_bits - from_bits);
                if let Some(at) = self.caches[instance].find(self.set_of(kind, line), line) {
                    self.caches[instance].set_state(at, DIRTY);
                    let block = self.block(a);
                    let state = self.directory.get(block);
                    self.directory.put(block, state.with_dirty(true));
                    break;
                }
            }
        }
        self.deposits.clear();
    }
}
