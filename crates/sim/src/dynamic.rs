//! A policy at work while the program runs: the reports it gets, and how its actions are carried out.

mod accessed;

use std::collections::HashMap;

use machine::Machine;
use policy::{Action, Interest, Miss, MissLevel, Observation, Page, Placement, Pressure, Ran, Tick, Touched};
use trace::Op;

use crate::cache::WATCH;
use crate::clock::{Units, units, whole_ns};
use crate::engine::Engine;
use crate::error::SimError;
use crate::pieces::{Access, Who};
use accessed::{Looks, UNSEEN};

/// State kept for a policy that acts.
pub struct Dynamic {
    cache_misses: Sample,
    tlb_misses: Sample,
    touches: bool,
    /// The time of a touch of a closed page, if the policy gives one.
    touch_fault_ns: u64,
    /// The same of moving a thread.
    move_thread_ns: u64,
    tick: Units,
    next_tick: Vec<Units>,
    /// The first copy of each page.
    homes: Vec<u32>,
    /// Bits [`CLOSED`] and [`REPLICATED`] of each page, and those of [`accessed`].
    flags: Vec<u8>,
    pub looks: Looks,
    closed: HashMap<u32, u128>,
    /// Copies of replicated pages beyond the first.
    replicas: HashMap<u32, Vec<u32>>,
    pub free_copies: Vec<u32>,
    /// Threads to be run elsewhere: thread, cpu, and when.
    pub moves: Vec<(u32, u32, Units)>,
    /// Cpus that threads are kept on: whose action it was, the thread, and its cpus.
    pub allowed: Vec<(u32, u32, u128)>,
    threads: u32,
}

const CLOSED: u8 = 1;
const REPLICATED: u8 = 2;

/// One in this many.
struct Sample {
    every: u32,
    seen: u32,
}

impl Sample {
    fn take(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        self.seen += 1;
        let taken = self.seen == self.every;
        if taken {
            self.seen = 0;
        }
        taken
    }
}

impl Dynamic {
    pub fn new(machine: &Machine, interest: Interest) -> Self {
        let tick = interest.tick_ns.saturating_mul(1 << 20);
        Dynamic {
            cache_misses: Sample {
                every: interest.cache_misses,
                seen: 0,
            },
            tlb_misses: Sample {
                every: interest.tlb_misses,
                seen: 0,
            },
            touches: interest.touches,
            touch_fault_ns: interest.touch_fault_ns,
            move_thread_ns: interest.move_thread_ns,
            tick,
            next_tick: vec![if tick == 0 { Units::MAX } else { tick }; machine.cpus as usize],
            homes: Vec::new(),
            flags: Vec::new(),
            looks: Looks::new(interest.accessed_ns),
            closed: HashMap::new(),
            replicas: HashMap::new(),
            free_copies: Vec::new(),
            moves: Vec::new(),
            allowed: Vec::new(),
            threads: 0,
        }
    }

    /// Sets the number of threads that can be moved.
    pub fn set_threads(&mut self, threads: u32) {
        self.threads = threads;
    }

    pub fn new_page(&mut self, page: u32, named: Page, copy: u32) {
        debug_assert_eq!(page as usize, self.homes.len());
        self.homes.push(copy);
        let flags = self.met(page, named.space, named.number);
        self.flags.push(flags);
    }
}

impl Engine {
    #[inline(always)]
    pub fn moves_threads(&self) -> bool {
        (self.dynamic.as_ref()).is_some_and(|dynamic| !dynamic.moves.is_empty() || !dynamic.allowed.is_empty())
    }

    /// The copy of a page that a cpu uses; `None` where the page is closed to it.
    pub fn mapped(&self, cpu: u32, page: u32) -> Option<u32> {
        let Some(dynamic) = &self.dynamic else {
            return Some(page);
        };
        let closed = dynamic.closed.get(&page).is_some_and(|closed| closed >> cpu & 1 == 1);
        (!closed).then(|| self.copy_for(page, self.cpus[cpu as usize].node))
    }

