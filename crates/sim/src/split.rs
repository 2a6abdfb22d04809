//! Many policies over one trace of one cpu: the front once, a back for each policy.
//!
//! The front works through the trace piece by piece and hands its output to the backs, which do
//! each piece in parallel, while the front does the next: memory does not grow with the trace.

use rayon::prelude::*;
use trace::Event;

use crate::back::Back;
use crate::candidate::{Candidate, Progress, pool};
use crate::config::{Config, Order};
use crate::error::SimError;
use crate::front::{Chunk, Front};
use crate::held::Places;
use crate::input::{Input, Run};
use crate::outcome::Simulated;

/// References of one piece of the trace.
const PIECE: usize = 1 << 14;

pub fn run(
    mut input: Box<dyn Input + '_>,
    config: &Config,
    policies: Vec<Candidate>,
    progress: Progress,
) -> Result<Vec<Simulated>, SimError> {
    let traits = input.traits();
    let mut front = Front::new(config, traits)?;
    let mut names = Vec::new();
    let mut backs = Vec::new();
    for one in policies {
        backs.push(Back::new(config, one.policy, one.hints)?);
        names.push(one.name);
    }
    let used = !input.threads().is_empty();
    let many = backs.len() as u64;
    let mut reader = Reader::new(input.as_mut(), config.order);
    let mut step = |front: &mut Front| -> Result<bool, SimError> {
        let before = front.counts.references;
        let more = reader.piece(front)?;
        progress((front.counts.references - before) * many);
        Ok(more)
    };
    if let [back] = &mut backs[..] {
        let mut chunk = Chunk::default();
        while step(&mut front)? {
            front.take(&mut chunk);
            back.carry_on(&chunk)?;
        }
    } else {
        pool(config)?.install(|| together(&mut front, &mut backs, &mut step))?;
    }
    let results = names.iter().zip(backs);
    Ok(results
        .map(|(name, back)| back.finish(&front, name, config, used))
        .collect())
}

/// The backs do one piece while the front does the next.
fn together(
    front: &mut Front,
    backs: &mut [Back],
    step: &mut (impl FnMut(&mut Front) -> Result<bool, SimError> + Send),
) -> Result<(), SimError> {
    let mut chunk = Chunk::default();
    let mut more = true;
    while more {
        let (next, done) = rayon::join(
            || step(front),
            || backs.par_iter_mut().try_for_each(|back| back.carry_on(&chunk)),
        );
        done?;
        more = next?;
        front.take(&mut chunk);
    }
    Ok(())
}

/// Cuts the trace into pieces, in the one order that it has.
struct Reader<'a> {
    input: &'a mut dyn Input,
    recorded: bool,
    /// The rest of the present run.
    run: Run,
    places: Places,
    space: Vec<u32>,
    ended: bool,
}

impl<'a> Reader<'a> {
    fn new(input: &'a mut dyn Input, order: Order) -> Self {
        let space: Vec<u32> = input.threads().iter().map(|about| about.space).collect();
        Reader {
            recorded: order == Order::Recorded,
            // For a single thread all items come in one run.
            run: Run {
                thread: 0,
                items: if order == Order::Recorded || space.is_empty() {
                    0
                } else {
                    u64::MAX
                },
            },
            places: Places::new(input),
            space,
            input,
            ended: false,
        }
    }

    /// Takes the front through the next piece; false when there was nothing left.
    fn piece(&mut self, front: &mut Front) -> Result<bool, SimError> {
        let mut left = PIECE;
        while left > 0 && !self.ended {
            if self.run.items == 0 {
                match if self.recorded { self.input.next_run()? } else { None } {
                    Some(run) => self.run = run,
                    None => self.ended = true,
                }
                continue;
            }
            let done = self.items(front, left)?;
            left = left.saturating_sub(done);
        }
        Ok(!self.ended || left < PIECE)
    }

    /// Some items of the present run; returns how many.
    fn items(&mut self, front: &mut Front, most: usize) -> Result<usize, SimError> {
        let number = self.run.thread;
        let Some(place) = self.places.at(self.input, number)? else {
            self.run.items = 0;
            self.ended |= !self.recorded;
            return Ok(0);
        };
        let stop = place.stop();
        if stop > place.next_ref {
            let items = usize::try_from(self.run.items).unwrap_or(usize::MAX);
            let count = (stop - place.next_ref).min(most).min(items);
            let slice = &place.batch.refs[place.next_ref..place.next_ref + count];
            front.references(self.space[number as usize], number, slice)?;
            place.next_ref += count;
            self.run.items -= count as u64;
            return Ok(count);
        }
        if let Event::Work { instructions } = place.batch.events[place.next_event].event {
            front.work(instructions);
        }
        place.next_event += 1;
        self.run.items -= 1;
        Ok(1)
    }
}
