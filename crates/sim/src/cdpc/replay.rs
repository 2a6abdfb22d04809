//! A trace once through, in the order in which it was recorded.

use trace::{Event, Ref};

use crate::error::SimError;
use crate::held::{Place, Places};
use crate::input::Input;

/// Receives the actions of threads, in order.
pub trait Visitor {
    fn references(&mut self, thread: u32, refs: &[Ref]);
    fn event(&mut self, thread: u32, event: &Event);
}

/// Hands on the next items of a thread, `most` at most. Returns how many.
fn hand_on(place: &mut Place, thread: u32, most: u64, visitor: &mut impl Visitor) -> u64 {
    let stop = place.stop();
    if place.next_ref >= stop {
        let Some(timed) = place.batch.events.get(place.next_event) else {
            return 0;
        };
        visitor.event(thread, &timed.event);
        place.next_event += 1;
        return 1;
    }
    let count = (stop - place.next_ref).min(usize::try_from(most).unwrap_or(usize::MAX));
    visitor.references(thread, &place.batch.refs[place.next_ref..place.next_ref + count]);
    place.next_ref += count;
    count as u64
}

/// Hands a visitor all items of an input.
pub fn replay(input: &mut dyn Input, visitor: &mut impl Visitor) -> Result<(), SimError> {
    let mut places = Places::new(input);
    while let Some(run) = input.next_run()? {
        let mut left = run.items;
        while left > 0 {
            let Some(place) = places.at(input, run.thread)? else {
                break;
            };
            left -= hand_on(place, run.thread, left, visitor);
        }
    }
    Ok(())
}
