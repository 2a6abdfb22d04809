//! The ledger of colors: which slots have which, on which caches (Ding11 section 3.2).
//!
//! # How a request is decided
//!
//! 1. **How many colors.** The slot's bytes divided by those of a color, rounded down, but at least 1: so a cache cut
//!    into equal slots (the paper's Figure 4) always fits. A caller that wants a whole data set to fit rounds its size
//!    up to whole colors first. Only the caches of the data set's cpus are concerned, each with this number.
//! 2. **Which colors.** A page has one color in all caches, so a data set has the same ones everywhere. A private slot
//!    takes unspecified colors. A shared slot first takes colors that are already shared, on as many of the caches as
//!    can be, then unspecified ones. It takes only colors with as many frames at hand as the data set will need of
//!    each, `pages / colors` rounded up (the paper says *more than* the average; exactly this many are enough when
//!    pages are given colors in turn). Among them a private slot prefers those that do not follow one another and have
//!    the fewest frames; a shared one, about which the paper is silent, those that do not follow one another and have
//!    the most, as more data sets will come to them.
//!
//! A slot gets its colors with its first data set and keeps them, cache by cache, until the last data set there is
//! freed; further data sets use the same ones in turn. On a cache where the slot was not used so far it gets the same
//! colors if they are free there, so that a data set on both can come later; otherwise others.

use super::choose::{Choice, Words, population};
use super::ids::{Id, Table};
use super::used::Used;
use super::{Caches, ColorSet, Free, InvalidCaches, Kind, Refused, Status};

/// Most slots, and most data sets, that an application may have at a time.
pub const OWNER_LIMIT: u32 = 1 << 16;

/// An application, as [`Allocator::join`] numbers it.
pub type Owner = Id<Owned>;
/// A slot, as [`Allocator::slot`] numbers it.
pub type SlotId = Id<Slot>;
/// A data set that has colors, as [`Allocator::allocate`] numbers it.
pub type SetId = Id<Set>;

/// The colors of the shared caches and their owners.
#[derive(Debug)]
pub struct Allocator {
    pub(super) caches: Caches,
    /// The cache of each cpu; [`NONE`] if it has none.
    pub(super) cache_of: Vec<u32>,
    pub(super) used: Vec<Used>,
    owners: Table<Owned>,
    slots: Table<Slot>,
    sets: Table<Set>,
    pub(super) concerned: Vec<u32>,
    pub(super) free: Words,
    pub(super) eligible: Words,
    pub(super) choice: Choice,
}

pub(super) const NONE: u32 = u32::MAX;

/// The slots and data sets of an application.
#[derive(Debug, Default)]
pub struct Owned {
    slots: Vec<SlotId>,
    sets: Vec<SetId>,
}

/// A slot as it was defined, and where it has colors.
#[derive(Debug)]
pub struct Slot {
    owner: Owner,
    /// Its place among the owner's.
    at: u32,
    pub(super) kind: Kind,
    pub(super) colors: u32,
    pub(super) pieces: Vec<Piece>,
    sets: u32,
}

/// A slot's colors on one cache.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) cache: u32,
    pub(super) colors: ColorSet,
    sets: u32,
}

/// A data set that has colors.
#[derive(Debug)]
pub struct Set {
    owner: Owner,
    /// Its place among the owner's.
    at: u32,
    /// `None`: not to be kept in the cache; then the colors are its own share.
    slot: Option<SlotId>,
    colors: ColorSet,
    caches: Vec<usize>,
}

/// Data for which colors are asked.
#[derive(Clone, Copy, Debug)]
pub struct DataSet<'a> {
    /// Of whole pages.
    pub bytes: u64,
    /// Cpus whose threads use it.
    pub cpus: &'a [u32],
    /// `None`: do not keep it in the cache; as few colors as have the frames, shared.
    pub slot: Option<SlotId>,
}

/// Colors that were given to a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub set: SetId,
    /// The same ones on all its caches.
    pub colors: ColorSet,
    /// Places in [`Caches::cpus`], lowest first.
    pub caches: Vec<usize>,
    pub kind: Kind,
}

/// The free space, in bytes of cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Each cache that was asked for.
    pub caches: Vec<Free>,
    pub color_bytes: u64,
    /// The bytes available to private slots on one cache each, over all caches.
    pub bytes: u64,
    /// The bytes available in each of these caches to a private slot on all of them.
    pub together: u64,
}

