//! A trace once through, in the order in which it was recorded.

use trace::{Event, Ref};

use crate::error::SimError;
use crate::input::{Batch, Input};

/// Who is told of what threads did, in order.
pub trait Visitor {
    fn references(&mut self, thread: u32, refs: &[Ref]);
    fn event(&mut self, thread: u32, event: &Event);
}

/// How far a thread is.
#[derive(Default)]
struct Place {
    batch: Batch,
    next_ref: usize,
    next_event: usize,
}

impl Place {
    fn is_done(&self) -> bool {
        self.next_ref >= self.batch.refs.len() && self.next_event >= self.batch.events.len()
    }

    /// Tells the next items, at most so many; returns how many.
    fn tell(&mut self, thread: u32, most: u64, visitor: &mut impl Visitor) -> u64 {
        let event = self.batch.events.get(self.next_event);
        let stop = event.map_or(self.batch.refs.len(), |timed| timed.at as usize);
        let stop = stop.min(self.batch.refs.len());
        if self.next_ref >= stop {
            let Some(timed) = event else { return 0 };
            visitor.event(thread, &timed.event);
            self.next_event += 1;
            return 1;
        }
        let count = (stop - self.next_ref).min(usize::try_from(most).unwrap_or(usize::MAX));
        visitor.references(thread, &self.batch.refs[self.next_ref..self.next_ref + count]);
        self.next_ref += count;
        count as u64
    }
}

/// Tells a visitor all items of an input.
pub fn replay(input: &mut dyn Input, visitor: &mut impl Visitor) -> Result<(), SimError> {
    let mut places: Vec<Place> = input.threads().iter().map(|_| Place::default()).collect();
    while let Some(run) = input.next_run()? {
        let Some(place) = places.get_mut(run.thread as usize) else {
            continue;
        };
        let mut left = run.items;
        while left > 0 {
            if place.is_done() {
                (place.next_ref, place.next_event) = (0, 0);
                if !input.next(run.thread, &mut place.batch)? {
                    place.batch = Batch::default();
                    break;
                }
                continue;
            }
            left -= place.tell(run.thread, left, visitor);
        }
    }
    Ok(())
}