    /// Before a piece: closed pages report, writes collapse replicas. Returns the copy to use.
    pub fn before(&mut self, who: Who, page: u32, op: Op) -> Result<u32, SimError> {
        let Some(dynamic) = &mut self.dynamic else {
            return Ok(page);
        };
        if op == Op::Fetch {
            dynamic.executed(page);
        }
        if dynamic.flags[page as usize] & UNSEEN != 0 {
            dynamic.seen(page);
        }
        if dynamic.flags[page as usize] & (CLOSED | REPLICATED) != 0 {
            self.before_touch(who, page, matches!(op, Op::Write | Op::Modify))?;
        }
        Ok(self.copy_for(page, self.cpus[who.cpu as usize].node))
    }

    fn before_touch(&mut self, who: Who, page: u32, write: bool) -> Result<(), SimError> {
        let Some(dynamic) = &self.dynamic else { return Ok(()) };
        let touched = Touched {
            page: self.table.page(page),
            index: page,
            thread: who.thread,
            cpu: who.cpu,
            write,
            nature: dynamic.nature(page),
        };
        let closed = dynamic.closed.get(&page).copied().unwrap_or(0);
        if closed >> who.cpu & 1 == 1 {
            let report = dynamic.touches;
            let takes = match dynamic.touch_fault_ns {
                0 => self.costs.touch_fault_ns,
                ns => ns as f64,
            };
            self.charge(who.cpu, takes);
            if report {
                self.observe(who.cpu, Observation::Touched(touched))?;
            }
        }
        if write && self.is_replicated(page) {
            self.observe(who.cpu, Observation::ReplicaWritten(touched))?;
            if self.is_replicated(page) {
                let node = self.cpus[who.cpu as usize].node;
                self.collapse(who.cpu, page, Some(node), true)?;
            }
        }
        Ok(())
    }

    fn is_replicated(&self, page: u32) -> bool {
        self.dynamic
            .as_ref()
            .is_some_and(|dynamic| dynamic.flags[page as usize] & REPLICATED != 0)
    }

    /// The copy of a page that cpus of a node use.
    fn copy_for(&self, page: u32, node: u32) -> u32 {
        let Some(dynamic) = &self.dynamic else { return page };
        let home = dynamic.homes[page as usize];
        if dynamic.flags[page as usize] & REPLICATED == 0 || self.copies[home as usize].node() == node {
            return home;
        }
        let replicas = dynamic.replicas.get(&page).map_or(&[][..], |replicas| replicas);
        let near = replicas.iter().find(|&&copy| self.copies[copy as usize].node() == node);
        near.copied().unwrap_or(home)
    }

    /// After a piece: reports to the policy the events that it asked for.
    pub fn after(&mut self, a: &Access, tlb_missed: bool) -> Result<(), SimError> {
        let served = self.reached_memory.take();
        let Some(dynamic) = &mut self.dynamic else {
            return Ok(());
        };
        let tlb = tlb_missed && dynamic.tlb_misses.take();
        let cache = served.is_some() && dynamic.cache_misses.take();
        let clock = self.cpus[a.who.cpu as usize].clock;
        let ticks = clock >= dynamic.next_tick[a.who.cpu as usize] || dynamic.looks.is_due(clock);
        if !(tlb || cache || ticks) && self.homes.pressed.is_empty() {
            return Ok(());
        }
        let node = self.copies[a.copy as usize].node();
        let miss = |level: MissLevel, page: Page| Miss {
            level,
            page,
            index: a.page,
            thread: a.who.thread,
            cpu: a.who.cpu,
            served_by: node,
            write: a.write,
            fetch: a.fetch,
        };
        let page = self.table.page(a.page);
        if tlb {
            self.observe(a.who.cpu, Observation::Miss(miss(MissLevel::Tlb, page)))?;
        }
        if cache {
            self.observe(a.who.cpu, Observation::Miss(miss(MissLevel::Cache, page)))?;
        }
        while let Some(node) = self.homes.pressed.pop() {
            let free_frames = self.homes.frames.free(node);
            self.observe(a.who.cpu, Observation::Pressure(Pressure { node, free_frames }))?;
        }
        self.look(a.who.cpu)?;
        let ran = Ran {
            thread: a.who.thread,
            space: page.space,
        };
        self.tick(a.who.cpu, ran)
    }

