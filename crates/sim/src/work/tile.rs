//! Work that nobody marked, cut by the data that it uses: what a change `tile` puts in order.
//!
//! README.md, "Changes", says what an item is. One pass over the input finds them, in recorded order, because which data
//! an address is depends on what all threads allocated so far.

use std::collections::HashSet;

use super::marks::{At, Runs, meets};
use crate::error::SimError;
use crate::held::Places;
use crate::input::{Input, Run};
use crate::structures::{StructureId, Structures};

/// References without the data between two that use it, beyond which what follows is other work.
const GAP: u64 = 1 << 16;
/// Items that are kept in memory, 24 bytes each.
const MOST: usize = 1 << 26;

/// What a thread's stream is cut into.
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
    /// How long the stream is.
    pub all: At,
    /// The block of the item at hand, and where it was used last.
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

    /// The next reference uses a block of the data.
    fn uses(&mut self, block: u64) {
        if self.open.is_some_and(|(_, last)| self.all.refs - last.refs > GAP) {
            self.end();
        }
        if self.open.is_none_or(|(open, _)| open != block) {
            self.cuts.push(Cut::Item(self.all, block));
        }
        let last = At {
            refs: self.all.refs + 1,
            ..self.all
        };
        self.open = Some((block, last));
    }

    /// The item at hand is the last of its run.
    fn end(&mut self) {
        if let Some((_, last)) = self.open.take() {
            self.cuts.push(Cut::End(last));
        }
    }
}

/// Finds the items of all threads: `bytes` of the data make a block.
pub fn find(
    input: &mut dyn Input,
    data: &HashSet<StructureId>,
    mut structures: Structures,
    bytes: u64,
) -> Result<Vec<Items>, SimError> {
    let spaces: Vec<u32> = input.threads().iter().map(|about| about.space).collect();
    let mut found: Vec<Items> = spaces.iter().map(|_| Items::default()).collect();
    let mut places = Places::new(input);
    let mut kept = 0;
    while let Some(Run { thread, mut items }) = input.next_run()? {
        let Some(of) = found.get_mut(thread as usize) else {
            continue;
        };
        let space = spaces[thread as usize];
        let before = of.cuts.len();
        while items > 0 {
            let Some(place) = places.at(input, thread)? else { break };
            let stop = place.stop();
            if stop > place.next_ref {
                let count = (stop - place.next_ref).min(usize::try_from(items).unwrap_or(usize::MAX));
                for r in &place.batch.refs[place.next_ref..place.next_ref + count] {
                    if data.contains(&structures.lookup(space, r.addr)) {
                        of.uses(r.addr / bytes);
                    }
                    of.all.refs += 1;
                }
                place.next_ref += count;
                items -= count as u64;
                continue;
            }
            let event = &place.batch.events[place.next_event].event;
            structures.apply(space, thread, event);
            if meets(event) {
                of.end();
            }
            of.all.events += 1;
            place.next_event += 1;
            items -= 1;
        }
        kept += of.cuts.len() - before;
        if kept > MOST {
            return Err(SimError::Order(format!(
                "the work uses another {bytes} bytes of the data so often that its {kept} pieces cannot be put in order; tile \
                 by more bytes"
            )));
        }
    }
    found.iter_mut().for_each(Items::end);
    Ok(found)
}
