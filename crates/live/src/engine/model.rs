//! A search through all interleavings of a program of two threads and the engine: every read finds the program's last
//! write, in a child too, and no thread waits for ever.
//!
//! The model of the kernel has the properties that the README beside this crate lists. `rules` decides the state of
//! each page, as in the engine.

use std::collections::HashSet;
use std::collections::VecDeque;

use sys::faults::Stop;

use super::rules::{self, State};

/// The engine colors the first two places, the third is the program's other memory.
const PLACES: usize = 3;
const PAGES: usize = 2;
const THREADS: usize = 2;

/// The content of a page: nothing, the first content of a place, or a later write.
type Content = u8;
const ZEROS: Content = 0;
const WRITTEN: Content = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    registered: bool,
    /// `None`: absent.
    page: Option<Content>,
    /// The content that the program must find.
    truth: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    Unmapped(usize),
    Moved(usize, usize),
    Emptied(usize),
    Forked,
}

/// The progress of an event that a thread waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Waiting {
    /// The change is made and others see it; the event is not in the queue yet.
    Made,
    Queued,
    /// Read; the thread has not run since.
    Heard,
}

/// The changes that a thread of the program has in progress: events, and how far the first one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    events: [Option<Event>; 2],
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Register,
    Verify(usize),
    Begin,
    Take(usize),
    Put(usize),
    Unregister,
    Drain,
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    places: [Option<Place>; PLACES],
    threads: [Thread; THREADS],
    queue: VecDeque<usize>,
    step: Step,
    pages: [State; PAGES],
    target: [usize; PAGES],
    old: [Option<Content>; PAGES],
    /// The places that a page may have reached, as far as moves were read.
    reached: [[bool; PLACES]; PAGES],
    /// A child as it was made, which the engine has not filled yet.
    child: Option<[Option<Place>; PLACES]>,
    /// Its event has been read.
    child_heard: bool,
    changes: u8,
    writes: u8,
}

/// The variants of the engine.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Taken pages are registered with the userfaultfd that takes: not while a change is unread.
    fenced: bool,
    /// The registration of a place is checked once it is due.
    verified: bool,
    /// The absence of a place is believed only when all events are read.
    settled: bool,
    /// Forks are read, and children filled.
    forks: bool,
}

const NOW: Rules = Rules {
    fenced: true,
    verified: true,
    settled: true,
    forks: true,
};

impl World {
    fn new(mapped: [bool; PLACES], changes: u8, writes: u8) -> World {
        let place = |at: usize| {
            mapped[at].then_some(Place {
                registered: false,
                page: Some(at as u8 + 1),
                truth: at as u8 + 1,
            })
        };
        World {
            places: std::array::from_fn(place),
            threads: Default::default(),
            queue: VecDeque::new(),
            step: Step::Register,
            pages: [State::Todo; PAGES],
            target: [0, 1],
            old: [None; PAGES],
            reached: [[false; PLACES]; PAGES],
            child: None,
            child_heard: false,
            changes,
            writes,
        }
    }

    /// The kernel's `mmap_changing`.
    fn unheard(&self) -> bool {
        self.threads.iter().any(|thread| thread.waiting.is_some())
    }

    /// Returns whether the `mremap` that brought this place has not returned. Threads write there already, but do not
    /// change the mapping: nobody knows of it yet.
    fn arriving(&self, place: usize) -> bool {
        let arrives = |event: &Option<Event>| matches!(event, Some(Event::Moved(_, to)) if *to == place);
        self.threads.iter().any(|thread| thread.events.iter().any(arrives))
    }

    fn cut(&self) -> bool {
        self.pages.contains(&State::Cut)
    }

    /// Returns whether a thread is emptying this place just now, so that either content is right.
    fn emptying(&self, place: usize) -> bool {
        self.threads
            .iter()
            .any(|thread| thread.events[0] == Some(Event::Emptied(place)))
    }

