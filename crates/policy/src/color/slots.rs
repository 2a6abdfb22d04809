//! Cache slots: the pages of a data set have the colors that its slot was given (Ding11, section 3).
//!
//! [`crate::slots::Allocator`], the code of the live library, decides which colors those are. Pages of a data set get
//! them in turn; all other pages get random colors, as from a kernel that knows of none of this. Statements about slots
//! take effect at once: pages that are touched later are placed, pages that were touched before are moved.

mod ranges;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::page::Page;
use crate::random::Random;
use crate::seam::{Action, Interest, Observation, Placement, Policy, SlotWord, Touch, World};
use crate::settings::{PolicyError, Settings};
use crate::slots::{Allocator, ColorSet, DataSet, Kind, OWNER_LIMIT, Owner, SetId, SlotId};
use ranges::Ranges;

const NO_COLORS: &str = "the outermost cache of this machine has no colors";

/// The names of `slots.rest`.
pub const REST: &[&str] = &["any", "confine"];

/// Ranges of all data sets together; further ones are refused. A bound on memory.
const RANGES: usize = 1 << 20;
/// Data sets that may be spoken of at a time; the allocator limits those that have colors, and slots.
const SETS: usize = 1 << 20;
/// Slots that may be defined at a time.
const SLOTS: usize = OWNER_LIMIT as usize;
/// Refusals that are reported in words.
const REFUSED: usize = 8;

/// Frames by color are not considered: a refusal for lack of frames depends on more than a simulation knows.
const FRAMES: &[u64] = &[];

pub struct SlotColors {
    random: Random,
    /// True if pages of no data set stay out of the colors of private slots.
    confine: bool,
    /// Made when slots are first spoken of. All processes are one application to it, as their numbers are different.
    ledger: Option<(Allocator, Owner)>,
    slots: HashMap<u64, (SlotId, Kind)>,
    /// Freed slots that only remain for the data sets that have their colors.
    leaving: Vec<SlotId>,
    sets: HashMap<u64, Set>,
    /// Of all data sets together.
    ranges: usize,
    /// The pages of data sets that have colors, by the first of each run; runs do not overlap.
    runs: BTreeMap<Page, Run>,
    touched: BTreeSet<Page>,
    /// Colors for pages of no data set; empty: all.
    rest: Vec<u32>,
    counts: results::Slots,
}

#[derive(Default)]
struct Set {
    /// Empty: all.
    cpus: BTreeSet<u32>,
    ranges: Ranges,
    held: Option<Held>,
}

/// Colors that a data set has, and the first pages of its runs.
struct Held {
    id: SetId,
    kind: Kind,
    colors: Vec<u32>,
    runs: Vec<Page>,
}

#[derive(Clone, Copy)]
struct Run {
    pages: u64,
    /// The number of pages of the data set that come before it.
    place: u64,
    set: u64,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(SlotColors {
        random: Random::new(settings.integer("seed")),
        confine: settings.integer("rest") == 1,
        ledger: None,
        slots: HashMap::new(),
        leaving: Vec::new(),
        sets: HashMap::new(),
        ranges: 0,
        runs: BTreeMap::new(),
        touched: BTreeSet::new(),
        rest: Vec::new(),
        counts: results::Slots::default(),
    }))
}

impl Policy for SlotColors {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        self.touched.insert(touch.page);
        let color = match self.color(touch.page, world) {
            Some(color) => {
                self.counts.pages += 1;
                color
            }
            None if self.rest.is_empty() => self.random.below(world.colors),
            None => {
                // All colors of the machine that are one of these in the outermost cache.
                let caches = world.caches.as_ref().map_or(world.colors, |caches| caches.colors);
                let rest = self.rest.len() as u32;
                let number = self.random.below(rest * (world.colors / caches).max(1));
                self.rest[(number % rest) as usize] + caches * (number / rest)
            }
        };
        Placement {
            color: Some(color),
            node: None,
        }
    }

    fn interest(&self) -> Interest {
        Interest {
            slots: true,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        if let Observation::Slots(word) = observation
            && let Err(why) = self.hear(*word, world, actions)
        {
            self.counts.refusals += 1;
            if self.counts.refused.len() < REFUSED {
                self.counts.refused.push(why);
            }
        }
    }

    fn colors(&self, page: Page) -> bool {
        self.run(page).is_some()
    }

    fn slots(&self) -> Option<results::Slots> {
        Some(self.counts.clone())
    }
}

