//! Bringing content back when the normal way is barred: the new page does not fit, or the program has closed our
//! userfaultfd.
//!
//! The rules of `flight` hold here too: no heap, no static variable.

use sys::faults::{Faults, Stop};
use sys::memory::{self, PAGE, Span};

use super::flight::{Exchange, Pauses};
use super::rules::State;

/// EBADF: the userfaultfd is not open.
const CLOSED: i32 = 9;

impl Exchange {
    /// The last resort if the new page cannot be put in (the mappings no longer fit each other, or
    /// the place is gone): brings the content back in any frame.
    pub(super) fn put_content(&mut self, start: usize, end: usize, at: usize) {
        let mut pauses = Pauses::default();
        // The old page itself may be put in below, and `old` not be touched then.
        self.owe(at);
        // Events may tell that the page is no longer wanted, or wanted elsewhere.
        while self.state(at) == State::Taken {
            let Some(faults) = self.faults.as_ref() else { return };
            let to = Span::new(self.target[at] as usize, PAGE);
            // SAFETY: here and in the next one: it is the content that was taken out there.
            let mut stop = unsafe { faults.copy(&self.fresh, at, to) }.stop;
            if stop.is_some() && !self.closed {
                // SAFETY: as above.
                stop = unsafe { faults.put(&mut self.old, at, to) }.stop;
            }
            match stop {
                None => self.set(at, State::Elsewhere),
                Some(_) if self.reopened() => {}
                Some(_) if !self.open() => self.write_over(at),
                Some(Stop::Occupied) if self.closed => self.write_over(at),
                // No longer mapped, or no longer ours: the program put something else there.
                Some(Stop::Hole | Stop::Occupied) if self.settled() => match self.moved_to(start, end, at) {
                    Some(place) => self.target[at] = place,
                    None => self.set(at, State::Gone),
                },
                // Even without memory to copy to: the content is kept until it has its place.
                Some(_) => self.hear_after(start, end, &mut pauses),
            }
        }
    }

    /// Returns whether the userfaultfd is open.
    pub(super) fn open(&self) -> bool {
        self.faults.as_ref().is_some_and(Faults::is_ours)
    }

    /// Returns whether there is a userfaultfd again, after the program has closed the old one unknowingly
    /// (`closefrom`).
    ///
    /// Its other descriptor is the same userfaultfd, and no thread has noticed. If the program closed that too, no span
    /// is registered any more, and a thread that touches a page in flight finds zeros until a new one is registered.
    pub(super) fn reopened(&mut self) -> bool {
        let Some(faults) = self.faults.as_ref().filter(|faults| !faults.is_ours()) else {
            return false;
        };
        if let Some(spare) = self.spare.take().filter(Faults::is_ours) {
            self.faults = Some(spare);
            return true;
        }
        self.closed = true;
        let Ok(another) = faults.another(true) else {
            return false;
        };
        if another.register(self.range).is_err() {
            return false;
        }
        if another.register(self.old.span()).is_err() {
            // A child that was made just now has this descriptor, too, and would keep the range registered.
            let _ = another.unregister(self.range);
            return false;
        }
        self.faults = Some(another);
        true
    }

    /// Writes a page's content to its place if the place holds zeros. Other content is newer: a thread wrote it
    /// while no span was registered.
    fn write_over(&mut self, at: usize) {
        let to = Span::new(self.target[at] as usize, PAGE);
        let blank =
            memory::read(to, &mut self.old, at).is_ok() && (0..PAGE / 8).all(|word| self.old.word(at, word) == 0);
        // SAFETY: it is the content that was taken out there, and there is no other way to bring it back.
        if blank && unsafe { memory::write(to, &self.fresh, at) }.is_ok() {
            self.set(at, State::Elsewhere);
        } else {
            self.set(at, State::Failed(CLOSED));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use sys::faults::Void;
    use sys::memory::{Area, Size};

    use super::*;

    const PAGES: usize = 8;

    /// Pages in flight, each with its number in a word, and the place that they came from.
    fn in_flight() -> Option<(Area, Exchange)> {
        let faults = match Faults::open(true) {
            Ok(faults) if faults.features().moves() => faults,
            Ok(_) => {
                harness::not_in_this_kernel((6, 8), "this kernel has no UFFDIO_MOVE");
                return None;
            }
            Err(error) => {
                harness::not_allowed(error);
                return None;
            }
        };
        let map = || Area::map(PAGES * PAGE, Size::Small).unwrap();
        let (place, old, fresh) = (map(), map(), map());
        (0..PAGES).for_each(|page| place.set_word(page, 3, page as u64 + 1));
        memory::populate(fresh.span()).unwrap();
        let pages = (0..PAGES).map(|page| (page, true));
        // SAFETY: the place is the test's own, and nobody touches it but as the test says.
        let mut exchange = unsafe { Exchange::new(place.span(), pages, old, fresh, Void::map(64).unwrap()) }.unwrap();
        exchange.register(faults).unwrap();
        assert_eq!(exchange.take(0, PAGES), PAGES);
        exchange.copy(0, PAGES);
        Some((place, exchange))
    }

    /// Closes it as a program does that knows nothing of it.
    fn close(faults: &Option<Faults>) {
        let number = faults.as_ref().unwrap().as_fd().as_raw_fd();
        // SAFETY: nobody else in this process has this number, and who has it looks before each use.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }

    fn right(place: &Area, page: usize) -> bool {
        place.word(page, 3) == page as u64 + 1
    }

    #[test]
    fn where_the_program_closes_one_number_of_the_userfaultfd_the_other_goes_on() {
        let Some((place, mut exchange)) = in_flight() else {
            return;
        };
        close(&exchange.faults);
        exchange.put(0, PAGES);
        assert!((0..PAGES).all(|at| exchange.state(at) == State::Done));
        assert!(!exchange.closed);
        exchange.faults = None;
        assert!((0..PAGES).all(|page| right(&place, page)));
    }

    #[test]
    fn where_the_program_closes_the_userfaultfd_content_comes_back_but_over_what_is_newer() {
        let Some((place, mut exchange)) = in_flight() else {
            return;
        };
        close(&exchange.faults);
        close(&exchange.spare);
        // No span is registered now: reads find zeros, and writes are not stopped.
        assert_eq!(place.word(2, 3), 0);
        place.set_word(5, 7, 99);
        exchange.put(0, PAGES);
        assert_eq!(exchange.state(5), State::Failed(CLOSED));
        assert!(exchange.closed);
        exchange.faults = None;
        assert!((0..PAGES).all(|page| page == 5 || right(&place, page)));
        assert_eq!((place.word(5, 7), place.word(5, 3)), (99, 0));
    }
}
