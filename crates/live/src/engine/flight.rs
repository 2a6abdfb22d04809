//! Taking pages out, copying them, putting others in: the part during which threads may wait.
//!
//! While the range is registered a touch of an absent page stops the thread that does it, this one
//! too. So nothing is touched here but the stack, areas of our own and the kernel: no heap, no
//! static variable. What is known of each page lies in arrays that are mappings of their own.

use std::time::{Duration, Instant};

use sys::arrays::Array;
use sys::faults::{Event, Faults, Stop};
use sys::forks::Flight;
use sys::memory::{Area, PAGE, Span};
use sys::signals::Held;

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// In the range, in another frame: its mapping changed while it was out.
    Elsewhere,
    /// In the range, in its old frame: there is no new one for it.
    Unserved,
    /// An error of the kernel.
    Failed(i32),
}

impl State {
    fn number(self) -> u32 {
        match self {
            State::Todo => 0,
            State::Taken => 1,
            State::Done => 2,
            State::Again => 3,
            State::Busy => 4,
            State::Unfit => 5,
            State::Gone => 6,
            State::Elsewhere => 7,
            State::Unserved => 8,
            State::Failed(error) => 16 + error.unsigned_abs(),
        }
    }

    fn from_number(number: u32) -> State {
        match number {
            0 => State::Todo,
            1 => State::Taken,
            2 => State::Done,
            3 => State::Again,
            4 => State::Busy,
            5 => State::Unfit,
            6 => State::Gone,
            7 => State::Elsewhere,
            8..16 => State::Unserved,
            error => State::Failed((error - 16) as i32),
        }
    }
}

/// There is a page already in the place that was to take one up.
const EEXIST: i32 = 17;
/// Events that are heard in a row.
const EVENTS: usize = 1_000;

/// How often something was tried.
#[derive(Clone, Copy, Default)]
struct Tries {
    pauses: usize,
    holes: usize,
}

impl Tries {
    /// Lets others go on: shortly at first, then longer.
    fn pause(&mut self) {
        self.pauses += 1;
        if self.pauses < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Whether a place that is not there is tried again. A mapping vanishes for us before we can
    /// hear where it went; the next time the kernel says that there is something to be heard.
    fn another_hole(&mut self) -> bool {
        self.holes += 1;
        self.holes < 3
    }
}

/// All that is touched while pages are in flight. It must lie on the stack.
pub(super) struct Exchange {
    /// For the range; dropped after each pass, which frees whoever still waits for it.
    pub events: Option<Faults>,
    /// For `old`, which is registered with it.
    pub stage: Faults,
    /// Takes up the old page of each entry, at the entry's own number.
    pub old: Area,
    /// Holds the new page of each entry, at the entry's own number.
    pub fresh: Area,
    range: Span,
    /// Address of each page to exchange, ascending.
    home: Array<u64>,
    /// Where it is to be put: at home, but after a `mremap`.
    target: Array<u64>,
    state: Array<u32>,
    /// The longest that pages were in flight.
    longest: Duration,
}

impl Exchange {
    /// Pages, by number within the range, ascending, and whether each has a new frame in `fresh`.
    ///
    /// # Safety
    /// The range is the memory of somebody who agreed, private and anonymous, and stays so as far as the
    /// events of `events` do not say otherwise. As long as pages are in flight ([`pass`](Exchange::pass)) it is registered
    /// with `events`, or nobody else touches it.
    pub unsafe fn new(
        range: Span,
        pages: impl ExactSizeIterator<Item = (usize, bool)>,
        stage: Faults,
        old: Area,
        fresh: Area,
    ) -> Exchange {
        let count = pages.len();
        let (mut home, mut state) = (Array::new(count), Array::new(count));
        for (at, (page, served)) in pages.enumerate() {
            home[at] = (range.start + page * PAGE) as u64;
            let first = if served { State::Todo } else { State::Unserved };
            state[at] = first.number();
        }
        Exchange {
            events: None,
            stage,
            old,
            fresh,
            range,
            home,
            target: Array::new(count),
            state,
            longest: Duration::ZERO,
        }
    }

