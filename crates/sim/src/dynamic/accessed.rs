//! Access bits: the pages that were touched since a policy looked last, and their contents.

use policy::{Accessed, Nature};
use trace::Thread;

use super::Dynamic;
use crate::clock::{Units, whole_ns};
use crate::engine::Engine;
use crate::error::SimError;

/// Flags of pages: not touched since the last look; touched to be executed; of a thread's stack.
pub const UNSEEN: u8 = 4;
const EXECUTED: u8 = 8;
const STACK: u8 = 16;

/// Bytes that a process's first stack may grow to; the others have their final length.
const GROWTH: u64 = 8 << 20;

/// State kept for a policy that wants to know which pages are accessed.
#[derive(Default)]
pub struct Looks {
    every: Units,
    next: Units,
    /// Pages touched since the last look.
    pages: Vec<u32>,
    /// Stacks: address space, first and last page.
    stacks: Vec<(u32, u64, u64)>,
}

impl Looks {
    pub fn new(accessed_ns: u64) -> Looks {
        let every = accessed_ns.saturating_mul(1 << 20);
        Looks {
            every,
            next: if every == 0 { Units::MAX } else { every },
            ..Looks::default()
        }
    }

    /// Sets the places of these threads' stacks.
    pub fn set_stacks(&mut self, threads: &[Thread], page_bytes: u64) {
        let mut seen = Vec::new();
        for thread in threads {
            let Some((low, high)) = thread.stack.filter(|(low, high)| low < high) else {
                continue;
            };
            let first = !seen.contains(&thread.process);
            seen.push(thread.process);
            let low = if first {
                low.min(high.saturating_sub(GROWTH))
            } else {
                low
            };
            self.stacks
                .push((thread.process, low / page_bytes, (high - 1) / page_bytes));
        }
    }

    pub fn is_due(&self, clock: Units) -> bool {
        clock >= self.next
    }
}

impl Dynamic {
    /// The flags of a page that is touched for the first time.
    pub fn met(&mut self, page: u32, space: u32, number: u64) -> u8 {
        if self.looks.every > 0 {
            self.looks.pages.push(page);
        }
        let on_stack = |&(of, first, last): &(u32, u64, u64)| of == space && (first..=last).contains(&number);
        if self.looks.stacks.iter().any(on_stack) {
            STACK
        } else {
            0
        }
    }

    /// A page is touched, for the first time since the last look.
    pub fn seen(&mut self, page: u32) {
        self.flags[page as usize] &= !UNSEEN;
        self.looks.pages.push(page);
    }

    /// A page is executed.
    pub fn executed(&mut self, page: u32) {
        self.flags[page as usize] |= EXECUTED;
    }

    pub fn nature(&self, page: u32) -> Nature {
        match self.flags[page as usize] {
            flags if flags & EXECUTED != 0 => Nature::Code,
            flags if flags & STACK != 0 => Nature::Stack,
            _ => Nature::Data,
        }
    }
}

impl Engine {
    /// The policy looks which pages were accessed, if it is time.
    pub fn look(&mut self, cpu: u32) -> Result<(), SimError> {
        let clock = self.cpus[cpu as usize].clock;
        let Some(dynamic) = &mut self.dynamic else {
            return Ok(());
        };
        if !dynamic.looks.is_due(clock) {
            return Ok(());
        }
        dynamic.looks.next = (clock / dynamic.looks.every + 1) * dynamic.looks.every;
        let mut pages = std::mem::take(&mut dynamic.looks.pages);
        pages.sort_unstable();
        let accessed: Vec<Accessed> = pages
            .into_iter()
            .map(|index| Accessed {
                page: self.table.page(index),
                index,
                nature: dynamic.nature(index),
            })
            .collect();
        for flags in &mut dynamic.flags {
            *flags |= UNSEEN;
        }
        self.homes.world.now_ns = whole_ns(clock);
        let mut actions = Vec::new();
        let (policy, world) = (&mut self.homes.policy, &self.homes.world);
        policy.observe_accessed(&accessed, world, &mut actions);
        for action in actions {
            self.carry_out(cpu, action)?;
        }
        Ok(())
    }
}
