//! Runs of superblocks: addresses become references, and the instructions between them are counted.

use std::sync::Arc;

use trace::{Event, Ref};

use crate::address_space::{AddressSpace, Commons};
use crate::block::{Block, Blocks, Malformed};
use crate::output::Output;
use crate::wire;

impl AddressSpace {
    /// Handles runs of superblocks from `words[at]` on, as long as they are ordinary: a known superblock was run
    /// completely, and all of it is wanted. Returns where that ends; the run there is for [`AddressSpace::run`].
    ///
    /// The words go to the writer as they are: a superblock has two references on average, and
    /// the writer needs to foresee but one of their sites.
    pub(crate) fn run_on(&mut self, words: &[u64], at: usize, out: &mut Output) -> usize {
        if self.paused || out.fetches || out.room() == 0 {
            return at;
        }
        let blocks: &Blocks = &self.blocks;
        at + out.take_runs(&words[at..], &mut self.carried, &|head| {
            blocks.body(head as u32 as usize)
        })
    }

    /// Handles any run of a superblock, whose addresses begin at `words[at]`: left early, with omitted references,
    /// across the border of a window, for the first time ... Returns where it ends, or where it begins if it must be
    /// handled again.
    pub(crate) fn run(
        &mut self,
        number: usize,
        words: &[u64],
        at: usize,
        out: &mut Output,
        commons: &mut Commons,
    ) -> Result<usize, Malformed> {
        let block = *self.blocks.get(number).ok_or(Malformed)?;
        let rest = &words[at..];
        let most = usize::from(block.refs).min(rest.len());
        // How far it got, and whether a reference was left out on the way.
        let mut refs = 0;
        let mut nulls = 0;
        for &word in &rest[..most] {
            if word & wire::TAGGED != 0 {
                if word != wire::TAGGED {
                    break;
                }
                nulls += 1;
            }
            refs += 1;
        }
        let mut end = at + refs;
        let marker = match rest.get(refs) {
            Some(&word) if wire::kind(word) == wire::EXIT => {
                end += 1;
                Some(word as u16)
            }
            _ => None,
        };
        let insns = self.blocks.instructions_run(&block, refs, marker)?;
        let done = (refs - nulls) as u64;
        if self.paused {
            return Ok(end);
        }
        if !out.wants(done) {
            out.pass(done);
            self.carried = 0;
            return Ok(end);
        }
        if !block.named {
            let (pcs, fetches) = (out.pcs, out.fetches);
            let (process, lines) = (self.process, &mut self.lines);
            let line = self.blocks.line_of(number).filter(|_| pcs);
            Arc::make_mut(&mut self.blocks).name(number, pcs, fetches, |mut site| {
                match line {
                    Some(line) => site.pc = lines.pc(process, line, site.pc, &mut commons.lines),
                    None => _ = commons.pcs.entry(process).or_default().insert(site.pc),
                }
                out.site(site)
            });
            // Now it may join others.
            return Ok(at - 1);
        }
        if nulls > 0 || out.fetches {
            self.run_slowly(&block, &rest[..refs], insns, out);
            return Ok(end);
        }
        if refs == 0 {
            self.carried += u64::from(insns);
            return Ok(end);
        }
        if self.carried + u64::from(self.blocks.templates(&block)[0].insns) > 255 {
            self.write_work(out);
        }
        let templates = self.blocks.templates(&block);
        let collected = out.collected();
        let from = collected.len();
        collected.extend(templates.iter().zip(&rest[..refs]).map(|(t, &addr)| Ref { addr, ..*t }));
        collected[from].insns += self.carried as u8;
        self.carried = u64::from(insns - 1 - self.blocks.insn_of(&block, refs - 1));
        out.admit(from, done);
        Ok(end)
    }

    /// Writes instructions of the current thread that no reference can carry.
    #[cold]
    pub(crate) fn write_work(&mut self, out: &mut Output) {
        let instructions = std::mem::take(&mut self.carried);
        if let Some(runner) = self.runners.get(self.current).and_then(Option::as_ref)
            && instructions > 0
            && out.inside()
        {
            out.event(runner.id, Event::Work { instructions });
        }
    }

    /// A run with omitted references, or with fetches.
    fn run_slowly(&mut self, block: &Block, words: &[u64], insns: u16, out: &mut Output) {
        if self.carried > 100 {
            self.write_work(out);
        }
        let blocks = Arc::clone(&self.blocks);
        let mut insn = 0;
        let mut done = 0;
        let from = out.collected().len();
        for (index, (&addr, template)) in words.iter().zip(blocks.templates(block)).enumerate() {
            self.advance(&blocks, block, &mut insn, blocks.insn_of(block, index) + 1, out);
            if addr == wire::TAGGED {
                continue;
            }
            done += 1;
            let step = std::mem::take(&mut self.carried).min(255) as u8;
            out.collected().push(Ref {
                addr,
                insns: step,
                ..*template
            });
        }
        self.advance(&blocks, block, &mut insn, insns, out);
        out.admit(from, done);
    }

    /// Runs the instructions up to number `to`: as fetches, or as a count.
    fn advance(&mut self, blocks: &Blocks, block: &Block, insn: &mut u16, to: u16, out: &mut Output) {
        while *insn < to {
            if out.fetches {
                out.collected().push(blocks.fetch(block, usize::from(*insn)));
            } else {
                self.carried += 1;
            }
            *insn += 1;
        }
    }

    /// Makes another thread the current one.
    pub(crate) fn switch(&mut self, tid: usize) {
        if let Some(runner) = self.runners.get_mut(self.current).and_then(Option::as_mut) {
            runner.carried = self.carried;
        }
        self.current = tid;
        self.carried = match self.runners.get(tid).and_then(Option::as_ref) {
            Some(runner) => runner.carried,
            None => 0,
        };
    }
}
