//! Looking ahead: what references to come will need of the simulator's own tables.

use sys::arrays::prefetch;
use trace::{Op, Ref};

use crate::engine::Engine;
use crate::pieces::Who;

impl Engine {
    /// Has the host fetch what references to come will need, all of it at once, instead of
    /// waiting for one thing after the other when they are carried out.
    pub fn warm(&self, who: Who, refs: &[Ref]) {
        let page_bits = self.layout.page_bits;
        let block_bits = self.layout.block_bits;
        for r in refs {
            let number = r.addr >> page_bits;
            let Some(page) = self.table.peek(who.space, number) else {
                continue;
            };
            prefetch(&self.copies, page as usize);
            if let Some(tlb) = self.tlbs.get(who.cpu as usize) {
                tlb.warm(page, number);
            }
            if self.coherent {
                let lines = page_bits - block_bits;
                let within = (r.addr >> block_bits) as u32 & ((1 << lines) - 1);
                self.directory.warm(page << lines | within);
            }
            let (first, levels) = self.steps.route(who.cpu, r.op == Op::Fetch);
            let mut arena = None;
            for level in first..first + if self.classes { levels } else { 0 } {
                let step = self.steps.get(level);
                if arena != Some(step.arena) {
                    arena = Some(step.arena);
                    let lines = u32::from(step.page_lines);
                    let line = page << lines | (r.addr >> step.line_bits) as u32 & ((1 << lines) - 1);
                    self.arenas[usize::from(step.arena)].warm(line);
                }
            }
        }
        // Where the outer caches have it is known by the frame.
        for r in refs {
            let Some(page) = self.table.peek(who.space, r.addr >> page_bits) else {
                continue;
            };
            let Some(copy) = self.copies.get(page as usize) else {
                continue;
            };
            let physical = copy.frame() << page_bits | r.addr & ((1 << page_bits) - 1);
            let (first, levels) = self.steps.route(who.cpu, r.op == Op::Fetch);
            for level in first + 1..first + levels {
                let step = self.steps.get(level);
                let address = if step.virtual_index { r.addr } else { physical };
                self.caches[step.instance as usize].warm(step.set(&self.layout, address));
            }
        }
    }
}
