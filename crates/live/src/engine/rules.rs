//! The next state of a page, after an action on it or a notice about it. Nothing here asks the kernel, so the
//! search through all orders of events (`model`) uses the same rules as the engine.

use sys::faults::Stop;

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum State {
    /// In the range, in its old frame.
    Todo,
    /// In the area of old pages; absent in the range.
    Taken,
    /// In the range, in its new frame.
    Done,
    /// In the range, in its old frame; to be tried again: absent, or the kernel at work on it.
    Again,
    /// As `Again`: shared since a fork, or pinned.
    Busy,
    /// As `Again`: its mapping is locked or protected.
    Unfit,
    /// The program unmapped, moved or emptied it.
    Gone,
    /// Unmapped while it was taken. A child that was made before may still have its place.
    Cut,
    /// In the range, in another frame: its mapping changed while it was out.
    Elsewhere,
    /// In the range, in its old frame: there is no new one for it.
    Unserved,
    /// An error of the kernel.
    Failed(i32),
}

impl State {
    /// In the range and in its old frame, as far as is known; another pass may change that.
    pub fn waits(self) -> bool {
        matches!(self, State::Todo | State::Again | State::Busy | State::Unfit)
    }

    pub fn number(self) -> u32 {
        match self {
            State::Todo => 0,
            State::Taken => 1,
            State::Done => 2,
            State::Again => 3,
            State::Busy => 4,
            State::Unfit => 5,
            State::Gone => 6,
            State::Cut => 7,
            State::Elsewhere => 8,
            State::Unserved => 9,
            State::Failed(error) => 16 + error.unsigned_abs(),
        }
    }

    pub fn from_number(number: u32) -> State {
        match number {
            0 => State::Todo,
            1 => State::Taken,
            2 => State::Done,
            3 => State::Again,
            4 => State::Busy,
            5 => State::Unfit,
            6 => State::Gone,
            7 => State::Cut,
            8 => State::Elsewhere,
            9..16 => State::Unserved,
            error => State::Failed((error - 16) as i32),
        }
    }
}

/// A page that the kernel could not take. (If a change is unread, the page is still to do.)
///
/// Its place in the area of old pages is its own and is used once. If the kernel finds a page there (EEXIST), it is
/// this one: a concurrent write to a page of zeros that is being taken can make Linux 6.18 move the page and return
/// EEXIST.
pub(super) fn not_taken(stop: Stop) -> State {
    match stop {
        Stop::Again => State::Todo,
        Stop::Hole => State::Again,
        Stop::Busy => State::Busy,
        Stop::Unfit => State::Unfit,
        Stop::Occupied => State::Taken,
        Stop::Other(error) => State::Failed(error),
    }
}

/// A page whose place is emptied. Its content is no longer wanted, and the page is left alone from now on: the moment
/// at which the kernel empties it is not known, and content put back later would not be emptied.
///
/// `moved`: its place came to be there by a `mremap` while the page was taken.
///
/// A child that was made before it moved has it where it had been: it is `Cut` there.
pub(super) fn emptied(state: State, moved: bool) -> State {
    match state {
        State::Taken if moved => State::Cut,
        State::Taken => State::Gone,
        state if state.waits() => State::Gone,
        state => state,
    }
}

/// A page whose place is unmapped. The changes of two threads may be read out of order: if a `mremap` brought the
/// place, either it or the mapping there before was unmapped. Putting the page in decides: it fails only if the place
/// itself was unmapped.
pub(super) fn unmapped(state: State, moved: bool) -> State {
    match state {
        State::Taken if moved => State::Taken,
        State::Taken => State::Cut,
        state if state.waits() => State::Gone,
        state => state,
    }
}

/// A page that is not in flight and whose place went elsewhere, and it with it.
pub(super) fn moved(state: State) -> State {
    if state.waits() { State::Gone } else { state }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search of `model` makes two changes. Here it takes three: a fork, a `mremap`, and a `madvise` where it went.
    #[test]
    fn a_page_that_moved_and_is_emptied_stays_in_a_child_that_was_made_before() {
        assert_eq!(emptied(State::Taken, true), State::Cut);
        assert_eq!(emptied(State::Taken, false), State::Gone);
        assert_eq!(emptied(State::Todo, true), State::Gone);
        assert_eq!(emptied(State::Cut, false), State::Cut);
    }
}
