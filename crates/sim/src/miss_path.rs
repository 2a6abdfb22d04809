//! Carries out a piece that its first cache cannot serve: lookups outwards, memory, fills, evictions, writes that are
//! passed on, and the attribution of its stall.

use crate::cache::{BROUGHT, DIRTY, Gone, PERM, WATCH};
use crate::clock::UNCLASSED;
use crate::coherence::Supply;
use crate::counts::Class;
use crate::detail;
use crate::engine::Engine;
use crate::lookup::{self, Lookup, look_up, take_in};
use crate::overlap::{From, HERE};
use crate::pieces::Access;
use crate::recency::Prior;
use crate::sharing::SharingMiss;
use crate::steps::Step;

/// The class of a miss, or that it is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    Classed(Class),
    /// A sharing miss; the record of its instance and line waits to be decided.
    Undecided {
        instance: u32,
        line: u32,
    },
    /// Classes are off.
    Unclassed,
}

/// The point on its route where a piece begins, and the knowledge at that point.
#[derive(Clone, Copy)]
pub struct Start {
    level: usize,
    /// The lookup of the cache at `level` missed; holds its shadow's knowledge of the line.
    missed: Option<Prior>,
    /// A write that was passed on: ownership is settled, and no cpu waits.
    passed: bool,
}

impl Start {
    pub fn at(level: usize) -> Self {
        Start {
            level,
            missed: None,
            passed: false,
        }
    }

    /// At the first level, whose lookup missed.
    pub fn missed(prior: Prior) -> Self {
        Start {
            missed: Some(prior),
            ..Start::at(0)
        }
    }
}

impl Engine {
    /// Steps 3 to 5 of the contract, from some level of the route on.
    #[inline(never)]
    pub fn walk<const COHERENT: bool, const CLASSES: bool>(&mut self, a: &Access, start: Start) {
        let (first, levels) = self.steps.route(a.who.cpu, a.fetch);
        // The class of the miss of the outermost level so far, and the level that hit.
        let mut class = Missed::Unclassed;
        let mut hit = levels;
        let mut place = 0;
        for level in start.level..levels {
            let step = self.steps.get(first + level);
            let prior = match start.missed {
                Some(prior) if level == start.level => prior,
                _ => match self.next_cache::<CLASSES>(a, first + level, &step) {
                    Lookup::Miss(prior) => prior,
                    Lookup::Hit(at) => {
                        if step.software_prefetch && self.caches[step.instance as usize].state(at) & BROUGHT != 0 {
                            self.hit_software_prefetched(a, &step, at, start.passed);
                        }
                        (hit, place) = (level, at);
                        break;
                    }
                },
            };
            if CLASSES {
                class = self.class::<COHERENT>(a, &step, prior);
            } else {
                self.detail_missed(a, step.kind, None);
            }
        }
        let mut supply = Supply::Memory;
        // True if accesses to the lines must be looked at until the class of a miss is known.
        let mut waits = COHERENT && CLASSES;
        if COHERENT && !start.passed {
            waits = CLASSES && self.seen(a);
            let found = (hit < levels).then(|| self.steps.get(first + hit));
            supply = self.agree(a, found.as_ref());
        }
        if hit == levels {
            self.cpus[a.who.cpu as usize].far += 1;
            self.serve_from_beyond(a, first + levels, levels > 0, supply, start.passed, class);
        } else if !start.passed {
            let step = self.steps.get(first + hit);
            let stall = self.served(a, supply.found(&step), From::Cache, Some((&step, place)));
            self.cpus[a.who.cpu as usize].spent.cache += stall;
            match hit {
                0 => self.counts[step.counts as usize].hit_stall += stall,
                _ => self.blame(first + hit - 1, class, stall, 0),
            }
        }
        let mut filled = false;
        for level in (start.level..hit).rev() {
            let step = self.steps.get(first + level);
            if step.fills(a.reads) {
                self.fill::<COHERENT>(a, level, &step, waits);
                filled = true;
            }
        }
        if COHERENT && !self.deposits.is_empty() {
            self.deposit(a);
        }
        if a.write {
            self.write::<COHERENT, CLASSES>(a, start.level, hit, filled);
        }
    }

