//! The events of a range while its pages are exchanged, and their effect on these pages.
//!
//! The rules of `flight` hold here too: no heap, no static variable.

use sys::arrays::Array;
use sys::faults::{Event, Faults, Stop};
use sys::memory::{PAGE, Span};

use super::children::{self, Children};
use super::flight::{Exchange, Pauses};
use super::rules::{self, State};

/// The most events that are read in a row.
const EVENTS: usize = 1_000;

impl Exchange {
    /// Returns whether all changes made so far have been read: the kernel's last answer about a place then holds for
    /// where the page belongs.
    pub(super) fn settled(&self) -> bool {
        let faults = self.faults.as_ref();
        faults.is_none_or(|faults| faults.holds(self.old.part(0, 1), &self.void) != Err(Stop::Again))
    }

    /// Another place for a page whose own is gone: if two threads moved it, one after the other, their events may
    /// have been read in the other order.
    pub(super) fn moved_to(&self, start: usize, end: usize, at: usize) -> Option<u64> {
        let [home, target] = [self.home[at], self.target[at]].map(|place| place as usize);
        let moves = self.moves.iter().flatten();
        let reached = moves.flat_map(|&(from, to)| [home, target].map(|place| (from, to, place)));
        let reached = reached.filter(|(from, _, place)| from.contains(*place));
        let mut places = reached.map(|(from, to, place)| place - from.start + to).chain([home]);
        let faults = self.faults.as_ref()?;
        let flies =
            |place: u64| (start..end).any(|page| self.state(page) == State::Taken && self.target[page] == place);
        let free = |&place: &usize| !flies(place as u64) && faults.lacks(Span::new(place, PAGE), &self.void);
        places.find(free).map(|place| place as u64)
    }

    pub(super) fn hear_after(&mut self, start: usize, end: usize, pauses: &mut Pauses) {
        self.hear(start, end);
        pauses.pause();
    }

    /// Reads the events of the range while `start..end` are in flight.
    pub(super) fn hear(&mut self, start: usize, end: usize) {
        let mut children = Children::default();
        for _ in 0..EVENTS {
            let Some(faults) = self.faults.as_ref() else { return };
            match faults.event() {
                Ok(None) if children.is_empty() => return,
                Ok(None) if self.settled() => break,
                Ok(None) => std::thread::yield_now(),
                Ok(Some(Event::Missing(address))) => self.missing(address / PAGE * PAGE, start, end),
                Ok(Some(Event::Emptied(span))) => {
                    if let Some(room) = self.emptied.iter_mut().find(|room| room.is_none()) {
                        *room = Some(span);
                    }
                    self.changed(span, rules::emptied);
                }
                Ok(Some(Event::Unmapped(span))) => self.changed(span, rules::unmapped),
                Ok(Some(Event::Moved { from, to, bytes })) => self.moved(Span::new(from, bytes), to),
                Ok(Some(Event::Forked(child))) => {
                    if let Some(child) = children.add(child) {
                        self.fill_child(child, start, end);
                    }
                }
                Ok(Some(Event::Other(_))) => {}
                Err(_) if self.reopened() => {}
                Err(_) if !self.open() => break,
                // No descriptor left for a child's userfaultfd.
                Err(_) if self.spare.take().is_some() => {}
                Err(_) => break,
            }
        }
        for child in children {
            self.fill_child(child, start, end);
        }
        if self.spare.is_none() {
            self.spare = self.faults.as_ref().and_then(|faults| faults.twin().ok());
        }
    }

    /// Somebody waits for a page. It may be one in flight, which is soon there; else it is one that
    /// the program has never used, or emptied, and it gets its zeros.
    fn missing(&mut self, address: usize, start: usize, end: usize) {
        let flying = |at: usize| self.state(at) == State::Taken && self.target[at] == address as u64;
        if (start..end).any(flying) {
            return;
        }
        if let Some(faults) = self.faults.as_ref() {
            let page = Span::new(address, PAGE);
            // SAFETY: it is none of the pages in flight, as was just seen; all others are in their place.
            if unsafe { faults.zero(page) }.stop.is_some() {
                // The page is there by now, or cannot be helped: the thread looks again.
                let _ = faults.wake(page);
            }
        }
    }

