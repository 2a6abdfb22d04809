//! True or false sharing: how the engine uses the records of [`crate::sharing`], from the moment at which an instance
//! loses a line to the decision on the miss that follows.

use crate::cache::WATCH;
use crate::counts::Class;
use crate::engine::Engine;
use crate::layout::Off;
use crate::pieces::Access;
use crate::sharing::{DISCARDED, Held, Pending};
use crate::steps::Step;

impl Engine {
    /// The words of its block that a piece touches.
    #[inline(always)]
    pub fn words(&self, a: &Access) -> u64 {
        let offset = (a.virtual_address & ((1 << self.layout.block_bits) - 1)) as u32;
        let (first, last) = (offset / 4, (offset + a.bytes - 1) / 4);
        (u64::MAX >> (63 - (last - first))) << first
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
        let mut essential = std::mem::take(&mut self.essential);
        let waits = self.directory.records.seen(block, a.core, words, &mut essential);
        if !essential.is_empty() {
            self.directory.look_at_records(block);
            for pending in essential.drain(..) {
                self.decide(pending, Class::TrueSharing);
            }
        }
        self.essential = essential;
        waits
    }

    /// Returns whether a sharing miss of an instance on the core's path has no class yet, in the block of the piece.
    pub fn undecided(&mut self, a: &Access) -> bool {
        let block = self.block(a);
        self.directory.has_records(block) && self.directory.records.waits(block, a.core)
    }

    /// An instance takes a line ahead of use, with all writes of others; or it misses a line that it never looked up:
    /// it may have held it all the same, ahead of use, and lost it. In both cases the earlier loss no longer matters.
    /// `takes`: it holds the line afterwards.
    #[inline]
    pub fn forgive(&mut self, a: &Access, step: &Step, line: u32, takes: bool) {
        let block = self.block_of(step.kind as usize, line);
        if self.directory.has_records(block) {
            self.give_written(block, a.core);
            self.directory.records.forgive(block, step.instance, line, takes);
            self.directory.look_at_records(block);
        }
    }

    /// Gives the words that the owner wrote, unless it is this core, to the records of instances
    /// off its path.
    #[inline(always)]
    pub fn give_written(&mut self, block: u32, unless: u32) {
        let state = self.directory.get(block);
        if state.has_records() && !state.is_owned_by(unless) {
            self.directory.records.give_written(block, state.owner());
        }
    }

    /// The class of a sharing miss is known at last.
    #[inline]
    pub fn decide(&mut self, pending: Pending, class: Class) {
        if pending.counts == DISCARDED {
            return;
        }
        let counts = &mut self.counts[pending.counts as usize];
        counts.classes[class as usize] += 1;
        counts.class_stall[class as usize] += pending.stall;
        let cpu = pending.counts as usize / self.layout.caches.len();
        self.cpus[cpu].spent.beyond[class as usize] += pending.beyond;
        self.detail_decided(pending.detail, pending.counts, class);
    }

    /// An instance lost a line, not to a write: its undecided miss was false sharing.
    pub fn unheld(&mut self, kind: usize, instance: u32, line: u32) {
        let block = self.block_of(kind, line);
        if !self.directory.has_records(block) {
            return;
        }
        if let Some(pending) = self.directory.records.unheld(block, instance, line) {
            self.directory.look_at_records(block);
            self.decide(pending, Class::FalseSharing);
        }
    }

    /// An instance off the path of a write lost a line to it.
    #[inline(always)]
    pub fn lost(&mut self, block: u32, line: u32, off: &Off) {
        let arena = &mut self.arenas[usize::from(off.arena)];
        self.shadows[off.held.instance as usize].take_out(arena, line);
        let words = (1u32 << off.line_bits) / 4;
        let all = (u64::MAX >> (64 - words)) << ((line & ((1 << off.finer) - 1)) * words);
        let held = Held { line, ..off.held };
        let state = self.directory.get(block);
        self.directory.put(block, state.with_records(true));
        if let Some(pending) = self.directory.records.lost(block, held, all) {
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
}