    fn tick(&mut self, cpu: u32, ran: Ran) -> Result<(), SimError> {
        let clock = self.cpus[cpu as usize].clock;
        let Some(dynamic) = &mut self.dynamic else {
            return Ok(());
        };
        let next = &mut dynamic.next_tick[cpu as usize];
        if clock < *next {
            return Ok(());
        }
        *next = (clock / dynamic.tick + 1) * dynamic.tick;
        self.observe(cpu, Observation::Tick(Tick { cpu, ran: Some(ran) }))
    }

    pub fn observe(&mut self, cpu: u32, observation: Observation) -> Result<(), SimError> {
        self.homes.world.now_ns = whole_ns(self.cpus[cpu as usize].clock);
        let mut actions = Vec::new();
        self.homes.policy.observe(&observation, &self.homes.world, &mut actions);
        for action in actions {
            self.carry_out(cpu, action)?;
        }
        Ok(())
    }

    fn charge(&mut self, cpu: u32, ns: f64) {
        let cost = units(ns);
        let cpu = &mut self.cpus[cpu as usize];
        cpu.clock += cost;
        cpu.spent.policy += cost;
    }

    fn carry_out(&mut self, cpu: u32, action: Action) -> Result<(), SimError> {
        let page = match action {
            Action::Move { page, .. }
            | Action::Copy { page, .. }
            | Action::Collapse { page, .. }
            | Action::Close { page, .. }
            | Action::Open { page, .. } => match self.table.find(page) {
                Some(page) => page,
                None => return Ok(()),
            },
            Action::MoveThread { thread, cpu: to } => {
                self.move_thread(cpu, thread, to);
                return Ok(());
            }
            Action::Allow { thread, cpus } => {
                if let Some(dynamic) = (self.dynamic.as_mut()).filter(|dynamic| thread < dynamic.threads) {
                    dynamic.allowed.push((cpu, thread, cpus));
                }
                return Ok(());
            }
            Action::Work { ns } => {
                self.charge(cpu, ns as f64);
                return Ok(());
            }
        };
        match action {
            Action::Move { to, .. } => self.move_page(cpu, page, to),
            Action::Copy { node, .. } => self.copy_page(cpu, page, node),
            Action::Collapse { node, .. } => self.collapse(cpu, page, node, true),
            Action::Close { cpus, .. } => {
                self.close(page, |closed| closed | cpus);
                Ok(())
            }
            Action::Open { cpus, .. } => {
                self.close(page, |closed| closed & !cpus);
                Ok(())
            }
            Action::MoveThread { .. } | Action::Allow { .. } | Action::Work { .. } => Ok(()),
        }
    }

    fn close(&mut self, page: u32, change: impl Fn(u128) -> u128) {
        let Some(dynamic) = &mut self.dynamic else { return };
        let closed = change(dynamic.closed.get(&page).copied().unwrap_or(0));
        dynamic.closed.insert(page, closed);
        if closed == 0 {
            dynamic.closed.remove(&page);
            dynamic.flags[page as usize] &= !CLOSED;
        } else {
            dynamic.flags[page as usize] |= CLOSED;
        }
    }

