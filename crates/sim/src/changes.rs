//! A changed program, simulated by its references as they were recorded: finds the present place of the data that
//! changes.
//!
//! README.md, "Changes", specifies the new place of all data. The engine asks for the place of each reference's bytes
//! ([`Changes::find`]) and carries the parts out; the name of data is still found by the program's address. A run
//! without changes has no [`Changes`].

mod huge;
mod plan;
mod rooms;
mod shape;

use std::collections::HashMap;

use trace::Event;

pub use huge::HugePages;
pub use plan::{NewOrder, new_order};

use crate::config::Config;
use crate::error::SimError;
use crate::structures::{StructureId, Structures, Tables};
use plan::{Layout, Plan};
use rooms::Rooms;

/// A part of a reference that stays in one piece: its first and last address now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub from: u64,
    pub last: u64,
    /// To be subtracted to get the program's addresses.
    pub moved: u64,
    pub huge_pages: bool,
}

/// The known addresses of a page.
#[derive(Clone, Copy)]
struct Known {
    start: u64,
    /// The last address.
    last: u64,
    space: u32,
    room: Option<u32>,
    huge_pages: bool,
}

/// Nothing.
const NOTHING: Known = Known {
    start: 1,
    last: 0,
    space: 0,
    room: None,
    huge_pages: false,
};

/// Pages that something is known of.
const SLOTS: usize = 4096;
const PAGE: u64 = 4096;

pub struct Changes {
    structures: Structures,
    layouts: HashMap<StructureId, Layout>,
    /// True if all data is on huge pages.
    huge_pages: bool,
    rooms: Rooms,
    known: Vec<Known>,
    parts: Vec<Part>,
}

impl Changes {
    /// `None` where nothing changes. `line`: bytes of the machine's largest line.
    pub fn new(config: &Config, tables: &Tables, line: u64) -> Result<Option<Box<Changes>>, SimError> {
        if config.changes.is_empty() {
            return Ok(None);
        }
        let structures = Structures::new(tables);
        let Plan { layouts, huge_pages } = Plan::new(config, &structures, line)?;
        Ok(Some(Box::new(Changes {
            structures,
            layouts,
            huge_pages,
            rooms: Rooms::new(line, config.machine.page_bytes),
            known: vec![NOTHING; SLOTS],
            parts: Vec::new(),
        })))
    }

    /// Returns whether some data is translated by huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.huge_pages || self.layouts.values().any(|layout| layout.huge_pages)
    }

    /// Follows allocations; `space` is the process of the thread that the event belongs to.
    pub fn apply(&mut self, space: u32, thread: u32, event: &Event) {
        let gone = match *event {
            Event::Alloc { addr, bytes, .. } => (addr, addr.saturating_add(bytes)),
            Event::Free { addr } => {
                let block = self.structures.whole(space, addr);
                (block.start, block.end)
            }
            Event::Spawn { .. } => (0, u64::MAX),
            _ => return,
        };
        self.structures.apply(space, thread, event);
        self.forget(space, gone);
    }

    /// The places of the bytes of a reference, in the program's order.
    pub fn find(&mut self, space: u32, addr: u64, bytes: u64) -> Result<&[Part], SimError> {
        self.parts.clear();
        let last = addr.saturating_add(bytes.max(1) - 1);
        let mut at = addr;
        loop {
            let known = self.known(space, at)?;
            let end = last.min(known.last);
            match known.room {
                None => self.push(at, at, end, known.huge_pages),
                Some(room) => {
                    let mut from = at;
                    loop {
                        let (now, run) = self.rooms.get(room).find(from);
                        let to = end.min(from.saturating_add(run - 1));
                        self.push(from, now, to, known.huge_pages);
                        if to == end {
                            break;
                        }
                        from = to + 1;
                    }
                }
            }
            if end == last {
                return Ok(&self.parts);
            }
            at = end + 1;
        }
    }

    /// Returns whether these bytes are known to be at the program's addresses, on pages of the usual size.
    #[inline(always)]
    pub fn leaves(&self, space: u32, addr: u64, bytes: u64) -> bool {
        let known = &self.known[slot(space, addr)];
        let last = addr.saturating_add(bytes.max(1) - 1);
        known.start <= addr && last <= known.last && known.space == space && known.room.is_none() && !known.huge_pages
    }

    /// The present place of an address if its page is known, else the program's address: enough to look ahead.
    pub fn guess(&self, space: u32, addr: u64) -> u64 {
        let known = self.known[slot(space, addr)];
        let holds = known.start <= addr && addr <= known.last && known.space == space;
        let room = known.room.filter(|_| holds);
        room.map_or(addr, |room| self.rooms.get(room).find(addr).0)
    }

    /// Bytes from `from` to `to` are at `now`; bytes that stay side by side stay one part.
    fn push(&mut self, from: u64, now: u64, to: u64, huge_pages: bool) {
        let moved = now.wrapping_sub(from);
        if let Some(part) = self.parts.last_mut()
            && part.moved == moved
            && part.huge_pages == huge_pages
        {
            part.last = now + (to - from);
            return;
        }
        self.parts.push(Part {
            from: now,
            last: now + (to - from),
            moved,
            huge_pages,
        });
    }

    #[inline]
    fn known(&mut self, space: u32, addr: u64) -> Result<Known, SimError> {
        let known = self.known[slot(space, addr)];
        if known.start <= addr && addr <= known.last && known.space == space {
            return Ok(known);
        }
        self.learn(space, addr)
    }

    #[inline(never)]
    fn learn(&mut self, space: u32, addr: u64) -> Result<Known, SimError> {
        let page = addr & !(PAGE - 1);
        let extent = self.structures.extent(space, addr);
        let mut known = Known {
            start: extent.start.max(page),
            last: extent.end.saturating_sub(1).clamp(addr, page | (PAGE - 1)),
            space,
            room: None,
            huge_pages: self.huge_pages,
        };
        if let Some(layout) = self.layouts.get(&extent.structure) {
            known.huge_pages |= layout.huge_pages;
            if layout.moves() {
                let block = self.structures.whole(space, addr);
                let owner = (space, extent.structure);
                let room = self.rooms.of(owner, layout, block.start, block.end - block.start);
                known.room = Some(room.ok_or_else(|| SimError::Change {
                    change: self.structures.describe(extent.structure).name,
                    what: plan::too_large(),
                })?);
            }
        }
        self.known[slot(space, addr)] = known;
        Ok(known)
    }

    /// Forgets all about these addresses, the last one excluded.
    fn forget(&mut self, space: u32, (start, end): (u64, u64)) {
        if end.saturating_sub(start) >= SLOTS as u64 * PAGE {
            self.known.fill(NOTHING);
            return;
        }
        let mut page = start / PAGE;
        while page <= end.saturating_sub(1) / PAGE {
            self.known[slot(space, page * PAGE)] = NOTHING;
            page += 1;
        }
    }
}

#[inline]
fn slot(space: u32, addr: u64) -> usize {
    ((addr / PAGE) as usize).wrapping_add(space as usize * 37) % SLOTS
}