impl Space {
    /// The share of each of `threads` if they share alike.
    pub fn per_thread(&self, threads: u32) -> u64 {
        self.bytes / u64::from(threads.max(1))
    }
}

impl Allocator {
    pub fn new(caches: Caches) -> Result<Allocator, InvalidCaches> {
        caches.check()?;
        let highest = caches.cpus.iter().flatten().max().map_or(0, |&cpu| cpu as usize);
        let mut cache_of = vec![NONE; highest + 1];
        for (cache, cpus) in caches.cpus.iter().enumerate() {
            for &cpu in cpus {
                cache_of[cpu as usize] = cache as u32;
            }
        }
        let words = caches.colors.div_ceil(64) as usize;
        Ok(Allocator {
            cache_of,
            used: caches.cpus.iter().map(|_| Used::none(caches.colors)).collect(),
            caches,
            owners: Table::default(),
            slots: Table::default(),
            sets: Table::default(),
            concerned: Vec::new(),
            free: vec![0; words],
            eligible: vec![0; words],
            choice: Choice::default(),
        })
    }

    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The use of a color of a cache; `None` if there is no such cache or color.
    pub fn status(&self, cache: usize, color: u32) -> Option<Status> {
        let used = self.used.get(cache)?;
        (color < self.caches.colors).then(|| used.status(color))
    }

    /// A new application.
    pub fn join(&mut self) -> Owner {
        self.owners.add(Owned::default())
    }

    /// Frees all that an application has: it ended, or died.
    pub fn leave(&mut self, owner: Owner) -> Result<(), Refused> {
        let owned = self.owners.remove(owner).ok_or(Refused::UnknownOwner)?;
        for set in owned.sets {
            if let Some(set) = self.sets.remove(set) {
                self.give_back(&set);
            }
        }
        for slot in owned.slots {
            self.slots.remove(slot);
        }
        Ok(())
    }

    /// The number of colors of a slot of `bytes` in each cache: rounded down, at least 1.
    pub fn colors_of(&self, bytes: u64) -> Result<u32, Refused> {
        if bytes == 0 {
            return Err(Refused::NoBytes);
        }
        let colors = (bytes / self.caches.color_bytes).max(1);
        match u32::try_from(colors) {
            Ok(colors) if colors <= self.caches.colors => Ok(colors),
            _ => Err(Refused::TooLarge {
                bytes,
                colors,
                color_bytes: self.caches.color_bytes,
                most: self.caches.colors,
            }),
        }
    }

    /// Defines a slot of `bytes` in each cache that it will be used on. It gets its colors with its
    /// first data set.
    pub fn slot(&mut self, owner: Owner, bytes: u64, kind: Kind) -> Result<SlotId, Refused> {
        let colors = self.colors_of(bytes)?;
        let owned = self.owners.get_mut(owner).ok_or(Refused::UnknownOwner)?;
        if owned.slots.len() >= OWNER_LIMIT as usize {
            return Err(Refused::TooMany(OWNER_LIMIT));
        }
        let slot = self.slots.add(Slot {
            owner,
            at: owned.slots.len() as u32,
            kind,
            colors,
            pieces: Vec::new(),
            sets: 0,
        });
        owned.slots.push(slot);
        Ok(slot)
    }

    /// Takes a slot that no data set uses back.
    pub fn free_slot(&mut self, owner: Owner, slot: SlotId) -> Result<(), Refused> {
        let found = self.slots.get(slot).filter(|found| found.owner == owner);
        let found = found.ok_or(Refused::UnknownSlot)?;
        if found.sets > 0 {
            return Err(Refused::InUse { sets: found.sets });
        }
        let at = found.at as usize;
        self.slots.remove(slot);
        let owned = self.owners.get_mut(owner).ok_or(Refused::UnknownOwner)?;
        owned.slots.swap_remove(at);
        if let Some(moved) = owned.slots.get(at).and_then(|&moved| self.slots.get_mut(moved)) {
            moved.at = at as u32;
        }
        Ok(())
    }

