//! The loads that addresses come from: data flow, followed through samples of the words.
//!
//! For each superblock the tool describes from which of its loads, and from which registers at its entry, an address or
//! a register comes. This module follows registers from superblock to superblock, thread by thread, and values through
//! memory, from the store to the load that reads them back (`push` and `pop`, variables of unoptimised programs). It
//! does so for the beginning of some slots of the ring, and for all of the first few slots, so that it also sees what a
//! program does only once.
//!
//! A locked instruction waits for the previous one, wherever its address comes from ("Locked Instructions Have a Total
//! Order", Intel's manual, volume 3, on memory ordering): it is recorded as if its address came from there.
//!
//! A load more than [`RECENT`] instructions ago does not count: an instruction that needs its value does not wait for it.

use std::collections::HashMap;

use trace::{Dependence, Misprediction, SiteId};

use crate::block::{Block, Blocks, Exit, Flow, Origin, REGISTERS};
use crate::branches::Branches;
use crate::sampling::is_sample;
use crate::wire;
use crate::wire::record;

/// Slots of a process that are followed as a whole.
const WHOLE: u64 = 16;
/// Below this slot, one of four is followed, and later one of eight, so that phases of a few slots are seen.
const OFTEN: u64 = 64;
/// Words that are followed of those.
const SAMPLE: usize = 4096;
const FEW: usize = 1024;
/// Instructions after which a loaded value is available: more than processors have in flight.
const RECENT: u64 = 1024;
/// Loads that a value is known to come from.
const MOST: usize = 4;
/// Values in memory that are followed in a thread.
const STORED: usize = 4096;
/// Sites that are counted as those that others wait for, each.
const COUNTED: usize = 16;

/// The loads that a value comes from, and at which instruction each was.
#[derive(Clone, Copy, Debug, Default)]
struct Loads {
    count: u8,
    loads: [(SiteId, u64); MOST],
}

impl Loads {
    fn get(&self) -> &[(SiteId, u64)] {
        &self.loads[..usize::from(self.count)]
    }

    fn add(&mut self, site: SiteId, at: u64) {
        let count = usize::from(self.count);
        if let Some(known) = self.loads[..count].iter_mut().find(|known| known.0 == site) {
            known.1 = known.1.max(at);
        } else if count < MOST {
            self.loads[count] = (site, at);
            self.count += 1;
        } else if let Some(oldest) = self.loads.iter_mut().min_by_key(|known| known.1)
            && oldest.1 < at
        {
            *oldest = (site, at);
        }
    }

    fn add_all(&mut self, other: &Loads) {
        for &(site, at) in other.get() {
            self.add(site, at);
        }
    }
}

/// A thread, as far as it is followed.
#[derive(Default)]
struct Thread {
    instructions: u64,
    registers: [Loads; REGISTERS],
    stored: HashMap<u64, Loads>,
    /// The latest locked instruction.
    locked: Loads,
}

impl Thread {
    /// The loads that a value comes from, in a superblock whose loads so far are `loaded`.
    fn resolve(&self, origin: Origin, loaded: &[Loads]) -> Loads {
        let mut all = Loads::default();
        for number in origin.registers() {
            all.add_all(&self.registers[number]);
        }
        for load in origin.loads() {
            if let Some(loads) = loaded.get(load) {
                all.add_all(loads);
            }
        }
        all
    }
}

/// How many words of a slot are followed, if any.
fn followed(slot: u64) -> Option<usize> {
    if slot <= WHOLE {
        return Some(usize::MAX);
    }
    let (one_in, sample) = if slot < OFTEN { (4, SAMPLE) } else { (8, FEW) };
    is_sample(slot, one_in).then_some(sample)
}

/// A site, counted.
#[derive(Default)]
struct Seen {
    times: u32,
    /// Of these, when its address came from loads, and when it came from a single one.
    waits: u32,
    single: u32,
    on: Vec<(SiteId, u32)>,
}

/// The branch at a superblock's end, whose direction the next superblock shows.
struct Awaited {
    branch: u64,
    /// The place it goes to if it is not taken; none of an indirect one.
    falls_through_to: Option<u64>,
    on: Loads,
}

/// The dependences of a recording, from all of its processes, and its branches.
#[derive(Default)]
pub struct Dependences {
    seen: HashMap<SiteId, Seen>,
    /// The loads of the current run.
    loaded: Vec<Loads>,
    branches: Branches,
    awaited: Option<Awaited>,
    /// The last slot, if it was followed to its end.
    followed: u64,
}

