//! Work without marks, cut by the data that it uses: the work of a change `tile`.
//!
//! README.md, "Changes", defines an item. One pass over the input finds them, in recorded order, because the data at an
//! address depends on the allocations of all threads so far.

use std::collections::HashSet;

use trace::Ref;

use super::marks::{At, Runs};
use super::recorded::{self, Listener};
use crate::error::SimError;
use crate::input::Input;
use crate::structures::{StructureId, Structures};

/// References without the data between two that use it, beyond which other work follows.
const GAP: u64 = 1 << 16;
/// Items that are kept in memory, 24 bytes each.
const MOST: usize = 1 << 26;

/// The parts that a thread's stream is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// An item begins, which uses the block of data with this number.
    Item(At, u64),
    /// The run of items ends.
    End(At),
}

/// One thread's items.
#[derive(Debug, Default)]
pub struct Items {
    cuts: Vec<Cut>,
    /// The length of the stream.
    pub all: At,
    /// The block of the current item, and the place of its last use.
    open: Option<(u64, At)>,
}

impl Items {
    /// Hands the items on, in the order of the stream.
    pub fn each<R: Runs>(&self, runs: &mut R) -> Result<(), R::Error> {
        for cut in &self.cuts {
            match *cut {
                Cut::Item(begin, block) => runs.item(begin, &[block])?,
                Cut::End(end) => runs.end(end)?,
            }
        }
        Ok(())
    }

    /// The next reference, `here` in the stream, uses a block of the data.
    fn uses(&mut self, here: At, block: u64) {
        if self.open.is_some_and(|(_, last)| here.refs - last.refs > GAP) {
            self.end();
        }
        if self.open.is_none_or(|(open, _)| open != block) {
            self.cuts.push(Cut::Item(here, block));
        }
        let last = At {
            refs: here.refs + 1,
            ..here
        };
        self.open = Some((block, last));
    }

    /// The current item is the last of its run.
    fn end(&mut self) {
        if let Some((_, last)) = self.open.take() {
            self.cuts.push(Cut::End(last));
        }
    }
}

/// The findings of a pass.
struct Finder<'a> {
    data: &'a HashSet<StructureId>,
    bytes: u64,
    found: Vec<Items>,
    kept: usize,
}

impl Listener for Finder<'_> {
    fn reference(&mut self, thread: usize, here: At, space: u32, r: &Ref, structures: &mut Structures) {
        if self.data.contains(&structures.lookup(space, r.addr)) {
            let of = &mut self.found[thread];
            let before = of.cuts.len();
            of.uses(here, r.addr / self.bytes);
            self.kept += of.cuts.len() - before;
        }
    }

    fn meets(&mut self, thread: usize) {
        let of = &mut self.found[thread];
        self.kept += usize::from(of.open.is_some());
        of.end();
    }

    fn ran(&mut self) -> Result<(), SimError> {
        let Finder { bytes, kept, .. } = *self;
        match kept > MOST {
            true => Err(SimError::Order(format!(
                "the work uses another {bytes} bytes of the data so often that its {kept} pieces cannot be put in order; tile \
                 by more bytes"
            ))),
            false => Ok(()),
        }
    }
}

/// Finds the items of all threads: `bytes` of the data make a block.
pub fn find(
    input: &mut dyn Input,
    data: &HashSet<StructureId>,
    structures: Structures,
    bytes: u64,
) -> Result<Vec<Items>, SimError> {
    let mut finder = Finder {
        data,
        bytes,
        found: input.threads().iter().map(|_| Items::default()).collect(),
        kept: 0,
    };
    let all = recorded::pass(input, structures, &mut finder)?;
    let mut found = finder.found;
    for (items, all) in found.iter_mut().zip(all) {
        items.end();
        items.all = all;
    }
    Ok(found)
}
