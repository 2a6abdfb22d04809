//! What happens to a piece that its first cache cannot serve: lookups outwards, memory, fills,
//! evictions, writes that are passed on, and whose stall it was.

use crate::cache::{DIRTY, Gone, PERM, WATCH};
use crate::coherence::Supply;
use crate::counts::Class;
use crate::detail::Key;
use crate::directory::Pending;
use crate::engine::{Access, Engine, line_of};
use crate::recency::Prior;

/// Levels that a machine may have.
pub const LEVELS_MAX: usize = 16;

/// The class of a miss, or that it is told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    Classed(Class),
    /// A sharing miss; the record of its instance and line waits for the verdict.
    Undecided {
        instance: u32,
        line: u32,
    },
    /// Classes are off.
    Unclassed,
}

impl Engine {
    /// Carries a piece out from the first cache of its route on. `missed` says that the first
    /// cache was looked up, in vain, and what its shadow knew of the line.
    #[inline(never)]
    pub fn access(&mut self, a: &Access, start: usize, missed: Option<Prior>) {
        self.walk(a, start, missed, false);
    }

    /// Steps 3 to 5 of the contract, from level `start` of the route on. A write that was
    /// passed on (`passed`) has settled ownership before and makes nobody wait.
    fn walk(&mut self, a: &Access, start: usize, missed: Option<Prior>, passed: bool) {
        let levels = self.levels(a);
        let mut classes = [Missed::Unclassed; LEVELS_MAX];
        let mut hit = levels;
        for level in start..levels {
            let kind = self.kind(a, level);
            let instance = self.instance(a.who.cpu, kind);
            let line = self.line(a, kind);
            let prior = match missed {
                Some(prior) if level == start => prior,
                _ => {
                    let fills = self.fills(a, kind);
                    self.counts_of(a.who.cpu, kind).accesses += 1;
                    let prior = match self.classes {
                        true => self.shadows[instance].touch(line, fills),
                        false => Prior::Cold,
                    };
                    let set = self.set(a, kind);
                    if let Some(at) = self.caches[instance].find(set, line) {
                        self.caches[instance].used(set, at);
                        hit = level;
                        break;
                    }
                    prior
                }
            };
            self.counts_of(a.who.cpu, kind).misses += 1;
            if self.classes {
                classes[level] = self.class(a, kind, instance, line, prior);
            }
        }
        let mut supply = Supply::Memory;
        if self.coherent && !passed {
            self.seen(a);
            let found = (hit < levels).then(|| self.kind(a, hit));
            supply = self.agree(a, found);
        }
        if hit == levels {
            self.from_beyond(a, start, supply, passed, classes[levels.max(1) - 1]);
        } else if !passed {
            let stall = self.layout.caches[self.kind(a, hit)].hit;
            self.cache_stall(a, stall);
            match hit.checked_sub(1) {
                None => {
                    let kind = self.kind(a, hit);
                    self.counts_of(a.who.cpu, kind).hit_stall += stall;
                }
                Some(outermost) => self.blame(a, outermost, classes[outermost], stall),
            }
        }
        let mut filled = false;
        for level in (start..hit).rev() {
            let kind = self.kind(a, level);
            if self.fills(a, kind) {
                self.fill(a, level, kind);
                filled = true;
            }
        }
        if !self.deposits.is_empty() {
            self.deposit(a);
        }
        if a.write {
            self.write(a, start, hit, filled);
        }
    }

    fn levels(&self, a: &Access) -> usize {
        if a.fetch {
            self.layout.fetch.len()
        } else {
            self.layout.data.len()
        }
    }

    fn kind(&self, a: &Access, level: usize) -> usize {
        if a.fetch {
            self.layout.fetch[level]
        } else {
            self.layout.data[level]
        }
    }

    fn line(&self, a: &Access, kind: usize) -> u32 {
        line_of(a, self.layout.page_bits, self.layout.caches[kind].line_bits)
    }

    fn set(&self, a: &Access, kind: usize) -> usize {
        let shape = &self.layout.caches[kind];
        shape.set(if shape.virtual_index {
            a.virtual_address
        } else {
            a.physical_address
        })
    }

    /// Whether a miss of this piece takes the line into the cache.
    fn fills(&self, a: &Access, kind: usize) -> bool {
        a.reads || self.layout.caches[kind].allocate_on_write
    }

    fn class(&mut self, a: &Access, kind: usize, instance: usize, line: u32, prior: Prior) -> Missed {
        let class = match prior {
            Prior::Cold => Class::Cold,
            _ if self.coherent => match self.sharing(a, kind, instance as u32, line) {
                Some(missed) => return missed,
                None if prior == Prior::In => Class::Conflict,
                None => Class::Capacity,
            },
            Prior::In => Class::Conflict,
            Prior::Out => Class::Capacity,
        };
        self.counts_of(a.who.cpu, kind).classes[class as usize] += 1;
        Missed::Classed(class)
    }

    /// Whether this is a sharing miss, and what is known of its class.
    fn sharing(&mut self, a: &Access, kind: usize, instance: u32, line: u32) -> Option<Missed> {
        let block = self.block_of(kind, line);
        if !self.directory.has_records(block) {
            return None;
        }
        self.give_written(block, a.core);
        let words = self.words(a);
        let fills = self.fills(a, kind);
        let counts = self.counts_index(a.who.cpu, kind);
        let detail = self.detail_key(a);
        let record = self.directory.record(block, instance, line)?;
        let class = match (record.words & words != 0, fills) {
            (true, true) => {
                self.directory
                    .retain(block, |r| r.instance != instance || r.line != line);
                Class::TrueSharing
            }
            (true, false) => {
                record.words = 0;
                Class::TrueSharing
            }
            (false, false) => Class::FalseSharing,
            (false, true) => {
                record.held = Some(Pending {
                    counts,
                    stall: 0,
                    detail,
                });
                return Some(Missed::Undecided { instance, line });
            }
        };
        self.counts[counts as usize].classes[class as usize] += 1;
        Some(Missed::Classed(class))
    }