    /// Looks a piece up in a cache of its route after the first.
    #[inline(always)]
    fn next_cache<const CLASSES: bool>(&mut self, a: &Access, at: usize, step: &Step) -> Lookup {
        self.others_come(a, step);
        let place = self.set_line(a, step);
        let instance = step.instance as usize;
        let shadow = match CLASSES {
            true => Some((&mut self.shadows[instance], &mut self.arenas[usize::from(step.arena)])),
            false => None,
        };
        let counts = &mut self.counts[step.counts as usize];
        let found = look_up::<0>(step, &mut self.caches[instance], shadow, counts, place, a.reads);
        match found {
            Lookup::Hit(position) => self.looked_up(a, at, true, Some(position)),
            Lookup::Miss(_) => self.looked_up(a, at, false, None),
        }
        found
    }

    /// The prefetcher of the cache at a step, and the detail, see a lookup of it. `position`: of the line that was hit;
    /// for a first cache only if its prefetcher wants to know.
    #[inline(always)]
    pub fn looked_up(&mut self, a: &Access, at: usize, hit: bool, position: Option<usize>) {
        if self.prefetchers.is_some() {
            self.prefetcher_sees(a, at, position);
        }
        if self.detail.is_some() {
            let step = self.steps.get(at);
            self.detail_looked_up(a, &step, hit);
        }
    }

    #[inline(always)]
    fn class<const COHERENT: bool>(&mut self, a: &Access, step: &Step, prior: Prior) -> Missed {
        if COHERENT {
            let line = a.line(step);
            if prior != Prior::Cold {
                if let Some(missed) = self.sharing(a, step, line) {
                    return missed;
                }
            } else if self.software_prefetch.is_some() || self.prefetchers.is_some() || self.overlap.is_some() {
                self.forgive(a, step, line, step.fills(a.reads));
            }
        }
        let class = lookup::class(prior);
        self.counts[step.counts as usize].classes[class as usize] += 1;
        self.detail_missed(a, step.kind, Some(class));
        Missed::Classed(class)
    }

    /// Decides whether this is a sharing miss, and what is known of its class.
    #[inline]
    fn sharing(&mut self, a: &Access, step: &Step, line: u32) -> Option<Missed> {
        let instance = step.instance;
        let block = self.block_of(step.kind as usize, line);
        if !self.directory.has_records(block) {
            return None;
        }
        self.give_written(block, a.core);
        let words = self.words(a);
        let fills = step.fills(a.reads);
        let (counts, detail) = (step.counts, &mut self.detail);
        let key = || detail::waiting(detail, a);
        let records = &mut self.directory.records;
        let class = match records.missed(block, (instance, line), words, fills, counts, key) {
            SharingMiss::None => return None,
            SharingMiss::True => {
                self.directory.look_at_records(block);
                Class::TrueSharing
            }
            SharingMiss::False => Class::FalseSharing,
            SharingMiss::Undecided => {
                self.watch(instance, block);
                return Some(Missed::Undecided { instance, line });
            }
        };
        self.counts[counts as usize].classes[class as usize] += 1;
        self.detail_missed(a, step.kind, Some(class));
        Some(Missed::Classed(class))
    }

