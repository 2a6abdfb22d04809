//! Taking pages out, copying them, putting others in: the part during which threads may wait.
//!
//! While the range is registered a touch of an absent page stops the thread that does it, this one
//! too. This code therefore touches only the stack, areas of our own and the kernel: no heap, no
//! static variable. The state of each page lies in arrays that are mappings of their own.

use std::io;
use std::time::{Duration, Instant};

use sys::arrays::Array;
use sys::changes::Pass;
use sys::faults::{Faults, Stop, Void};
use sys::forks::Flight;
use sys::memory::{Area, PAGE, Span};
use sys::signals::Held;

use super::owed::Owed;
use super::rules::{self, State};

/// Pages that are looked at in one go, whether they are registered.
pub(super) const VOID: usize = 512;
/// The most moved parts of the range that are remembered.
const MOVES: usize = 16;

/// Lets others go on: shortly at first, then longer.
#[derive(Clone, Copy, Default)]
pub(super) struct Pauses(usize);

impl Pauses {
    pub fn pause(&mut self) {
        self.0 += 1;
        if self.0 < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Some milliseconds: the awaited thread may itself wait.
    pub fn many(self) -> bool {
        self.0 > 200
    }
}

/// All that is touched while pages are in flight. It must lie on the stack.
pub(super) struct Exchange {
    /// The range and `old` are registered with it; dropped after each pass, which wakes all waiters. It is declared
    /// before the areas: it must be gone when they are unmapped, or the unmapping would wait for its event to be
    /// read.
    pub(super) faults: Option<Faults>,
    /// Takes up the old page of each entry, at the entry's own number.
    pub old: Area,
    /// Holds the new page of each entry, at the entry's own number.
    pub fresh: Area,
    /// Never touched: the target of the "moves" that ask if a place is registered.
    pub(super) void: Void,
    /// The same by another number: taken where the program has closed the first, and given up for a child's userfaultfd
    /// where the process has no descriptor left.
    pub(super) spare: Option<Faults>,
    /// True if the program has closed both in this pass.
    pub(super) closed: bool,
    /// Parts of the range that `mremap` took elsewhere in this pass, and where.
    pub(super) moves: [Option<(Span, usize)>; MOVES],
    /// Parts that were emptied while these pages were in flight: nothing is copied there, into a child neither.
    pub(super) emptied: [Option<Span>; MOVES],
    pub(super) range: Span,
    /// Address of each page to exchange, ascending.
    pub(super) home: Array<u64>,
    /// The address to put it at: its home, except after a `mremap`.
    pub(super) target: Array<u64>,
    state: Array<u32>,
    /// Words of threads that were seen in taken pages.
    pub(super) owed: Owed,
    /// The longest that pages were in flight.
    longest: Duration,
}

impl Exchange {
    /// Pages, by number within the range, ascending, and whether each has a new frame in `fresh`.
    ///
    /// # Safety
    /// The range is the memory of an owner who agreed, private and anonymous, and stays so unless the events read say
    /// otherwise. As long as pages are in flight ([`pass`](Exchange::pass)) it is registered with a userfaultfd, or
    /// nobody else touches it.
    ///
    /// # Errors
    /// There is no memory, or no address space, for the record of each page.
    pub unsafe fn new(
        range: Span,
        pages: impl ExactSizeIterator<Item = (usize, bool)>,
        old: Area,
        fresh: Area,
        void: Void,
    ) -> io::Result<Exchange> {
        let count = pages.len();
        let (mut home, mut state) = (Array::try_new(count)?, Array::try_new(count)?);
        for (at, (page, served)) in pages.enumerate() {
            home[at] = (range.start + page * PAGE) as u64;
            let first = if served { State::Todo } else { State::Unserved };
            state[at] = first.number();
        }
        Ok(Exchange {
            faults: None,
            old,
            fresh,
            void,
            spare: None,
            closed: false,
            moves: [None; MOVES],
            emptied: [None; MOVES],
            range,
            home,
            target: Array::try_new(count)?,
            state,
            owed: Owed::new()?,
            longest: Duration::ZERO,
        })
    }

    /// The longest that pages were in flight: no touch of them waited longer.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns whether a range holds anything that is touched while pages are in flight: if the
    /// program just unmapped part of it, our own new mappings may have taken that place.
    pub fn meets(&self, range: Span) -> bool {
        let places = [
            self.old.span(),
            self.fresh.span(),
            self.void.span(),
            Span::new(self.home.as_ptr() as usize, size_of_val(&*self.home)),
            Span::new(self.target.as_ptr() as usize, size_of_val(&*self.target)),
            Span::new(self.state.as_ptr() as usize, size_of_val(&*self.state)),
        ];
        places
            .into_iter()
            .chain(self.owed.spans())
            .any(|place| place.meets(range))
    }

    pub fn len(&self) -> usize {
        self.state.len()
    }

    pub fn state(&self, at: usize) -> State {
        State::from_number(self.state[at])
    }

    /// Returns whether the last pass ended before it came to all pages.
    pub fn interrupted(&self) -> bool {
        (0..self.len()).any(|at| self.state(at) == State::Todo)
    }

