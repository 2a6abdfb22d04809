//! The program that the process runs at the moment: our pages in it, its mappings, and its page map.

use std::io;

use sys::frames::Pagemap;
use sys::mappings;
use sys::memory::{PAGE, Span};
use sys::traced::{Borrowed, Traced};

use super::closed::Closed;
use super::layout::{Layout, around};

pub struct Image {
    pub borrowed: Borrowed,
    pub layout: Layout,
    /// The program may have changed its mappings since.
    pub stale: bool,
    pagemap: Pagemap,
    ours: Span,
}

impl Image {
    /// Pre: the process is stopped at the first instruction of a program.
    pub fn begin(traced: &Traced) -> io::Result<Image> {
        let borrowed = Borrowed::begin(traced, traced.process())?;
        Ok(Image {
            ours: borrowed.span(),
            borrowed,
            layout: Layout::default(),
            stale: true,
            pagemap: Pagemap::of(traced.process())?,
        })
    }

    /// Reads the mappings, if they may have changed.
    pub fn look(&mut self, traced: &Traced) -> io::Result<()> {
        if !std::mem::take(&mut self.stale) {
            return Ok(());
        }
        let registers = traced.registers(traced.process())?;
        let spared = [self.ours, around(registers.local_storage())];
        self.layout = Layout::of(mappings::all(Some(traced.process()))?, &spared);
        Ok(())
    }

    /// The numbers of the data pages that have a frame.
    pub fn present(&self, traced: &Traced) -> io::Result<Vec<u64>> {
        let stack = traced.registers(traced.process())?.stack();
        let mut present = Vec::new();
        for span in self.layout.data(stack) {
            let entries = self.pagemap.entries(span)?;
            let numbers = (span.start / PAGE) as u64..;
            let there = numbers.zip(entries).filter(|(_, entry)| entry.present());
            present.extend(there.map(|(number, _)| number));
        }
        Ok(present)
    }

    /// Gives pages the keys that they should have.
    pub fn change(&self, traced: &Traced, task: u32, closed: &mut Closed) -> io::Result<()> {
        let ranges = closed.changes(&self.layout, || self.borrowed.take_key(traced, task))?;
        if !ranges.is_empty() {
            // Pages that were unmapped meanwhile have no key.
            self.borrowed.change(traced, task, &ranges)?;
        }
        Ok(())
    }
}
