//! The pages closed to each cpu, and the means: protection keys, one for each set of cpus, to which the thread has the
//! rights of its cpu; or the protection of the pages themselves, which changes when the thread goes to another cpu, and
//! for each system call.

use std::collections::{BTreeSet, HashMap};
use std::io;

use sys::mappings::Mapping;
use sys::memory::{PAGE, Span};
use sys::traced::{Closing, Protected, Rights};

use super::layout::Layout;

/// The key that every page has at first, and that is always open.
pub const OPEN: u32 = 0;
/// Stands for a key where pages are closed by their protection: it forbids all.
pub const SHUT: u32 = 1;

/// Pages by number (address / 4096), and cpus as bits, by the policy's numbers.
#[derive(Default)]
pub struct Closed {
    by: Closing,
    /// The cpu whose closed pages are shut by their protection; `None`: no page is shut.
    side: Option<u32>,
    /// Closed to these; pages that are open to all are left out.
    pages: HashMap<u64, u128>,
    /// The key of each set of cpus.
    keys: Vec<(u128, u32)>,
    /// The keys that pages have; others have [`OPEN`].
    have: HashMap<u64, u32>,
    /// Pages whose key may have to change.
    stale: BTreeSet<u64>,
    /// All keys are in use: pages without one are open.
    scarce: bool,
    /// Moves of the thread that were made since pages or mappings last changed. A program whose regions have been found goes
    /// between the same cpus thousands of times in a second.
    moves: Vec<Move>,
    /// The move that is under way.
    moving: Moving,
}

/// What the thread's move from one cpu to another changes, while pages are closed by their protection.
struct Move {
    from: Option<u32>,
    to: Option<u32>,
    ranges: Vec<Protected>,
    /// [`Closed::have`] after it.
    have: HashMap<u64, u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Moving {
    /// There is none, or pages change at the same time.
    #[default]
    No,
    /// The first move from there to the thread's cpu: its changes are recorded.
    New(Option<u32>),
    /// This one of [`Closed::moves`].
    Known(usize),
}

/// All moves are forgotten where there would be more.
const MOVES: usize = 64;

impl Closed {
    pub fn by(by: Closing) -> Closed {
        Closed {
            by,
            ..Closed::default()
        }
    }

    pub fn means(&self) -> Closing {
        self.by
    }

    /// Shuts by their protection the pages that are closed to this cpu, and no others; `None`: none.
    pub fn shut_to(&mut self, cpu: Option<u32>) {
        if self.by == Closing::Keys || cpu == self.side {
            return;
        }
        if !self.stale.is_empty() {
            self.forget_moves();
        } else if self.moving != Moving::No {
            // Two moves in one.
            self.end_move();
        } else if let Some(known) = self.moves.iter().position(|one| (one.from, one.to) == (self.side, cpu)) {
            self.moving = Moving::Known(known);
            self.side = cpu;
            return;
        } else {
            self.moving = Moving::New(self.side);
        }
        self.side = cpu;
        self.doubt_side();
    }

    /// Pages whose protection is not as the thread's cpu has it may have to change.
    fn doubt_side(&mut self) {
        let side = self.side;
        let shut = |cpus: u128| side.is_some_and(|cpu| cpus >> cpu & 1 == 1);
        let more = self
            .pages
            .iter()
            .filter(|(page, cpus)| shut(**cpus) != self.have.contains_key(page));
        self.stale.extend(more.map(|(page, _)| *page));
        self.stale
            .extend(self.have.keys().filter(|page| !self.pages.contains_key(page)));
    }

    /// Pages or mappings change, so that known moves no longer hold.
    pub fn forget_moves(&mut self) {
        self.moves.clear();
        self.end_move();
    }

    /// The move under way falls back to a check of each page.
    fn end_move(&mut self) {
        if let Moving::Known(_) = std::mem::take(&mut self.moving) {
            self.doubt_side();
        }
    }

