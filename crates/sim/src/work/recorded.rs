//! The common part of changes of the work's order: one pass over the input in recorded order, because the data at an
//! address depends on the allocations of all threads so far.

use trace::{Event, Ref};

use super::marks::{At, meets};
use crate::error::SimError;
use crate::held::Places;
use crate::input::{Input, Run};
use crate::structures::Structures;

/// Receives the events of a pass. Threads are those of the input, by their numbers.
pub trait Listener {
    /// A thread's next reference, `here` in its stream, of an address space.
    fn reference(&mut self, thread: usize, here: At, space: u32, r: &Ref, structures: &mut Structures);
    /// Work of the thread on both sides of this place cannot change places.
    fn meets(&mut self, thread: usize);
    /// A run of a thread is over. An error ends the pass.
    fn ran(&mut self) -> Result<(), SimError>;
}

/// Goes through the input. `structures` follows its events. Returns how long each thread's stream is.
pub fn pass(input: &mut dyn Input, mut structures: Structures, to: &mut impl Listener) -> Result<Vec<At>, SimError> {
    let spaces: Vec<u32> = input.threads().iter().map(|about| about.space).collect();
    let mut all = vec![At::default(); spaces.len()];
    let mut places = Places::new(input);
    while let Some(Run { thread, mut items }) = input.next_run()? {
        let at = thread as usize;
        let (Some(&space), Some(here)) = (spaces.get(at), all.get_mut(at)) else {
            continue;
        };
        while items > 0 {
            let Some(place) = places.at(input, thread)? else { break };
            let stop = place.stop();
            if stop > place.next_ref {
                let count = (stop - place.next_ref).min(usize::try_from(items).unwrap_or(usize::MAX));
                for r in &place.batch.refs[place.next_ref..place.next_ref + count] {
                    to.reference(at, *here, space, r, &mut structures);
                    here.refs += 1;
                }
                place.next_ref += count;
                items -= count as u64;
                continue;
            }
            let event: &Event = &place.batch.events[place.next_event].event;
            structures.apply(space, thread, event);
            if meets(event) {
                to.meets(at);
            }
            here.events += 1;
            place.next_event += 1;
            items -= 1;
        }
        to.ran()?;
    }
    Ok(all)
}
