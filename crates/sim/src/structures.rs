//! The data structure that an address belongs to, and its readable name.
//!
//! A structure is a static symbol, an array that the program declared, an allocation site (all blocks that one place of
//! the program allocated), a thread's stack, or a mapped file; anything else is [`UNKNOWN`]. If several claim an
//! address, the most specific one has it: a declared array, then a symbol, a heap block, a stack, a mapping, a file.
//!
//! [`Structures`] is one run's view: it follows the run's allocations. Clones share the names.
//! The numbers of structures are those of the trace's tables, so that they are the same in every
//! run over a trace.

mod blocks;
mod catalog;
mod sites;

use std::sync::Arc;

use results::StructureKind;
use trace::{Allocation, Array, Event, Location, Module, Process, Stack, Symbol, Thread};

use blocks::{Blocks, Found, Span};
use catalog::Catalog;

/// Number of a structure, below [`Structures::count`].
pub type StructureId = u32;

/// Memory that nothing names.
pub const UNKNOWN: StructureId = 0;

/// The tables of a trace that give addresses a name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tables<'a> {
    pub processes: &'a [Process],
    pub threads: &'a [Thread],
    pub modules: &'a [Module],
    pub symbols: &'a [Symbol],
    pub arrays: &'a [Array],
    pub stacks: &'a [Stack],
    pub locations: &'a [Location],
}

/// A structure, described for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub name: String,
    pub kind: StructureKind,
    /// The file in which it is defined, or allocated.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Its size; of an allocation site, the most bytes that were live at once.
    pub bytes: u64,
    /// Blocks allocated at the site so far; 0 for all other kinds.
    pub blocks: u64,
}

/// An address inside a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub structure: StructureId,
    /// Bytes from the start of the symbol, array, block, stack or file.
    pub offset: u64,
    /// The structure's name with the field, if the debug information has it (`stats.hits[3]`), else with the offset
    /// (`stats+24`).
    pub name: String,
}

/// `[start, end)`, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: u64,
    pub end: u64,
    pub structure: StructureId,
}

/// Pages that [`Structures::lookup`] remembers.
const SLOTS: usize = 512;
/// Bytes that one slot covers.
const SLOT_BYTES: u64 = 4096;

/// One run's knowledge of which structure owns which address.
#[derive(Clone)]
pub struct Structures {
    catalog: Arc<Catalog>,
    spaces: Vec<Space>,
    sites: Vec<Live>,
    /// The answer found last on each of some pages, never reaching beyond its page.
    recent: Vec<Recent>,
    /// The answer found last of all, as far as it reaches: a large array is found here.
    last: Recent,
}

#[derive(Clone, Default)]
struct Space {
    /// True if the space has its own blocks, false if still those of its parent.
    begun: bool,
    heap: Blocks,
    maps: Blocks,
}

#[derive(Clone, Copy, Default)]
struct Live {
    bytes: u64,
    most: u64,
    blocks: u64,
}

#[derive(Clone, Copy)]
struct Recent {
    span: Span,
    space: u32,
}

const NOTHING: Recent = Recent {
    span: Span {
        start: 1,
        end: 0,
        structure: UNKNOWN,
    },
    space: 0,
};

impl Structures {
    pub fn new(tables: &Tables) -> Self {
        let catalog = Catalog::new(tables);
        let spaces = (0..tables.processes.len().max(1))
            .map(|space| Space {
                begun: catalog.parent(space as u32).is_none(),
                ..Space::default()
            })
            .collect();
        Structures {
            sites: vec![Live::default(); catalog.count() as usize],
            catalog: Arc::new(catalog),
            spaces,
            recent: vec![NOTHING; SLOTS],
            last: NOTHING,
        }
    }

    /// Structures have numbers from 0 to this, exclusive; not all of them own memory.
    pub fn count(&self) -> u32 {
        self.catalog.count()
    }

