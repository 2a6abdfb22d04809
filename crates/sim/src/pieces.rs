//! Carries out a reference: cuts it into pieces, of which each finds its page and goes to the first
//! cache of its route. The common case, a hit there that concerns nothing else, ends here;
//! [`crate::miss_path`] has the levels beyond.

use trace::{Op, Ref};

use crate::cache::{BROUGHT, DIRTY, PERM, WATCH};
use crate::changes::Part;
use crate::clock::Units;
use crate::engine::{Engine, Traits};
use crate::error::SimError;
use crate::lookup::{Lookup, look_up};
use crate::miss_path::Start;
use crate::overlap::From;
use crate::recency::Prior;
use crate::steps::Step;

/// The maker of a reference.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub cpu: u32,
    pub thread: u32,
    pub space: u32,
}

/// A piece of a reference on its way through the caches.
#[derive(Clone, Copy)]
pub struct Access {
    pub who: Who,
    pub core: u32,
    pub page: u32,
    pub copy: u32,
    pub virtual_address: u64,
    /// The program's own address, by which data is named.
    pub named_address: u64,
    pub physical_address: u64,
    pub bytes: u32,
    pub pc_site: u32,
    pub write: bool,
    /// True if it fills caches that do not allocate on writes: reads, and writes that also read.
    pub reads: bool,
    pub fetch: bool,
    /// The moment at which transfers are asked for.
    pub now: Units,
}

/// The result of the first cache of a piece's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Done,
    /// There is none.
    None,
    /// It missed; holds its shadow's knowledge of the line.
    Missed(Prior),
    /// It hit, at this position, and that is not all.
    Care(usize),
    /// It hit, at this position, and its prefetcher has to see that.
    Seen(usize),
    /// It hit, at this position, a line that the program asked for ahead of use.
    SoftwarePrefetched(usize),
    /// It hit, at this position; its time is computed elsewhere.
    Overlaps(usize),
}

impl First {
    /// The position of the line, if it may still be needed.
    fn position(self) -> Option<usize> {
        match self {
            First::Done | First::None | First::Missed(_) => None,
            First::Care(at) | First::Seen(at) | First::SoftwarePrefetched(at) | First::Overlaps(at) => Some(at),
        }
    }
}

impl Engine {
    /// Carries out a reference: its instructions, then its pieces.
    #[inline(always)]
    pub fn reference<const COHERENT: bool, const CLASSES: bool>(&mut self, who: Who, r: &Ref) -> Result<(), SimError> {
        self.instructions(who, r);
        // A hint: the program's result does not depend on it.
        if r.op == Op::Prefetch {
            self.software_prefetch_asked::<COHERENT>(who, r.addr, r.site);
            return Ok(());
        }
        self.cpus[who.cpu as usize].counts.references += 1;
        let last = r.addr.saturating_add(u64::from(r.size.max(1)) - 1);
        self.pieces::<COHERENT, CLASSES>(who, r.addr, last, r)
    }

