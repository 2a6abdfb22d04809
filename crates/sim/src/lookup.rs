//! What every cache does when a piece comes to it: the one lookup, and the one fill.
//!
//! The engine ([`crate::pieces`] for the first cache of a route, [`crate::miss_path`] for the others), the front and the
//! filters keep a cache's parts in different places, so they hand them in. What a cache *is* stands here and in
//! [`crate::cache`]; what becomes of a hit or a miss (stalls, coherence, who is served next) is theirs.
//! Both functions are inlined where they are called, and made for the ways and for classes on or off.

use policy::Random;

use crate::cache::{Cache, Gone};
use crate::config::Config;
use crate::counts::{CacheCounts, Class};
use crate::layout::{Layout, Shape};
use crate::recency::{Arena, Prior, Recency};
use crate::steps::Step;

/// Where a line is in a cache, if it is there: its set and its number.
#[derive(Clone, Copy, Debug)]
pub struct SetLine {
    pub set: usize,
    pub line: u32,
}

/// What a lookup comes to.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The line is at this position, good until the cache changes.
    Hit(usize),
    /// What the shadow knew of the line; cold where classes are off.
    Miss(Prior),
}

/// The fully associative twin of a cache, which knows the classes of its misses; `None` where classes are off.
pub type Shadow<'a> = Option<(&'a mut Recency, &'a mut Arena)>;

/// An empty cache. `number`: of the instance, which seeds random replacement.
pub fn empty(config: &Config, shape: &Shape, number: u32) -> Cache {
    let seed = Random::new(config.seed.wrapping_add(u64::from(number))).number();
    Cache::new(shape.sets, shape.ways, shape.replacement, seed)
}

/// The same for the only instance of a machine with one cpu, with a shadow of its own where classes are wanted.
pub fn alone(config: &Config, shape: &Shape, step: &Step) -> (Cache, Option<(Recency, Arena)>) {
    let shadow = || {
        (
            Recency::new(shape.lines(), 0),
            Arena::new(1, u32::from(step.page_lines)),
        )
    };
    (empty(config, shape, step.instance), config.classes.then(shadow))
}

/// Looks a piece up: counts that, has the shadow see it, and makes the line the most recently used if it is there.
/// `reads`: not for a write alone. `WAYS` is [`Cache::fixed_ways`], or 0.
#[inline(always)]
pub fn look_up<const WAYS: usize>(
    step: &Step,
    cache: &mut Cache,
    shadow: Shadow,
    counts: &mut CacheCounts,
    place: SetLine,
    reads: bool,
) -> Lookup {
    let prior = match shadow {
        Some((shadow, arena)) => shadow.touch(arena, place.line, step.fills(reads)),
        None => Prior::Cold,
    };
    counts.accesses += 1;
    match cache.hit::<WAYS>(place.set, place.line) {
        Some(at) => Lookup::Hit(at),
        None => {
            counts.misses += 1;
            // A line that plain LRU would hold was passed over for want of reuse: a capacity miss.
            let passed_over = prior == Prior::In && cache.plain_holds(place.set, place.line);
            Lookup::Miss(if passed_over { Prior::Out } else { prior })
        }
    }
}

/// Takes a line in, in this state, and counts the line that made room for it if that was dirty.
#[inline(always)]
pub fn take_in<const WAYS: usize>(cache: &mut Cache, counts: &mut CacheCounts, place: SetLine, state: u32) -> Gone {
    let gone = cache.fill::<WAYS>(place.set, place.line, state);
    counts.writebacks += u64::from(gone.is_dirty());
    gone
}

/// The class of a miss that no other core had a part in.
#[inline(always)]
pub fn class(prior: Prior) -> Class {
    match prior {
        Prior::Cold => Class::Cold,
        Prior::In => Class::Conflict,
        Prior::Out => Class::Capacity,
    }
}

impl Step {
    /// Where the line of a piece goes. `copy`: the number of the page, or of its copy.
    #[inline(always)]
    pub fn set_line(&self, layout: &Layout, copy: u32, virtual_address: u64, physical_address: u64) -> SetLine {
        let address = if self.virtual_index {
            virtual_address
        } else {
            physical_address
        };
        let within = (virtual_address >> self.line_bits) as u32 & ((1 << self.page_lines) - 1);
        SetLine {
            set: self.set(layout, address),
            line: copy << self.page_lines | within,
        }
    }

    /// Whether the cache takes in a line that it missed. `reads`: not for a write alone.
    #[inline(always)]
    pub fn fills(&self, reads: bool) -> bool {
        reads || self.allocate_on_write
    }
}