    /// Gives a data set the colors of its slot, on the caches of its cpus.
    ///
    /// `frames_by_color` gives the available frames of each color; for colors beyond its end, any number (empty: not
    /// known, nothing is refused for lack of frames). It is not asked if the slot has its colors already.
    pub fn allocate(&mut self, owner: Owner, data: DataSet, frames_by_color: &[u64]) -> Result<Grant, Refused> {
        let owned = self.owners.get(owner).ok_or(Refused::UnknownOwner)?;
        let at = owned.sets.len() as u32;
        if at >= OWNER_LIMIT {
            return Err(Refused::TooMany(OWNER_LIMIT));
        }
        self.concern(data.cpus)?;
        let pages = data.bytes.div_ceil(self.caches.page_bytes);
        let (kind, colors) = match data.slot {
            None => (Kind::Shared, self.few_shared(pages, frames_by_color)?),
            Some(id) => {
                let slot = self.slots.get(id).filter(|slot| slot.owner == owner);
                let slot = slot.ok_or(Refused::UnknownSlot)?;
                let (kind, count) = (slot.kind, slot.colors);
                let colors = match self.of_slot(slot, pages, frames_by_color)? {
                    Some(colors) => colors,
                    None => self.choose(kind, count, pages.div_ceil(u64::from(count)), frames_by_color)?,
                };
                (kind, colors)
            }
        };
        // From here on nothing can be refused.
        let caches: Vec<usize> = self.concerned.iter().map(|&cache| cache as usize).collect();
        match data.slot.and_then(|id| self.slots.get_mut(id)) {
            None => {
                for &cache in &self.concerned {
                    self.used[cache as usize].take(&colors, Kind::Shared);
                }
            }
            Some(slot) => {
                slot.sets += 1;
                for &cache in &self.concerned {
                    if let Some(piece) = slot.pieces.iter_mut().find(|piece| piece.cache == cache) {
                        piece.sets += 1;
                        continue;
                    }
                    self.used[cache as usize].take(&colors, kind);
                    slot.pieces.push(Piece {
                        cache,
                        colors: colors.clone(),
                        sets: 1,
                    });
                }
            }
        }
        let set = self.sets.add(Set {
            owner,
            at,
            slot: data.slot,
            // A slot keeps its colors itself.
            colors: if data.slot.is_none() {
                colors.clone()
            } else {
                ColorSet::new()
            },
            caches: caches.clone(),
        });
        if let Some(owned) = self.owners.get_mut(owner) {
            owned.sets.push(set);
        }
        Ok(Grant {
            set,
            colors,
            caches,
            kind,
        })
    }

    /// Takes a data set's colors back, unless another data set uses them.
    pub fn free(&mut self, owner: Owner, set: SetId) -> Result<(), Refused> {
        let found = self.sets.get(set).filter(|found| found.owner == owner);
        let at = found.ok_or(Refused::UnknownSet)?.at as usize;
        if let Some(freed) = self.sets.remove(set) {
            self.give_back(&freed);
        }
        let owned = self.owners.get_mut(owner).ok_or(Refused::UnknownOwner)?;
        owned.sets.swap_remove(at);
        if let Some(moved) = owned.sets.get(at).and_then(|&moved| self.sets.get_mut(moved)) {
            moved.at = at as u32;
        }
        Ok(())
    }

    /// The free space on the caches of these cpus.
    pub fn available(&mut self, cpus: &[u32]) -> Result<Space, Refused> {
        self.concern(cpus)?;
        self.free_for(Kind::Private);
        let caches = self.free_colors();
        let color_bytes = self.caches.color_bytes;
        Ok(Space {
            bytes: caches
                .iter()
                .map(|free| u64::from(free.unspecified) * color_bytes)
                .sum(),
            together: u64::from(population(&self.free)) * color_bytes,
            caches,
            color_bytes,
        })
    }

    fn give_back(&mut self, set: &Set) {
        let Some(id) = set.slot else {
            for &cache in &set.caches {
                self.used[cache].give_back(&set.colors, Kind::Shared);
            }
            return;
        };
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        slot.sets -= 1;
        let (kind, used) = (slot.kind, &mut self.used);
        slot.pieces.retain_mut(|piece| {
            if set.caches.contains(&(piece.cache as usize)) {
                piece.sets -= 1;
            }
            if piece.sets == 0 {
                used[piece.cache as usize].give_back(&piece.colors, kind);
            }
            piece.sets > 0
        });
    }
}