    /// Served by memory or by another core's cache. `end`: the step after the route's last.
    #[inline(always)]
    fn serve_from_beyond(&mut self, a: &Access, end: usize, blamed: bool, supply: Supply, passed: bool, class: Missed) {
        let home = self.copies[a.copy as usize].node();
        if !matches!(supply, Supply::Cache(_)) {
            self.detail_reached_memory(a, self.cpus[a.who.cpu as usize].node, home);
        }
        let cpu = &mut self.cpus[a.who.cpu as usize];
        let stall = match supply {
            Supply::Cache(time) => {
                let stall = self.served(a, time, From::Cache, None);
                self.cpus[a.who.cpu as usize].spent.cache += stall;
                stall
            }
            Supply::DirtyRemote => {
                let wait = self.memory.transfer(home, a.now);
                cpu.counts.remote += 1;
                cpu.counts.dirty_remote += 1;
                let time = wait + self.memory.dirty_remote;
                let stall = self.served(a, time, From::Remote, None);
                self.cpus[a.who.cpu as usize].spent.remote += stall;
                self.reached_memory = Some(home);
                stall
            }
            Supply::Memory => {
                let wait = self.memory.transfer(home, a.now);
                let local = home == cpu.node;
                if local {
                    cpu.counts.local += 1;
                } else {
                    cpu.counts.remote += 1;
                }
                if passed {
                    return;
                }
                let time = wait + self.memory.latency(cpu.node, home);
                let from = if local { From::Local } else { From::Remote };
                let stall = self.served(a, time, from, None);
                let spent = &mut self.cpus[a.who.cpu as usize].spent;
                if local {
                    spent.local += stall;
                } else {
                    spent.remote += stall;
                }
                self.reached_memory = Some(home);
                stall
            }
        };
        let beyond = &mut self.cpus[a.who.cpu as usize].spent.beyond;
        match class {
            Missed::Classed(class) => beyond[class as usize] += stall,
            Missed::Unclassed => beyond[UNCLASSED] += stall,
            // It goes where the class goes, when that is known.
            Missed::Undecided { .. } => {}
        }
        if blamed {
            self.blame(end - 1, class, stall, stall);
        }
    }

    /// A piece's stall belongs to the outermost cache that missed it. `beyond`: part of the stall, if no cache on the
    /// path served it.
    #[inline(always)]
    fn blame(&mut self, at: usize, missed: Missed, stall: u64, beyond: u64) {
        let step = self.steps.get(at);
        let counts = &mut self.counts[step.counts as usize];
        counts.miss_stall += stall;
        match missed {
            Missed::Classed(class) => counts.class_stall[class as usize] += stall,
            Missed::Unclassed => {}
            Missed::Undecided { instance, line } => {
                let block = self.block_of(step.kind as usize, line);
                if let Some(pending) = self.directory.records.pending(block, instance, line) {
                    pending.stall += stall;
                    pending.beyond += beyond;
                }
            }
        }
    }

    #[inline(always)]
    pub fn fill<const COHERENT: bool>(&mut self, a: &Access, level: usize, step: &Step, waits: bool) {
        let mut state = 0;
        if COHERENT {
            if waits {
                state |= WATCH;
            }
            if level == 0 && !a.fetch && self.writes_freely(a) {
                state |= PERM;
            }
        }
        let place = self.set_line(a, step);
        let counts = &mut self.counts[step.counts as usize];
        let gone = take_in::<0>(&mut self.caches[step.instance as usize], counts, place, state);
        self.taken_in(step, place);
        self.made_room(a, step, gone);
    }

    /// A line came to a cache: the one that made room for it is followed.
    #[inline(always)]
    pub fn made_room(&mut self, a: &Access, step: &Step, gone: Gone) {
        if (gone.state() & (WATCH | DIRTY) != 0 || step.inclusive)
            && let Some(line) = gone.line()
        {
            self.evicted(a, step, line, gone.state());
        }
    }

    /// A line made room for another.
    fn evicted(&mut self, a: &Access, step: &Step, line: u32, state: u32) {
        let (kind, instance) = (step.kind as usize, step.instance);
        if state & WATCH != 0 {
            self.unheld(kind, instance, line);
        }
        let mut dirty = state & DIRTY != 0;
        if step.inclusive && self.take_out_above(a.who.cpu, kind, instance as usize, line) && !dirty {
            // Dirty from lines removed above; the fill has counted those that were dirty themselves.
            self.counts[step.counts as usize].writebacks += 1;
            dirty = true;
        }
        if dirty {
            self.write_back(a.who.cpu, kind, line, a.now);
        }
    }

