//! The threads whose batches are held in memory: no more than a bound, however many threads there are.
//!
//! A thread that waits keeps its unfinished batch. For a few threads that is little; a trace may have a million. Beyond
//! the bound the batch that was got first is given up, and its thread gets it [again](crate::input::Input::again) when
//! it goes on. The simulation does not depend on it.

use std::collections::{HashMap, VecDeque};

use trace::{Event, Ref, Timed};

use crate::error::SimError;
use crate::input::{Batch, Input};

/// Bytes of batches that a run holds; little in tests, so that all of them give batches up.
const MOST: usize = if cfg!(test) { 1 << 19 } else { 128 << 20 };
/// The batches of this many threads are not even counted: they are less than the bound.
const FEW: usize = if cfg!(test) { 2 } else { 64 };

pub struct Held {
    most: usize,
    bytes: usize,
    /// Bytes of each thread that holds a batch.
    of: HashMap<u32, usize>,
    /// These threads, the one that got its batch first in front.
    queue: VecDeque<u32>,
}

impl Held {
    /// For a run of `threads` threads; `None` if all may keep their batches.
    pub fn new(threads: usize) -> Option<Held> {
        (threads > FEW).then(|| Held::at_most(MOST))
    }

    pub fn at_most(most: usize) -> Held {
        Held {
            most,
            bytes: 0,
            of: HashMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// A thread has got a batch, in the place of the one that it had.
    pub fn got(&mut self, thread: u32, batch: &Batch) {
        let bytes = memory(batch);
        self.bytes += bytes;
        match self.of.insert(thread, bytes) {
            Some(before) => self.bytes -= before,
            None => self.queue.push_back(thread),
        }
    }

    /// A thread whose batch is to be given up, if there is too much: never `present`, nor one that `stays`.
    pub fn too_much(&mut self, present: u32, stays: impl Fn(u32) -> bool) -> Option<u32> {
        if self.bytes <= self.most {
            return None;
        }
        for _ in 0..self.queue.len() {
            let thread = self.queue.pop_front()?;
            if thread == present || stays(thread) {
                self.queue.push_back(thread);
                continue;
            }
            self.bytes -= self.of.remove(&thread).unwrap_or(0);
            return Some(thread);
        }
        None
    }
}

/// The progress of each thread of an input, for readers that read it in one order.
pub struct Places {
    places: Vec<Place>,
    held: Option<Held>,
}

/// The progress of a thread.
#[derive(Default)]
pub struct Place {
    pub batch: Batch,
    pub next_ref: usize,
    pub next_event: usize,
    /// The batch was given up in its midst, and is to be got again.
    given_up: bool,
}

impl Place {
    /// Up to which reference there is no event.
    pub fn stop(&self) -> usize {
        let event = self.batch.events.get(self.next_event);
        let refs = self.batch.refs.len();
        event.map_or(refs, |timed| (timed.at as usize).min(refs))
    }

    fn is_done(&self) -> bool {
        self.next_ref >= self.batch.refs.len() && self.next_event >= self.batch.events.len()
    }

    /// Gives the batch up.
    fn give_up(&mut self) {
        self.given_up = !self.is_done();
        if !self.given_up {
            (self.next_ref, self.next_event) = (0, 0);
        }
        self.batch = Batch::default();
    }
}

impl Places {
    pub fn new(input: &dyn Input) -> Places {
        let threads = input.threads().len();
        Places {
            places: (0..threads).map(|_| Place::default()).collect(),
            held: Held::new(threads).filter(|_| input.repeats()),
        }
    }

    /// A thread's place, with something left in its batch; `None` if the thread does not exist or has reached its end.
    pub fn at(&mut self, input: &mut dyn Input, thread: u32) -> Result<Option<&mut Place>, SimError> {
        let Some(place) = self.places.get_mut(thread as usize) else {
            return Ok(None);
        };
        if !place.given_up && !place.is_done() {
            return Ok(self.places.get_mut(thread as usize));
        }
        if std::mem::take(&mut place.given_up) {
            input.again(thread, &mut place.batch)?;
        }
        let mut more = true;
        while more && place.is_done() {
            (place.next_ref, place.next_event) = (0, 0);
            more = input.next(thread, &mut place.batch)?;
        }
        if !more {
            place.batch = Batch::default();
        }
        if let Some(held) = &mut self.held {
            held.got(thread, &place.batch);
            while let Some(other) = held.too_much(thread, |_| false) {
                self.places[other as usize].give_up();
            }
        }
        Ok(if more {
            self.places.get_mut(thread as usize)
        } else {
            None
        })
    }
}

/// Bytes that a batch takes.
fn memory(batch: &Batch) -> usize {
    let text = |timed: &Timed| match &timed.event {
        Event::Phase { name } => name.capacity(),
        Event::Summary { text } => text.capacity(),
        Event::WorkBegin { hints } => hints.capacity() * size_of::<u64>(),
        _ => 0,
    };
    let events = batch.events.capacity() * size_of::<Timed>() + batch.events.iter().map(text).sum::<usize>();
    batch.refs.capacity() * size_of::<Ref>() + events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_got_first_is_given_up_but_for_who_stays() {
        let batch = Batch {
            refs: Vec::with_capacity(1000),
            events: Vec::new(),
        };
        let bytes = memory(&batch);
        assert!(bytes >= 1000 * size_of::<Ref>());
        let mut held = Held::at_most(3 * bytes);
        for thread in 0..3 {
            held.got(thread, &batch);
            assert_eq!(held.too_much(thread, |_| false), None);
        }
        // The same thread's next batch takes the place of its last.
        held.got(0, &batch);
        assert_eq!(held.too_much(0, |_| false), None);
        held.got(3, &batch);
        assert_eq!(held.too_much(3, |thread| thread == 0), Some(1));
        assert_eq!(held.too_much(3, |_| false), None);
        held.got(1, &batch);
        assert_eq!(held.too_much(1, |_| true), None);
        assert!(Held::new(FEW).is_none() && Held::new(FEW + 1).is_some());
    }
}
