//! The part of a run that placement decides, for one policy: the caches beyond the first, and
//! memory.

use std::sync::Arc;

use machine::Machine;
use policy::Policy;

use crate::cdpc::RunHints;
use crate::clock::{UNCLASSED, Units};
use crate::config::Config;
use crate::counts::CacheCounts;
use crate::engine::Cpu;
use crate::error::SimError;
use crate::filter::{FILLED, Filter, Frames, LOOKUP, NEW, PASSED_ON, Passed, Stream, TIME, WRITE_BACK};
use crate::front::{Chunk, Front};
use crate::homes::{Homes, touch};
use crate::layout::Layout;
use crate::lookup;
use crate::memory::Memory;
use crate::outcome::{Simulated, Tally, simulated};
use crate::steps::Steps;

pub struct Back {
    layout: Layout,
    homes: Homes,
    /// Of each page: its frame, its number in its address space, and its home.
    frames: Vec<u64>,
    virtual_pages: Vec<u64>,
    nodes: Vec<u8>,
    filters: Vec<Filter>,
    /// The input of the next filter, and the output.
    streams: [Stream; 2],
    memory: Memory,
    cpu: Cpu,
    counts: Vec<CacheCounts>,
    /// The stall of the current piece, which passes when the next begins.
    after: Units,
    /// The time at which the current piece asks for its transfers.
    moment: Units,
    /// True if some cache took in the lookup that reached memory last.
    filled: bool,
}

impl Back {
    pub fn new(config: &Config, policy: Box<dyn Policy>, hints: Option<Arc<RunHints>>) -> Result<Self, SimError> {
        let machine: &Machine = &config.machine;
        let layout = Layout::new(machine)?;
        let steps = Steps::new(&layout);
        let mut filters: Vec<(usize, Filter)> = Vec::new();
        for fetch in [false, true] {
            let (first, levels) = steps.route(0, fetch);
            for level in 1..levels {
                let step = steps.get(first + level);
                let kind = step.kind as usize;
                if filters.iter().any(|(other, _)| *other == kind) {
                    continue;
                }
                let shape = &layout.caches[kind];
                let (cache, shadow) = lookup::alone(config, shape, &step);
                filters.push((kind, Filter::new(&layout, step, cache, shadow)));
            }
        }
        // Kinds are numbered by level.
        filters.sort_by_key(|(kind, _)| *kind);
        Ok(Back {
            homes: Homes {
                hints,
                placements: config.detail.placements.then(Vec::new),
                ..Homes::new(machine, policy)
            },
            frames: Vec::new(),
            virtual_pages: Vec::new(),
            nodes: Vec::new(),
            filters: filters.into_iter().map(|(_, filter)| filter).collect(),
            streams: Default::default(),
            memory: Memory::new(machine, 1 << layout.block_bits),
            cpu: Cpu::new(&layout, 0),
            counts: vec![CacheCounts::default(); layout.caches.len()],
            after: 0,
            moment: 0,
            filled: false,
            layout,
        })
    }

    /// Carries on with the output of the first caches.
    pub fn carry_on(&mut self, chunk: &Chunk) -> Result<(), SimError> {
        for new in &chunk.pages {
            let touch = touch(new.page, new.thread, 0, new.write);
            let frame = self.homes.place(&touch, self.frames.len() + 1)?;
            self.frames.push(frame);
            self.virtual_pages.push(new.page.number);
            // A machine has at most 256 nodes.
            self.nodes.push(self.homes.frames.node_of(frame) as u8);
        }
        let [mut input, mut output] = std::mem::take(&mut self.streams);
        let world = Frames {
            layout: &self.layout,
            frames: &self.frames,
            virtual_pages: &self.virtual_pages,
        };
        let mut entries = chunk.passed.entries();
        for filter in &mut self.filters {
            output.clear();
            filter.run(&world, entries, &mut output, &mut self.counts);
            std::mem::swap(&mut input, &mut output);
            entries = input.entries();
        }
        self.reach_memory(entries);
        self.streams = [input, output];
        Ok(())
    }

    fn reach_memory(&mut self, entries: &[Passed]) {
        let page_pieces = self.layout.page_bits - self.layout.piece_bits;
        for entry in entries {
            self.cpu.clock += Units::from(entry.time);
            if entry.what & NEW != 0 {
                self.cpu.clock += std::mem::take(&mut self.after);
                self.moment = self.cpu.clock;
            }
            if entry.what & TIME != 0 {
                continue;
            }
            let home = u32::from(self.nodes[(entry.piece >> page_pieces) as usize]);
            if entry.what & LOOKUP == 0 {
                if entry.what & (WRITE_BACK | FILLED) != 0 || self.filled {
                    self.memory.write_back(home, self.moment);
                }
                continue;
            }
            self.filled = entry.what & FILLED != 0;
            let wait = self.memory.transfer(home, self.moment);
            let local = home == self.cpu.node;
            let stall = wait + self.memory.latency(self.cpu.node, home);
            let (count, spent) = match local {
                true => (&mut self.cpu.counts.local, &mut self.cpu.spent.local),
                false => (&mut self.cpu.counts.remote, &mut self.cpu.spent.remote),
            };
            *count += 1;
            if entry.what & PASSED_ON == 0 {
                *spent += stall;
                self.after += stall;
                self.cpu.spent.beyond[entry.class().map_or(UNCLASSED, |class| class as usize)] += stall;
                entry.blame(&mut self.counts, stall);
            }
        }
    }

    /// The outcome, including the events of the front.
    pub fn finish(mut self, front: &Front, name: &str, config: &Config, used: bool) -> Simulated {
        front.add_to(&mut self.cpu, &mut self.counts);
        self.cpu.spent.cache += self.filters.iter().map(|filter| filter.stall).sum::<Units>();
        // Nothing else passes on the only cpu's clock.
        self.cpu.clock = self.cpu.spent.total();
        let tally = Tally {
            layout: &self.layout,
            counts: &self.counts,
            cpus: std::slice::from_ref(&self.cpu),
            homes: &self.homes,
            memory: &self.memory,
            software_prefetch: &[],
            faults: false,
            pages: self.frames.len(),
            classes: config.classes,
            knows_instructions: front.knows_instructions(),
        };
        simulated(&tally, name, config, &[used])
    }
}