impl SlotColors {
    fn hear(&mut self, word: SlotWord, world: &World, actions: &mut Vec<Action>) -> Result<(), String> {
        self.begin(world)?;
        match word {
            SlotWord::Slot { slot, bytes, kind } => self.define(slot, bytes, kind),
            SlotWord::SlotFree { slot } => {
                self.drop_slot(slot);
                Ok(())
            }
            SlotWord::Range {
                set,
                space,
                addr,
                bytes,
            } => self.add(set, space, addr, bytes),
            SlotWord::User { set, cpu } => {
                self.set(set)?.cpus.insert(cpu);
                Ok(())
            }
            SlotWord::Allocate { set, slot } => self.allocate(set, slot, world, actions),
            SlotWord::Free { set } => {
                self.free(set, world);
                Ok(())
            }
        }
    }

    fn begin(&mut self, world: &World) -> Result<(), String> {
        if self.ledger.is_some() {
            return Ok(());
        }
        let caches = world.caches.as_ref().ok_or(NO_COLORS)?;
        (self.counts.colors, self.counts.color_bytes) = (caches.colors, caches.color_bytes);
        let mut allocator = Allocator::new(caches.clone()).map_err(|error| error.to_string())?;
        let owner = allocator.join();
        self.ledger = Some((allocator, owner));
        Ok(())
    }

    fn set(&mut self, set: u64) -> Result<&mut Set, String> {
        if self.sets.len() >= SETS && !self.sets.contains_key(&set) {
            return Err(format!("data set {set}: there are {SETS} others already"));
        }
        Ok(self.sets.entry(set).or_default())
    }

    fn define(&mut self, slot: u64, bytes: u64, kind: Kind) -> Result<(), String> {
        self.drop_slot(slot);
        if self.slots.len() + self.leaving.len() >= SLOTS {
            return Err(format!("slot {slot}: there are {SLOTS} others already"));
        }
        let (allocator, owner) = self.ledger.as_mut().ok_or(NO_COLORS)?;
        let id = allocator
            .slot(*owner, bytes, kind)
            .map_err(|refused| format!("slot {slot}: {refused}"))?;
        self.slots.insert(slot, (id, kind));
        Ok(())
    }

    /// Data sets that have its colors keep them until they are freed.
    fn drop_slot(&mut self, slot: u64) {
        if let Some((id, _)) = self.slots.remove(&slot) {
            self.leaving.push(id);
            self.clear_out();
        }
    }

    /// Frees the slots that are no longer needed.
    fn clear_out(&mut self) {
        if let Some((allocator, owner)) = &mut self.ledger {
            self.leaving.retain(|&slot| allocator.free_slot(*owner, slot).is_err());
        }
    }

    fn add(&mut self, number: u64, space: u32, addr: u64, bytes: u64) -> Result<(), String> {
        if self.ranges >= RANGES {
            return Err(format!("data set {number}: there are {RANGES} ranges already"));
        }
        let ranges = &mut self.set(number)?.ranges;
        let before = ranges.len();
        ranges.add(space, addr, bytes);
        let now = ranges.len();
        self.ranges = self.ranges + now - before;
        Ok(())
    }