    /// The longest that pages were in flight: no touch of them waited longer.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Whether anything that is touched while pages are in flight lies in a range: where the program
    /// unmapped it a moment ago, our own new mappings may have taken its place.
    pub fn meets(&self, range: Span) -> bool {
        let places = [
            self.old.span(),
            self.fresh.span(),
            Span::new(self.home.as_ptr() as usize, size_of_val(&*self.home)),
            Span::new(self.target.as_ptr() as usize, size_of_val(&*self.target)),
            Span::new(self.state.as_ptr() as usize, size_of_val(&*self.state)),
        ];
        places.iter().any(|place| place.meets(range))
    }

    pub fn len(&self) -> usize {
        self.state.len()
    }

    pub fn state(&self, at: usize) -> State {
        State::from_number(self.state[at])
    }

    /// Whether a page is in a state that another pass may change.
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

    /// Exchanges all pages that are to do, so many at a time.
    ///
    /// Pre: `events` is there and the range registered with it. Post: it is dropped; no page is
    /// `Taken`.
    pub fn pass(&mut self, batch: usize) {
        let held = Held::begin();
        let (mut at, count) = (0, self.len());
        while at < count {
            if self.state(at) != State::Todo {
                at += 1;
                continue;
            }
            let end = at.saturating_add(batch.max(1)).min(count);
            let flight = self.begin(at);
            let start = Instant::now();
            self.take(at, end);
            self.copy(at, end);
            self.put(at, end);
            self.longest = self.longest.max(start.elapsed());
            drop(flight);
            at = end;
        }
        if let Some(events) = self.events.as_ref() {
            // What the program unmapped or moved meanwhile goes with the descriptor.
            let _ = events.unregister(self.range);
        }
        self.hear(count, count);
        self.events = None;
        drop(held);
    }

    /// A flight as soon as nobody forks. Who forks may wait for a lock (the allocator's, say) whose holder waits
    /// for a page that was never used, or for its `munmap` to be heard: these are served meanwhile.
    fn begin(&mut self, at: usize) -> Flight {
        loop {
            self.hear(at, at);
            if let Some(flight) = Flight::try_begin() {
                return flight;
            }
            std::thread::yield_now();
        }
    }

    fn take(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let count = self.run(&self.home, State::Todo, at, end);
            if count == 0 {
                at += 1;
                continue;
            }
            let span = Span::new(self.home[at] as usize, count * PAGE);
            // SAFETY: the range is registered with `events` or nobody touches it (see `new`), nobody forks (the flight),
            // and `put` follows before anything else does.
            let progress = unsafe { self.stage.take(span, &mut self.old, at) };
            let taken = (progress.bytes / PAGE).min(count);
            for page in at..at + taken {
                self.target[page] = self.home[page];
                self.set(page, State::Taken);
            }
            at += taken;
            if let Some(stop) = progress.stop
                && taken < count
            {
                let state = match stop {
                    Stop::Hole | Stop::Again => State::Again,
                    Stop::Busy => State::Busy,
                    Stop::Unfit => State::Unfit,
                    Stop::Occupied => State::Failed(EEXIST),
                    Stop::Other(error) => State::Failed(error),
                };
                self.set(at, state);
                at += 1;
            }
        }
    }

