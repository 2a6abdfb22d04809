//! Has threads wait for each other at the windows of a trace.
//!
//! A window was recorded at one moment, and stands in the streams of all threads that lived then. By the clocks a
//! thread that then slept would run through all windows that it slept through at once, and end them for those that
//! work. So each waits at a window until all have reached it.

use trace::Event;

use crate::synchronization::Readiness;

/// The beginning of a window, or the point from which it is counted; in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub index: u32,
    pub counted: bool,
}

impl Place {
    /// That of an event, if it is one of a window.
    pub fn of(event: &Event) -> Option<Place> {
        match *event {
            Event::Window { index } => Some(Place { index, counted: false }),
            Event::Counted { index } => Some(Place { index, counted: true }),
            _ => None,
        }
    }
}

/// The progress of threads.
#[derive(Debug)]
pub struct Meeting {
    /// The last place that each thread came to.
    come: Vec<Option<Place>>,
    /// Threads that wait, with where.
    waiting: Vec<(Place, u32)>,
    /// Up to here no thread waits any more.
    met: Option<Place>,
}

impl Meeting {
    pub fn new(threads: usize) -> Meeting {
        Meeting {
            come: vec![None; threads],
            waiting: Vec::new(),
            met: None,
        }
    }

    /// A thread reaches a place. Only after [`Meeting::met`] was asked it is known whether it waits there.
    pub fn comes(&mut self, thread: u32, place: Place) {
        let come = &mut self.come[thread as usize];
        *come = (*come).max(Some(place));
        if Some(place) > self.met {
            self.waiting.push((place, thread));
        }
    }

    /// Returns whether a thread that came to a place waits there.
    pub fn waits(&self, thread: u32, place: Place) -> Readiness {
        match self.waiting.contains(&(place, thread)) {
            true => Readiness::Waiting,
            false => Readiness::Ready,
        }
    }

    /// The first place at which somebody waits.
    pub fn first(&self) -> Option<Place> {
        self.waiting.iter().map(|(place, _)| *place).min()
    }

    /// The first place at which a thread waits, if all living threads have reached it.
    pub fn met(&self, is_alive: impl Fn(u32) -> bool) -> Option<Place> {
        let first = self.first()?;
        let mut come = self.come.iter().zip(0..);
        let all = come.all(|(come, thread)| *come >= Some(first) || !is_alive(thread));
        all.then_some(first)
    }

    /// Those that waited at the first place, in the order of their numbers.
    pub fn go_on_from(&mut self, place: Place) -> Vec<u32> {
        self.met = self.met.max(Some(place));
        let waited = self.waiting.extract_if(.., |(at, _)| *at <= place);
        let mut threads: Vec<u32> = waited.map(|(_, thread)| thread).collect();
        threads.sort_unstable();
        threads
    }
}