    fn check(&self) -> Result<(), String> {
        for (at, place) in self.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let found = match place.page {
                Some(content) => content,
                // A thread that touches it waits.
                None if place.registered => continue,
                None => ZEROS,
            };
            if found != place.truth && !self.emptying(at) {
                return Err(format!("place {at} holds {found} and should hold {}", place.truth));
            }
        }
        Ok(())
    }

    /// All that can happen next.
    fn next(&self, rules: Rules) -> Result<Vec<World>, String> {
        let mut next = Vec::new();
        for thread in 0..THREADS {
            match self.threads[thread].waiting {
                None => self.act(thread, rules, &mut next),
                Some(Waiting::Made) => {
                    let mut world = self.clone();
                    world.threads[thread].waiting = Some(Waiting::Queued);
                    world.queue.push_back(thread);
                    next.push(world);
                }
                // Waits for the engine.
                Some(Waiting::Queued) => {}
                Some(Waiting::Heard) => {
                    let mut world = self.clone();
                    world.wake(thread);
                    next.push(world);
                }
            }
        }
        next.extend(self.engine(rules)?);
        Ok(next)
    }

    /// Resumes a thread whose event was read.
    fn wake(&mut self, thread: usize) {
        let events = &mut self.threads[thread].events;
        let heard = events[0].take();
        events.swap(0, 1);
        self.threads[thread].waiting = events[0].map(|_| Waiting::Made);
        if let Some(Event::Emptied(at)) = heard
            && let Some(place) = self.places[at].as_mut()
        {
            (place.page, place.truth) = (None, ZEROS);
        }
    }

    fn raise(&mut self, thread: usize, events: impl IntoIterator<Item = Event>) {
        for (room, event) in self.threads[thread].events.iter_mut().zip(events) {
            *room = Some(event);
        }
        self.threads[thread].waiting = self.threads[thread].events[0].map(|_| Waiting::Made);
    }

    /// The next worlds after a step of a thread that waits for nothing.
    fn act(&self, thread: usize, rules: Rules, next: &mut Vec<World>) {
        let mut change = |events: &dyn Fn(&mut World) -> Vec<Event>| {
            if self.changes > 0 {
                let mut world = self.clone();
                world.changes -= 1;
                let events = events(&mut world);
                world.raise(thread, events);
                next.push(world);
            }
        };
        let fresh = Place {
            registered: false,
            page: None,
            truth: ZEROS,
        };
        let unmapped =
            |place: Option<Place>, at: usize| place.filter(|place| place.registered).map(|_| Event::Unmapped(at));
        let changes = |&at: &usize| !self.emptying(at) && !self.arriving(at);
        for at in (0..PLACES).filter(changes) {
            let Some(place) = self.places[at] else {
                change(&|world| {
                    world.places[at] = Some(fresh);
                    Vec::new()
                });
                continue;
            };
            change(&|world| unmapped(world.places[at].take(), at).into_iter().collect());
            change(&|world| unmapped(world.places[at].replace(fresh), at).into_iter().collect());
            if place.registered {
                change(&|_| vec![Event::Emptied(at)]);
            }
            for to in (0..PLACES).filter(|&to| to != at).filter(changes) {
                change(&|world| {
                    let there = unmapped(world.places[to].take(), to);
                    world.places[to] = world.places[at].take();
                    let moved = place.registered.then_some(Event::Moved(at, to));
                    there.into_iter().chain(moved).collect()
                });
            }
        }
        if self.child.is_none() && !matches!(self.step, Step::Register | Step::Closed) {
            change(&|world| {
                let mut child = world.places;
                for place in child.iter_mut().flatten() {
                    place.registered &= rules.forks;
                }
                (0..PLACES)
                    .filter(|&at| self.emptying(at))
                    .for_each(|at| child[at] = None);
                world.child = Some(child);
                if rules.forks { vec![Event::Forked] } else { Vec::new() }
            });
        }
        for at in 0..PLACES {
            let flies = |page: usize| self.pages[page] == State::Taken && self.target[page] == at;
            let waits = self.places[at].is_some_and(|place| place.registered && place.page.is_none());
            if self.writes > 0 && self.places[at].is_some() && !(waits && (0..PAGES).any(flies)) && !self.emptying(at) {
                let mut world = self.clone();
                world.writes -= 1;
                if let Some(place) = world.places[at].as_mut() {
                    let written = WRITTEN + at as u8;
                    (place.page, place.truth) = (Some(written), written);
                }
                next.push(world);
            }
        }
    }

    /// The engine's next step; none while it waits for a thread.
    fn engine(&self, rules: Rules) -> Result<Option<World>, String> {
        let mut world = self.clone();
        let hear = |mut world: World| world.hear().then_some(world);
        if self.child.is_some() && (self.child_heard || !rules.forks) {
            if rules.forks && (self.unheard() || !self.queue.is_empty()) {
                return Ok(hear(world));
            }
            world.fill_child(rules)?;
            return Ok(Some(world));
        }
        let after =
            |page: usize, more: fn(usize) -> Step, then: Step| if page + 1 < PAGES { more(page + 1) } else { then };
        match self.step {
            Step::Register => {
                for place in world.places[..PAGES].iter_mut().flatten() {
                    place.registered = true;
                }
                world.step = if rules.verified { Step::Verify(0) } else { Step::Begin };
            }
            Step::Verify(page) => match self.places[page] {
                Some(_) if self.unheard() => return Ok(hear(world)),
                Some(place) if place.registered => world.step = after(page, Step::Verify, Step::Begin),
                _ => {
                    if world.pages[page] == State::Todo {
                        world.pages[page] = State::Unfit;
                    }
                    world.step = after(page, Step::Verify, Step::Begin);
                }
            },
            Step::Begin if !self.queue.is_empty() => return Ok(hear(world)),
            Step::Begin if self.pages.contains(&State::Todo) => world.step = Step::Take(0),
            Step::Begin => world.step = Step::Unregister,
            Step::Take(page) => {
                world.step = after(page, Step::Take, Step::Put(0));
                if self.pages[page] == State::Todo {
                    let place = world.places[page].as_mut();
                    match place.map(|place| &mut place.page).filter(|page| page.is_some()) {
                        None => world.pages[page] = rules::not_taken(Stop::Hole),
                        Some(_) if rules.fenced && self.unheard() => {
                            world.pages[page] = rules::not_taken(Stop::Again);
                            world.step = Step::Put(0);
                        }
                        Some(content) => {
                            // The kernel may say that something is there already, though it has moved the page.
                            world.old[page] = content.take();
                            (world.pages[page], world.target[page]) = (rules::not_taken(Stop::Occupied), page);
                        }
                    }
                }
            }
            // A child may have been made before a page was unmapped in flight.
            Step::Put(page)
                if page + 1 == PAGES && self.pages[page] != State::Taken && self.cut() && self.unheard() =>
            {
                return Ok(hear(world));
            }
            Step::Put(page) if self.pages[page] != State::Taken => {
                world.step = after(page, Step::Put, Step::Begin);
                if page + 1 == PAGES {
                    world
                        .pages
                        .iter_mut()
                        .filter(|page| **page == State::Cut)
                        .for_each(|page| *page = State::Gone);
                }
            }
            Step::Put(page) => {
                let settled = if rules.settled {
                    !self.unheard()
                } else {
                    self.queue.is_empty()
                };
                match world.places[self.target[page]].as_mut() {
                    // The kernel looks for the place first.
                    None if settled => world.elsewhere(page),
                    None => return Ok(hear(world)),
                    Some(_) if self.unheard() => return Ok(hear(world)),
                    Some(place) if !place.registered || place.page.is_some() => world.elsewhere(page),
                    Some(place) => {
                        place.page = self.old[page];
                        world.pages[page] = State::Done;
                    }
                }
            }
            Step::Unregister => {
                for place in world.places[..PAGES].iter_mut().flatten() {
                    place.registered = false;
                }
                world.step = Step::Drain;
            }
            Step::Drain if !self.queue.is_empty() => return Ok(hear(world)),
            Step::Drain => {
                // Closing the descriptor wakes all waiters.
                for place in world.places.iter_mut().flatten() {
                    place.registered = false;
                }
                for thread in 0..THREADS {
                    while world.threads[thread].waiting.is_some() {
                        world.wake(thread);
                    }
                }
                world.queue.clear();
                if world.child.is_some() {
                    world.fill_child(Rules { forks: false, ..rules })?;
                }
                world.step = Step::Closed;
            }
            Step::Closed => return Ok(None),
        }
        Ok(Some(world))
    }

    /// Reads an event; whether there was one.
    fn hear(&mut self) -> bool {
        let Some(thread) = self.queue.pop_front() else {
            return false;
        };
        let Some(event) = self.threads[thread].events[0] else {
            return false;
        };
        self.threads[thread].waiting = Some(Waiting::Heard);
        // A call that empties and one that forks, neither of which has returned: the child may have either.
        if let (Event::Emptied(at), Some(child)) = (event, self.child.as_mut()) {
            child[at] = None;
        }
        let native = |at: usize| at < PAGES && self.pages[at] == State::Taken && self.target[at] == at;
        let natives: [bool; PLACES] = std::array::from_fn(native);
        for page in 0..PAGES {
            let state = self.pages[page];
            let flies = state == State::Taken;
            let place = if flies { self.target[page] } else { page };
            match event {
                Event::Unmapped(at) if at == place => self.pages[page] = rules::unmapped(state, place != page),
                Event::Emptied(at) if at == place => self.pages[page] = rules::emptied(state, place != page),
                Event::Moved(from, _) if from == place && flies && place != page && natives[from] => {}
                // Its own place was unmapped for that.
                Event::Moved(_, to) if to == place && flies && place != page => self.pages[page] = State::Cut,
                Event::Moved(from, to) if from == place && flies => self.target[page] = to,
                Event::Moved(from, _) if from == page => self.pages[page] = rules::moved(state),
                Event::Forked => self.child_heard = true,
                _ => {}
            }
            if self.pages[page] == State::Cut {
                self.target[page] = page;
            }
            if let Event::Emptied(at) = event {
                self.reached[page][at] = false;
            }
            if let Event::Moved(_, to) = event {
                self.reached[page][to] = true;
            }
        }
        true
    }

    /// The place of a page is gone. The moves of two threads may have been read out of order.
    fn elsewhere(&mut self, page: usize) {
        let flies = |at: usize| (0..PAGES).any(|page| self.pages[page] == State::Taken && self.target[page] == at);
        let free =
            |at: usize| self.places[at].is_some_and(|place| place.registered && place.page.is_none()) && !flies(at);
        match (0..PLACES).find(|&at| (self.reached[page][at] || at == page) && free(at)) {
            Some(at) => self.target[page] = at,
            None => self.pages[page] = State::Gone,
        }
    }

    /// Copies a child's missing pages, and lets it go on.
    fn fill_child(&mut self, rules: Rules) -> Result<(), String> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        self.child_heard = false;
        let mut pages: Vec<usize> = (0..PAGES).filter(|_| rules.forks).collect();
        pages.retain(|&page| matches!(self.pages[page], State::Taken | State::Cut));
        pages.sort_by_key(|&page| self.pages[page] == State::Cut);
        for page in pages {
            let places = [page, self.target[page]]
                .into_iter()
                .chain((0..PLACES).filter(|&at| self.reached[page][at]));
            let missing = |place: &Option<Place>| place.is_some_and(|place| place.registered && place.page.is_none());
            let at = places.into_iter().find(|&at| missing(&child[at]));
            if let Some(place) = at.and_then(|at| child[at].as_mut()) {
                place.page = self.old[page];
            }
        }
        for (at, place) in child.iter().enumerate() {
            let Some(place) = place else { continue };
            let found = place.page.unwrap_or(ZEROS);
            if found != place.truth {
                return Err(format!(
                    "a child finds {found} at place {at} instead of {}",
                    place.truth
                ));
            }
        }
        Ok(())
    }
}

