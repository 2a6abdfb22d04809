//! The routes of every cpu, precomputed: the data that a piece needs of each cache that it tries.

use crate::clock::Units;
use crate::layout::{Layout, SetIndex};

/// One cache on a cpu's route.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub hit: Units,
    pub instance: u32,
    /// Index of the counts of the cpu and kind.
    pub counts: u32,
    /// If the set is the low bits of the line's number: these bits; else 0.
    mask: u32,
    pub kind: u16,
    /// The arena that the instance's shadow is in.
    pub arena: u16,
    pub line_bits: u8,
    /// Bits of a line number that number the line within its page.
    pub page_lines: u8,
    pub virtual_index: bool,
    pub write_back: bool,
    pub allocate_on_write: bool,
    pub inclusive: bool,
    /// True if the instance serves one core only.
    pub private: bool,
    /// True if it is of a third level or further out.
    pub far: bool,
    /// True if a hit needs further work: it takes time, a prefetcher sees it, or the line may still be on its way.
    pub counts_hits: bool,
    /// True if cpus overlap, so that the time of a hit is computed elsewhere.
    pub overlaps: bool,
    /// True if the program's prefetches come here.
    pub software_prefetch: bool,
    /// True if others bring lines here.
    pub others: bool,
    masked: bool,
}

/// The steps of all cpus, for data and for fetches.
pub struct Steps {
    steps: Vec<Step>,
    /// The start and the length of each route, by cpu and whether it is a fetch.
    routes: Vec<(u32, u32)>,
}

impl Steps {
    pub fn new(layout: &Layout) -> Self {
        let mut all = Steps {
            steps: Vec::new(),
            routes: Vec::new(),
        };
        for cpu in 0..layout.cpus {
            for route in [&layout.data, &layout.fetch] {
                all.routes.push((all.steps.len() as u32, route.len() as u32));
                all.steps.extend(route.iter().map(|&kind| step(layout, cpu, kind)));
            }
        }
        all
    }

    /// First step and number of steps of a route.
    #[inline(always)]
    pub fn route(&self, cpu: u32, fetch: bool) -> (usize, usize) {
        let (first, count) = self.routes[cpu as usize * 2 + usize::from(fetch)];
        (first as usize, count as usize)
    }

    #[inline(always)]
    pub fn get(&self, at: usize) -> Step {
        self.steps[at]
    }

    #[inline(always)]
    pub fn at(&self, at: usize) -> &Step {
        &self.steps[at]
    }
}

impl Step {
    /// The set that an address (virtual or physical, as the index is) goes to.
    #[inline(always)]
    pub fn set(&self, layout: &Layout, address: u64) -> usize {
        match self.masked {
            true => ((address >> self.line_bits) as u32 & self.mask) as usize,
            false => layout.caches[self.kind as usize].set(address),
        }
    }
}

fn step(layout: &Layout, cpu: u32, kind: usize) -> Step {
    let shape = &layout.caches[kind];
    let instance = shape.instance(cpu);
    let mask = match shape.index {
        SetIndex::Mask(mask) => u32::try_from(mask).ok(),
        _ => None,
    };
    Step {
        instance: instance as u32,
        counts: cpu * layout.caches.len() as u32 + kind as u32,
        kind: kind as u16,
        arena: layout.places[instance].arena as u16,
        line_bits: shape.line_bits as u8,
        page_lines: (layout.page_bits - shape.line_bits) as u8,
        virtual_index: shape.virtual_index,
        write_back: shape.write_back,
        allocate_on_write: shape.allocate_on_write,
        inclusive: shape.inclusive,
        private: layout.places[instance].private,
        far: layout.caches[kind].level >= 3,
        hit: shape.hit,
        mask: mask.unwrap_or(0),
        counts_hits: shape.hit > 0
            || shape.prefetch.is_some()
            || layout.software_prefetch == Some(kind)
            || layout.overlaps,
        overlaps: layout.overlaps,
        software_prefetch: layout.software_prefetch == Some(kind),
        others: shape.others > 0,
        masked: mask.is_some(),
    }
}