    /// As in the live library: whole pages only, none of another data set. The earlier colors are given back
    /// afterwards, and kept if this is refused.
    fn allocate(
        &mut self,
        number: u64,
        slot: Option<u64>,
        world: &World,
        actions: &mut Vec<Action>,
    ) -> Result<(), String> {
        let refuse = |why: &dyn std::fmt::Display| format!("data set {number}: {why}");
        let known = match slot {
            None => None,
            Some(slot) => {
                let known = self.slots.get(&slot).copied();
                Some(known.ok_or_else(|| refuse(&format_args!("slot {slot} was not defined")))?)
            }
        };
        let set = self.set(number)?;
        let cpus: Vec<u32> = match set.cpus.is_empty() {
            true => (0..world.cpus).collect(),
            false => set.cpus.iter().copied().collect(),
        };
        let pages = set.ranges.pages(world.page_bytes);
        let count = pages.iter().fold(0u64, |sum, (_, pages)| sum.saturating_add(*pages));
        if count == 0 {
            return Err(refuse(&"it covers no page whole"));
        }
        if let Some(other) = pages.iter().find_map(|run| self.meets(number, *run)) {
            return Err(refuse(&format_args!("it has pages of data set {other}")));
        }
        let (allocator, owner) = self.ledger.as_mut().ok_or(NO_COLORS)?;
        let data = DataSet {
            bytes: count.saturating_mul(world.page_bytes),
            cpus: &cpus,
            slot: known.map(|(id, _)| id),
        };
        let grant = allocator
            .allocate(*owner, data, FRAMES)
            .map_err(|refused| refuse(&refused))?;
        self.let_go(number);
        self.counts.data_sets += 1;
        self.counts.private += u64::from(grant.kind == Kind::Private);
        let mut place = 0u64;
        for &(first, pages) in &pages {
            let set = number;
            self.runs.insert(first, Run { pages, place, set });
            place = place.saturating_add(pages);
        }
        if let Some(set) = self.sets.get_mut(&number) {
            set.held = Some(Held {
                id: grant.set,
                kind: grant.kind,
                colors: grant.colors.iter().collect(),
                runs: pages.iter().map(|(first, _)| *first).collect(),
            });
        }
        self.look_at_rest(world);
        for (first, pages) in pages {
            let number = first.number.saturating_add(pages - 1);
            let touched = self.touched.range(first..=Page { number, ..first });
            actions.extend(touched.map(|&page| Action::Move {
                page,
                to: Placement {
                    color: self.color(page, world),
                    node: None,
                },
            }));
        }
        Ok(())
    }

    /// Another data set that has one of these pages.
    fn meets(&self, number: u64, (first, pages): (Page, u64)) -> Option<u64> {
        let end = first.number.saturating_add(pages);
        let before = self.runs.range(..Page { number: end, ..first }).rev();
        let mut met = before
            .take_while(|(at, run)| at.space == first.space && at.number.saturating_add(run.pages) > first.number);
        met.find(|(_, run)| run.set != number).map(|(_, run)| run.set)
    }

    fn free(&mut self, number: u64, world: &World) {
        self.let_go(number);
        if let Some(set) = self.sets.remove(&number) {
            self.ranges -= set.ranges.len();
        }
        self.look_at_rest(world);
    }

    /// The data set has its colors no more.
    fn let_go(&mut self, number: u64) {
        let Some(held) = self.sets.get_mut(&number).and_then(|set| set.held.take()) else {
            return;
        };
        for first in held.runs {
            self.runs.remove(&first);
        }
        if let Some((allocator, owner)) = &mut self.ledger {
            // It was given by this allocator and not freed since.
            let _ = allocator.free(*owner, held.id);
        }
        self.clear_out();
    }

    /// Finds the colors left to pages of no data set.
    fn look_at_rest(&mut self, world: &World) {
        if !self.confine {
            return;
        }
        let Some(caches) = &world.caches else { return };
        let mut private = ColorSet::new();
        let held = self.sets.values().filter_map(|set| set.held.as_ref());
        for held in held.filter(|held| held.kind == Kind::Private) {
            private.extend(held.colors.iter().copied());
        }
        self.rest = (0..caches.colors).filter(|&color| !private.contains(color)).collect();
    }

    /// The run of a page, and the run's first page, if it is in a data set with colors.
    fn run(&self, page: Page) -> Option<(&Page, &Run)> {
        let (first, run) = self.runs.range(..=page).next_back()?;
        (first.space == page.space && page.number - first.number < run.pages).then_some((first, run))
    }

    /// The color of a page that is in a data set with colors.
    fn color(&self, page: Page, world: &World) -> Option<u32> {
        let (first, run) = self.run(page)?;
        let colors = &self.sets.get(&run.set)?.held.as_ref()?.colors;
        let place = run.place.wrapping_add(page.number - first.number);
        let count = colors.len().max(1) as u64;
        let color = *colors.get((place % count) as usize)?;
        // If another cache has more colors, all of those that fit take their turns.
        let caches = world.caches.as_ref().map_or(world.colors, |caches| caches.colors);
        let rounds = u64::from((world.colors / caches.max(1)).max(1));
        Some(color + caches * (place / count % rounds) as u32)
    }
}
