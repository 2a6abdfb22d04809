//! Room in the address space for data that changes: of addresses that no program has.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::plan::{Joined, Layout};
use super::shape::Image;
use crate::structures::StructureId;

/// The first of these addresses: above those of all programs.
const FIRST: u64 = 1 << 60;
/// Rooms begin at the block's beginning modulo this many bytes: pages keep their colors and lines their sets.
const APART: u64 = 2 << 20;
/// The room of blocks that share one, however large the largest of them is.
const SHARED: u64 = 1 << 40;

/// The owner of memory: an address space, and a data structure in it.
type Owner = (u32, StructureId);

/// The present place of a block's bytes.
pub struct Room {
    /// The original start of the block.
    pub start: u64,
    image: Arc<Image>,
    /// The place of each part of the image.
    bases: Box<[u64]>,
}

impl Room {
    /// The present place of an address of the block, and the number of bytes that follow it there.
    pub fn find(&self, address: u64) -> (u64, u64) {
        let goes = self.image.goes(address - self.start);
        (self.bases[goes.part] + goes.offset, goes.run)
    }
}

/// Memory in which small blocks get room, one after the other.
#[derive(Clone, Copy, Default)]
struct Arena {
    next: u64,
    end: u64,
}

pub struct Rooms {
    line: u64,
    page: u64,
    next: u64,
    rooms: Vec<Room>,
    /// By owner, start and size of the block.
    by_block: FxHashMap<(Owner, u64, u64), u32>,
    images: FxHashMap<(StructureId, u64), Arc<Image>>,
    /// Of each part of small blocks.
    arenas: FxHashMap<(Owner, usize), Arena>,
    /// Rooms of large blocks so far.
    large: FxHashMap<Owner, u64>,
    /// The starts of rooms that several blocks share: by the address space, the change that joins them, and the number
    /// before.
    shared: FxHashMap<(u32, usize, u64), u64>,
}

impl Rooms {
    /// `line`: bytes of the machine's largest line.
    pub fn new(line: u64, page: u64) -> Rooms {
        Rooms {
            line,
            page,
            next: FIRST,
            rooms: Vec::new(),
            by_block: FxHashMap::default(),
            images: FxHashMap::default(),
            arenas: FxHashMap::default(),
            large: FxHashMap::default(),
            shared: FxHashMap::default(),
        }
    }

    pub fn get(&self, room: u32) -> &Room {
        &self.rooms[room as usize]
    }

    /// The room of a block, which it gets the first time; `None` where it would be too large.
    pub fn of(&mut self, owner: Owner, layout: &Layout, start: u64, bytes: u64) -> Option<u32> {
        let key = (owner, start, bytes);
        if let Some(&room) = self.by_block.get(&key) {
            return Some(room);
        }
        let image = match self.images.get(&(owner.1, bytes)) {
            Some(image) => Arc::clone(image),
            None => {
                let image = Arc::new(Image::new(&layout.shapes, bytes, self.line)?);
                self.images.insert((owner.1, bytes), Arc::clone(&image));
                image
            }
        };
        let bases = match &layout.joined {
            Some(joined) => self.between(owner, joined, &image, start)?,
            None if layout.blocks && bytes < self.page => self.small(owner, layout, &image)?,
            None => self.large(owner, layout, &image, start)?,
        };
        let room = self.rooms.len() as u32;
        self.rooms.push(Room { start, image, bases });
        self.by_block.insert(key, room);
        Some(room)
    }

    /// One piece, of addresses that no other data has.
    fn large(&mut self, owner: Owner, layout: &Layout, image: &Image, start: u64) -> Option<Box<[u64]>> {
        let before = self.large.entry(owner).or_default();
        *before += 1;
        let mut base = self.next + start % APART;
        if layout.at_lines {
            base = base.next_multiple_of(self.line);
        }
        base = base.checked_add(layout.shift.checked_mul(*before)?)?;
        let end = base.checked_add(image.bytes(self.line)?)?;
        self.next = end.checked_next_multiple_of(APART)?;
        Some(image.starts(self.line)?.iter().map(|start| base + start).collect())
    }

    /// Between the elements of others, in a room that is theirs together.
    fn between(&mut self, owner: Owner, joined: &Joined, image: &Image, start: u64) -> Option<Box<[u64]>> {
        let number = self.large.entry(owner).or_default();
        let (room, place) = (*number / joined.at.len() as u64, *number % joined.at.len() as u64);
        *number += 1;
        let base = match self.shared.entry((owner.0, joined.group, room)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let base = self.next + start % APART;
                self.next = self.next.checked_add(SHARED)?;
                *free.insert(base)
            }
        };
        let fits = image.bytes(self.line)? <= SHARED - 2 * APART;
        fits.then(|| [base + joined.at[place as usize]].into())
    }

    /// Each part goes after that of the block before.
    fn small(&mut self, owner: Owner, layout: &Layout, image: &Image) -> Option<Box<[u64]>> {
        let align = match image.parts.len() {
            _ if layout.at_lines => self.line,
            // As malloc has it.
            1 => 16,
            _ => 8,
        };
        let mut bases = Vec::with_capacity(image.parts.len());
        for (part, bytes) in image.parts.iter().enumerate() {
            let arena = self.arenas.entry((owner, part)).or_default();
            let mut base = arena.next.next_multiple_of(align);
            if base.saturating_add(*bytes) > arena.end {
                base = self.next;
                self.next = base.checked_add((*bytes).max(1))?.checked_next_multiple_of(APART)?;
                arena.end = self.next;
            }
            arena.next = base + bytes;
            bases.push(base);
        }
        Some(bases.into())
    }
}
