//! Keeping the caches of several cores coherent (MESI by blocks), and the records of sharing.

use crate::cache::{DIRTY, PERM, WATCH};
use crate::clock::Units;
use crate::counts::Class;
use crate::directory::{NOBODY, Pending};
use crate::engine::{Access, Engine};
use crate::layout::Layout;
use crate::steps::Step;

/// Who serves a piece that is found nowhere on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    Memory,
    /// Another core's cache, through a cache that both share and that takes so long.
    Cache(Units),
    /// Another core's cache, through memory's network.
    DirtyRemote,
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

/// What was found off the path.
struct Found {
    any: bool,
    /// Cpus of the instances that held a line of the block, and of those that held one dirty.
    holders: Span,
    dirty: Span,
}

impl Engine {
    /// A hit in the first cache that is more than a lookup: a write without permission or into a
    /// write-through cache, a fetch from a cache that cores share, or any access to a block with
    /// records of sharing.
    #[cold]
    #[inline(never)]
    pub fn hit_with_care<const COHERENT: bool, const CLASSES: bool>(&mut self, a: &Access, step: &Step, at: usize) {
        if COHERENT {
            let waits = CLASSES && self.seen(a);
            self.agree(a, Some(step));
            let cache = &mut self.caches[step.instance as usize];
            if !waits {
                cache.clear_state(at, WATCH);
            }
            if !a.fetch && self.writes_freely(a) {
                self.caches[step.instance as usize].set_state(at, PERM);
            }
        }
        self.counts[step.counts as usize].hit_stall += step.hit;
        let cpu = &mut self.cpus[a.who.cpu as usize];
        cpu.clock += step.hit;
        cpu.spent.cache += step.hit;
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
    fn block(&self, a: &Access) -> u32 {
        a.line_of(self.layout.page_bits - self.layout.block_bits, self.layout.block_bits)
    }

    /// The words of its block that a piece touches.
    pub fn words(&self, a: &Access) -> u64 {
        let offset = (a.virtual_address & ((1 << self.layout.block_bits) - 1)) as u32;
        let (first, last) = (offset / 4, (offset + a.bytes - 1) / 4);
        (u64::MAX >> (63 - (last - first))) << first
    }

    /// Whether the core may write the block without anybody being told: it owns it, and no
    /// instance that lost it needs to know the words.
    #[inline(always)]
    pub fn writes_freely(&self, a: &Access) -> bool {
        let block = self.block(a);
        u32::from(self.directory.blocks[block as usize].owner) == a.core && !self.directory.has_records(block)
    }

    /// A core accesses words: sharing misses of instances on its path may turn out essential.
    /// Returns whether some are still undecided.
    #[inline]
    pub fn seen(&mut self, a: &Access) -> bool {
        let block = self.block(a);
        if !self.directory.has_records(block) {
            return false;
        }
        let words = self.words(a);
        let mut essential = Vec::new();
        let mut waits = false;
        let layout = &self.layout;
        self.directory.retain(block, |record, miss| {
            if !record.held || !layout.on_path(record.instance as usize, a.core) {
                return true;
            }
            let undecided = record.words & words == 0;
            waits |= undecided;
            if !undecided {
                essential.push(*miss);
            }
            undecided
        });
        for pending in essential {
            self.decide(pending, Class::TrueSharing);
        }
        waits
    }

    /// Gives the words that the owner wrote to the records of instances off its path.
    pub fn give_written(&mut self, block: u32, unless: u32) {
        let owner = u32::from(self.directory.blocks[block as usize].owner);
        if !self.directory.has_records(block) || owner == unless {
            return;
        }
        let written = self.directory.take_written(block);
        if written == 0 {
            return;
        }
        let layout = &self.layout;
        self.directory.retain(block, |record, _| {
            if !layout.on_path(record.instance as usize, owner) {
                record.words |= written & line_words(layout, record.instance, record.line);
            }
            true
        });
    }

    /// The class of a sharing miss is known at last.
    pub fn decide(&mut self, pending: Pending, class: Class) {
        let counts = &mut self.counts[pending.counts as usize];
        counts.classes[class as usize] += 1;
        counts.class_stall[class as usize] += pending.stall;
        self.detail_decided(pending.detail, pending.counts, class);
    }

    /// An instance lost a line, not to a write: what was undecided was false sharing.
    pub fn unheld(&mut self, kind: usize, instance: u32, line: u32) {
        let block = self.block_of(kind, line);
        let mut undecided = None;
        self.directory.retain(block, |record, miss| {
            let lost = record.held && record.instance == instance && record.line == line;
            if lost {
                undecided = Some(*miss);
            }
            !lost
        });
        if let Some(pending) = undecided {
            self.decide(pending, Class::FalseSharing);
        }
    }

    /// The protocol: what a piece that was found in `found` (a kind of cache), or nowhere on its
    /// route, does to the other cores' copies, and who supplies it.
    pub fn agree(&mut self, a: &Access, found: Option<&Step>) -> Supply {
        let block = self.block(a);
        let mut supply = Supply::Memory;
        if a.write {
            if u32::from(self.directory.blocks[block as usize].owner) != a.core {
                supply = self.take_ownership(a, block, found);
            }
            if self.classes && self.directory.has_records(block) {
                let words = self.words(a);
                self.directory.wrote(block, words);
            }
        } else {
            let private = found.is_some_and(|step| step.private);
            if !private && u32::from(self.directory.blocks[block as usize].owner) != a.core {
                supply = self.share(a, block);
            }
        }
        supply
    }

    /// A read that no cache of its core could serve: others lose the right to write.
    fn share(&mut self, a: &Access, block: u32) -> Supply {
        let mine = self.directory.bit(a.core);
        let state = self.directory.blocks[block as usize];
        let mut found = Found {
            any: false,
            holders: Span::NONE,
            dirty: Span::NONE,
        };
        let uncertain = state.owner != NOBODY || state.dirty;
        if state.cores & !mine != 0 || self.directory.cores_of(0).len() > 1 {
            found = self.look(a, block, uncertain);
        }
        if state.owner != NOBODY {
            self.give_written(block, a.core);
        }
        if uncertain {
            self.directory.blocks[block as usize].dirty = self.dirty_on_path(a, block);
        }
        let state = &mut self.directory.blocks[block as usize];
        state.owner = if found.any { NOBODY } else { a.core as u8 };
        state.cores |= mine;
        self.supply(a, &found)
    }

    /// Looks for lines of the block off the path; with `all`, cleans them and takes permissions
    /// away, else it stops at the first.
    fn look(&mut self, a: &Access, block: u32, all: bool) -> Found {
        let mut found = Found {
            any: false,
            holders: Span::NONE,
            dirty: Span::NONE,
        };
        let mine = self.directory.bit(a.core);
        let mut bits = self.directory.blocks[block as usize].cores;
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
                    let instance = off.instance as usize;
                    if self.caches[instance].is_empty() {
                        continue;
                    }
                    let place = self.layout.places[instance];
                    for line in block << off.finer..(block + 1) << off.finer {
                        let set = self.set_of(off.cache as usize, line);
                        let Some(at) = self.caches[instance].find(set, line) else {
                            continue;
                        };
                        holds = true;
                        found.holders.cover(place.from, place.to);
                        if self.caches[instance].state(at) & DIRTY != 0 {
                            found.dirty.cover(place.from, place.to);
                            let instance = instance as u32;
                            self.deposits.push(Deposit { instance, line });
                        }
                        self.caches[instance].clear_state(at, DIRTY | PERM);
                    }
                    if holds && !all {
                        found.any = true;
                        return found;
                    }
                }
            }
            found.any |= holds;
            if !holds && 1u16 << bit != mine {
                self.directory.blocks[block as usize].cores &= !(1 << bit);
            }
        }
        found
    }

    /// Whether a cache on the core's own path holds the block dirty.
    fn dirty_on_path(&self, a: &Access, block: u32) -> bool {
        self.layout.paths[a.core as usize].iter().any(|&instance| {
            let instance = instance as usize;
            let place = self.layout.places[instance];
            let finer = self.layout.block_bits - self.layout.caches[place.cache].line_bits;
            !place.private
                && (block << finer..(block + 1) << finer).any(|line| {
                    let at = self.caches[instance].find(self.set_of(place.cache, line), line);
                    at.is_some_and(|at| self.caches[instance].state(at) & DIRTY != 0)
                })
        })
    }

    /// A write by a core that does not own the block: all others lose it.
    fn take_ownership(&mut self, a: &Access, block: u32, hit: Option<&Step>) -> Supply {
        self.give_written(block, a.core);
        let mine = self.directory.bit(a.core);
        let found =
            match self.directory.blocks[block as usize].cores & !mine != 0 || self.directory.cores_of(0).len() > 1 {
                true => self.invalidate(a, block),
                false => Found {
                    any: false,
                    holders: Span::NONE,
                    dirty: Span::NONE,
                },
            };
        let state = &mut self.directory.blocks[block as usize];
        state.owner = a.core as u8;
        state.cores = mine;
        if self.classes && self.directory.has_records(block) {
            self.directory.take_written(block);
            if found.any {
                self.detail_took(a);
            }
        }
        let Some(step) = hit else {
            return self.supply(a, &found);
        };
        let shared = self.meeting(a, found.holders);
        let cost = match (found.any, shared) {
            (false, _) => 0,
            (true, Some(hit)) => hit,
            (true, None) => self.memory.local(),
        };
        let counts = &mut self.counts[step.counts as usize];
        counts.upgrades += 1;
        counts.upgrade_stall += cost;
        let cpu = &mut self.cpus[a.who.cpu as usize];
        cpu.clock += cost;
        match shared {
            Some(_) => cpu.spent.cache += cost,
            None => cpu.spent.local += cost,
        }
        Supply::Memory
    }

    fn invalidate(&mut self, a: &Access, block: u32) -> Found {
        let mut found = Found {
            any: false,
            holders: Span::NONE,
            dirty: Span::NONE,
        };
        let mut bits = self.directory.blocks[block as usize].cores;
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            for core in self.directory.cores_of(bit) {
                if core == a.core || core >= self.layout.cores() {
                    continue;
                }
                let mut i = 0;
                while let Some(off) = self.layout.off(a.core, core, i) {
                    i += 1;
                    let instance = off.instance as usize;
                    if self.caches[instance].is_empty() {
                        continue;
                    }
                    let place = self.layout.places[instance];
                    for line in block << off.finer..(block + 1) << off.finer {
                        let set = self.set_of(off.cache as usize, line);
                        let Some(state) = self.caches[instance].remove(set, line) else {
                            continue;
                        };
                        found.any = true;
                        found.holders.cover(place.from, place.to);
                        if state & DIRTY != 0 {
                            found.dirty.cover(place.from, place.to);
                            let instance = instance as u32;
                            self.deposits.push(Deposit { instance, line });
                        }
                        if self.classes {
                            self.lost(block, instance as u32, line);
                        }
                    }
                }
            }
        }
        found
    }

    /// An instance lost a line to a write of another core.
    fn lost(&mut self, block: u32, instance: u32, line: u32) {
        let arena = &mut self.arenas[self.layout.places[instance as usize].arena as usize];
        self.shadows[instance as usize].take_out(arena, line);
        if let Some(pending) = self.directory.lost(block, instance, line) {
            self.decide(pending, Class::FalseSharing);
        }
    }

    /// An instance took a line back, and it is not known whether it needed to: accesses to the
    /// block by the cpus that it serves must be seen, wherever they hit.
    pub fn watch(&mut self, instance: u32, block: u32) {
        let place = self.layout.places[instance as usize];
        for core in self.layout.core(place.from)..=self.layout.core(place.to - 1) {
            for i in 0..self.layout.paths[core as usize].len() {
                let other = self.layout.paths[core as usize][i] as usize;
                if other == instance as usize || self.caches[other].is_empty() {
                    continue;
                }
                let kind = self.layout.places[other].cache;
                let finer = self.layout.block_bits - self.layout.caches[kind].line_bits;
                for line in block << finer..(block + 1) << finer {
                    if let Some(at) = self.caches[other].find(self.set_of(kind, line), line) {
                        self.caches[other].set_state(at, WATCH);
                    }
                }
            }
        }
    }

    /// The hit time of the innermost cache on the cpu's route for data that serves these cpus too.
    fn meeting(&self, a: &Access, span: Span) -> Option<Units> {
        let serves = |&kind: &usize| {
            let place = &self.layout.places[self.instance(a.who.cpu, kind)];
            place.from <= span.from && place.to >= span.to
        };
        let shared = self.layout.data.iter().copied().find(serves)?;
        Some(self.layout.caches[shared].hit)
    }

    fn supply(&self, a: &Access, found: &Found) -> Supply {
        match found.dirty.from < found.dirty.to {
            false => Supply::Memory,
            true => self.meeting(a, found.dirty).map_or(Supply::DirtyRemote, Supply::Cache),
        }
    }

    /// Dirty data that was taken from others goes to a cache that both share, or to memory.
    pub fn deposit(&mut self, a: &Access) {
        let deposits = std::mem::take(&mut self.deposits);
        for deposit in &deposits {
            let from = self.layout.places[deposit.instance as usize];
            let from_bits = self.layout.caches[from.cache].line_bits;
            for position in 0..self.layout.data.len() {
                let kind = self.layout.data[position];
                let shape = &self.layout.caches[kind];
                let instance = self.instance(a.who.cpu, kind);
                let place = self.layout.places[instance];
                if !shape.write_back || shape.line_bits < from_bits || place.from > from.from || place.to < from.to {
                    continue;
                }
                let line = deposit.line >> (shape.line_bits - from_bits);
                if let Some(at) = self.caches[instance].find(self.set_of(kind, line), line) {
                    self.caches[instance].set_state(at, DIRTY);
                    let block = self.block(a);
                    self.directory.blocks[block as usize].dirty = true;
                    break;
                }
            }
        }
        self.deposits = deposits;
        self.deposits.clear();
    }
}

/// The words of its block that a line has.
fn line_words(layout: &Layout, instance: u32, line: u32) -> u64 {
    let bits = layout.caches[layout.places[instance as usize].cache].line_bits;
    let lines = 1u32 << (layout.block_bits - bits);
    let words = (1u32 << bits) / 4;
    (u64::MAX >> (64 - words)) << ((line & (lines - 1)) * words)
}
