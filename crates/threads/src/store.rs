//! Threads in bins: the work of a fork.
//!
//! The data that a fork looks up is dense: the bins' blocks, the table over them, and for each bin the open group. Only
//! the thread itself goes to the bin's own memory.

use policy::order::{BinId, Bins, BinsError, Block, Shape};

use crate::Error;
use crate::groups::{Group, Groups, NONE, Place, group_of};

/// Pending threads, in their bins.
pub(crate) struct Store<T> {
    bins: Bins,
    /// For each bin, its last group, which may have room: a fork needs nothing else of a bin.
    open: Vec<u32>,
    lines: Vec<Line>,
    pub groups: Groups<T>,
}

/// The groups of a bin, in the order in which they were filled.
#[derive(Clone, Copy)]
struct Line {
    first: u32,
    groups: u32,
}

const EMPTY: Line = Line { first: NONE, groups: 0 };

impl<T> Store<T> {
    pub fn new(shape: Shape) -> Store<T> {
        Store {
            bins: Bins::new(shape),
            open: Vec::new(),
            lines: Vec::new(),
            groups: Groups::new(),
        }
    }

    /// Puts a thread at the end of its bin. On an error the thread is returned.
    #[inline(always)]
    pub fn push(&mut self, hints: &[u64], item: T) -> Result<Place, (Error, T)> {
        let bin = match self.bins.bin(hints) {
            Ok(bin) => bin,
            Err(error) => return Err((error.into(), item)),
        };
        let open = self.open.get(bin as usize).copied().unwrap_or(NONE);
        match self.groups.push(open, item) {
            Ok(place) => Ok(place),
            Err(item) => self.push_to_new_group(bin, item),
        }
    }

    /// [`Store::push`] with a known block.
    pub fn push_at(&mut self, block: &Block, item: T) -> Result<Place, (Error, T)> {
        let bin = match self.bins.bin_of(block) {
            Ok(bin) => bin,
            Err(error) => return Err((error.into(), item)),
        };
        let open = self.open.get(bin as usize).copied().unwrap_or(NONE);
        self.groups
            .push(open, item)
            .or_else(|item| self.push_to_new_group(bin, item))
    }

    #[cold]
    #[inline(never)]
    fn push_to_new_group(&mut self, bin: BinId, item: T) -> Result<Place, (Error, T)> {
        let group = match self.open(bin) {
            Ok(group) => group,
            Err(error) => return Err((error, item)),
        };
        // A group that was just handed out has room.
        self.groups.push(group, item).map_err(|item| (Error::TooMany, item))
    }

    fn open(&mut self, bin: BinId) -> Result<u32, Error> {
        let lines = self.bins.len();
        if self.lines.len() < lines {
            self.lines.try_reserve(lines - self.lines.len())?;
            self.open.try_reserve(lines - self.open.len())?;
            self.lines.resize(lines, EMPTY);
            self.open.resize(lines, NONE);
        }
        let group = self.groups.hand_out(bin)?;
        let line = &mut self.lines[bin as usize];
        let open = std::mem::replace(&mut self.open[bin as usize], group);
        if open == NONE {
            line.first = group;
        } else {
            self.groups.chain(open, group);
        }
        line.groups += 1;
        Ok(group)
    }

    /// Removes the last thread of its bin.
    pub fn take_last(&mut self, place: Place) -> Option<T> {
        self.groups.group_mut(group_of(place)).pop()
    }

    /// Moves the first group of a bin out. Its memory stays reserved until [`Store::return_loan`].
    pub fn lend(&mut self, bin: BinId) -> Option<(u32, Group<T>)> {
        let line = self.lines.get_mut(bin as usize)?;
        let group = line.first;
        if group == NONE {
            return None;
        }
        line.first = self.groups.next(group);
        line.groups -= 1;
        if line.first == NONE {
            self.open[bin as usize] = NONE;
        }
        Some((group, std::mem::take(self.groups.group_mut(group))))
    }

    /// Takes a group back with the threads that did not run, which are again the first of their bin.
    pub fn return_loan(&mut self, group: u32, left: Group<T>) {
        if left.is_empty() {
            self.groups.take_back(group);
            return;
        }
        let bin = self.groups.bin(group);
        *self.groups.group_mut(group) = left;
        let line = &mut self.lines[bin as usize];
        self.groups.chain(group, line.first);
        line.first = group;
        line.groups += 1;
        let open = &mut self.open[bin as usize];
        if *open == NONE {
            *open = group;
        }
    }

    /// The groups of a bin in order.
    pub fn groups_of(&self, bin: BinId) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.lines.get(bin as usize).map_or(NONE, |line| line.first);
        std::iter::from_fn(move || {
            let group = next;
            if group == NONE {
                return None;
            }
            next = self.groups.next(group);
            Some(group)
        })
    }

    /// How many groups a bin has: its weight when bins are divided among workers.
    pub fn weight(&self, bin: BinId) -> u32 {
        self.lines.get(bin as usize).map_or(0, |line| line.groups)
    }

    pub fn bins(&self) -> &Bins {
        &self.bins
    }

    /// The bin of a block that comes from another store of the same shape.
    pub fn bin_of(&mut self, block: &Block) -> Result<BinId, BinsError> {
        self.bins.bin_of(block)
    }

    /// Threads in all bins.
    pub fn threads(&self) -> usize {
        (0..self.bins.len() as BinId)
            .flat_map(|bin| self.groups_of(bin))
            .map(|group| self.groups.group(group).len())
            .sum()
    }

    /// Returns true if a place holds a thread.
    pub fn holds(&self, place: Place) -> bool {
        (group_of(place) as usize) < self.groups.used()
            && crate::groups::at_of(place) < self.groups.group(group_of(place)).len()
    }

    pub fn reserve(&mut self, threads: usize, bins: usize) -> Result<(), Error> {
        self.bins.reserve(bins)?;
        self.lines.try_reserve(bins.saturating_sub(self.lines.len()))?;
        self.groups
            .reserve((threads / crate::groups::GROUP).saturating_add(bins))
    }

    pub fn reset(&mut self) {
        self.bins.clear();
        self.lines.clear();
        self.open.clear();
        self.groups.reset();
    }

    pub fn shrink(&mut self) {
        self.groups.shrink();
        self.lines.shrink_to_fit();
        self.open.shrink_to_fit();
    }

    pub fn memory_bytes(&self) -> usize {
        self.bins.memory_bytes()
            + self.open.capacity() * size_of::<u32>()
            + self.lines.capacity() * size_of::<Line>()
            + self.groups.memory_bytes()
    }
}