    /// Returns whether a page is in a state that another pass may change.
    pub fn unfinished(&self) -> bool {
        (0..self.len()).any(|at| matches!(self.state(at), State::Again | State::Busy | State::Unfit))
    }

    /// Readies for another pass.
    pub fn retry(&mut self) {
        for at in 0..self.len() {
            if matches!(self.state(at), State::Again | State::Busy | State::Unfit) {
                self.set(at, State::Todo);
            }
        }
    }

    /// Registers the range, and `old` with it, since only spans registered together wait for the same changes.
    ///
    /// Pre: `faults` reports events. Post, but for an error: [`pass`](Exchange::pass) may begin.
    pub fn register(&mut self, faults: Faults) -> io::Result<()> {
        let spare = faults.twin().ok();
        self.closed = false;
        faults.register(self.range)?;
        let both = faults.register(self.old.span());
        self.faults = Some(faults);
        self.spare = spare;
        if both.is_err() {
            self.unregister();
        }
        both
    }

    /// Exchanges all pages that are to do, so many at a time. It ends early if somebody waits for its end: a
    /// [change](sys::changes) of the program's mappings, or a thread that joins one whose end the kernel could not
    /// write.
    ///
    /// Pre: [registered](Exchange::register). Post: no longer; no page is `Taken`, nothing is owed.
    pub fn pass(&mut self, batch: usize, turn: &Pass) {
        let held = Held::begin();
        self.verify();
        let (mut at, count) = (0, self.len());
        let mut pauses = Pauses::default();
        while at < count {
            if self.state(at) != State::Todo {
                at += 1;
                continue;
            }
            let end = at.saturating_add(batch.max(1)).min(count);
            self.owed.look();
            let Some(flight) = self.begin(at, turn) else { break };
            let start = Instant::now();
            let reached = self.take(at, end);
            self.copy(at, reached);
            self.put(at, reached);
            if reached > at {
                self.longest = self.longest.max(start.elapsed());
                pauses = Pauses::default();
            }
            drop(flight);
            for page in at..reached {
                if self.state(page) == State::Done {
                    self.owe(page);
                }
            }
            if self.closed {
                // Mappings made since are not known to be registered.
                self.retire(0, count, State::Again);
                break;
            }
            if reached == at && pauses.many() {
                self.retire(at, end, State::Again);
            } else if reached == at {
                pauses.pause();
            }
            at = reached;
            if turn.awaited() || self.owed.due() {
                break;
            }
        }
        self.unregister();
        self.owed.settle();
        drop(held);
    }

    /// Notes which words of a page name threads. Its content, as it was when it was taken, is still in `old`.
    pub(super) fn owe(&mut self, at: usize) {
        let (old, place) = (&self.old, self.target[at] as usize);
        self.owed.note(|word| old.word(at, word), place);
    }

    /// Unregisters all spans, one by one: a child that was made meanwhile has the descriptor, too, and keeps
    /// registrations alive that only a close would end. For the same reason the descriptor is closed only when the
    /// events of all forks that copied the range are read: closing ours does not wake a fork whose child has it, and
    /// that fork would wait for ever, with the allocator's locks.
    pub(super) fn unregister(&mut self) {
        let count = self.len();
        if let Some(faults) = self.faults.as_ref() {
            let _ = faults.unregister(self.old.span());
            self.unregister_grown(faults, self.range);
        }
        loop {
            self.hear(count, count);
            let moves = std::mem::take(&mut self.moves);
            let Some(faults) = self.faults.as_ref() else { break };
            if moves.iter().all(Option::is_none) {
                if self.settled() {
                    break;
                }
                // A fork copied the range before it was unregistered, and its event has not come
                // yet.
                std::thread::yield_now();
                continue;
            }
            for (from, to) in moves.into_iter().flatten() {
                self.unregister_grown(faults, Span::new(to, from.bytes));
            }
        }
        self.faults = None;
        self.spare = None;
    }

    /// Unregisters a span, and its growth by `mremap`, for which no event comes.
    fn unregister_grown(&self, faults: &Faults, mut span: Span) {
        loop {
            let _ = faults.unregister(span);
            span = Span::new(span.end(), PAGE);
            if faults.holds(span, &self.void) != Ok(true) {
                return;
            }
            let more = Span::new(span.start, self.void.span().bytes);
            if faults.holds(more, &self.void) == Ok(true) {
                span = more;
            }
        }
    }

    /// Leaves out the pages whose place is not registered: a mapping made in a hole after the range was registered
    /// is not, and no event would report its changes.
    fn verify(&mut self) {
        let (mut at, count) = (0, self.len());
        while at < count {
            let window = self.home[at] + self.void.span().bytes as u64;
            let end = at + self.home[at..].partition_point(|&home| home < window);
            self.verify_part(at, end);
            at = end;
        }
    }