    /// Carries out a reference whose bytes are in these places.
    pub fn reference_in_parts<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        who: Who,
        r: &Ref,
        parts: &[Part],
    ) -> Result<(), SimError> {
        self.instructions(who, r);
        // The first piece is known by its address.
        let addr = parts.first().map_or(r.addr, |part| part.from);
        let r = &Ref { addr, ..*r };
        if r.op != Op::Prefetch {
            self.cpus[who.cpu as usize].counts.references += 1;
        }
        for part in parts {
            self.moved = part.moved;
            if let Some(huge_pages) = &mut self.huge_pages {
                huge_pages.asked = part.huge_pages;
            }
            if r.op == Op::Prefetch {
                self.software_prefetch_asked::<COHERENT>(who, part.from, r.site);
                break;
            }
            self.pieces::<COHERENT, CLASSES>(who, part.from, part.last, r)?;
        }
        self.moved = 0;
        if let Some(huge_pages) = &mut self.huge_pages {
            (huge_pages.asked, huge_pages.here) = (false, false);
        }
        Ok(())
    }

    #[inline(always)]
    fn instructions(&mut self, who: Who, r: &Ref) {
        let instructions = match self.traits {
            Traits {
                counts_instructions: true,
                ..
            } => u64::from(r.insns),
            Traits { has_fetches: true, .. } => u64::from(r.op == Op::Fetch),
            _ => 1,
        };
        self.work(who.cpu, instructions);
        self.passed(who, r.site, instructions);
        self.detail_passed(who, r.site);
    }

    /// Cuts the bytes of a reference into pieces.
    #[inline(always)]
    fn pieces<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        who: Who,
        mut from: u64,
        last: u64,
        r: &Ref,
    ) -> Result<(), SimError> {
        let piece_bits = self.layout.piece_bits;
        if from >> piece_bits == last >> piece_bits {
            return self.piece::<COHERENT, CLASSES>(who, from, last, r);
        }
        loop {
            let end = from | ((1 << piece_bits) - 1);
            self.piece::<COHERENT, CLASSES>(who, from, end.min(last), r)?;
            if end >= last {
                return Ok(());
            }
            from = end + 1;
        }
    }

    #[inline(always)]
    fn piece<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        who: Who,
        from: u64,
        to: u64,
        r: &Ref,
    ) -> Result<(), SimError> {
        let page_bits = self.layout.page_bits;
        let number = from >> page_bits;
        let (page, first) = self.table.touch(who.space, number);
        self.look_for_huge(who.space, number);
        let mut tlb_missed = false;
        if !self.tlbs.is_empty() {
            self.cpus[who.cpu as usize].counts.tlb_accesses += 1;
            let (entry, set) = match &mut self.huge_pages {
                None => (page, number),
                Some(huge_pages) => huge_pages.entry(who.space, number),
            };
            if !self.tlbs[who.cpu as usize].touch(entry, set) {
                tlb_missed = true;
                let refill = self.translate(who.cpu, who.space, number);
                let cpu = &mut self.cpus[who.cpu as usize];
                cpu.counts.tlb_misses += 1;
                // If cpus overlap, the translation is part of the piece's time.
                if self.overlap.is_none() || r.op == Op::Fetch {
                    cpu.clock += refill;
                    cpu.spent.tlb += refill;
                }
            }
        }
        self.detail_touched(who, page, from, r.op);
        let write = matches!(r.op, Op::Write | Op::Modify);
        if first {
            self.first_touch(who, page, from, write)?;
        }
        let copy = match self.dynamic.is_some() {
            true => self.before(who, page, r.op)?,
            false => page,
        };
        let offset = from & ((1 << page_bits) - 1);
        let physical = self.copies[copy as usize].frame() << page_bits | offset;
        let now = self.cpus[who.cpu as usize].clock;
        let first = self.first_cache::<COHERENT, CLASSES>(who.cpu, r.op, copy, from, physical);
        let done = match first {
            First::Done => true,
            First::Overlaps(at) if self.dynamic.is_none() && !tlb_missed => {
                self.waits_for_nothing(who, r.op, r.site, at)
            }
            _ => false,
        };
        if done && self.dynamic.is_none() && self.detail_served(who, r.op, [from, to], tlb_missed, now) {
            return Ok(());
        }
        let mut access = Access {
            who,
            core: self.cpus[who.cpu as usize].core,
            page,
            copy,
            virtual_address: from,
            named_address: from.wrapping_sub(self.moved),
            physical_address: physical,
            bytes: (to - from) as u32 + 1,
            pc_site: r.site,
            write,
            reads: r.op != Op::Write,
            fetch: r.op == Op::Fetch,
            now,
        };
        if self.overlap.is_some() {
            let near = !matches!(first, First::None | First::Missed(_));
            self.piece_asks(&mut access, r.op, near, from == r.addr, tlb_missed);
        }
        self.go_on::<COHERENT, CLASSES>(&access, first, tlb_missed)
    }

    /// Continues with the rest of a piece after the first cache, and with those that want to know
    /// of it.
    #[inline(never)]
    fn go_on<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        a: &Access,
        first: First,
        tlb_missed: bool,
    ) -> Result<(), SimError> {
        if first != First::None {
            let (at, _) = self.steps.route(a.who.cpu, a.fetch);
            self.looked_up(a, at, !matches!(first, First::Missed(_)), first.position());
        }
        match first {
            First::Done | First::Seen(_) => {}
            First::SoftwarePrefetched(at) => {
                let (first, _) = self.steps.route(a.who.cpu, a.fetch);
                let step = self.steps.get(first);
                self.hit_software_prefetched(a, &step, at, false);
            }
            First::Overlaps(at) => {
                let (first, _) = self.steps.route(a.who.cpu, a.fetch);
                let step = self.steps.get(first);
                let stall = self.served(a, step.hit, From::Cache, Some((&step, at)));
                self.counts[step.counts as usize].hit_stall += stall;
                self.cpus[a.who.cpu as usize].spent.cache += stall;
            }
            First::None => self.walk::<COHERENT, CLASSES>(a, Start::at(0)),
            First::Missed(prior) => self.walk::<COHERENT, CLASSES>(a, Start::missed(prior)),
            First::Care(at) => {
                let (first, _) = self.steps.route(a.who.cpu, a.fetch);
                let step = self.steps.get(first);
                self.hit_with_care::<COHERENT, CLASSES>(a, &step, at);
            }
        }
        if self.prefetchers.is_some() {
            self.prefetch(a);
        }
        self.detail_done(a, tlb_missed);
        match self.dynamic.is_some() {
            true => self.after(a, tlb_missed),
            false => Ok(()),
        }
    }

    /// Looks a piece up in the first cache of its route, and does everything for a hit that
    /// concerns nothing else.
    #[inline(always)]
    fn first_cache<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        cpu: u32,
        op: Op,
        copy: u32,
        from: u64,
        physical: u64,
    ) -> First {
        let fetch = op == Op::Fetch;
        let (first, levels) = self.steps.route(cpu, fetch);
        if levels == 0 {
            return First::None;
        }
        let step = self.steps.at(first);
        let place = step.set_line(&self.layout, copy, from, physical);
        let instance = step.instance as usize;
        let shadow = match CLASSES {
            true => Some((&mut self.shadows[instance], &mut self.arenas[usize::from(step.arena)])),
            false => None,
        };
        let counts = &mut self.counts[step.counts as usize];
        let cache = &mut self.caches[instance];
        let at = match look_up::<0>(step, cache, shadow, counts, place, op != Op::Write) {
            Lookup::Hit(at) => at,
            Lookup::Miss(prior) => return First::Missed(prior),
        };
        let state = cache.state(at);
        let write = matches!(op, Op::Write | Op::Modify);
        let care = match write {
            true => !step.write_back || (COHERENT && (state & PERM == 0 || state & WATCH != 0)),
            false => COHERENT && (state & WATCH != 0 || (fetch && !step.private)),
        };
        if care {
            return First::Care(at);
        }
        if write {
            cache.set_state(at, DIRTY);
        }
        if step.counts_hits {
            if step.overlaps {
                return First::Overlaps(at);
            }
            counts.hit_stall += step.hit;
            let cpu = &mut self.cpus[cpu as usize];
            cpu.clock += step.hit;
            cpu.spent.cache += step.hit;
            if step.software_prefetch && state & BROUGHT != 0 {
                return First::SoftwarePrefetched(at);
            }
            if let Some(prefetchers) = &self.prefetchers
                && prefetchers.follow(instance)
            {
                return First::Seen(at);
            }
        }
        First::Done
    }
}

impl Access {
    /// The number of the line that the piece is in.
    #[inline(always)]
    pub fn line(&self, step: &Step) -> u32 {
        self.line_of(u32::from(step.page_lines), u32::from(step.line_bits))
    }

    /// The same for lines of `line_bits`, of which a page has `1 << page_lines`.
    #[inline(always)]
    pub fn line_of(&self, page_lines: u32, line_bits: u32) -> u32 {
        let within = (self.virtual_address >> line_bits) as u32 & ((1 << page_lines) - 1);
        self.copy << page_lines | within
    }
}
