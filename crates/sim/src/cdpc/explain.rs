//! Hints, and how they came about, for people and pictures.

use policy::cdpc::{Hints, Placed, Set, Weighed};
use results::{
    BroughtBlocks, ExplainedPolicy, ExplainedProcess, HintedArray, HintedMachine, HintedSegment, HintedSet,
    WeighedArrays,
};

use super::run_hints::RunHints;

impl RunHints {
    /// How the hints of a policy were made.
    pub fn explain(&self, policy: &str) -> ExplainedPolicy {
        ExplainedPolicy {
            policy: policy.to_string(),
            from: self.from.to_string(),
            loops: self.loops,
            malformed: self.malformed.first.clone(),
            malformed_summaries: self.malformed.count,
            processes: self.spaces.iter().map(|(process, hints)| of(*process, hints)).collect(),
        }
    }
}

fn of(process: u32, hints: &Hints) -> ExplainedProcess {
    let array = |array: &policy::cdpc::Array| HintedArray {
        name: array.name.clone(),
        start: array.start,
        bytes: array.bytes,
        known: array.known,
    };
    ExplainedProcess {
        process,
        machine: HintedMachine {
            page_bytes: hints.machine.page_bytes,
            colors: hints.machine.colors,
            cpus: hints.machine.cpus,
        },
        arrays: hints.arrays.iter().map(array).collect(),
        sets: hints.sets.iter().map(set).collect(),
        segments: hints.segments.iter().map(segment).collect(),
        used: hints.used as u64,
        exchanged: hints.exchanged as u64,
        crowded: list(hints.crowded),
        weighed: hints.weighed.iter().map(weighed).collect(),
        order: hints.pages.iter().map(|hint| hint.page).collect(),
    }
}

fn set(set: &Set) -> HintedSet {
    HintedSet {
        cpus: list(set.cpus),
        segments: set.segments.start as u64..set.segments.end as u64,
        pages: set.pages,
    }
}

fn segment(placed: &Placed) -> HintedSegment {
    HintedSegment {
        array: placed.array,
        cpus: list(placed.cpus),
        pages: placed.pages.clone(),
        position: placed.position,
        begin: placed.begin,
        conflicts: placed.conflicts,
    }
}

fn weighed(set: &Weighed) -> WeighedArrays {
    let brought = |brought: &policy::cdpc::Brought| BroughtBlocks {
        by: brought.by.policy().to_string(),
        blocks: brought.blocks,
    };
    WeighedArrays {
        arrays: set.arrays.clone(),
        pages: set.pages,
        choice: set.choice.policy().to_string(),
        brought: set.brought.iter().map(brought).collect(),
    }
}

/// The numbers of the bits that are set.
pub fn list(cpus: u128) -> Vec<u32> {
    (0..128).filter(|cpu| cpus >> cpu & 1 == 1).collect()
}