    /// Dirty data leaves a cache for the next one outwards that holds the line, or for memory.
    pub fn write_back(&mut self, cpu: u32, kind: usize, line: u32, now: u64) {
        let from = &self.layout.caches[kind];
        let (level, line_bits) = (from.level, from.line_bits);
        for position in 0..self.layout.data.len() {
            let outer = self.layout.data[position];
            let shape = &self.layout.caches[outer];
            if shape.level <= level || !shape.write_back {
                continue;
            }
            let outer_line = line >> (shape.line_bits - line_bits);
            let set = self.set_of(outer, outer_line);
            let instance = self.instance(cpu, outer);
            if let Some(at) = self.caches[instance].find(set, outer_line) {
                self.caches[instance].set_state(at, DIRTY);
                return;
            }
        }
        if self.memory.is_endless() {
            return;
        }
        let copy = line >> (self.layout.page_bits - line_bits);
        self.memory.write_back(self.copies[copy as usize].node(), now);
    }

    /// An inclusive cache gave a line up: so do the caches above it. Returns whether one was dirty.
    fn take_out_above(&mut self, cpu: u32, kind: usize, instance: usize, line: u32) -> bool {
        let place = self.layout.places[instance];
        let line_bits = self.layout.caches[kind].line_bits;
        let mut dirty = false;
        for at in 0..self.layout.above[kind].len() {
            let above = self.layout.above[kind][at];
            let shape = &self.layout.caches[above];
            let finer = line_bits - shape.line_bits;
            let first = place.from / shape.cpus_per_instance;
            let last = (place.to - 1) / shape.cpus_per_instance;
            for i in first..=last {
                let number = self.layout.caches[above].first + i as usize;
                if self.caches[number].is_empty() {
                    continue;
                }
                for part in line << finer..(line + 1) << finer {
                    let set = self.set_of(above, part);
                    let cache = &mut self.caches[number];
                    let Some(at) = cache.find(set, part) else { continue };
                    let state = cache.state(at);
                    cache.take(set, at);
                    if state & WATCH != 0 {
                        self.unheld(above, number as u32, part);
                    }
                    if state & DIRTY != 0 {
                        dirty = true;
                        let served = self.layout.places[number];
                        let owner = if (served.from..served.to).contains(&cpu) {
                            cpu
                        } else {
                            served.from
                        };
                        self.counts_of(owner, above).writebacks += 1;
                    }
                }
            }
        }
        dirty
    }

    /// Step 5: the write goes from the innermost level outwards until a cache keeps it.
    pub fn write<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        a: &Access,
        start: usize,
        hit: usize,
        filled: bool,
    ) {
        let (first, levels) = self.steps.route(a.who.cpu, a.fetch);
        for level in start..levels.min(hit + 1) {
            let step = self.steps.get(first + level);
            if !step.write_back {
                continue;
            }
            let place = self.set_line(a, &step);
            let cache = &mut self.caches[step.instance as usize];
            if let Some(at) = cache.find(place.set, place.line) {
                cache.set_state(at, DIRTY);
                return;
            }
        }
        if hit < levels {
            self.pass_on::<COHERENT, CLASSES>(a, hit);
        } else if filled {
            self.memory.write_back(self.copies[a.copy as usize].node(), a.now);
        }
    }

    /// A write goes on from the level after `level`, which was the last to see it.
    pub fn pass_on<const COHERENT: bool, const CLASSES: bool>(&mut self, a: &Access, level: usize) {
        let (_, levels) = self.steps.route(a.who.cpu, a.fetch);
        if level + 1 < levels {
            let start = Start {
                passed: true,
                ..Start::at(level + 1)
            };
            if let Some(overlap) = &mut self.overlap {
                overlap.comes = HERE;
            }
            // The read of a modify has been served.
            let write = Access { reads: false, ..*a };
            self.walk::<COHERENT, CLASSES>(&write, start);
        } else {
            self.memory.write_back(self.copies[a.copy as usize].node(), a.now);
        }
    }
}
