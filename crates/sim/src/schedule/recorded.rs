//! The other order: items as they were recorded, each thread on its own cpu's clock.

use trace::Event;

use super::{Next, Schedule};
use crate::clock::Units;
use crate::engine::Cpu;
use crate::error::SimError;
use crate::input::Run;
use crate::meeting::Place;

impl Schedule<'_> {
    /// Replays the items in the order of the trace.
    pub fn recorded(mut self) -> Result<Vec<bool>, SimError> {
        match (self.engine.coherent, self.engine.classes) {
            (false, false) => self.replay::<false, false>()?,
            (false, true) => self.replay::<false, true>()?,
            (true, false) => self.replay::<true, false>()?,
            (true, true) => self.replay::<true, true>()?,
        }
        self.window.check()?;
        self.at_one_moment();
        if self.counting.counts() {
            self.engine.put_aside();
        }
        Ok(self.used)
    }

    /// Clocks have nothing to do with each other: cpus wait until each has run as long as the one that ran longest.
    pub(super) fn at_one_moment(&mut self) {
        let used = |(_, used): &(&mut Cpu, &bool)| **used;
        let ran = |cpu: &Cpu| cpu.clock - cpu.begin;
        let longest = self.engine.cpus.iter().map(ran).max().unwrap_or(0);
        for (cpu, _) in self.engine.cpus.iter_mut().zip(&self.used).filter(used) {
            let wait = longest - ran(cpu);
            cpu.spent.imbalance += wait;
            cpu.clock += wait;
        }
    }

    fn replay<const COHERENT: bool, const CLASSES: bool>(&mut self) -> Result<(), SimError> {
        for turns in &mut self.turns {
            turns.slice_end = Units::MAX;
        }
        while let Some(Run { thread, mut items }) = self.input.next_run()? {
            if thread as usize >= self.threads.len() {
                continue;
            }
            while items > 0 {
                let done = match self.next(thread)? {
                    Next::Refs => {
                        let state = &mut self.threads[thread as usize];
                        let (from, cpu) = (state.next_ref, state.cpu as usize);
                        let most = usize::try_from(items).unwrap_or(usize::MAX);
                        state.stop = state.stop.min(from.saturating_add(most));
                        self.references::<COHERENT, CLASSES>(cpu, thread, Units::MAX)?;
                        (self.threads[thread as usize].next_ref - from) as u64
                    }
                    Next::Event => {
                        let state = &mut self.threads[thread as usize];
                        let event = state.batch.events[state.next_event].event.clone();
                        state.next_event += 1;
                        let cpu = state.cpu as usize;
                        match event {
                            Event::Work { .. } => self.event(cpu, thread, &event)?,
                            Event::Window { .. } | Event::Counted { .. } => {
                                self.engine.end_faults();
                                if let Some(place) = Place::of(&event) {
                                    self.counts(cpu, place, false);
                                }
                            }
                            Event::Phase { name } => {
                                self.enters(cpu, &name, false);
                                if self.window.has_ended() {
                                    return Ok(());
                                }
                            }
                            _ => self.report(cpu, thread, &event)?,
                        }
                        1
                    }
                    Next::End => break,
                };
                items -= done;
                if let Some(dynamic) = &mut self.engine.dynamic {
                    // Here no cpu has a queue that would be shorter than others'.
                    dynamic.allowed.clear();
                    for (number, to, _) in std::mem::take(&mut dynamic.moves) {
                        self.threads[number as usize].cpu = to;
                        self.used[to as usize] = true;
                    }
                }
            }
        }
        Ok(())
    }
}
