//! The program's own prefetches: lines that it asks for ahead of use, on their way to the outermost cache.
//!
//! Bugnion and others (1996), section 6.2; the exact rules are in "Prefetches of the program" of the contract. A line
//! takes its place when it is asked for. Until it has come and a reference has found it, its entry in the cache has the
//! bit [`BROUGHT`], and its time of arrival is kept here, by the place in the cache.

use machine::Machine;
use policy::Page;
use results::Prefetches;

use crate::cache::BROUGHT;
use crate::clock::Units;
use crate::coherence::Supply;
use crate::engine::Engine;
use crate::layout::Layout;
use crate::lookup::SetLine;
use crate::pieces::{Access, Who};
use crate::steps::Step;

/// The prefetches of a machine whose cpus carry them out.
pub struct SoftwarePrefetch {
    /// The number that may be under way for one cpu.
    outstanding: usize,
    /// When those of each cpu come.
    under_way: Vec<Vec<Units>>,
    /// Number of the first instance of the cache that they come to.
    first: usize,
    /// By instance and place in it: the arrival there, if the entry has the bit.
    coming: Vec<Vec<Coming>>,
    /// By cpu.
    pub counts: Vec<Prefetches>,
}

/// A line that was asked for ahead of use.
#[derive(Clone, Copy)]
struct Coming {
    at: Units,
    /// The total time that this takes. No wait is longer, whatever the waiter's own clock.
    takes: Units,
    from: From,
    /// A reference has found it.
    found: bool,
}

/// The supplier of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Cache,
    Local,
    Remote,
}

const NOTHING: Coming = Coming {
    at: 0,
    takes: 0,
    from: From::Local,
    found: false,
};

impl SoftwarePrefetch {
    /// `None` where prefetches do nothing.
    pub fn new(machine: &Machine, layout: &Layout) -> Option<Box<SoftwarePrefetch>> {
        let outstanding = machine.prefetch?.outstanding as usize;
        let shape = &layout.caches[layout.software_prefetch?];
        let cpus = machine.cpus as usize;
        Some(Box::new(SoftwarePrefetch {
            outstanding,
            under_way: vec![Vec::with_capacity(outstanding); cpus],
            first: shape.first,
            coming: vec![vec![NOTHING; shape.lines() as usize]; shape.instances],
            counts: vec![Prefetches::default(); cpus],
        }))
    }

    /// Counts begin here; lines asked for before are found without being counted.
    pub fn restart(&mut self) {
        self.counts.fill(Prefetches::default());
        for coming in self.coming.iter_mut().flatten() {
            coming.found = true;
        }
    }
}

impl Engine {
    /// A prefetch of the program.
    #[cold]
    #[inline(never)]
    pub fn software_prefetch_asked<const COHERENT: bool>(&mut self, who: Who, address: u64, site: u32) {
        self.look_for_huge(who.space, address >> self.layout.page_bits);
        let Some(mut prefetches) = self.software_prefetch.take() else {
            return self.ask_overlapping(who, address, site);
        };
        self.ask::<COHERENT>(&mut prefetches, who, address);
        self.software_prefetch = Some(prefetches);
    }

    /// If cpus overlap, a prefetch is a load that nothing waits for.
    fn ask_overlapping(&mut self, who: Who, address: u64, site: u32) {
        let (first, levels) = self.steps.route(who.cpu, false);
        let number = address >> self.layout.page_bits;
        let Some(now) = self.prefetch_asks(who, address, site).filter(|_| levels > 0) else {
            return;
        };
        let page = match self.table.peek(who.space, number) {
            None => self.table.find(Page {
                space: who.space,
                number,
            }),
            page => page,
        };
        let Some((page, copy)) = page.and_then(|page| Some((page, self.mapped(who.cpu, page)?))) else {
            return;
        };
        let offset = address & ((1 << self.layout.page_bits) - 1);
        let a = Access {
            who,
            core: self.cpus[who.cpu as usize].core,
            page,
            copy,
            virtual_address: address,
            named_address: address.wrapping_sub(self.moved),
            physical_address: self.copies[copy as usize].frame() << self.layout.page_bits | offset,
            bytes: 1,
            pc_site: site,
            write: false,
            reads: true,
            fetch: false,
            now,
        };
        let step = self.steps.get(first);
        let line = a.line(&step) & ((1 << step.page_lines) - 1);
        if self.bring(&a, first, line, false) {
            self.prefetch_requested(who.cpu, address, now);
        }
    }

