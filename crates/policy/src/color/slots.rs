//! Cache slots: the pages of a data set have the colors that its slot was given (Ding11, section 3).
//!
//! Which colors those are is decided by [`crate::slots::Allocator`], the code of the live library. Pages of a data
//! set get them in turn; the pages of everything else get random colors, as from a kernel that knows of none of this.
//! What is told of slots takes effect at once: pages that are touched later are placed, those that were
//! touched before are moved.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::random::Random;
use crate::registry::Settings;
use crate::slots::{Allocator, ColorSet, DataSet, Kind, OWNER_LIMIT, Owner, SetId, SlotId};
use crate::{Action, Interest, Observation, Page, Placement, Policy, PolicyError, SlotWord, SlotsTold, Touch, World};

const NO_COLORS: &str = "the outermost cache of this machine has no colors";

/// The names of `slots.rest`.
pub const REST: &[&str] = &["any", "confine"];

/// Ranges of all data sets together; what is told beyond them is refused. A bound on memory.
const RANGES: usize = 1 << 20;
/// Data sets that may be spoken of at a time; the allocator limits those that have colors, and slots.
const SETS: usize = OWNER_LIMIT as usize;
/// Refusals that are told in words.
const REFUSED: usize = 8;

/// Frames by color are not looked at: what is refused for want of frames depends on more than a simulation knows.
const FRAMES: &[u64] = &[];

pub struct SlotColors {
    random: Random,
    /// Whether pages of no data set stay out of the colors of private slots.
    confine: bool,
    /// Made when slots are first spoken of. All processes are one application to it, as their numbers are different.
    ledger: Option<(Allocator, Owner)>,
    slots: HashMap<u64, (SlotId, Kind)>,
    /// Slots that are no more but for the data sets that have their colors.
    leaving: Vec<SlotId>,
    sets: HashMap<u64, Set>,
    ranges: usize,
    /// The ranges of data sets that have colors, by their first page; they do not overlap.
    spans: BTreeMap<Page, Span>,
    touched: BTreeSet<Page>,
    /// Colors for pages of no data set.
    rest: Vec<u32>,
    told: SlotsTold,
}

#[derive(Default)]
struct Set {
    /// Empty: all.
    cpus: BTreeSet<u32>,
    ranges: BTreeMap<Page, Range>,
    /// Of `ranges`: those that were told since the data set was allocated last.
    fresh: BTreeSet<Page>,
    /// Pages of all ranges so far: the place of the next one in the data set.
    pages: u64,
    held: Option<Held>,
}

#[derive(Clone, Copy)]
struct Range {
    pages: u64,
    /// The place of its first page in the data set.
    place: u64,
}

/// Colors that a data set has.
struct Held {
    id: SetId,
    slot: Option<u64>,
    kind: Kind,
    cpus: Vec<u32>,
    colors: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Span {
    pages: u64,
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
        spans: BTreeMap::new(),
        touched: BTreeSet::new(),
        rest: Vec::new(),
        told: SlotsTold::default(),
    }))
}

impl Policy for SlotColors {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        self.touched.insert(touch.page);
        let color = match self.color(touch.page, world) {
            Some(color) => {
                self.told.pages += 1;
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
            self.told.refusals += 1;
            if self.told.refused.len() < REFUSED {
                self.told.refused.push(why);
            }
        }
    }