impl Dependences {
    /// Follows the words of a slot, the process' `slot`-th, which have been decoded.
    pub fn follow(&mut self, blocks: &Blocks, words: &[u64], slot: u64) {
        let Some(most) = followed(slot) else { return };
        let end = words.len().min(most);
        let mut threads: HashMap<u64, Thread> = HashMap::new();
        let mut current = u64::MAX;
        let mut thread = Thread::default();
        let mut at = 0;
        self.awaited = None;
        self.branches.begin(slot != self.followed + 1);
        self.followed = if end == words.len() { slot } else { 0 };
        while at < end {
            let word = words[at];
            at += 1;
            match wire::kind(word) {
                wire::BLOCK => {
                    let more = words[at..].iter();
                    let refs = more
                        .take_while(|word| **word & wire::TAGGED == 0 || **word == wire::TAGGED)
                        .count();
                    let addresses = &words[at..at + refs];
                    at += refs;
                    let marker = words.get(at).filter(|word| wire::kind(**word) == wire::EXIT);
                    at += usize::from(marker.is_some());
                    let marker = marker.map(|word| *word as u16);
                    if self
                        .run(&mut thread, blocks, word as u32 as usize, addresses, marker)
                        .is_none()
                    {
                        thread = Thread::default();
                        self.awaited = None;
                        self.branches.begin(true);
                    }
                }
                wire::RECORD => {
                    let Some((kind, payload)) = wire::payload(words, at - 1) else {
                        return;
                    };
                    if let (record::THREAD, [number]) = (kind, payload) {
                        let before = std::mem::replace(&mut thread, threads.remove(number).unwrap_or_default());
                        threads.insert(current, before);
                        current = *number;
                        self.awaited = None;
                        self.branches.begin(false);
                    }
                    at += payload.len();
                }
                _ => return,
            }
        }
    }

    /// One run of a superblock; `None` if it cannot be followed.
    fn run(
        &mut self,
        thread: &mut Thread,
        blocks: &Blocks,
        number: usize,
        addresses: &[u64],
        marker: Option<u16>,
    ) -> Option<()> {
        let block = blocks.get(number).filter(|block| block.named)?;
        let reached = blocks.exit_run(block, addresses.len(), marker).ok()?;
        let begins = blocks.pc(number)?;
        self.arrived(begins);
        self.loaded.clear();
        let exits = blocks.exits(block);
        let insns = exits[reached].insns;
        let mut passed = 0;
        let templates = blocks.templates(block);
        let flows = blocks.flows(block);
        for (place, ((template, flow), &address)) in templates.iter().zip(flows).zip(addresses).enumerate() {
            let mut brought = Loads::default();
            while passed < reached && usize::from(exits[passed].refs) <= place {
                self.stayed(thread, begins, passed, &exits[passed]);
                passed += 1;
            }
            if address != wire::TAGGED {
                self.branches.reference(template.site);
                let is_locked = flow.address.loads().any(|load| load == place);
                self.reference(thread, template.site, flow, is_locked);
                let now = thread.instructions;
                if is_locked {
                    thread.locked = Loads::default();
                    thread.locked.add(template.site, now);
                }
                let whole = template.size == 8;
                match template.op {
                    trace::Op::Read | trace::Op::Modify => {
                        brought.add(template.site, now);
                        if whole && let Some(stored) = thread.stored.get(&address) {
                            brought.add_all(stored);
                        }
                        if template.op == trace::Op::Modify {
                            thread.stored.remove(&address);
                        }
                    }
                    trace::Op::Write => {
                        let data = thread.resolve(flow.data, &self.loaded);
                        if thread.stored.len() >= STORED {
                            thread.stored.clear();
                        }
                        match whole && data.count > 0 {
                            true => thread.stored.insert(address, data),
                            false => thread.stored.remove(&address),
                        };
                    }
                    trace::Op::Fetch | trace::Op::Prefetch => {}
                }
            }
            self.loaded.push(brought);
        }
        while passed < reached {
            self.stayed(thread, begins, passed, &exits[passed]);
            passed += 1;
        }
        self.left(thread, blocks, block, begins, reached);
        // The sources of registers are given in terms of the registers at the entry.
        let writes = blocks.register_writes(block);
        let mut after = thread.registers;
        for write in writes.iter().filter(|write| write.insn < insns) {
            after[usize::from(write.number)] = thread.resolve(write.origin, &self.loaded);
        }
        thread.registers = after;
        thread.instructions += u64::from(insns);
        Some(())
    }

    /// A superblock begins here: this is the target of the previous branch.
    fn arrived(&mut self, pc: u64) {
        let Some(Awaited {
            branch,
            falls_through_to,
            on,
        }) = self.awaited.take()
        else {
            return;
        };
        let on = on.get().iter().map(|(site, _)| *site);
        match falls_through_to {
            Some(next) => self.branches.conditional(branch, pc != next, on),
            None => self.branches.indirect(branch, pc, on),
        }
    }