    fn ask<const COHERENT: bool>(&mut self, prefetches: &mut SoftwarePrefetch, who: Who, address: u64) {
        let counts = &mut prefetches.counts[who.cpu as usize];
        counts.issued += 1;
        let (space, number) = (who.space, address >> self.layout.page_bits);
        let page = match self.table.peek(space, number) {
            None => self.table.find(Page { space, number }),
            page => page,
        };
        let entry = match &mut self.huge_pages {
            None => page.map(|page| (page, number)),
            Some(huge_pages) => Some(huge_pages.entry(space, number)),
        };
        if let Some(tlb) = self.tlbs.get(who.cpu as usize)
            && entry.is_none_or(|(entry, set)| !tlb.holds(entry, set))
        {
            counts.dropped_tlb += 1;
            return;
        }
        let Some(copy) = page.and_then(|page| self.mapped(who.cpu, page)) else {
            counts.dropped_unmapped += 1;
            return;
        };
        let offset = address & ((1 << self.layout.page_bits) - 1);
        let mut a = Access {
            who,
            core: self.cpus[who.cpu as usize].core,
            page: page.unwrap_or(copy),
            copy,
            virtual_address: address,
            named_address: address.wrapping_sub(self.moved),
            physical_address: self.copies[copy as usize].frame() << self.layout.page_bits | offset,
            bytes: 1,
            pc_site: 0,
            write: false,
            reads: true,
            fetch: false,
            now: self.cpus[who.cpu as usize].clock,
        };
        let (first, levels) = self.steps.route(who.cpu, false);
        if (first..first + levels).any(|at| self.holds(&a, at)) {
            counts.already_present += 1;
            return;
        }
        counts.brought += 1;
        self.wait_for_room(prefetches, &mut a);
        let (takes, from) = self.request::<COHERENT>(&a);
        let at = a.now + takes;
        prefetches.under_way[who.cpu as usize].push(at);
        let step = self.steps.get(first + levels - 1);
        if COHERENT && self.classes {
            self.forgive(&a, &step, a.line(&step), true);
        }
        self.fill::<COHERENT>(&a, levels - 1, &step, false);
        let SetLine { set, line } = self.set_line(&a, &step);
        let cache = &mut self.caches[step.instance as usize];
        if let Some(place) = cache.find(set, line) {
            cache.set_state(place, BROUGHT);
            let coming = &mut prefetches.coming[step.instance as usize - prefetches.first];
            coming[place] = Coming {
                at,
                takes,
                from,
                found: false,
            };
        }
        if COHERENT && !self.deposits.is_empty() {
            self.deposit(&a);
        }
    }

    /// The cpu waits until one prefetch less is under way than may be.
    fn wait_for_room(&mut self, prefetches: &mut SoftwarePrefetch, a: &mut Access) {
        let under_way = &mut prefetches.under_way[a.who.cpu as usize];
        under_way.retain(|at| *at > a.now);
        if under_way.len() < prefetches.outstanding {
            return;
        }
        let next = under_way.iter().copied().min().unwrap_or(a.now);
        under_way.retain(|at| *at > next);
        let cpu = &mut self.cpus[a.who.cpu as usize];
        cpu.spent.prefetch += next - a.now;
        cpu.clock = next;
        a.now = next;
    }

    /// Asks the other cores and memory for the line, as a read does; how long it takes, and from whom it comes.
    fn request<const COHERENT: bool>(&mut self, a: &Access) -> (Units, From) {
        let supply = match COHERENT {
            true => self.agree(a, None),
            false => Supply::Memory,
        };
        let home = self.copies[a.copy as usize].node();
        match supply {
            Supply::Cache(time) => (time, From::Cache),
            Supply::DirtyRemote => {
                let wait = self.memory.transfer(home, a.now);
                (wait + self.memory.dirty_remote, From::Remote)
            }
            Supply::Memory => {
                let node = self.cpus[a.who.cpu as usize].node;
                let wait = self.memory.transfer(home, a.now);
                let from = if home == node { From::Local } else { From::Remote };
                (wait + self.memory.latency(node, home), from)
            }
        }
    }

    /// A piece found, at a place of the outermost cache, a line that was asked for ahead of use: it waits for the
    /// remaining time. `passed`: a write that no cpu waits for.
    #[cold]
    #[inline(never)]
    pub fn hit_software_prefetched(&mut self, a: &Access, step: &Step, place: usize, passed: bool) {
        let Some(prefetches) = &mut self.software_prefetch else {
            return;
        };
        let coming = &mut prefetches.coming[step.instance as usize - prefetches.first][place];
        let counts = &mut prefetches.counts[a.who.cpu as usize];
        let first = u64::from(!std::mem::replace(&mut coming.found, true));
        counts.useful += first;
        if coming.at <= a.now {
            self.caches[step.instance as usize].clear_state(place, BROUGHT);
        }
        let rest = coming.at.saturating_sub(a.now).min(coming.takes);
        let late = rest.saturating_sub(step.hit);
        if passed || late == 0 {
            return;
        }
        counts.late += first;
        self.counts[step.counts as usize].late_stall += late;
        let cpu = &mut self.cpus[a.who.cpu as usize];
        cpu.clock += late;
        match coming.from {
            From::Cache => cpu.spent.cache += late,
            From::Local => cpu.spent.local += late,
            From::Remote => cpu.spent.remote += late,
        }
    }
}
