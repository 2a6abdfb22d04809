//! Children that are made while pages are in flight, by whatever call: a copy of the process has a copy of its page
//! tables, where these pages are missing. Its userfaultfd comes with the event, and the missing pages are copied
//! there.
//!
//! The rules of `flight` hold here too: no heap, no static variable.

use sys::arrays::Array;
use sys::faults::{Event, Faults, Stop};
use sys::mappings;
use sys::memory::{Area, PAGE, Span};

use super::flight::Pauses;

/// Children that wait until all changes that may precede them are read.
#[derive(Default)]
pub(super) struct Children([Option<Faults>; 8]);

impl Children {
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Adds a child; gives it back if there is no room.
    pub fn add(&mut self, child: Faults) -> Option<Faults> {
        match self.0.iter_mut().find(|room| room.is_none()) {
            Some(room) => {
                *room = Some(child);
                None
            }
            None => Some(child),
        }
    }
}

impl IntoIterator for Children {
    type Item = Faults;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Faults>, 8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

/// The pages still to be copied into a child: the destination of each page of `old` from `first` on; 0 stands
/// for none.
struct Missing {
    places: Array<u64>,
    copied: Array<u32>,
    first: usize,
}

/// Copies pages into a child.
///
/// `places` are those of each page of `old` from `first` on that is in flight, the likeliest first: the events of a
/// fork and a `mremap` may be read out of order.
pub(super) fn fill<'a>(
    child: &Faults,
    count: usize,
    places: impl IntoIterator<Item = &'a dyn Fn(usize) -> u64>,
    old: &Area,
    first: usize,
) {
    let mut missing = Missing {
        places: Array::new(count),
        copied: Array::new(count),
        first,
    };
    for place in places {
        for at in 0..count {
            missing.places[at] = if missing.copied[at] == 0 { place(at) } else { 0 };
        }
        // Pages that the program wants empty in its children stay empty. Without `/proc` these are unknown, and
        // the content is kept.
        let _ = mappings::wiped_on_fork(|span| missing.forget(span));
        missing.copy(child, old);
    }
}

impl Missing {
    fn forget(&mut self, span: Span) {
        let places = self.places.iter_mut();
        places
            .filter(|place| span.contains(**place as usize))
            .for_each(|place| *place = 0);
    }

    fn copy(&mut self, child: &Faults, old: &Area) {
        let mut at = 0;
        let mut pauses = Pauses::default();
        while at < self.places.len() {
            let start = self.places[at];
            let next = |&(count, place): &(usize, &u64)| start != 0 && *place == start + (count * PAGE) as u64;
            let count = self.places[at..].iter().enumerate().take_while(next).count();
            if count == 0 {
                at += 1;
                continue;
            }
            let to = Span::new(start as usize, count * PAGE);
            // SAFETY: it is the content that was taken out before the child was made, where it had been.
            let progress = unsafe { child.copy(old, self.first + at, to) };
            let copied = progress.bytes / PAGE;
            self.copied[at..at + copied].fill(1);
            at += copied;
            match progress.stop {
                None => {}
                // The child goes on already, changes its mappings or has a child of its own, and waits for us.
                Some(Stop::Again) => {
                    self.hear(child, at, old);
                    pauses.pause();
                }
                // The page is not there, or is filled already; or the child is gone.
                Some(_) => at += 1,
            }
        }
    }

    fn hear(&mut self, child: &Faults, at: usize, old: &Area) {
        while let Ok(Some(event)) = child.event() {
            match event {
                Event::Emptied(span) | Event::Unmapped(span) => self.forget(span),
                Event::Moved { from, to, bytes } => {
                    let from = Span::new(from, bytes);
                    for place in self.places.iter_mut().filter(|place| from.contains(**place as usize)) {
                        *place = *place - from.start as u64 + to as u64;
                    }
                }
                Event::Forked(grandchild) => self.rest(at).copy(&grandchild, old),
                // Waiting threads go on when this is dropped.
                Event::Missing(_) | Event::Other(_) => {}
            }
        }
    }

    /// The pages that a child of the child misses: all that are not copied yet.
    fn rest(&self, at: usize) -> Missing {
        let count = self.places.len();
        let mut rest = Missing {
            places: Array::new(count),
            copied: Array::new(count),
            first: self.first,
        };
        rest.places[at..].copy_from_slice(&self.places[at..]);
        rest
    }
}