    /// Returns whether a page is shut by its protection.
    pub fn is_shut(&self, page: u64) -> bool {
        self.by == Closing::Protection && self.have.contains_key(&page)
    }

    /// Returns whether any page is shut by its protection: system calls then fail, and mappings do not show the
    /// program's own protection.
    pub fn has_shut(&self) -> bool {
        self.by == Closing::Protection && !self.have.is_empty()
    }

    /// Into how many parts pages that are shut divide mappings, at most.
    pub fn parts(&self) -> usize {
        let mut pages: Vec<u64> = self.have.keys().copied().collect();
        pages.sort_unstable();
        let runs = pages.chunk_by(|one, next| one + 1 == *next).count();
        2 * runs
    }

    /// Closes a page to these cpus, and opens it to all others.
    pub fn set(&mut self, page: u64, cpus: u128) {
        self.forget_moves();
        match cpus {
            0 => self.pages.remove(&page),
            cpus => self.pages.insert(page, cpus),
        };
        self.stale.insert(page);
    }

    /// The cpus that a page is closed to.
    pub fn of(&self, page: u64) -> u128 {
        self.pages.get(&page).copied().unwrap_or(0)
    }

    /// Its key is checked again, whatever was known of it: the program may have moved the page.
    pub fn doubt(&mut self, page: u64, key: u32) {
        self.forget_moves();
        self.have.insert(page, key);
        self.stale.insert(page);
    }

    /// Pages may be shut by their protection, whatever is known of them: a change of theirs failed.
    pub fn doubt_all(&mut self, span: Span) {
        for page in (span.start / PAGE) as u64..(span.end() / PAGE) as u64 {
            self.doubt(page, SHUT);
        }
    }

    /// Returns whether any page is closed to any cpu, or was and still has its key.
    pub fn is_any(&self) -> bool {
        !self.pages.is_empty() || !self.have.is_empty()
    }

    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether a key is one of ours.
    pub fn has(&self, key: u32) -> bool {
        self.keys.iter().any(|(_, of)| *of == key)
    }

    /// Returns whether any page may have another key than it should.
    pub fn is_stale(&self) -> bool {
        !self.stale.is_empty() || self.moving != Moving::No
    }

    pub fn open_all(&mut self) {
        self.forget_moves();
        self.stale.extend(self.pages.drain().map(|(page, _)| page));
    }

    /// The rights of a thread on a cpu; `shut` false: all of ours are open.
    pub fn rights(&self, before: Rights, cpu: u32, shut: bool) -> Rights {
        let closed = |cpus: u128| shut && cpus >> cpu & 1 == 1;
        self.keys
            .iter()
            .fold(before, |rights, &(cpus, key)| rights.with(key, closed(cpus)))
    }

    /// The ranges whose key is to change, in order; unmapped pages are forgotten; pages stay open if they are spared or
    /// may not differ from the rest of their mapping. `take` takes another key; `None`: there is none.
    pub fn changes(
        &mut self,
        layout: &Layout,
        mut may_differ: impl FnMut(&Mapping, usize) -> bool,
        mut take: impl FnMut() -> io::Result<Option<u32>>,
    ) -> io::Result<Vec<Protected>> {
        let moving = std::mem::take(&mut self.moving);
        if let Moving::Known(number) = moving {
            let known = &self.moves[number];
            self.have.clone_from(&known.have);
            return Ok(known.ranges.clone());
        }
        let mut ranges: Vec<Protected> = Vec::new();
        let mut lost = false;
        for page in std::mem::take(&mut self.stale) {
            let closed = self.of(page);
            let mut wanted = match self.by {
                Closing::Keys => self.key_for(closed, &mut take)?,
                Closing::Protection if self.side.is_some_and(|cpu| closed >> cpu & 1 == 1) => SHUT,
                Closing::Protection => OPEN,
            };
            if self.have.get(&page).copied().unwrap_or(OPEN) == wanted {
                continue;
            }
            let address = page as usize * PAGE;
            let Some(mapping) = layout.mapping(address) else {
                self.pages.remove(&page);
                self.have.remove(&page);
                lost = true;
                continue;
            };
            if wanted != OPEN && (layout.spares(address) || !may_differ(mapping, address)) {
                self.pages.remove(&page);
                lost = true;
                wanted = OPEN;
                if !self.have.contains_key(&page) {
                    continue;
                }
            }
            match wanted {
                OPEN => self.have.remove(&page),
                key => self.have.insert(page, key),
            };
            let shut = self.by == Closing::Protection && wanted == SHUT;
            let may = (mapping.read && !shut, mapping.write && !shut);
            add(&mut ranges, address, may, wanted);
        }
        match moving {
            _ if lost => self.moves.clear(),
            Moving::New(from) => {
                if self.moves.len() == MOVES {
                    self.moves.clear();
                }
                self.moves.push(Move {
                    from,
                    to: self.side,
                    ranges: ranges.clone(),
                    have: self.have.clone(),
                });
            }
            _ => {}
        }
        Ok(ranges)
    }