    fn verify_part(&mut self, start: usize, end: usize) {
        let (first, last) = (self.home[start] as usize, self.home[end - 1] as usize);
        let span = Span::new(first, last + PAGE - first);
        let mut pauses = Pauses::default();
        let held = loop {
            let Some(faults) = self.faults.as_ref() else { return };
            match faults.holds(span, &self.void) {
                Ok(held) => break held,
                Err(Stop::Again) if !pauses.many() => {
                    self.hear(start, start);
                    pauses.pause();
                }
                Err(_) => break false,
            }
        };
        if held {
            return;
        }
        if end - start == 1 {
            // Or it is locked: the kernel compares its mapping with that of `void`.
            self.retire(start, end, State::Unfit);
            return;
        }
        // Several mappings, or some of them not registered.
        let middle = start.midpoint(end);
        self.verify_part(start, middle);
        self.verify_part(middle, end);
    }

    /// Gives every page of a range that is still to do this state.
    fn retire(&mut self, start: usize, end: usize, state: State) {
        for at in start..end {
            if self.state(at) == State::Todo {
                self.set(at, state);
            }
        }
    }

    /// A flight as soon as nobody forks. A forking thread may wait for a lock (the allocator's, say) whose holder waits
    /// for a page that was never used, or for its `munmap` event to be read: these are served meanwhile. `None` if a
    /// holder may wait for the end of the pass.
    fn begin(&mut self, at: usize, turn: &Pass) -> Option<Flight> {
        loop {
            self.hear(at, at);
            if let Some(flight) = Flight::try_begin() {
                self.emptied = [None; MOVES];
                return Some(flight);
            }
            if turn.awaited() {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Returns how far it came. It takes nothing more while a change is unread: the thread that made the change
    /// may wait long for a cpu, and threads that touch taken pages would wait with it.
    pub(super) fn take(&mut self, start: usize, end: usize) -> usize {
        let mut at = start;
        while at < end {
            let count = self.run(&self.home, State::Todo, at, end);
            let Some(faults) = self.faults.as_ref().filter(|_| count > 0) else {
                at += 1;
                continue;
            };
            let span = Span::new(self.home[at] as usize, count * PAGE);
            // SAFETY: the range is registered here or nobody touches it (see `new`), a child gets the page, too (`hear`),
            // or nobody forks (the flight), and `put` follows before anything else does.
            let progress = unsafe { faults.take(span, &mut self.old, at) };
            let taken = (progress.bytes / PAGE).min(count);
            for page in at..at + taken {
                self.target[page] = self.home[page];
                self.set(page, State::Taken);
            }
            at += taken;
            match progress.stop.filter(|_| taken < count) {
                None => {}
                Some(Stop::Again) => return at,
                Some(stop) => {
                    self.target[at] = self.home[at];
                    self.set(at, rules::not_taken(stop));
                    at += 1;
                }
            }
        }
        end
    }

    pub(super) fn copy(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let count = (at..end).take_while(|&page| self.state(page) == State::Taken).count();
            self.fresh.copy(at, &mut self.old, at, count);
            at += count.max(1);
        }
    }

    pub(super) fn put(&mut self, start: usize, end: usize) {
        let (mut at, mut pauses) = (start, Pauses::default());
        while at < end {
            let count = self.run(&self.target, State::Taken, at, end);
            let Some(faults) = self.faults.as_ref().filter(|_| count > 0) else {
                at += 1;
                continue;
            };
            let span = Span::new(self.target[at] as usize, count * PAGE);
            // SAFETY: it is the content that was taken out there.
            let progress = unsafe { faults.put(&mut self.fresh, at, span) };
            let put = (progress.bytes / PAGE).min(count);
            for page in at..at + put {
                self.set(page, State::Done);
            }
            if put > 0 {
                (at, pauses) = (at + put, Pauses::default());
            }
            match progress.stop.filter(|_| put < count) {
                None => {}
                Some(_) if self.reopened() => {}
                // A thread changes the mappings and waits until we have read its event. (The kernel looks for the
                // place first, and only then for unread changes.)
                Some(Stop::Again) => self.hear_after(start, end, &mut pauses),
                Some(Stop::Hole | Stop::Unfit) if !self.settled() => self.hear_after(start, end, &mut pauses),
                Some(_) => self.put_content(start, end, at),
            }
        }
        self.bury(start, end);
    }

    /// A page unmapped in flight is not put in anywhere, so no call has ensured that all events are read: a child may
    /// have been made before.
    fn bury(&mut self, start: usize, end: usize) {
        let mut pauses = Pauses::default();
        while (start..end).any(|at| self.state(at) == State::Cut) {
            if self.settled() {
                for at in start..end {
                    if self.state(at) == State::Cut {
                        self.set(at, State::Gone);
                    }
                }
            } else {
                self.hear_after(start, end, &mut pauses);
            }
        }
    }

    /// The number of entries from `at` on that are in this state, and next to each other at these
    /// addresses.
    fn run(&self, places: &Array<u64>, state: State, at: usize, end: usize) -> usize {
        let next = |&(count, page): &(usize, usize)| {
            self.state(page) == state && places[page] == places[at] + (count * PAGE) as u64
        };
        (at..end).enumerate().take_while(next).count()
    }

    pub(super) fn set(&mut self, at: usize, state: State) {
        self.state[at] = state.number();
    }
}