    fn copy(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let count = (at..end).take_while(|&page| self.state(page) == State::Taken).count();
            self.fresh.copy(at, &mut self.old, at, count);
            at += count.max(1);
        }
    }

    fn put(&mut self, start: usize, end: usize) {
        let (mut at, mut tries) = (start, Tries::default());
        while at < end {
            let count = self.run(&self.target, State::Taken, at, end);
            let Some(events) = self.events.as_ref().filter(|_| count > 0) else {
                at += 1;
                continue;
            };
            let span = Span::new(self.target[at] as usize, count * PAGE);
            // SAFETY: it is the content that was taken out there.
            let progress = unsafe { events.put(&mut self.fresh, at, span) };
            let put = (progress.bytes / PAGE).min(count);
            for page in at..at + put {
                self.set(page, State::Done);
            }
            if put > 0 {
                (at, tries) = (at + put, Tries::default());
            }
            match progress.stop.filter(|_| put < count) {
                None => {}
                // Somebody changes the mappings and waits until we have heard of it.
                Some(Stop::Again) => {
                    self.hear(start, end);
                    tries.pause();
                }
                Some(Stop::Hole | Stop::Occupied) if tries.another_hole() => self.hear(start, end),
                Some(_) => self.put_content(start, end, at),
            }
        }
    }

    /// The last resort, where the new page cannot be put in (their mappings do not fit each other any
    /// more, or the place is gone): brings the content back in whatever frame.
    fn put_content(&mut self, start: usize, end: usize, at: usize) {
        let mut tries = Tries::default();
        // Hearing may tell that the page is wanted no more, or elsewhere.
        while self.state(at) == State::Taken {
            let Some(events) = self.events.as_ref() else { return };
            let to = Span::new(self.target[at] as usize, PAGE);
            // SAFETY: here and in the next one: it is the content that was taken out there.
            match unsafe { events.copy(&self.fresh, at, to) }.stop {
                None => self.set(at, State::Elsewhere),
                // SAFETY: as above.
                Some(_) if unsafe { events.put(&mut self.old, at, to) }.stop.is_none() => {
                    self.set(at, State::Elsewhere);
                }
                // No longer mapped, or no longer ours: the program put something else there.
                Some(Stop::Hole | Stop::Occupied) if !tries.another_hole() => self.set(at, State::Gone),
                // Even without memory to copy to: the content is kept until it has its place.
                Some(_) => {
                    self.hear(start, end);
                    tries.pause();
                }
            }
        }
    }

    /// Hears what happened to the range while `start..end` are in flight.
    fn hear(&mut self, start: usize, end: usize) {
        for _ in 0..EVENTS {
            let Some(Ok(Some(event))) = self.events.as_ref().map(Faults::event) else {
                return;
            };
            match event {
                Event::Missing(address) => self.missing(address / PAGE * PAGE, start, end),
                Event::Emptied(span) | Event::Unmapped(span) => self.gone(span),
                Event::Moved { from, to, bytes } => self.moved(Span::new(from, bytes), to),
                Event::Other(_) => {}
            }
        }
    }

    /// Somebody waits for a page. It may be one in flight, which is soon there; else it is one that
    /// the program has never used, or emptied, and it gets its zeros.
    fn missing(&mut self, address: usize, start: usize, end: usize) {
        let flying = |at: usize| self.state(at) == State::Taken && self.target[at] == address as u64;
        if (start..end).any(flying) {
            return;
        }
        if let Some(events) = self.events.as_ref() {
            let page = Span::new(address, PAGE);
            // SAFETY: it is none of the pages in flight, as was just seen; all others are in their place.
            if unsafe { events.zero(page) }.stop.is_some() {
                // Has one by now, or cannot be helped: the thread looks again.
                let _ = events.wake(page);
            }
        }
    }

    /// Their content is wanted no more. From now on these pages are left alone: when exactly
    /// the kernel empties them is not known, and what is put back later would not be emptied.
    fn gone(&mut self, span: Span) {
        for at in 0..self.len() {
            let state = self.state(at);
            let place = if state == State::Taken {
                self.target[at]
            } else {
                self.home[at]
            };
            if matches!(
                state,
                State::Todo | State::Taken | State::Again | State::Busy | State::Unfit
            ) && span.contains(place as usize)
            {
                self.set(at, State::Gone);
            }
        }
        if let Some(events) = self.events.as_ref() {
            let _ = events.wake(span);
        }
    }

    /// Pages in flight follow; the others are left alone.
    fn moved(&mut self, from: Span, to: usize) {
        for at in 0..self.len() {
            match self.state(at) {
                State::Taken if from.contains(self.target[at] as usize) => {
                    self.target[at] = (self.target[at] as usize - from.start + to) as u64;
                }
                State::Todo | State::Again | State::Busy | State::Unfit if from.contains(self.home[at] as usize) => {
                    self.set(at, State::Gone);
                }
                _ => {}
            }
        }
    }

    /// How many entries from `at` on are in this state, and next to each other at these addresses.
    fn run(&self, places: &Array<u64>, state: State, at: usize, end: usize) -> usize {
        let next = |&(count, page): &(usize, usize)| {
            self.state(page) == state && places[page] == places[at] + (count * PAGE) as u64
        };
        (at..end).enumerate().take_while(next).count()
    }

    fn set(&mut self, at: usize, state: State) {
        self.state[at] = state.number();
    }
}
