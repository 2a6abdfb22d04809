//! The memory of pending threads: groups of up to 64, which bins chain (Philbin96, section 3.2: thread groups).
//!
//! Groups are in slabs that never move. A group is handed out, filled, and stays in place until its threads have run;
//! then all groups are handed out again from the first on, in memory that is already mapped.

use arrayvec::ArrayVec;

use crate::Error;

/// Threads in a group. A bin's last group is half empty on average: at 1024 bins and a million threads that is 3 %.
pub(crate) const GROUP: usize = if cfg!(feature = "loom") { 2 } else { 64 };
/// Groups in a slab: about 100 KB where a thread takes 24 bytes.
const SLAB: usize = if cfg!(feature = "loom") { 2 } else { 64 };
/// With more groups, places would not fit into 32 bits.
const GROUPS_MAX: usize = 1 << 26;

/// No group.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) type Group<T> = ArrayVec<T, GROUP>;

/// The place of a thread: its group times 64, plus its position there.
pub(crate) type Place = u32;

pub(crate) fn place(group: u32, at: usize) -> Place {
    group << 6 | at as u32
}

pub(crate) fn group_of(place: Place) -> u32 {
    place >> 6
}

pub(crate) fn at_of(place: Place) -> usize {
    place as usize & 63
}

pub(crate) struct Groups<T> {
    slabs: Vec<Vec<Group<T>>>,
    links: Vec<Link>,
    /// Groups from here on were never handed out, or not since the last reset.
    used: usize,
    /// Groups that were returned before the reset, chained by `next`.
    free: u32,
}

/// The metadata of a group.
#[derive(Clone, Copy)]
struct Link {
    /// The next group of the same bin.
    next: u32,
    bin: u32,
}

impl<T> Groups<T> {
    pub fn new() -> Groups<T> {
        Groups {
            slabs: Vec::new(),
            links: Vec::new(),
            used: 0,
            free: NONE,
        }
    }

    /// Appends to a group, or returns the thread if the group is full, or none.
    #[inline(always)]
    pub fn push(&mut self, group: u32, item: T) -> Result<Place, T> {
        let Some(open) = self
            .slabs
            .get_mut(group as usize / SLAB)
            .and_then(|slab| slab.get_mut(group as usize % SLAB))
        else {
            return Err(item);
        };
        let at = open.len();
        match open.try_push(item) {
            Ok(()) => Ok(place(group, at)),
            Err(full) => Err(full.element()),
        }
    }

    /// An empty group for a bin.
    pub fn hand_out(&mut self, bin: u32) -> Result<u32, Error> {
        let group = if self.free != NONE {
            let group = self.free;
            self.free = self.links[group as usize].next;
            group
        } else {
            if self.used == self.links.len() {
                self.grow()?;
            }
            self.used += 1;
            self.used as u32 - 1
        };
        self.links[group as usize] = Link { next: NONE, bin };
        self.group_mut(group).clear();
        Ok(group)
    }

    /// Takes a group back whose threads have been moved out.
    pub fn take_back(&mut self, group: u32) {
        self.links[group as usize].next = self.free;
        self.free = group;
    }

    pub fn group(&self, group: u32) -> &Group<T> {
        &self.slabs[group as usize / SLAB][group as usize % SLAB]
    }

    pub fn group_mut(&mut self, group: u32) -> &mut Group<T> {
        &mut self.slabs[group as usize / SLAB][group as usize % SLAB]
    }

    pub fn next(&self, group: u32) -> u32 {
        self.links[group as usize].next
    }

    pub fn chain(&mut self, group: u32, next: u32) {
        self.links[group as usize].next = next;
    }

    pub fn bin(&self, group: u32) -> u32 {
        self.links[group as usize].bin
    }

    /// How many groups have been handed out since the last reset; they are the first ones.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Drops all threads; the groups stay.
    pub fn reset(&mut self) {
        if std::mem::needs_drop::<T>() {
            for group in self.slabs.iter_mut().flatten().take(self.used) {
                group.clear();
            }
        }
        self.used = 0;
        self.free = NONE;
    }

    /// Makes this many groups in total. Each is written to, so its memory is mapped.
    pub fn reserve(&mut self, groups: usize) -> Result<(), Error> {
        let more = groups.saturating_sub(self.links.len());
        self.links.try_reserve(more)?;
        self.slabs.try_reserve(more / SLAB + 1)?;
        for _ in 0..more {
            self.grow()?;
        }
        Ok(())
    }

    /// Frees the slabs without groups in use.
    pub fn shrink(&mut self) {
        let slabs = self.used.div_ceil(SLAB);
        self.slabs.truncate(slabs);
        self.slabs.shrink_to_fit();
        self.links.truncate(slabs * SLAB);
        self.links.shrink_to_fit();
    }

    pub fn memory_bytes(&self) -> usize {
        let slabs: usize = self.slabs.iter().map(Vec::capacity).sum();
        slabs * size_of::<Group<T>>()
            + self.slabs.capacity() * size_of::<Vec<Group<T>>>()
            + self.links.capacity() * size_of::<Link>()
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Error> {
        if self.links.len() >= GROUPS_MAX {
            return Err(Error::TooMany);
        }
        // Grows by a quarter rather than doubling: the list of links is part of the cost of a pending thread.
        if self.links.len() == self.links.capacity() {
            self.links.try_reserve_exact((self.links.len() / 4).max(SLAB))?;
        }
        if self.slabs.last().is_none_or(|slab| slab.len() == SLAB) {
            self.slabs.try_reserve(1)?;
            let mut slab = Vec::new();
            slab.try_reserve_exact(SLAB)?;
            self.slabs.push(slab);
        }
        if let Some(slab) = self.slabs.last_mut() {
            slab.push(Group::new());
            self.links.push(Link { next: NONE, bin: 0 });
        }
        Ok(())
    }
}