    /// The span was emptied or unmapped.
    fn changed(&mut self, span: Span, becomes: impl Fn(State, bool) -> State) {
        for at in 0..self.len() {
            let state = self.state(at);
            let flies = state == State::Taken;
            let place = if flies { self.target[at] } else { self.home[at] };
            if span.contains(place as usize) {
                let now = becomes(state, flies && place != self.home[at]);
                self.set(at, now);
                if now == State::Cut {
                    self.target[at] = self.home[at];
                }
            }
        }
        if let Some(faults) = self.faults.as_ref() {
            let _ = faults.wake(span);
        }
    }

    /// Pages in flight follow; the others are left alone.
    fn moved(&mut self, from: Span, to: usize) {
        // A move that does not fit here is handled when the descriptor is given up.
        if let Some(room) = self.moves.iter_mut().find(|room| room.is_none()) {
            *room = Some((from, to));
        }
        let there = Span::new(to, from.bytes);
        for at in 0..self.len() {
            let place = self.target[at];
            // The page that had come there was unmapped to make room, which was not believed
            // (`rules::unmapped`).
            if self.state(at) == State::Taken && place != self.home[at] && there.contains(place as usize) {
                self.set(at, State::Cut);
                self.target[at] = self.home[at];
            }
        }
        // If a page that came there by a move and a page at home there claim one place, the move was read
        // too early: the former stays.
        for guests in [true, false] {
            for at in 0..self.len() {
                let (state, place) = (self.state(at), self.target[at]);
                if state == State::Taken && (place != self.home[at]) == guests {
                    if from.contains(place as usize) && !(guests && self.native(place)) {
                        self.target[at] = place - from.start as u64 + to as u64;
                    }
                } else if !guests && from.contains(self.home[at] as usize) {
                    self.set(at, rules::moved(state));
                }
            }
        }
    }

    /// Returns whether a page in flight belongs to this place, where it was taken.
    fn native(&self, place: u64) -> bool {
        let at = self.home.binary_search(&place);
        at.is_ok_and(|at| self.state(at) == State::Taken && self.target[at] == place)
    }

    /// A child has the pages in flight, too: they are missing there, and are copied there. Unmapped pages come last:
    /// another page may have their place.
    fn fill_child(&self, child: Faults, start: usize, end: usize) {
        for state in [State::Taken, State::Cut] {
            if (start..end).any(|at| self.state(at) == state) {
                self.fill_with(&child, state, start, end);
            }
        }
        let _ = child.unregister(self.range);
        let _ = child.unregister(self.old.span());
        for &(from, to) in self.moves.iter().flatten() {
            let _ = child.unregister(Span::new(to, from.bytes));
        }
    }

    fn fill_with(&self, child: &Faults, state: State, start: usize, end: usize) {
        let of = |place: &Array<u64>, at: usize| {
            if self.state(start + at) == state {
                place[start + at]
            } else {
                0
            }
        };
        let (home, target) = (|at: usize| of(&self.home, at), |at: usize| of(&self.target, at));
        // Or wherever it was when the child was made.
        let emptied = |place: u64| self.emptied.iter().flatten().any(|span| span.contains(place as usize));
        let moved = self.moves.map(|moved| {
            move |at: usize| {
                let Some((from, to)) = moved else { return 0 };
                let places = [home(at), target(at)].into_iter();
                let place = places.map(|place| place as usize).find(|&place| from.contains(place));
                let place = place.map(|place| (place - from.start + to) as u64);
                place.filter(|&place| !emptied(place)).unwrap_or(0)
            }
        });
        let heard = self.moves.iter().filter(|moved| moved.is_some()).count();
        let moved = moved.iter().take(heard).map(|place| place as &dyn Fn(usize) -> u64);
        let places: [&dyn Fn(usize) -> u64; 2] = [&home, &target];
        children::fill(child, end - start, places.into_iter().chain(moved), &self.old, start);
    }
}
