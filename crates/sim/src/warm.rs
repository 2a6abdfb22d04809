//! Looking ahead: prefetches the simulator's own tables for references to come.

use sys::arrays::prefetch;
use trace::Op;

use crate::engine::Engine;
use crate::pieces::Who;

impl Engine {
    /// Prefetches the data for references to come on the host, all of it at once, instead of
    /// waiting for one thing after the other when they are carried out.
    pub fn warm(&self, who: Who, refs: impl Iterator<Item = (u64, Op)> + Clone) {
        let page_bits = self.layout.page_bits;
        let block_bits = self.layout.block_bits;
        for (addr, op) in refs.clone() {
            let number = addr >> page_bits;
            let Some(page) = self.table.peek(who.space, number) else {
                continue;
            };
            prefetch(&self.copies, page as usize);
            if let Some(tlb) = self.tlbs.get(who.cpu as usize) {
                tlb.warm(page, number);
            }
            if self.coherent {
                let lines = page_bits - block_bits;
                let within = (addr >> block_bits) as u32 & ((1 << lines) - 1);
                self.directory.warm(page << lines | within);
            }
            let (first, levels) = self.steps.route(who.cpu, op == Op::Fetch);
            let mut arena = None;
            for level in first..first + if self.classes { levels } else { 0 } {
                let step = self.steps.get(level);
                if arena != Some(step.arena) {
                    arena = Some(step.arena);
                    let lines = u32::from(step.page_lines);
                    let line = page << lines | (addr >> step.line_bits) as u32 & ((1 << lines) - 1);
                    self.arenas[usize::from(step.arena)].warm(line);
                }
            }
        }
        // The frame gives its place in the outer caches.
        for (addr, op) in refs {
            let Some(page) = self.table.peek(who.space, addr >> page_bits) else {
                continue;
            };
            let Some(copy) = self.copies.get(page as usize) else {
                continue;
            };
            let physical = copy.frame() << page_bits | addr & ((1 << page_bits) - 1);
            let (first, levels) = self.steps.route(who.cpu, op == Op::Fetch);
            for level in first + 1..first + levels {
                let step = self.steps.get(level);
                let address = if step.virtual_index { addr } else { physical };
                self.caches[step.instance as usize].warm(step.set(&self.layout, address));
            }
        }
    }
}
