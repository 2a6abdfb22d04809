//! The counts: for each cpu and kind of cache.

use crate::clock::Units;

/// The classes of misses, in the order of the arrays that count by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Cold = 0,
    Capacity = 1,
    Conflict = 2,
    TrueSharing = 3,
    FalseSharing = 4,
}

pub const CLASSES: usize = 5;

/// The counts of the pieces of one cpu in one kind of cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    pub accesses: u64,
    pub misses: u64,
    pub writebacks: u64,
    pub upgrades: u64,
    /// Lines that its prefetcher brought, and those of them that were then asked for.
    pub prefetches: u64,
    pub prefetch_hits: u64,
    pub classes: [u64; CLASSES],
    pub hit_stall: Units,
    pub miss_stall: Units,
    pub class_stall: [Units; CLASSES],
    pub upgrade_stall: Units,
    /// For lines that were found, but were still on their way.
    pub late_stall: Units,
}

impl CacheCounts {
    pub fn add(&mut self, other: &CacheCounts) {
        self.accesses += other.accesses;
        self.misses += other.misses;
        self.writebacks += other.writebacks;
        self.upgrades += other.upgrades;
        self.prefetches += other.prefetches;
        self.prefetch_hits += other.prefetch_hits;
        self.hit_stall += other.hit_stall;
        self.miss_stall += other.miss_stall;
        self.upgrade_stall += other.upgrade_stall;
        self.late_stall += other.late_stall;
        for class in 0..CLASSES {
            self.classes[class] += other.classes[class];
            self.class_stall[class] += other.class_stall[class];
        }
    }
}

/// The other counts of each cpu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounts {
    pub references: u64,
    pub instructions: u64,
    pub tlb_accesses: u64,
    pub tlb_misses: u64,
    pub local: u64,
    pub remote: u64,
    /// Part of `remote`: supplied by another cpu's cache.
    pub dirty_remote: u64,
    /// Page faults: of pages never touched before, and of those that were unmapped since.
    pub faults_first: u64,
    pub faults_again: u64,
}

impl CpuCounts {
    pub fn add(&mut self, other: &CpuCounts) {
        self.references += other.references;
        self.instructions += other.instructions;
        self.tlb_accesses += other.tlb_accesses;
        self.tlb_misses += other.tlb_misses;
        self.local += other.local;
        self.remote += other.remote;
        self.dirty_remote += other.dirty_remote;
        self.faults_first += other.faults_first;
        self.faults_again += other.faults_again;
    }
}

/// The counts of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    pub migrations: u64,
    pub recolorings: u64,
    pub replications: u64,
    pub collapses: u64,
    /// Pages for which the policy asked for a color or a node.
    pub hints_placed: u64,
    /// Of those, the ones whose frame has that color and node.
    pub hints_honoured: u64,
    /// Pages that had a hint of color, and those whose frame is of it.
    pub colors_asked: u64,
    pub colors_honoured: u64,
}

impl PageCounts {
    /// Adds the actions of policies; the results of hints are of the whole run.
    pub fn add_actions(&mut self, other: &PageCounts) {
        self.migrations += other.migrations;
        self.recolorings += other.recolorings;
        self.replications += other.replications;
        self.collapses += other.collapses;
    }

    pub fn replace_actions(&mut self, other: &PageCounts) {
        *self = PageCounts {
            migrations: other.migrations,
            recolorings: other.recolorings,
            replications: other.replications,
            collapses: other.collapses,
            ..*self
        };
    }
}