    /// Follows allocations, and children that begin with a copy of their parent's memory.
    /// `space` is the process of the thread that the event belongs to.
    pub fn apply(&mut self, space: u32, _thread: u32, event: &Event) {
        match *event {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind,
            } => self.alloc(space, Span::new(addr, bytes, self.catalog.site(stack, kind)), kind),
            Event::Free { addr } => self.free(space, addr),
            Event::Spawn { child } => {
                if let Some(space) = self.catalog.space_of(child) {
                    self.begin(space);
                }
            }
            _ => {}
        }
    }

    /// The structure that owns an address. Called for every miss of a level-1 cache.
    #[inline]
    pub fn lookup(&mut self, space: u32, addr: u64) -> StructureId {
        let recent = &self.recent[slot(space, addr)];
        if recent.span.contains(addr) && recent.space == space {
            return recent.span.structure;
        }
        if self.last.span.contains(addr) && self.last.space == space {
            return self.last.span.structure;
        }
        self.search(space, addr)
    }

    /// The owner of an address, and its range: a symbol, an array, one block, one mapping; cut where something more
    /// specific lies within. Memory without a name reaches up to the next name.
    pub(crate) fn extent(&mut self, space: u32, addr: u64) -> Extent {
        self.begin(space);
        let (start, end, structure) = match self.layers(space, addr) {
            Found::Span(span) => (span.start, span.end, span.structure),
            Found::Gap { start, end } => (start, end, UNKNOWN),
        };
        Extent { start, end, structure }
    }

    /// The whole owner of an address, even if something more specific lies within it.
    pub(crate) fn whole(&mut self, space: u32, addr: u64) -> Extent {
        let extent = self.extent(space, addr);
        let structure = extent.structure;
        if let Some((start, bytes)) = self.catalog.place_of(structure) {
            let end = start.saturating_add(bytes);
            return Extent { start, end, structure };
        }
        let own = self.spaces.get(space as usize);
        let blocks = own
            .into_iter()
            .flat_map(|own| [own.heap.find(addr), own.maps.find(addr)]);
        let block = blocks.into_iter().find_map(|found| match found {
            Found::Span(span) if span.structure == structure => Some(span),
            _ => None,
        });
        block.map_or(extent, |Span { start, end, structure }| Extent {
            start,
            end,
            structure,
        })
    }

    /// Returns whether it is memory that an allocator mapped for itself, and not a block of the program's.
    pub(crate) fn is_of_malloc(&self, structure: StructureId) -> bool {
        sites::is_allocators_own(&self.catalog.describe(structure).name)
    }

    /// The readable name of a structure.
    pub fn describe(&self, structure: StructureId) -> Description {
        let mut description = self.catalog.describe(structure);
        if let Some(live) = self.sites.get(structure as usize).filter(|live| live.blocks > 0) {
            description.bytes = live.most;
            description.blocks = live.blocks;
        }
        description
    }

    /// The readable name of an address: the field of its structure.
    pub fn place(&mut self, space: u32, addr: u64) -> Place {
        self.begin(space);
        let span = match self.layers(space, addr) {
            Found::Span(span) => span,
            Found::Gap { .. } => Span {
                start: 0,
                end: 0,
                structure: UNKNOWN,
            },
        };
        self.catalog.place(span, addr)
    }

    #[inline(never)]
    fn search(&mut self, space: u32, addr: u64) -> StructureId {
        self.begin(space);
        let page = addr & !(SLOT_BYTES - 1);
        let (start, end, structure) = match self.layers(space, addr) {
            Found::Span(span) => (span.start, span.end, span.structure),
            Found::Gap { start, end } => (start, end, UNKNOWN),
        };
        self.last = Recent {
            span: Span { start, end, structure },
            space,
        };
        let span = Span {
            start: start.max(page),
            end: end.min(page.saturating_add(SLOT_BYTES)),
            structure,
        };
        self.recent[slot(space, addr)] = Recent { span, space };
        structure
    }

    /// Asks the layers from the most specific to the least. The result holds for all of the returned range, so it is
    /// cut where a more specific layer has something.
    fn layers(&self, space: u32, addr: u64) -> Found {
        let fixed = self.catalog.fixed(space);
        let mut gap = (0, u64::MAX);
        let own = self.spaces.get(space as usize);
        let layers = [
            Some(fixed.named.find(addr)),
            own.map(|own| own.heap.find(addr)),
            Some(fixed.stacks.find(addr)),
            own.map(|own| own.maps.find(addr)),
            Some(fixed.files.find(addr)),
            Some(fixed.growth.find(addr)),
        ];
        for found in layers.into_iter().flatten() {
            match found {
                Found::Gap { start, end } => gap = (gap.0.max(start), gap.1.min(end)),
                Found::Span(span) => {
                    return Found::Span(Span {
                        start: span.start.max(gap.0),
                        end: span.end.min(gap.1),
                        ..span
                    });
                }
            }
        }
        Found::Gap {
            start: gap.0,
            end: gap.1,
        }
    }

    fn alloc(&mut self, space: u32, span: Span, kind: Allocation) {
        self.begin(space);
        let catalog = Arc::clone(&self.catalog);
        if kind == Allocation::File && catalog.fixed(space).files.holds(span.start) {
            return; // The table of modules has a better name for it.
        }
        let Some(own) = self.spaces.get_mut(space as usize) else {
            return;
        };
        let layer = match kind {
            Allocation::Heap => &mut own.heap,
            Allocation::Map | Allocation::File | Allocation::Stack => &mut own.maps,
        };
        let sites = &mut self.sites;
        layer.insert(span, |lost| {
            if let Some(live) = sites.get_mut(lost.structure as usize) {
                live.bytes = live.bytes.saturating_sub(lost.bytes());
            }
        });
        if let Some(live) = sites.get_mut(span.structure as usize) {
            live.bytes = live.bytes.saturating_add(span.bytes());
            live.most = live.most.max(live.bytes);
            live.blocks += 1;
        }
        self.forget(space, span);
    }

    fn free(&mut self, space: u32, addr: u64) {
        self.begin(space);
        let Some(own) = self.spaces.get_mut(space as usize) else {
            return;
        };
        let Some(span) = own.heap.remove(addr).or_else(|| own.maps.remove(addr)) else {
            return; // Allocated before the recording began.
        };
        if let Some(live) = self.sites.get_mut(span.structure as usize) {
            live.bytes = live.bytes.saturating_sub(span.bytes());
        }
        self.forget(space, span);
    }

    /// A child's memory begins as a copy of its parent's.
    fn begin(&mut self, space: u32) {
        if self.spaces.get(space as usize).is_none_or(|own| own.begun) {
            return;
        }
        let mut line = vec![space];
        let mut oldest = space;
        while let Some(parent) = self.catalog.parent(oldest) {
            oldest = parent;
            if self.spaces[parent as usize].begun {
                break;
            }
            line.push(parent);
        }
        for child in line.into_iter().rev() {
            self.spaces[child as usize] = self.spaces[oldest as usize].clone();
            self.spaces[child as usize].begun = true;
            oldest = child;
        }
        self.recent.fill(NOTHING);
        self.last = NOTHING;
    }

    /// Drops remembered answers on the pages of a block that came or went.
    fn forget(&mut self, space: u32, span: Span) {
        if self.last.span.start < span.end && span.start < self.last.span.end {
            self.last = NOTHING;
        }
        if span.bytes() >= SLOTS as u64 * SLOT_BYTES {
            self.recent.fill(NOTHING);
            return;
        }
        let mut page = span.start & !(SLOT_BYTES - 1);
        while page < span.end {
            self.recent[slot(space, page)] = NOTHING;
            page = page.saturating_add(SLOT_BYTES);
            if page > u64::MAX - SLOT_BYTES {
                break;
            }
        }
    }
}

/// For each process the one that it was forked from, whose names it inherits; such a parent comes before it.
pub(crate) fn forked_from(tables: &Tables) -> Vec<Option<u32>> {
    catalog::parents(tables)
}

/// For each stack, the readable name of the place that allocates, with its caller if one place does so for several. All
/// blocks of one name are asked for at the same place.
pub(crate) fn places(tables: &Tables) -> Vec<Option<Description>> {
    let describe = |site: sites::Site| Description {
        name: site.name,
        kind: StructureKind::Heap,
        file: site.file,
        line: site.line,
        bytes: 0,
        blocks: 0,
    };
    let sites = sites::find_callers(tables).into_iter();
    sites
        .map(|site| site.filter(|site| !sites::is_allocators_own(&site.name)).map(describe))
        .collect()
}

#[inline]
fn slot(space: u32, addr: u64) -> usize {
    ((addr / SLOT_BYTES) as usize).wrapping_add(space as usize * 37) % SLOTS
}

#[cfg(test)]
mod tests;
