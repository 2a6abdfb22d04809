//! Runs of superblocks: addresses become references, and what was run between them is counted.

use std::sync::Arc;

use trace::{Event, Ref};

use crate::block::{Block, Blocks, Malformed, NO_REF, SHORT};
use crate::image::{Commons, Image};
use crate::output::Output;
use crate::wire;

/// Words that are looked at together, at most and at least.
const SPAN: usize = 512;
const SPAN_LEAST: usize = 16;

/// Where runs are found, and where they are stamped.
pub(crate) struct Stamp {
    marks: [u16; SPAN],
    refs: [Ref; SPAN + SHORT],
    /// Words to look at next time: as many again as were of use, so that little is looked at in
    /// vain where unusual runs are many.
    span: usize,
}

impl Stamp {
    pub(crate) fn new() -> Box<Stamp> {
        Box::new(Stamp {
            marks: [0; SPAN],
            refs: [NO_REF; SPAN + SHORT],
            span: SPAN_LEAST,
        })
    }
}

/// Finds the words that are not addresses, of at most [`SPAN`]. Without branches: each word is
/// marked, and its mark written over by the next if it is an address.
fn mark<'a>(marks: &'a mut [u16; SPAN], words: &[u64]) -> &'a [u16] {
    let mut at = 0;
    let mut count = 0;
    let mut look = |word: u64| {
        marks[count % SPAN] = at;
        count += (word >> 63) as usize;
        at += 1;
    };
    let (eights, rest) = words.as_chunks::<8>();
    for eight in eights {
        eight.iter().for_each(|word| look(*word));
    }
    rest.iter().for_each(|word| look(*word));
    &marks[..count]
}

impl Image {
    /// Runs of superblocks from `words[at]` on, as long as nothing about them is unusual: all of a
    /// known superblock was run, and all of it is wanted. Returns where that ends; the run there
    /// is for [`Image::run`].
    ///
    /// This loop sees every reference of the program. A superblock has two of them on average, so
    /// what counts is the cost of each run. It would be that of a chain of loads (where a run ends
    /// is where the next begins), were the beginnings not found first; and that of wrong guesses,
    /// were short runs not stamped without asking how many references they have.
    pub(crate) fn run_on(&mut self, words: &[u64], at: usize, out: &mut Output) -> usize {
        if self.paused || out.fetches || out.room() == 0 {
            return at;
        }
        let blocks: &Blocks = &self.blocks;
        let room = out.room().min(SPAN);
        let mut carried = self.carried;
        let mut taken = 0;
        let words = &words[at..];
        let mut done = 0;
        let Stamp {
            marks,
            refs: stamped,
            span,
        } = &mut *self.stamp;
        for mark in mark(marks, &words[..words.len().min(*span)]).windows(2) {
            let (begin, end) = (usize::from(mark[0]), usize::from(mark[1]));
            done = begin;
            let head = words[begin];
            if wire::kind(head) != wire::BLOCK || wire::kind(words[end]) == wire::EXIT {
                break;
            }
            let Some(block) = blocks.get(head as u32 as usize) else {
                break;
            };
            let Some(templates) = blocks.short_templates(block) else {
                break;
            };
            let refs = end - begin - 1;
            let first = carried + u64::from(templates[0].insns);
            if usize::from(block.refs) != refs || !block.named || first > 255 || taken + refs > room {
                break;
            }
            let free = &mut stamped[taken..];
            let short = (
                free.first_chunk_mut::<SHORT>(),
                words[begin + 1..].first_chunk::<SHORT>(),
            );
            match short {
                (Some(run), Some(addresses)) if refs <= SHORT => {
                    *run = *templates;
                    for (r, &addr) in run.iter_mut().zip(addresses) {
                        r.addr = addr;
                    }
                }
                _ => {
                    for ((r, template), &addr) in free.iter_mut().zip(blocks.templates(block)).zip(&words[begin + 1..])
                    {
                        *r = *template;
                        r.addr = addr;
                    }
                }
            }
            stamped[taken].insns = first as u8;
            carried = if refs == 0 {
                carried + u64::from(block.insns)
            } else {
                u64::from(block.tail)
            };
            taken += refs;
            done = end;
        }
        *span = (2 * done + SPAN_LEAST).min(SPAN);
        self.carried = carried;
        out.take_all(&stamped[..taken]);
        at + done
    }

    /// Any run of a superblock, whose addresses begin at `words[at]`: left early, with references
    /// that were left out, across the border of a window, for the first time ... Returns where it ends.
    pub(crate) fn run(
        &mut self,
        number: usize,
        words: &[u64],
        at: usize,
        out: &mut Output,
        commons: &mut Commons,
    ) -> Result<usize, Malformed> {
        let mut block = *self.blocks.get(number).ok_or(Malformed)?;
        let rest = &words[at..];
        let most = usize::from(block.refs).min(rest.len());
        // How far it got, and whether something in between was left out.
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
            let known = commons.pcs.entry(self.process).or_default();
            Arc::make_mut(&mut self.blocks).name(number, pcs, fetches, |site| {
                known.insert(site.pc);
                out.site(site)
            });
            block = *self.blocks.get(number).ok_or(Malformed)?;
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
            self.tell_work(out);
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

    /// Instructions of the current thread that no reference can carry.
    #[cold]
    pub(crate) fn tell_work(&mut self, out: &mut Output) {
        let instructions = std::mem::take(&mut self.carried);
        if let Some(runner) = self.runners.get(self.current).and_then(Option::as_ref)
            && instructions > 0
            && out.inside()
        {
            out.event(runner.id, Event::Work { instructions });
        }
    }

    /// A run with references that were left out, or with fetches.
    fn run_slowly(&mut self, block: &Block, words: &[u64], insns: u16, out: &mut Output) {
        if self.carried > 100 {
            self.tell_work(out);
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

    /// Puts another thread in the place of the current one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_address_is_found() {
        let tagged = [0, 3, 4, 11, 200, SPAN - 1];
        let mut words = vec![7u64; SPAN];
        for at in tagged {
            words[at] = wire::BLOCK << 60;
        }
        for length in 0..=SPAN {
            let found = mark(&mut [0; SPAN], &words[..length]).to_vec();
            let wanted: Vec<u16> = tagged.iter().filter(|at| **at < length).map(|at| *at as u16).collect();
            assert_eq!(found, wanted, "{length}");
        }
    }
}