    /// The deciding loads that a processor may still wait for at the branch.
    fn decided_by(&self, thread: &Thread, exit: &Exit) -> Loads {
        let mut recent = Loads::default();
        for &(site, at) in thread.resolve(exit.origin, &self.loaded).get() {
            if at + RECENT >= thread.instructions {
                recent.add(site, at);
            }
        }
        recent
    }

    /// A superblock was not left at an exit.
    fn stayed(&mut self, thread: &Thread, begins: u64, number: usize, exit: &Exit) {
        if exit.conditional {
            let on = self.decided_by(thread, exit);
            let on = on.get().iter().map(|(site, _)| *site);
            self.branches.conditional(branch(begins, number), false, on);
        }
    }

    /// It was left at this exit.
    fn left(&mut self, thread: &Thread, blocks: &Blocks, block: &Block, begins: u64, number: usize) {
        let exits = blocks.exits(block);
        let exit = &exits[number];
        if !exit.conditional && !exit.indirect {
            return;
        }
        let (branch, on) = (branch(begins, number), self.decided_by(thread, exit));
        if number + 1 < exits.len() {
            let on = on.get().iter().map(|(site, _)| *site);
            self.branches.conditional(branch, true, on);
            return;
        }
        let falls_through_to = exit.conditional.then(|| blocks.falls_through_to(block)).flatten();
        self.awaited = Some(Awaited {
            branch,
            falls_through_to,
            on,
        });
    }

    fn reference(&mut self, thread: &Thread, site: SiteId, flow: &Flow, is_locked: bool) {
        let seen = self.seen.entry(site).or_default();
        seen.times = seen.times.saturating_add(1);
        if flow.address.is_nothing() {
            return;
        }
        let mut from = thread.resolve(flow.address, &self.loaded);
        if is_locked {
            from.add_all(&thread.locked);
        }
        let mut sources = 0;
        for &(load, at) in from.get() {
            if at + RECENT < thread.instructions {
                continue;
            }
            sources += 1;
            match seen.on.iter().position(|(known, _)| *known == load) {
                Some(known) => seen.on[known].1 = seen.on[known].1.saturating_add(1),
                None if seen.on.len() < COUNTED => seen.on.push((load, 1)),
                None => {}
            }
        }
        seen.waits = seen.waits.saturating_add(u32::from(sources > 0));
        seen.single = seen.single.saturating_add(u32::from(sources == 1));
    }

    /// The sites whose addresses came from loads at least every other time, with their most frequent source loads; and
    /// the mispredicted branches.
    pub fn tables(self) -> (Vec<Dependence>, Vec<Misprediction>) {
        let waits = |seen: &Seen| seen.times > 0 && seen.waits.saturating_mul(2) >= seen.times;
        let mut table: Vec<Dependence> = (self.seen.into_iter())
            .filter(|(_, seen)| waits(seen))
            .map(
                |(
                    site,
                    Seen {
                        waits, single, mut on, ..
                    },
                )| {
                    let either = u64::from(single) * 16 >= u64::from(waits) * 15;
                    // More frequent loads come first; a very rare load is chance. The head of a long list is seen once
                    // a list.
                    on.sort_unstable_by_key(|&(load, times)| (std::cmp::Reverse(times), load));
                    on.retain(|(_, times)| *times >= waits / if either { 64 } else { 8 });
                    on.truncate(MOST);
                    let mut on: Vec<SiteId> = on.into_iter().map(|(load, _)| load).collect();
                    on.sort_unstable();
                    Dependence {
                        site,
                        either: either && on.len() > 1,
                        on,
                    }
                },
            )
            .filter(|dependence| !dependence.on.is_empty())
            .collect();
        table.sort_unstable_by_key(|dependence| dependence.site);
        (table, self.branches.table())
    }
}

/// A number for the branch at an exit of the superblock that begins there.
fn branch(begins: u64, exit: usize) -> u64 {
    begins << 10 ^ exit as u64
}

#[cfg(test)]
mod tests {
    use super::followed;

    /// A loop of a few slots is seen wherever it occurs.
    #[test]
    fn no_long_stretch_goes_unseen() {
        let mut unseen = 0;
        for slot in 0..100_000 {
            unseen = followed(slot).map_or(unseen + 1, |_| 0);
            assert!(unseen < 16, "{slot}");
        }
        let at: Vec<u64> = (65..1000).filter(|slot| followed(*slot).is_some()).collect();
        let apart: std::collections::HashSet<u64> = at.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(apart.len() > 4, "{apart:?}");
    }
}