    pub fn move_thread(&mut self, cpu: u32, thread: u32, to: u32) {
        let known = self.dynamic.as_ref().is_some_and(|dynamic| thread < dynamic.threads);
        if !known || to >= self.layout.cpus {
            return;
        }
        let takes = match self.dynamic.as_ref().map_or(0, |dynamic| dynamic.move_thread_ns) {
            0 => self.costs.move_thread_ns,
            ns => ns as f64,
        };
        self.charge(cpu, takes);
        let now = self.cpus[cpu as usize].clock;
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.moves.push((thread, to, now));
        }
    }

    fn move_page(&mut self, cpu: u32, page: u32, to: Placement) -> Result<(), SimError> {
        self.collapse(cpu, page, None, false)?;
        let old = self.copy_for(page, u32::MAX);
        let frame = self.copies[old as usize].frame();
        let (here, now) = (self.homes.frames.node_of(frame), self.homes.frames.color_of(frame));
        let here_now = Placement {
            color: Some(now),
            node: Some(here),
        };
        let (node, color) = self.homes.wished(to, here_now);
        if (node, color) == (here, now) {
            return Ok(());
        }
        let Some(frame) = self.homes.frames.take_on(node, color) else {
            return Ok(());
        };
        let copy = self.new_copy(page, frame)?;
        self.homes.took(frame);
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.homes[page as usize] = copy;
        }
        self.release(old);
        self.tlb_remove(page);
        if node == here {
            self.homes.counts.recolorings += 1;
            self.charge(cpu, self.costs.recolor_page_ns);
        } else {
            self.homes.counts.migrations += 1;
            self.detail_moved(cpu);
            self.charge(cpu, self.costs.move_page_ns);
        }
        Ok(())
    }

    fn copy_page(&mut self, cpu: u32, page: u32, node: u32) -> Result<(), SimError> {
        let node = node % self.layout.nodes;
        let near = self.copy_for(page, node);
        if self.copies[near as usize].node() == node {
            return Ok(());
        }
        let home = self.copy_for(page, u32::MAX);
        let color = self.homes.frames.color_of(self.copies[home as usize].frame());
        let Some(frame) = self.homes.frames.take_on(node, color) else {
            return Ok(());
        };
        let copy = self.new_copy(page, frame)?;
        self.homes.took(frame);
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.replicas.entry(page).or_default().push(copy);
            dynamic.flags[page as usize] |= REPLICATED;
        }
        self.tlb_remove(page);
        self.homes.counts.replications += 1;
        self.detail_moved(cpu);
        self.charge(cpu, self.costs.copy_page_ns);
        Ok(())
    }

    fn collapse(&mut self, cpu: u32, page: u32, node: Option<u32>, charged: bool) -> Result<(), SimError> {
        if !self.is_replicated(page) {
            return Ok(());
        }
        let keep = self.copy_for(page, node.unwrap_or(u32::MAX));
        let Some(dynamic) = &mut self.dynamic else {
            return Ok(());
        };
        dynamic.flags[page as usize] &= !REPLICATED;
        let mut others = dynamic.replicas.remove(&page).unwrap_or_default();
        others.push(std::mem::replace(&mut dynamic.homes[page as usize], keep));
        for copy in others {
            if copy != keep {
                self.release(copy);
            }
        }
        self.tlb_remove(page);
        self.homes.counts.collapses += 1;
        if charged {
            self.charge(cpu, self.costs.collapse_ns);
        }
        Ok(())
    }

    /// A frame holds its page no more: its lines leave all caches, and nothing is known of them.
    fn release(&mut self, copy: u32) {
        for number in 0..self.caches.len() {
            let kind = self.layout.places[number].cache;
            let bits = self.layout.page_bits - self.layout.caches[kind].line_bits;
            for line in copy << bits..(copy + 1) << bits {
                if self.classes {
                    let arena = self.layout.places[number].arena;
                    self.shadows[number].forget(&mut self.arenas[arena as usize], line);
                }
                if self.caches[number].is_empty() {
                    continue;
                }
                let set = self.set_of(kind, line);
                if let Some(state) = self.caches[number].forget(set, line)
                    && state & WATCH != 0
                {
                    self.unheld(kind, number as u32, line);
                }
            }
        }
        if self.coherent {
            let bits = self.layout.page_bits - self.layout.block_bits;
            for block in copy << bits..(copy + 1) << bits {
                self.directory.reset(block);
            }
        }
        if let Some(prefetchers) = &mut self.prefetchers {
            prefetchers.forget(copy);
        }
        let frame = self.copies[copy as usize].frame();
        self.homes.give_back(frame);
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.free_copies.push(copy);
        }
    }
}

#[cfg(test)]
mod tests;