    pub fn counts_index(&self, cpu: u32, kind: usize) -> u32 {
        cpu * self.layout.caches.len() as u32 + kind as u32
    }

    pub fn detail_key(&self, _a: &Access) -> Key {
        Key::default()
    }

    /// Served by memory or by another core's cache.
    fn from_beyond(&mut self, a: &Access, start: usize, supply: Supply, passed: bool, class: Missed) {
        let home = self.copies[a.copy as usize].node;
        let cpu = &mut self.cpus[a.who.cpu as usize];
        let stall = match supply {
            Supply::Cache(kind) => {
                let stall = self.layout.caches[kind].hit;
                self.cache_stall(a, stall);
                stall
            }
            Supply::DirtyRemote => {
                let wait = self.memory.transfer(home, a.now);
                let stall = wait + self.memory.dirty_remote;
                cpu.counts.remote += 1;
                cpu.counts.dirty_remote += 1;
                cpu.clock += stall;
                cpu.spent.remote += stall;
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
                let stall = wait + self.memory.latency(cpu.node, home);
                cpu.clock += stall;
                if local {
                    cpu.spent.local += stall;
                } else {
                    cpu.spent.remote += stall;
                }
                self.reached_memory = Some(home);
                stall
            }
        };
        let levels = self.levels(a);
        if levels > start {
            self.blame(a, levels - 1, class, stall);
        }
    }

    fn cache_stall(&mut self, a: &Access, stall: u64) {
        let cpu = &mut self.cpus[a.who.cpu as usize];
        cpu.clock += stall;
        cpu.spent.cache += stall;
    }

    /// A piece's stall belongs to the outermost cache that missed it.
    fn blame(&mut self, a: &Access, level: usize, missed: Missed, stall: u64) {
        let kind = self.kind(a, level);
        let counts = self.counts_of(a.who.cpu, kind);
        counts.miss_stall += stall;
        match missed {
            Missed::Classed(class) => counts.class_stall[class as usize] += stall,
            Missed::Unclassed => {}
            Missed::Undecided { instance, line } => {
                let block = self.block_of(kind, line);
                let record = self.directory.record(block, instance, line);
                if let Some(pending) = record.and_then(|record| record.held.as_mut()) {
                    pending.stall += stall;
                }
            }
        }
    }

    fn fill(&mut self, a: &Access, level: usize, kind: usize) {
        let line = self.line(a, kind);
        let mut state = 0;
        if self.coherent {
            let block = self.block_of(kind, line);
            if self.classes && self.directory.has_records(block) {
                state |= WATCH;
            }
            if level == 0 && !a.fetch && u32::from(self.directory.blocks[block as usize].owner) == a.core {
                state |= PERM;
            }
        }
        let instance = self.instance(a.who.cpu, kind);
        let set = self.set(a, kind);
        if let Some(gone) = self.caches[instance].fill(set, line, state) {
            self.evicted(a, kind, instance, gone);
        }
    }

    /// A line made room for another.
    fn evicted(&mut self, a: &Access, kind: usize, instance: usize, gone: Gone) {
        if gone.state & WATCH != 0 {
            self.unheld(kind, instance as u32, gone.line);
        }
        let mut dirty = gone.state & DIRTY != 0;
        if self.layout.caches[kind].inclusive {
            dirty |= self.take_out_above(a.who.cpu, kind, instance, gone.line);
        }
        if dirty {
            self.counts_of(a.who.cpu, kind).writebacks += 1;
            self.write_back(a.who.cpu, kind, gone.line, a.now);
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
        let copy = line >> (self.layout.page_bits - line_bits);
        self.memory.transfer(self.copies[copy as usize].node, now);
    }

    /// An inclusive cache gave a line up: so do the caches above it. Returns whether one was dirty.
    fn take_out_above(&mut self, cpu: u32, kind: usize, instance: usize, line: u32) -> bool {
        let place = self.layout.places[instance];
        let line_bits = self.layout.caches[kind].line_bits;
        let mut dirty = false;
        for above in self.layout.above(kind) {
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
                    let Some(state) = self.caches[number].remove(set, part) else {
                        continue;
                    };
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
    pub fn write(&mut self, a: &Access, start: usize, hit: usize, filled: bool) {
        let levels = self.levels(a);
        for level in start..=hit.min(levels.max(1) - 1) {
            if level >= levels {
                break;
            }
            let kind = self.kind(a, level);
            if !self.layout.caches[kind].write_back {
                continue;
            }
            let instance = self.instance(a.who.cpu, kind);
            let (set, line) = (self.set(a, kind), self.line(a, kind));
            if let Some(at) = self.caches[instance].find(set, line) {
                self.caches[instance].set_state(at, DIRTY);
                return;
            }
        }
        if hit + 1 < levels {
            self.walk(a, hit + 1, None, true);
        } else if hit < levels || filled {
            self.memory.transfer(self.copies[a.copy as usize].node, a.now);
        }
    }
}