    fn slots(&self) -> Option<SlotsTold> {
        Some(self.told.clone())
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
            SlotWord::Range { set, first, pages } => self.add(set, first, pages),
            SlotWord::RangeFree { set, first } => {
                self.remove(set, first);
                Ok(())
            }
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
        (self.told.colors, self.told.color_bytes) = (caches.colors, caches.color_bytes);
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

    /// Frees the slots that nobody needs any more.
    fn clear_out(&mut self) {
        if let Some((allocator, owner)) = &mut self.ledger {
            self.leaving.retain(|&slot| allocator.free_slot(*owner, slot).is_err());
        }
    }

    fn add(&mut self, number: u64, first: Page, pages: u64) -> Result<(), String> {
        if self.ranges >= RANGES {
            return Err(format!("data set {number}: there are {RANGES} ranges already"));
        }
        let set = self.set(number)?;
        if pages == 0 || set.ranges.get(&first).is_some_and(|range| range.pages == pages) {
            return Ok(());
        }
        let place = set.pages;
        set.pages = set.pages.wrapping_add(pages);
        let range = Range { pages, place };
        set.fresh.insert(first);
        let fresh = set.ranges.insert(first, range).is_none();
        self.ranges += usize::from(fresh);
        Ok(())
    }

    fn remove(&mut self, number: u64, first: Page) {
        if let Some(set) = self.sets.get_mut(&number)
            && let Some(range) = set.ranges.remove(&first)
        {
            set.fresh.remove(&first);
            self.ranges -= 1;
            self.cut(first, range.pages, Some(number));
        }
    }

    fn allocate(
        &mut self,
        number: u64,
        slot: Option<u64>,
        world: &World,
        actions: &mut Vec<Action>,
    ) -> Result<(), String> {
        let known = slot.map(|slot| {
            let known = self.slots.get(&slot).copied();
            known.ok_or_else(|| format!("data set {number}: slot {slot} was not defined"))
        });
        let known = known.transpose()?;
        let kind = known.map_or(Kind::Shared, |(_, kind)| kind);
        let set = self.set(number)?;
        let cpus: Vec<u32> = match set.cpus.is_empty() {
            true => (0..world.cpus).collect(),
            false => set.cpus.iter().copied().collect(),
        };
        let bytes = set.pages.saturating_mul(world.page_bytes).max(1);
        if set
            .held
            .as_ref()
            .is_none_or(|held| (held.slot, &held.cpus) != (slot, &cpus))
        {
            self.let_go(number);
            self.look_at_rest(world);
            let data = DataSet {
                bytes,
                cpus: &cpus,
                slot: known.map(|(id, _)| id),
            };
            let (allocator, owner) = self.ledger.as_mut().ok_or(NO_COLORS)?;
            let grant = allocator
                .allocate(*owner, data, FRAMES)
                .map_err(|refused| format!("data set {number}: {refused}"))?;
            let held = Held {
                id: grant.set,
                slot,
                kind,
                cpus,
                colors: grant.colors.iter().collect(),
            };
            self.told.data_sets += 1;
            self.told.private += u64::from(kind == Kind::Private);
            if let Some(set) = self.sets.get_mut(&number) {
                set.held = Some(held);
                set.fresh = set.ranges.keys().copied().collect();
            }
            self.look_at_rest(world);
        }
        self.take(number, world, actions);
        Ok(())
    }

    /// The ranges of a data set are of its colors from now on.
    fn take(&mut self, number: u64, world: &World, actions: &mut Vec<Action>) {
        let Some(set) = self.sets.get_mut(&number) else { return };
        let fresh = std::mem::take(&mut set.fresh).into_iter();
        let ranges: Vec<(Page, Range)> = fresh
            .filter_map(|first| Some((first, *set.ranges.get(&first)?)))
            .collect();
        for (first, Range { pages, place }) in ranges {
            let span = Span {
                pages,
                place,
                set: number,
            };
            self.cut(first, pages, None);
            self.spans.insert(first, span);
            let last = Page {
                number: first.number.saturating_add(pages - 1),
                ..first
            };
            let touched: Vec<Page> = self.touched.range(first..=last).copied().collect();
            for page in touched {
                let color = self.color(page, world);
                let to = Placement { color, node: None };
                actions.push(Action::Move { page, to });
            }
        }
    }

    /// No span covers these pages afterwards; of a certain data set, or of any.
    fn cut(&mut self, first: Page, pages: u64, of: Option<u64>) {
        let end = first.number.saturating_add(pages);
        let begin = match self.spans.range(..=first).next_back() {
            Some((&at, _)) if at.space == first.space => at,
            _ => first,
        };
        let until = Page { number: end, ..first };
        let met: Vec<(Page, Span)> = self
            .spans
            .range(begin..until)
            .map(|(at, span)| (*at, *span))
            .filter(|(at, span)| at.number.saturating_add(span.pages) > first.number)
            .filter(|(_, span)| of.is_none_or(|of| span.set == of))
            .collect();
        for (at, span) in met {
            self.spans.remove(&at);
            if at.number < first.number {
                let pages = first.number - at.number;
                self.spans.insert(at, Span { pages, ..span });
            }
            let over = at.number.saturating_add(span.pages);
            if over > end {
                let rest = Span {
                    pages: over - end,
                    place: span.place.wrapping_add(end - at.number),
                    ..span
                };
                self.spans.insert(until, rest);
            }
        }
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
        let Some(set) = self.sets.get_mut(&number) else { return };
        let Some(held) = set.held.take() else { return };
        if let Some((allocator, owner)) = &mut self.ledger {
            // It was given by this allocator and not freed since.
            let _ = allocator.free(*owner, held.id);
        }
        let ranges: Vec<(Page, u64)> = set.ranges.iter().map(|(first, range)| (*first, range.pages)).collect();
        for (first, pages) in ranges {
            self.cut(first, pages, Some(number));
        }
        self.clear_out();
    }

    /// Which colors are left to pages of no data set.
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

    /// The color of a page that is in a data set with colors.
    fn color(&self, page: Page, world: &World) -> Option<u32> {
        let (first, span) = self.spans.range(..=page).next_back()?;
        if first.space != page.space || page.number - first.number >= span.pages {
            return None;
        }
        let offset = page.number - first.number;
        let colors = &self.sets.get(&span.set)?.held.as_ref()?.colors;
        let place = span.place.wrapping_add(offset);
        let count = colors.len().max(1) as u64;
        let color = *colors.get((place % count) as usize)?;
        // Where another cache has more colors, all of those that fit take their turns.
        let caches = world.caches.as_ref().map_or(world.colors, |caches| caches.colors);
        let rounds = u64::from((world.colors / caches.max(1)).max(1));
        Some(color + caches * (place / count % rounds) as u32)
    }
}