/// Searches all worlds. Returns their number, or the error of one and the steps to it.
fn search(start: World, rules: Rules) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let wrong = |why: String| format!("{why}: {world:?}");
        world.check().map_err(wrong)?;
        let next = world.next(rules).map_err(wrong)?;
        if next.is_empty() && (world.step != Step::Closed || world.unheard()) {
            return Err(format!("all wait for ever: {world:?}"));
        }
        open.extend(next);
    }
    Ok(seen.len())
}

/// Changes of mappings, and forks, while the two pages are exchanged. (With three, chains of `mremap` and `madvise`
/// upon the same place by two threads can bring back emptied content.)
const CHANGES: u8 = 2;

/// Places that are mapped at first.
const STARTS: [[bool; PLACES]; 4] = [
    [true, true, false],
    [true, true, true],
    [true, false, false],
    [true, false, true],
];

#[test]
fn no_order_of_steps_loses_a_page_or_brings_one_back() {
    for start in STARTS {
        let worlds = search(World::new(start, CHANGES, 1), NOW).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(worlds > 10_000, "{worlds} worlds: the search did not search");
    }
}

/// Without any one rule the search finds an error.
#[test]
fn without_any_of_the_rules_something_is_lost() {
    let without: [(&str, Rules); 5] = [
        ("fenced", Rules { fenced: false, ..NOW }),
        ("verified", Rules { verified: false, ..NOW }),
        ("settled", Rules { settled: false, ..NOW }),
        ("forks", Rules { forks: false, ..NOW }),
        (
            "all",
            Rules {
                fenced: false,
                verified: false,
                settled: false,
                forks: false,
            },
        ),
    ];
    for (rule, rules) in without {
        let found = STARTS
            .iter()
            .find_map(|&start| search(World::new(start, 2, 1), rules).err());
        let found = found.unwrap_or_else(|| panic!("without the rule `{rule}` nothing was found"));
        assert!(
            found.contains("instead of") || found.contains("should hold"),
            "{rule}: {found}"
        );
    }
}
