//! The iterations of a loop nest in another order: what a change `interchange` puts in order.
//!
//! README.md, "Changes", says what an iteration and a sweep are. An iteration begins with each reference of the instruction that
//! walks; a sweep is as long as that comes to no element twice. One pass over the input finds them, in recorded order, because
//! which data an address is depends on what all threads allocated so far.

use std::collections::{HashMap, HashSet};

use super::marks::{At, meets};
use crate::error::SimError;
use crate::held::Places;
use crate::input::{Input, Run};
use crate::structures::{StructureId, Structures};

/// References without the walk between two iterations, beyond which what follows is other work.
const GAP: u64 = 1 << 16;
/// Iterations that are kept in memory, 24 bytes each, of each instruction that may be the one that walks.
const MOST: usize = 1 << 25;
/// References after which it is decided which instruction walks.
const DECIDED: u64 = 1 << 20;
/// A page, one bit a byte.
const PAGE: u64 = 4096;

/// Loops whose iterations are to be ordered.
pub struct Interchange {
    /// What is walked over.
    pub data: HashSet<StructureId>,
    /// What the input's addresses are called.
    pub structures: Structures,
    /// The instructions of the line that walks, by site.
    pub sites: HashSet<u32>,
}

/// One thread's iterations: where each begins and what it comes to first; where sweeps end.
#[derive(Debug, Default)]
pub struct Sweeps {
    begins: Vec<(At, u64)>,
    /// After so many iterations, and where.
    ends: Vec<(usize, At)>,
    /// How long the stream is.
    pub all: At,
}

impl Sweeps {
    /// The sweeps, each with its iterations in the order of the stream, and its end.
    pub fn each(&self) -> impl Iterator<Item = (&[(At, u64)], At)> {
        let froms = std::iter::once(0).chain(self.ends.iter().map(|(to, _)| *to));
        let sweep = |(from, (to, end)): (usize, &(usize, At))| (&self.begins[from..*to], *end);
        froms.zip(&self.ends).map(sweep)
    }
}

/// What one instruction does in one thread.
#[derive(Debug, Default)]
struct Walk {
    sweeps: Sweeps,
    /// Where it was last, in the sweep at hand.
    last: Option<At>,
    /// By page, in which sweep, and which bytes it came to.
    visited: HashMap<u64, (usize, Box<[u64; (PAGE / 64) as usize]>)>,
    sweep: usize,
}

impl Walk {
    /// The instruction comes to an address.
    fn comes(&mut self, here: At, address: u64) {
        let far = self.last.is_some_and(|last| here.refs - last.refs > GAP);
        if far || !self.is_new(address) {
            self.end();
            self.is_new(address);
        }
        self.sweeps.begins.push((here, address));
        self.last = Some(At {
            refs: here.refs + 1,
            ..here
        });
    }

    /// Whether the sweep was not there yet; it was, from now on.
    fn is_new(&mut self, address: u64) -> bool {
        let page = self.visited.entry(address / PAGE);
        let (sweep, bytes) = page.or_insert_with(|| (self.sweep, Box::new([0; (PAGE / 64) as usize])));
        if *sweep != self.sweep {
            (*sweep, **bytes) = (self.sweep, [0; (PAGE / 64) as usize]);
        }
        let (word, bit) = ((address % PAGE / 64) as usize, 1 << (address % 64));
        let new = bytes[word] & bit == 0;
        bytes[word] |= bit;
        new
    }

    fn end(&mut self) {
        if let Some(last) = self.last.take() {
            self.sweeps.ends.push((self.sweeps.begins.len(), last));
            self.sweep += 1;
        }
    }
}

impl Interchange {
    /// The iterations of all threads.
    pub fn find(&self, input: &mut dyn Input) -> Result<Vec<Sweeps>, SimError> {
        let mut structures = self.structures.clone();
        let spaces: Vec<u32> = input.threads().iter().map(|about| about.space).collect();
        let mut places = Places::new(input);
        let mut all = vec![At::default(); spaces.len()];
        let mut walks: HashMap<u32, Vec<Walk>> = HashMap::new();
        let mut chosen: Option<u32> = None;
        let mut seen = 0;
        while let Some(Run { thread, mut items }) = input.next_run()? {
            let Some(&space) = spaces.get(thread as usize) else {
                continue;
            };
            let at = thread as usize;
            while items > 0 {
                let Some(place) = places.at(input, thread)? else { break };
                let stop = place.stop();
                if stop > place.next_ref {
                    let count = (stop - place.next_ref).min(usize::try_from(items).unwrap_or(usize::MAX));
                    for r in &place.batch.refs[place.next_ref..place.next_ref + count] {
                        let of_line = match chosen {
                            Some(site) => r.site == site,
                            None => self.sites.contains(&r.site),
                        };
                        if of_line && self.data.contains(&structures.lookup(space, r.addr)) {
                            let threads = walks.entry(r.site).or_default();
                            threads.resize_with(spaces.len(), Walk::default);
                            threads[at].comes(all[at], r.addr);
                            seen += 1;
                        }
                        all[at].refs += 1;
                    }
                    place.next_ref += count;
                    items -= count as u64;
                    continue;
                }
                let event = &place.batch.events[place.next_event].event;
                structures.apply(space, thread, event);
                if meets(event) {
                    walks.values_mut().for_each(|threads| {
                        if let Some(walk) = threads.get_mut(at) {
                            walk.end();
                        }
                    });
                }
                all[at].events += 1;
                place.next_event += 1;
                items -= 1;
            }
            if chosen.is_none() && seen > DECIDED {
                chosen = which(&walks);
                walks.retain(|site, _| Some(*site) == chosen);
            }
            let kept: usize = walks.values().flatten().map(|walk| walk.sweeps.begins.len()).sum();
            if kept > MOST {
                return Err(SimError::Order(format!(
                    "the loop has more than {MOST} iterations, which cannot be put in order: take windows of the run"
                )));
            }
        }
        let chosen = chosen.or_else(|| which(&walks)).and_then(|site| walks.remove(&site));
        let mut found: Vec<Sweeps> = chosen
            .into_iter()
            .flatten()
            .map(|mut walk| {
                walk.end();
                walk.sweeps
            })
            .collect();
        found.resize_with(spaces.len(), Sweeps::default);
        for (sweeps, all) in found.iter_mut().zip(all) {
            sweeps.all = all;
        }
        Ok(found)
    }
}

/// The instruction that walks farthest before it comes back; of those that walk as far, the first.
fn which(walks: &HashMap<u32, Vec<Walk>>) -> Option<u32> {
    let length = |threads: &Vec<Walk>| {
        let iterations: usize = threads.iter().map(|walk| walk.sweeps.begins.len()).sum();
        let sweeps: usize = threads
            .iter()
            .map(|walk| walk.sweep + usize::from(walk.last.is_some()))
            .sum();
        iterations / sweeps.max(1)
    };
    let best = walks
        .iter()
        .max_by_key(|(site, threads)| (length(threads), std::cmp::Reverse(**site)));
    best.map(|(site, _)| *site)
}
