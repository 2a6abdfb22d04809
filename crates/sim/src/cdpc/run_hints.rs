//! The hints of a run, how they were made, and their results.

use std::collections::HashSet;
use std::sync::Arc;

use policy::Page;
use policy::cdpc::{self, Hints, PageColors};
use results::Cdpc;

use super::derive::derive;
use super::gather::{Described, Malformed};
use super::touches::Touches;
use crate::error::SimError;

/// The hints of all processes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHints {
    pub from: &'static str,
    pub loops: u64,
    pub malformed: Malformed,
    /// By process.
    pub spaces: Vec<(u32, Hints)>,
    pub colors: Arc<PageColors>,
    pub(super) machine: cdpc::Machine,
}

impl RunHints {
    fn new(from: &'static str, machine: &cdpc::Machine, spaces: Vec<(u32, Hints)>) -> RunHints {
        let colors = spaces.iter().flat_map(|(space, hints)| {
            hints.pages.iter().map(|hint| {
                let (space, number) = (*space, hint.page);
                (Page { space, number }, hint.color)
            })
        });
        RunHints {
            from,
            loops: 0,
            malformed: Malformed::default(),
            colors: Arc::new(colors.collect()),
            spaces,
            machine: *machine,
        }
    }

    /// Hints from the program's description of its loops; with `ways` of the cache, weighed against static policies. A
    /// loop that is wrong beside others shows here, and is left out.
    pub fn of_summaries(
        mut described: Described,
        machine: &cdpc::Machine,
        ways: Option<u32>,
    ) -> Result<RunHints, SimError> {
        let mut spaces = Vec::new();
        for (space, program) in &mut described.programs {
            let made = program.hints(machine, ways);
            let (hints, dropped) = made.map_err(|error| SimError::Hints(error.to_string()))?;
            for wrong in dropped {
                described.malformed.add(wrong.to_string());
            }
            if !program.loops().is_empty() {
                spaces.push((*space, hints));
            }
        }
        Ok(RunHints {
            loops: described.count(),
            malformed: described.malformed,
            ..RunHints::new("summaries", machine, spaces)
        })
    }

    /// Hints from the touches of cpus.
    pub fn of_touches(
        touches: &Touches,
        malformed: Malformed,
        machine: &cdpc::Machine,
        ways: Option<u32>,
    ) -> Result<RunHints, SimError> {
        let spaces = derive(touches, machine, ways)?;
        Ok(RunHints {
            malformed,
            ..RunHints::new("trace", machine, spaces)
        })
    }

    /// Returns whether there is no hint.
    pub fn is_empty(&self) -> bool {
        self.colors.is_empty()
    }

    /// Pages with a hint that a cpu touches.
    fn pages_of(&self, cpu: u32) -> u64 {
        let segments = self.spaces.iter().flat_map(|(_, hints)| &hints.segments);
        let own = segments.filter(|segment| segment.cpus >> cpu & 1 == 1);
        own.map(|segment| segment.pages.end - segment.pages.start).sum()
    }

    pub fn outcome(&self, asked: u64, honoured: u64) -> Cdpc {
        let sum = |of: &dyn Fn(&Hints) -> usize| self.spaces.iter().map(|(_, hints)| of(hints) as u64).sum();
        Cdpc {
            from: self.from.to_string(),
            loops: self.loops,
            arrays: sum(&|hints| {
                let used = hints.segments.iter().map(|segment| segment.array);
                used.collect::<HashSet<_>>().len()
            }),
            segments: sum(&|hints| hints.segments.len()),
            sets: sum(&|hints| hints.sets.len()),
            pages: self.colors.len() as u64,
            pages_of_one_cpu: (0..self.machine.cpus).map(|cpu| self.pages_of(cpu)).max().unwrap_or(0),
            colors: self.machine.colors,
            asked,
            honoured,
            malformed: self.malformed.first.clone(),
            malformed_summaries: self.malformed.count,
        }
    }
}
