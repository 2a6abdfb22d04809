//! The input of hints: a trace, or streams in memory.

use trace::{Event, Trace};

use crate::error::SimError;
use crate::input::{Input, Item, Streams};
use crate::tracing::TraceInput;

/// A program's references and events, to be gone through.
pub trait Material: Sync {
    /// A fresh reader.
    fn open(&self) -> Result<Box<dyn Input + '_>, SimError>;
    /// Visits all events, each with the process that it is of.
    fn each_event(&self, visit: &mut dyn FnMut(u32, &Event)) -> Result<(), SimError>;
}

/// A trace, and which of its threads others start ([`Trace::spawned`]).
pub struct OfTrace<'a> {
    pub trace: &'a Trace,
    pub spawned: &'a [bool],
}

impl Material for OfTrace<'_> {
    fn open(&self) -> Result<Box<dyn Input + '_>, SimError> {
        Ok(Box::new(TraceInput::new(self.trace, self.spawned)))
    }

    fn each_event(&self, visit: &mut dyn FnMut(u32, &Event)) -> Result<(), SimError> {
        for (number, thread) in (0u32..).zip(self.trace.threads()) {
            self.trace.each_event(number, |_, event| visit(thread.process, event))?;
        }
        Ok(())
    }
}

impl Material for Streams {
    fn open(&self) -> Result<Box<dyn Input + '_>, SimError> {
        Ok(Box::new(self.input()))
    }

    fn each_event(&self, visit: &mut dyn FnMut(u32, &Event)) -> Result<(), SimError> {
        for (number, items) in self.threads.iter().enumerate() {
            let space = self.spaces.get(number).copied().unwrap_or(0);
            for item in items {
                if let Item::Event(event) = item {
                    visit(space, event);
                }
            }
        }
        Ok(())
    }
}
