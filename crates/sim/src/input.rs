//! The source of references: a trace, or lists in memory.

use std::collections::HashSet;

use trace::{Array, Dependence, Event, Location, Misprediction, Pace, Ref, Site, Timed};

use crate::detail::Names;
use crate::engine::Traits;
use crate::error::SimError;
use crate::structures::Tables;

/// A piece of a thread's stream.
pub use trace::Batch;

/// Known of a thread before it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadAbout {
    /// Its address space: the index of its process.
    pub space: u32,
    /// True if some `Spawn` starts it; else it starts with the run.
    pub spawned: bool,
}

/// In recorded order: a thread's next items, references and events counted alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub thread: u32,
    pub items: u64,
}

/// The streams of a run's threads.
pub trait Input: Send {
    fn traits(&self) -> Traits;
    fn threads(&self) -> &[ThreadAbout];
    /// The thread's next batch; false when there is none.
    fn next(&mut self, thread: u32, batch: &mut Batch) -> Result<bool, SimError>;
    /// Returns whether [`Input::again`] can be called.
    fn repeats(&self) -> bool {
        false
    }
    /// The batch that was the thread's last one, once more.
    fn again(&mut self, _thread: u32, _batch: &mut Batch) -> Result<(), SimError> {
        Ok(())
    }
    /// The next run in recorded order.
    fn next_run(&mut self) -> Result<Option<Run>, SimError>;
    /// The sites that each site waits for; nothing if that is not known.
    fn dependences(&self) -> &[Dependence] {
        &[]
    }
    /// The time of instructions that wait for each other, by site; nothing if that is not known.
    fn paces(&self) -> &[Pace] {
        &[]
    }
    /// Mispredicted branches, by site; nothing if that is not known.
    fn mispredictions(&self) -> &[Misprediction] {
        &[]
    }
    /// Returns whether its windows are warmed ([`Event::Counted`]): everything before is carried out, and not counted.
    fn warmed(&self) -> bool {
        false
    }
    /// Returns whether it has all of the program from its start on.
    fn is_whole(&self) -> bool {
        true
    }
    /// The number of the program's references whose windows are in the input, if that is known.
    fn of_references(&self) -> Option<u64> {
        None
    }
    /// The input's names for addresses, threads and sites.
    fn names(&self) -> Names<'_> {
        Names::default()
    }
}

/// A reference or an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Ref(Ref),
    Event(Event),
}

/// Streams in memory, for tests and benches.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    pub traits: Traits,
    /// The address space of each thread; threads beyond its end are of space 0.
    pub spaces: Vec<u32>,
    /// Names of memory, as a program declares them.
    pub arrays: Vec<Array>,
    /// The items of each thread.
    pub threads: Vec<Vec<Item>>,
    /// The recorded order; if it is empty, thread after thread.
    pub order: Vec<Run>,
    /// The sites that each site waits for.
    pub dependences: Vec<Dependence>,
    /// The time of instructions that wait for each other, by site.
    pub paces: Vec<Pace>,
    /// Mispredicted branches, by site.
    pub mispredictions: Vec<Misprediction>,
    /// The instructions of the sites, and where these are in the source; empty where that is not known.
    pub sites: Vec<Site>,
    pub locations: Vec<Location>,
}

impl Streams {
    pub fn new(threads: Vec<Vec<Item>>) -> Self {
        Streams {
            threads,
            ..Streams::default()
        }
    }

    /// Names of the phases, each once.
    pub fn phases(&self) -> Vec<String> {
        let mut phases: Vec<String> = Vec::new();
        for item in self.threads.iter().flatten() {
            if let Item::Event(Event::Phase { name }) = item
                && !phases.contains(name)
            {
                phases.push(name.clone());
            }
        }
        phases
    }

    /// Returns whether windows say where counting begins.
    fn warmed(&self) -> bool {
        let counted = |item: &Item| matches!(item, Item::Event(Event::Counted { .. }));
        self.threads.iter().flatten().any(counted)
    }

    /// A fresh reader of the streams.
    pub fn input(&self) -> StreamsInput<'_> {
        let spawned: HashSet<u32> = self
            .threads
            .iter()
            .flatten()
            .filter_map(|item| match item {
                Item::Event(Event::Spawn { child }) => Some(*child),
                _ => None,
            })
            .collect();
        let about = |number: usize| ThreadAbout {
            space: self.spaces.get(number).copied().unwrap_or(0),
            spawned: spawned.contains(&(number as u32)),
        };
        StreamsInput {
            warmed: self.warmed(),
            streams: self,
            about: (0..self.threads.len()).map(about).collect(),
            next: vec![0; self.threads.len()],
            next_run: 0,
        }
    }
}

/// Items of [`Streams`] in one batch.
const BATCH: usize = 4096;

pub struct StreamsInput<'a> {
    streams: &'a Streams,
    about: Vec<ThreadAbout>,
    next: Vec<usize>,
    next_run: usize,
    warmed: bool,
}

impl Input for StreamsInput<'_> {
    fn names(&self) -> Names<'_> {
        Names {
            tables: Tables {
                arrays: &self.streams.arrays,
                locations: &self.streams.locations,
                ..Tables::default()
            },
            sites: &self.streams.sites,
            dependences: Some(&self.streams.dependences),
        }
    }

    fn traits(&self) -> Traits {
        self.streams.traits
    }

    fn dependences(&self) -> &[Dependence] {
        &self.streams.dependences
    }

    fn paces(&self) -> &[Pace] {
        &self.streams.paces
    }

    fn mispredictions(&self) -> &[Misprediction] {
        &self.streams.mispredictions
    }

    fn warmed(&self) -> bool {
        self.warmed
    }

    fn threads(&self) -> &[ThreadAbout] {
        &self.about
    }

    fn next(&mut self, thread: u32, batch: &mut Batch) -> Result<bool, SimError> {
        let items = &self.streams.threads[thread as usize];
        let next = &mut self.next[thread as usize];
        let from = *next;
        *next = items.len().min(from + BATCH);
        fill(batch, &items[from..*next]);
        Ok(from < *next)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn again(&mut self, thread: u32, batch: &mut Batch) -> Result<(), SimError> {
        let next = self.next[thread as usize];
        let from = next.saturating_sub(1) / BATCH * BATCH;
        fill(batch, &self.streams.threads[thread as usize][from..next]);
        Ok(())
    }

    fn next_run(&mut self) -> Result<Option<Run>, SimError> {
        let number = self.next_run;
        self.next_run += 1;
        if !self.streams.order.is_empty() {
            return Ok(self.streams.order.get(number).copied());
        }
        let items = self.streams.threads.get(number).map(|items| items.len() as u64);
        Ok(items.map(|items| Run {
            thread: number as u32,
            items,
        }))
    }
}

fn fill(batch: &mut Batch, items: &[Item]) {
    batch.refs.clear();
    batch.events.clear();
    for item in items {
        match item {
            Item::Ref(r) => batch.refs.push(*r),
            Item::Event(event) => batch.events.push(Timed {
                at: batch.refs.len() as u32,
                order: 0,
                event: event.clone(),
            }),
        }
    }
}
