//! The blocks of the data sets: each is a run of whole pages; several small ones share a run.
//!
//! A freed run keeps its colored memory for the data set's next block, up to a limit: otherwise programs that allocate
//! and free the same array repeatedly would pay for its colors every time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use live::{PAGE_BYTES, Pages};

use crate::arena::Arena;

/// Blocks of up to this many bytes share runs.
const SMALL: usize = 2048;
const SMALLEST: usize = 16;
/// Pages of a run of small blocks.
const SHARED_PAGES: usize = 16;
/// Memory of freed runs that one data set keeps.
const MOST_KEPT: usize = 64 << 20;

/// Gives a run its colors, and takes them back.
pub trait Painter {
    /// Gives pages without memory frames of the data set's colors, if possible.
    fn paint(&mut self, data_set: u32, pages: Pages);
    /// The pages have no owner any more; their memory may go.
    fn forget(&mut self, data_set: u32, pages: Pages);
}

/// A run in use.
#[derive(Clone, Copy, Debug)]
struct Run {
    count: usize,
    data_set: u32,
    target: u32,
    /// Bytes of each block, if several share the run.
    small: Option<usize>,
}

/// An allocated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: usize,
    /// True if it is zeroed.
    pub clean: bool,
}

/// The owner of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    pub data_set: u32,
    pub target: u32,
    /// Bytes that may be used.
    pub bytes: usize,
}

/// The state of a data set besides its blocks.
#[derive(Default)]
struct Rest {
    /// Runs freed, colored: number of pages and start.
    kept: BTreeSet<(usize, usize)>,
    kept_pages: usize,
}

/// Small blocks of one size of one target.
#[derive(Default)]
struct Shelf {
    free: Vec<usize>,
    /// Blocks that were never allocated: from, to; and whether they are zeroed.
    fresh: (usize, usize),
    clean: bool,
}

pub struct Blocks {
    arena: Arena,
    runs: BTreeMap<usize, Run>,
    rests: HashMap<u32, Rest>,
    shelves: HashMap<(u32, usize), Shelf>,
}

impl Blocks {
    pub fn new(arena: Arena) -> Blocks {
        Blocks {
            arena,
            runs: BTreeMap::new(),
            rests: HashMap::new(),
            shelves: HashMap::new(),
        }
    }

    /// A block of `bytes` at a multiple of `alignment`, a power of two; `None` if there is no place for it.
    pub fn take(
        &mut self,
        (data_set, target): (u32, u32),
        bytes: usize,
        alignment: usize,
        painter: &mut dyn Painter,
    ) -> Option<Block> {
        let small = bytes.max(alignment).max(SMALLEST).checked_next_power_of_two()?;
        if small <= SMALL {
            return self.take_small((data_set, target), small, painter);
        }
        // A block of 0 bytes also has its own address.
        let count = bytes.max(1).checked_add(PAGE_BYTES - 1)? / PAGE_BYTES;
        let run = Run {
            count,
            data_set,
            target,
            small: None,
        };
        let (pages, clean) = self.run(run, alignment, painter)?;
        Some(Block {
            address: pages.start,
            clean,
        })
    }

    fn take_small(&mut self, (data_set, target): (u32, u32), bytes: usize, painter: &mut dyn Painter) -> Option<Block> {
        let shelf = self.shelves.entry((target, bytes)).or_default();
        if let Some(address) = shelf.free.pop() {
            return Some(Block { address, clean: false });
        }
        if shelf.fresh.0 == shelf.fresh.1 {
            let run = Run {
                count: SHARED_PAGES,
                data_set,
                target,
                small: Some(bytes),
            };
            let (pages, clean) = self.run(run, PAGE_BYTES, painter)?;
            let shelf = self.shelves.entry((target, bytes)).or_default();
            shelf.fresh = (pages.start, pages.end());
            shelf.clean = clean;
        }
        let shelf = self.shelves.entry((target, bytes)).or_default();
        let address = shelf.fresh.0;
        shelf.fresh.0 += bytes;
        Some(Block {
            address,
            clean: shelf.clean,
        })
    }

    /// Pages with the data set's colors, and whether they are zeroed.
    fn run(&mut self, run: Run, alignment: usize, painter: &mut dyn Painter) -> Option<(Pages, bool)> {
        let rest = self.rests.entry(run.data_set).or_default();
        // A kept run stays whole; one that is much longer than needed is left for another block.
        let fits = rest
            .kept
            .range((run.count, 0)..=(run.count + run.count / 4 + 1, usize::MAX))
            .find(|(_, start)| start % alignment.max(PAGE_BYTES) == 0)
            .copied();
        if let Some((count, start)) = fits {
            rest.kept.remove(&(count, start));
            rest.kept_pages -= count;
            self.runs.insert(start, Run { count, ..run });
            return Some((Pages { start, count }, false));
        }
        let pages = self.arena.take(run.count, alignment)?;
        painter.paint(run.data_set, pages);
        self.runs.insert(pages.start, run);
        Some((pages, true))
    }

    /// The owner of the block that begins at `address`; `None` if it was never allocated.
    pub fn owner(&self, address: usize) -> Option<Owned> {
        let (start, run) = self.runs.range(..=address).next_back()?;
        let bytes = match run.small {
            Some(bytes) if (address - start).is_multiple_of(bytes) && address < start + run.count * PAGE_BYTES => bytes,
            None if address == *start => run.count * PAGE_BYTES,
            _ => return None,
        };
        Some(Owned {
            data_set: run.data_set,
            target: run.target,
            bytes,
        })
    }