    /// Opens all pages of a range. Returns whether any has a key of ours.
    pub fn open_range(&mut self, span: Span) -> bool {
        let pages = (span.start / PAGE) as u64..(span.end().div_ceil(PAGE)) as u64;
        let keyed: Vec<u64> = self.have.keys().copied().filter(|page| pages.contains(page)).collect();
        for &page in &keyed {
            self.set(page, 0);
        }
        !keyed.is_empty()
    }

    /// Pages that were unmapped have no keys. If others come to be mapped there, these are closed as they were.
    pub fn unmapped(&mut self, span: Span) {
        self.forget_moves();
        let pages = (span.start / PAGE) as u64..span.end().div_ceil(PAGE) as u64;
        let gone = self.have.extract_if(|page, _| pages.contains(page));
        self.stale.extend(gone.map(|(page, _)| page));
    }

    /// Opens all pages, if any has a key of ours. Returns those that were closed, and to which cpus.
    pub fn open_keyed(&mut self) -> Option<Vec<(u64, u128)>> {
        if self.have.is_empty() {
            return None;
        }
        let closed = self.pages.iter().map(|(page, cpus)| (*page, *cpus)).collect();
        self.open_all();
        self.stale.extend(self.have.keys());
        Some(closed)
    }

    fn key_for(&mut self, cpus: u128, take: &mut impl FnMut() -> io::Result<Option<u32>>) -> io::Result<u32> {
        if cpus == 0 {
            return Ok(OPEN);
        }
        if let Some((_, key)) = self.keys.iter().find(|(of, _)| *of == cpus) {
            return Ok(*key);
        }
        if self.scarce {
            return Ok(OPEN);
        }
        match take()? {
            Some(key) => {
                self.keys.push((cpus, key));
                Ok(key)
            }
            None => {
                self.scarce = true;
                Ok(OPEN)
            }
        }
    }
}

/// Adds a page; equal pages side by side are one range.
fn add(ranges: &mut Vec<Protected>, address: usize, (read, write): (bool, bool), key: u32) {
    let this = Protected {
        span: Span::new(address, PAGE),
        read,
        write,
        key,
    };
    match ranges.last_mut() {
        Some(last)
            if last.span.end() == address
                && Protected {
                    span: last.span,
                    ..this
                } == *last =>
        {
            last.span.bytes += PAGE
        }
        _ => ranges.push(this),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::mappings::Kind;

    fn layout(pages: usize) -> Layout {
        let mapping = Mapping {
            span: Span::new(0, pages * PAGE),
            read: true,
            write: true,
            execute: false,
            shared: false,
            kind: Kind::Anonymous,
        };
        Layout::of(vec![mapping], &[])
    }

    fn may(_: &Mapping, _: usize) -> bool {
        true
    }

    #[test]
    fn pages_side_by_side_get_their_key_in_one_range() {
        let mut closed = Closed::default();
        for page in [3, 1, 2, 7] {
            closed.set(page, 0b10);
        }
        closed.set(4, 0b01);
        let mut next = 0;
        let mut take = || {
            next += 1;
            Ok(Some(next))
        };
        let ranges = closed.changes(&layout(100), may, &mut take).unwrap();
        let seen: Vec<_> = ranges
            .iter()
            .map(|one| (one.span.start / PAGE, one.span.bytes / PAGE, one.key))
            .collect();
        assert_eq!(seen, [(1, 3, 1), (4, 1, 2), (7, 1, 1)]);
        assert!(closed.changes(&layout(100), may, &mut take).unwrap().is_empty());
        // Opened and closed again before anything was done: nothing is to be done.
        closed.set(2, 0);
        closed.set(2, 0b10);
        assert!(closed.changes(&layout(100), may, &mut take).unwrap().is_empty());
        closed.open_all();
        let ranges = closed.changes(&layout(100), may, &mut take).unwrap();
        assert!(
            ranges.iter().all(|one| one.key == OPEN) && ranges.len() == 2,
            "{ranges:?}"
        );
        assert!(!closed.is_any());
    }

    #[test]
    fn pages_that_are_mapped_no_more_are_forgotten() {
        let mut closed = Closed::default();
        closed.set(5, 0b10);
        assert!(closed.changes(&layout(5), may, || Ok(Some(1))).unwrap().is_empty());
        assert_eq!(closed.of(5), 0);
        assert!(!closed.is_any());
    }

    #[test]
    fn pages_that_are_mapped_anew_are_closed_again() {
        let mut closed = Closed::default();
        closed.set(5, 0b10);
        closed.set(7, 0b10);
        let changed = |closed: &mut Closed, pages| closed.changes(&layout(pages), may, || Ok(Some(1))).unwrap();
        assert_eq!(changed(&mut closed, 9).len(), 2);
        closed.unmapped(Span::new(4 * PAGE, 3 * PAGE));
        let again = changed(&mut closed, 9);
        assert_eq!(
            again.iter().map(|one| one.span).collect::<Vec<_>>(),
            [Span::new(5 * PAGE, PAGE)]
        );
        assert_eq!(again[0].key, 1);
        closed.unmapped(Span::new(7 * PAGE, PAGE));
        assert!(changed(&mut closed, 7).is_empty());
        assert_eq!((closed.of(5), closed.of(7)), (0b10, 0));
    }

    #[test]
    fn pages_that_may_not_differ_stay_open() {
        let mut closed = Closed::default();
        closed.set(5, 0b10);
        closed.set(6, 0b10);
        let not_5 = |_: &Mapping, address| address != 5 * PAGE;
        let ranges = closed.changes(&layout(9), not_5, || Ok(Some(1))).unwrap();
        assert_eq!(
            ranges.iter().map(|one| one.span).collect::<Vec<_>>(),
            [Span::new(6 * PAGE, PAGE)]
        );
        assert_eq!((closed.of(5), closed.of(6)), (0, 0b10));
        // For a fork all are opened, and closed again.
        assert_eq!(closed.open_keyed(), Some(vec![(6, 0b10)]));
        let ranges = closed.changes(&layout(9), may, || Ok(None)).unwrap();
        assert_eq!((ranges.len(), ranges[0].key, closed.is_any()), (1, OPEN, false));
        assert_eq!(closed.open_keyed(), None);
    }

    #[test]
    fn without_another_key_pages_stay_open() {
        let mut closed = Closed::default();
        closed.set(5, 0b10);
        assert!(closed.changes(&layout(9), may, || Ok(None)).unwrap().is_empty());
        closed.set(6, 0b10);
        assert!(closed.changes(&layout(9), may, || Ok(Some(1))).unwrap().is_empty());
    }

    /// The thread's cpu, not the page, decides which pages are shut.
    #[test]
    fn by_their_protection_pages_are_shut_to_the_cpu_that_the_thread_is_on() {
        let mut closed = Closed::by(Closing::Protection);
        for page in [1, 2, 6] {
            closed.set(page, 0b01);
        }
        closed.set(3, 0b10);
        let changed = |closed: &mut Closed| {
            let ranges = closed
                .changes(&layout(9), may, || unreachable!("no key is needed"))
                .unwrap();
            let seen = ranges.iter().map(|one| {
                assert_eq!(one.read, one.write);
                (one.span.start / PAGE, one.span.bytes / PAGE, one.read)
            });
            seen.collect::<Vec<_>>()
        };
        // No thread was placed anywhere.
        assert!(changed(&mut closed).is_empty() && !closed.has_shut() && closed.is_any());
        closed.shut_to(Some(0));
        assert_eq!(changed(&mut closed), [(1, 2, false), (6, 1, false)]);
        assert!(closed.has_shut() && closed.is_shut(2) && !closed.is_shut(3));
        assert_eq!(closed.parts(), 4);
        closed.shut_to(Some(1));
        assert_eq!(changed(&mut closed), [(1, 2, true), (3, 1, false), (6, 1, true)]);
        // For a system call all are opened, and then closed as they were.
        closed.shut_to(None);
        assert_eq!(changed(&mut closed), [(3, 1, true)]);
        assert!(!closed.has_shut() && closed.of(3) == 0b10);
        closed.set(3, 0b01);
        closed.shut_to(Some(0));
        assert_eq!(changed(&mut closed), [(1, 3, false), (6, 1, false)]);
        closed.open_all();
        assert_eq!(changed(&mut closed), [(1, 3, true), (6, 1, true)]);
        assert!(!closed.is_any());
    }

    #[test]
    fn moves_that_were_made_before_change_the_same_pages() {
        let mut closed = Closed::by(Closing::Protection);
        // As the kernel has them.
        let mut shut = BTreeSet::new();
        let mut known = 0;
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..5_000 {
            match below(24) {
                0 => closed.set(below(20), u128::from(below(8))),
                1 => closed.forget_moves(),
                2 if below(4) == 0 => closed.open_all(),
                3 => {
                    closed.shut_to(Some(below(3) as u32));
                    closed.shut_to([None, Some(below(3) as u32)][below(2) as usize]);
                }
                4 => {
                    closed.shut_to(Some(below(3) as u32));
                    closed.set(below(20), u128::from(below(8)));
                }
                _ => closed.shut_to([None, Some(0), Some(1), Some(2)][below(4) as usize]),
            }
            known += u64::from(matches!(closed.moving, Moving::Known(_)));
            // Pages 18 and 19 are not mapped.
            let ranges = closed.changes(&layout(18), may, || unreachable!("no key is needed"));
            for range in ranges.unwrap() {
                for page in range.span.start / PAGE..range.span.end() / PAGE {
                    match range.read {
                        true => assert!(shut.remove(&page), "{page} was open"),
                        false => assert!(shut.insert(page), "{page} was shut"),
                    }
                }
            }
            let wanted = |page: &usize| closed.side.is_some_and(|cpu| closed.of(*page as u64) >> cpu & 1 == 1);
            assert_eq!(shut, (0..18).filter(wanted).collect());
            assert!(!closed.is_stale() && shut.iter().all(|page| closed.is_shut(*page as u64)));
        }
        assert!(known > 500, "{known}");
    }

    #[test]
    fn rights_are_those_of_the_cpu() {
        let mut closed = Closed::default();
        closed.set(1, 0b01);
        closed.set(2, 0b10);
        let mut keys = [3, 5].into_iter();
        closed.changes(&layout(9), may, || Ok(keys.next())).unwrap();
        let rights = |cpu, shut| closed.rights(Rights::default(), cpu, shut);
        assert!(rights(0, true).is_closed(3) && !rights(0, true).is_closed(5));
        assert!(rights(1, true).is_closed(5) && !rights(1, true).is_closed(3));
        assert_eq!(rights(1, false), Rights::default());
        assert!(closed.has(5) && !closed.has(4));
    }
}
