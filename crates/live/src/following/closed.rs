//! Which pages are closed to which cpus, and the protection keys that make it so: one for each set of cpus.

use std::collections::{BTreeSet, HashMap};
use std::io;

use sys::mappings::Mapping;
use sys::memory::{PAGE, Span};
use sys::traced::{Keyed, Rights};

use super::layout::Layout;

/// The key that every page has at first, and that is always open.
pub const OPEN: u32 = 0;

/// Pages by number (address / 4096), and cpus as bits, by the policy's numbers.
#[derive(Default)]
pub struct Closed {
    /// Closed to these; pages that are open to all are left out.
    pages: HashMap<u64, u128>,
    /// The key of each set of cpus.
    keys: Vec<(u128, u32)>,
    /// The keys that pages have; others have [`OPEN`].
    have: HashMap<u64, u32>,
    /// Pages whose key may have to change.
    stale: BTreeSet<u64>,
    /// No more keys are to be had: pages for which there is none are open.
    scarce: bool,
}

impl Closed {
    /// Closes a page to these cpus, and opens it to all others.
    pub fn set(&mut self, page: u64, cpus: u128) {
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

    /// Its key is looked at again, whatever is known of it: the program may have moved the page.
    pub fn doubt(&mut self, page: u64, key: u32) {
        self.have.insert(page, key);
        self.stale.insert(page);
    }

    /// Whether any page is closed to any cpu, or was and has its key still.
    pub fn is_any(&self) -> bool {
        !self.pages.is_empty() || !self.have.is_empty()
    }

    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Whether a key is one of ours.
    pub fn has(&self, key: u32) -> bool {
        self.keys.iter().any(|(_, of)| *of == key)
    }

    /// Whether any page may have another key than it should.
    pub fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    pub fn open_all(&mut self) {
        self.stale.extend(self.pages.drain().map(|(page, _)| page));
    }

    /// The rights of a thread on a cpu; `shut` false: all of ours are open.
    pub fn rights(&self, before: Rights, cpu: u32, shut: bool) -> Rights {
        let closed = |cpus: u128| shut && cpus >> cpu & 1 == 1;
        self.keys
            .iter()
            .fold(before, |rights, &(cpus, key)| rights.with(key, closed(cpus)))
    }

    /// The ranges whose key is to change, in order; pages that are mapped no more are forgotten, and those stay open that are spared or may
    /// not differ from the rest of their mapping. `take` takes another key; `None`: there is none.
    pub fn changes(
        &mut self,
        layout: &Layout,
        mut may_differ: impl FnMut(&Mapping, usize) -> bool,
        mut take: impl FnMut() -> io::Result<Option<u32>>,
    ) -> io::Result<Vec<Keyed>> {
        let mut ranges: Vec<Keyed> = Vec::new();
        for page in std::mem::take(&mut self.stale) {
            let mut wanted = self.key_for(self.of(page), &mut take)?;
            if self.have.get(&page).copied().unwrap_or(OPEN) == wanted {
                continue;
            }
            let address = page as usize * PAGE;
            let Some(mapping) = layout.mapping(address) else {
                self.pages.remove(&page);
                self.have.remove(&page);
                continue;
            };
            if wanted != OPEN && (layout.spares(address) || !may_differ(mapping, address)) {
                self.pages.remove(&page);
                wanted = OPEN;
                if !self.have.contains_key(&page) {
                    continue;
                }
            }
            match wanted {
                OPEN => self.have.remove(&page),
                key => self.have.insert(page, key),
            };
            add(&mut ranges, address, (mapping.read, mapping.write), wanted);
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

/// One page more; pages side by side that are alike are one range.
fn add(ranges: &mut Vec<Keyed>, address: usize, (read, write): (bool, bool), key: u32) {
    let this = Keyed {
        span: Span::new(address, PAGE),
        read,
        write,
        key,
    };
    match ranges.last_mut() {
        Some(last)
            if last.span.end() == address
                && Keyed {
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