    /// Frees a block and returns its owner; `None` if it is no block.
    pub fn free(&mut self, address: usize, painter: &mut dyn Painter) -> Option<Owned> {
        let owned = self.owner(address)?;
        if owned.bytes <= SMALL {
            self.shelves
                .entry((owned.target, owned.bytes))
                .or_default()
                .free
                .push(address);
            return Some(owned);
        }
        let run = self.runs.remove(&address)?;
        let rest = self.rests.entry(run.data_set).or_default();
        rest.kept.insert((run.count, address));
        rest.kept_pages += run.count;
        // The largest first: one system call then frees most.
        while rest.kept_pages * PAGE_BYTES > MOST_KEPT {
            let Some((count, start)) = rest.kept.pop_last() else {
                break;
            };
            rest.kept_pages -= count;
            let pages = Pages { start, count };
            painter.forget(run.data_set, pages);
            self.arena.put(pages);
        }
        Some(owned)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::arena;

    /// There is one arena in a process.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Remembers which pages have which colors.
    #[derive(Default)]
    struct Painted(HashMap<usize, u32>);

    impl Painter for Painted {
        fn paint(&mut self, data_set: u32, pages: Pages) {
            for page in 0..pages.count {
                let before = self.0.insert(pages.start / PAGE_BYTES + page, data_set);
                assert_eq!(before, None, "a page is painted once");
            }
        }

        fn forget(&mut self, data_set: u32, pages: Pages) {
            for page in 0..pages.count {
                let before = self.0.remove(&(pages.start / PAGE_BYTES + page));
                assert_eq!(before, Some(data_set));
            }
        }
    }

    #[test]
    fn blocks_never_overlap_keep_their_bytes_and_lie_in_their_colors() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut painted = Painted::default();
        let mut blocks = Blocks::new(Arena::find().unwrap());
        let mut live: Vec<(usize, usize, u32, u8)> = Vec::new();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..6000 {
            if live.len() > 60 || (!live.is_empty() && random(3) == 0) {
                let (address, bytes, target, mark) = live.swap_remove(random(live.len()));
                let memory = std::ptr::with_exposed_provenance::<u8>(address);
                for at in [0, bytes / 2, bytes - 1] {
                    // SAFETY: a block in use has these bytes.
                    assert_eq!(unsafe { memory.add(at).read() }, mark);
                }
                assert_eq!(blocks.free(address, &mut painted).unwrap().target, target);
                assert!(bytes <= 2048 || blocks.owner(address).is_none());
                continue;
            }
            let shift = 4 + random(18);
            let bytes = 1 + random(1 << shift);
            let alignment = 16 << random(12);
            let target = random(3) as u32;
            let block = blocks
                .take((target % 2, target), bytes, alignment, &mut painted)
                .unwrap();
            let (address, owned) = (block.address, blocks.owner(block.address).unwrap());
            assert!(
                arena::holds(address) && address % alignment == 0 && owned.bytes >= bytes && owned.target == target
            );
            assert!(
                live.iter()
                    .all(|(other, length, ..)| address + bytes <= *other || other + length <= address)
            );
            for at in [address, address + bytes - 1] {
                assert_eq!(painted.0.get(&(at / PAGE_BYTES)), Some(&(target % 2)));
            }
            let memory = std::ptr::with_exposed_provenance_mut::<u8>(address);
            for at in [0, bytes / 2, bytes - 1] {
                // SAFETY: the block just given has these bytes.
                let byte = unsafe { memory.add(at).read() };
                assert!(!block.clean || byte == 0);
            }
            for at in [0, bytes / 2, bytes - 1] {
                // SAFETY: as above.
                unsafe { memory.add(at).write(round as u8 | 1) };
            }
            live.push((address, bytes, target, round as u8 | 1));
        }
        assert!(blocks.owner(live[0].0 + 1).is_none_or(|owned| owned.bytes == 1));
    }

    #[test]
    fn blocks_of_no_bytes_have_addresses_of_their_own() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut painted = Painted::default();
        let mut blocks = Blocks::new(Arena::find().unwrap());
        for alignment in [16, PAGE_BYTES, 1 << 16] {
            let mut take = |bytes| blocks.take((0, 0), bytes, alignment, &mut painted).unwrap().address;
            let (nothing, one) = (take(0), take(1));
            assert_ne!(nothing, one);
            blocks.free(nothing, &mut painted).unwrap();
            assert!(blocks.owner(one).is_some(), "alignment {alignment}");
        }
    }

    #[test]
    fn what_is_not_kept_is_used_again() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut painted = Painted::default();
        let mut blocks = Blocks::new(Arena::find().unwrap());
        let small = blocks.take((0, 0), 1 << 20, 16, &mut painted).unwrap();
        let large = blocks.take((0, 0), 200 << 20, 16, &mut painted).unwrap();
        let _last = blocks.take((1, 1), 1 << 20, 16, &mut painted).unwrap();
        assert_eq!(blocks.free(large.address, &mut painted).unwrap().bytes, 200 << 20);
        assert_eq!(blocks.free(small.address, &mut painted).unwrap().bytes, 1 << 20);
        assert_eq!(painted.0.len(), 512, "the small run is kept, the large one is not");
        let again = blocks.take((0, 0), 1 << 20, 16, &mut painted).unwrap();
        assert_eq!((again.address, again.clean), (small.address, false));
        let other = blocks.take((1, 1), 100 << 20, 16, &mut painted).unwrap();
        assert_eq!((other.address, other.clean), (large.address, true));
    }
}
