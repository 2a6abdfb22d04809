//! Superblocks: the tool's description of each, sent once, ready for the addresses of its runs.

use std::collections::HashMap;

use trace::{Body, Op, Ref, Site, SiteId};

/// A superblock: ranges in the tables of [`Blocks`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    first_ref: u32,
    pub refs: u16,
    first_insn: u32,
    pub insns: u16,
    first_exit: u32,
    exits: u16,
    first_write: u32,
    writes: u16,
    /// Instructions after its last reference.
    pub tail: u16,
    /// True if its sites have numbers yet: they get them when it is first recorded.
    pub named: bool,
}

/// A place where a superblock can be left.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    pub refs: u16,
    pub insns: u16,
    marked: bool,
    /// A branch that may go the other way leaves it.
    pub conditional: bool,
    /// It is the end, with a target that is known only at run time.
    pub indirect: bool,
    /// The values that decide the branch.
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    pc: u64,
    bytes: u8,
    /// The site of its fetch, once named.
    site: SiteId,
}

/// The source of a value: a word from the tool (`capture/valgrind/flow.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    /// The integer registers at the superblock's entry.
    pub fn registers(self) -> impl Iterator<Item = usize> {
        (0..REGISTERS).filter(move |number| self.0 >> number & 1 != 0)
    }

    /// The superblock's references that load.
    pub fn loads(self) -> impl Iterator<Item = usize> {
        [16, 32, 48]
            .into_iter()
            .filter_map(move |shift| usize::from((self.0 >> shift) as u16).checked_sub(1))
    }

    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// Integer registers.
pub const REGISTERS: usize = 16;

/// The sources of an address and of the value that is written to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    pub address: Origin,
    pub data: Origin,
}

/// A register that received a new value.
#[derive(Clone, Copy, Debug)]
pub struct RegisterWrite {
    pub insn: u16,
    pub number: u8,
    pub origin: Origin,
}

/// The superblocks of an address space, by number.
#[derive(Clone, Default)]
pub struct Blocks {
    blocks: Vec<Block>,
    /// References without addresses. `insns` counts from the reference before it in the superblock,
    /// or from the superblock's entry.
    templates: Vec<Ref>,
    /// The instruction of each, counted in its superblock.
    insn_of: Vec<u16>,
    flows: Vec<Flow>,
    writes: Vec<RegisterWrite>,
    exits: Vec<Exit>,
    instructions: Vec<Instruction>,
    /// Copies for lines of an interpreted program, with the tool's number and the line.
    at_lines: Vec<(Block, u32, u32)>,
    /// Their numbers, by these two.
    numbers_at_lines: HashMap<(u32, u32), u32>,
}

/// Numbers from here on are of copies for lines. The tool's are below.
const AT_LINES: usize = 1 << 31;

/// The descriptor violates the format.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl Blocks {
    /// Adds a descriptor (`record::BLOCK`).
    pub fn define(&mut self, payload: &[u64]) -> Result<(), Malformed> {
        let [number, counts, rest @ ..] = payload else {
            return Err(Malformed);
        };
        let number = usize::try_from(*number).map_err(|_| Malformed)?;
        let [insns, refs, exits, writes] = [0, 16, 32, 48].map(|shift| (counts >> shift) as u16);
        let [ni, nr, ne, nw] = [insns, refs, exits, writes].map(usize::from);
        if number != self.blocks.len() || rest.len() != ni + 3 * nr + 2 * ne + 2 * nw || ni == 0 || ne == 0 {
            return Err(Malformed);
        }
        let (insn_words, rest) = rest.split_at(ni);
        let (ref_words, rest) = rest.split_at(nr);
        let (exit_words, rest) = rest.split_at(ne);
        let (flow_words, rest) = rest.split_at(2 * nr);
        let (origin_words, write_words) = rest.split_at(ne);
        let mut block = Block {
            first_ref: self.templates.len() as u32,
            refs,
            first_insn: self.instructions.len() as u32,
            insns,
            first_exit: self.exits.len() as u32,
            exits,
            first_write: self.writes.len() as u32,
            writes,
            tail: insns,
            named: false,
        };
        let mut before = 0u16;
        for &word in ref_words {
            let insn = word as u16;
            let size = (word >> 16) as u16;
            let op = match (word >> 32) as u8 {
                0 => Op::Read,
                1 => Op::Write,
                2 => Op::Modify,
                3 => Op::Prefetch,
                _ => return Err(Malformed),
            };
            if insn >= insns || insn + 1 < before || size == 0 {
                return Err(Malformed);
            }
            // A superblock has at most some hundred instructions; no template carries more.
            let step = (insn + 1 - before).min(255) as u8;
            before = insn + 1;
            self.templates.push(Ref {
                addr: 0,
                site: 0,
                insns: step,
                op,
                size,
            });
            self.insn_of.push(insn);
            block.tail = insns - 1 - insn;
        }
        for &word in insn_words {
            let (pc, bytes) = (word & ((1 << 56) - 1), (word >> 56) as u8);
            self.instructions.push(Instruction {
                pc,
                bytes: bytes.max(1),
                site: 0,
            });
        }
        for (&word, &origin) in exit_words.iter().zip(origin_words) {
            let exit = Exit {
                refs: word as u16,
                insns: (word >> 16) as u16,
                marked: (word >> 32) & 1 != 0,
                conditional: (word >> 40) & 1 != 0,
                indirect: (word >> 41) & 1 != 0,
                origin: Origin(origin),
            };
            if exit.refs > refs || exit.insns > insns || exit.origin.loads().any(|load| load >= nr) {
                return Err(Malformed);
            }
            self.exits.push(exit);
        }
        for words in flow_words.chunks_exact(2) {
            let [address, data] = [Origin(words[0]), Origin(words[1])];
            if [address, data]
                .into_iter()
                .flat_map(Origin::loads)
                .any(|load| load >= nr)
            {
                return Err(Malformed);
            }
            self.flows.push(Flow { address, data });
        }
        for words in write_words.chunks_exact(2) {
            let (insn, number, origin) = (words[0] as u16, (words[0] >> 16) as u8, Origin(words[1]));
            if insn >= insns || usize::from(number) >= REGISTERS || origin.loads().any(|load| load >= nr) {
                return Err(Malformed);
            }
            self.writes.push(RegisterWrite { insn, number, origin });
        }
        self.blocks.push(block);
        Ok(())
    }

    /// The superblock with that number.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<&Block> {
        match number.checked_sub(AT_LINES) {
            None => self.blocks.get(number),
            Some(copy) => self.at_lines.get(copy).map(|(block, ..)| block),
        }
    }

    /// The number of a superblock's copy for a line, which has its own sites; `None` if there is no such superblock.
    pub fn at_line(&mut self, number: u32, line: u32) -> Option<u32> {
        if let Some(known) = self.numbers_at_lines.get(&(number, line)) {
            return Some(*known);
        }
        let of = *self.blocks.get(number as usize)?;
        let block = Block {
            first_ref: self.templates.len() as u32,
            first_insn: self.instructions.len() as u32,
            named: false,
            ..of
        };
        let references = of.first_ref as usize..of.first_ref as usize + usize::from(of.refs);
        self.templates.extend_from_within(references.clone());
        self.insn_of.extend_from_within(references.clone());
        self.flows.extend_from_within(references);
        let first = of.first_insn as usize;
        self.instructions
            .extend_from_within(first..first + usize::from(of.insns));
        let copy = (AT_LINES + self.at_lines.len()) as u32;
        self.at_lines.push((block, number, line));
        self.numbers_at_lines.insert((number, line), copy);
        Some(copy)
    }

    /// The line that a copy is for.
    pub fn line_of(&self, number: usize) -> Option<u32> {
        let (_, _, line) = self.at_lines.get(number.checked_sub(AT_LINES)?)?;
        Some(*line)
    }

    /// The tool's number of a superblock or of a copy.
    pub fn tools_number(&self, number: usize) -> usize {
        let copy = number.checked_sub(AT_LINES).and_then(|copy| self.at_lines.get(copy));
        copy.map_or(number, |(_, of, _)| *of as usize)
    }

    /// The instructions of a superblock: the address of each, and its bytes.
    pub fn code(&self, block: &Block) -> impl Iterator<Item = (u64, u8)> {
        let first = block.first_insn as usize;
        let instructions = self.instructions.get(first..first + usize::from(block.insns));
        instructions.into_iter().flatten().map(|insn| (insn.pc, insn.bytes))
    }

    /// The address at which the superblock with that number begins.
    pub fn pc(&self, number: usize) -> Option<u64> {
        let first = self.get(number)?.first_insn;
        Some(self.instructions.get(first as usize)?.pc)
    }

    /// The references of a superblock, addresses missing.
    #[inline(always)]
    pub fn templates(&self, block: &Block) -> &[Ref] {
        &self.templates[block.first_ref as usize..][..usize::from(block.refs)]
    }

    /// The sources of the addresses of a superblock's references.
    pub fn flows(&self, block: &Block) -> &[Flow] {
        &self.flows[block.first_ref as usize..][..usize::from(block.refs)]
    }

    /// The registers that a superblock writes, in their order.
    pub fn register_writes(&self, block: &Block) -> &[RegisterWrite] {
        &self.writes[block.first_write as usize..][..usize::from(block.writes)]
    }

    /// The part of a superblock that the writer needs, once its sites have numbers.
    pub fn body(&self, number: usize) -> Option<Body<'_>> {
        let block = self.get(number).filter(|block| block.named)?;
        Some(Body {
            refs: self.templates(block),
            insns: block.insns,
            tail: block.tail,
        })
    }

    /// Instructions begun when the superblock was left after `refs` references, at the exit that
    /// `marker` names, if any.
    #[inline]
    pub fn instructions_run(&self, block: &Block, refs: usize, marker: Option<u16>) -> Result<u16, Malformed> {
        let number = self.exit_run(block, refs, marker)?;
        Ok(self.exits(block)[number].insns)
    }

    /// The exit at which it was left then.
    #[inline]
    pub fn exit_run(&self, block: &Block, refs: usize, marker: Option<u16>) -> Result<usize, Malformed> {
        let exits = self.exits(block);
        let number = match marker {
            Some(number) => {
                Some(usize::from(number)).filter(|&at| exits.get(at).is_some_and(|e| usize::from(e.refs) == refs))
            }
            None if refs == usize::from(block.refs) => exits.len().checked_sub(1),
            None => exits.iter().position(|e| usize::from(e.refs) == refs && !e.marked),
        };
        number.ok_or(Malformed)
    }

    /// The exits of a superblock, in their order; the last one is its end.
    #[inline]
    pub fn exits(&self, block: &Block) -> &[Exit] {
        &self.exits[block.first_exit as usize..][..usize::from(block.exits)]
    }

    /// The address of the instruction after the last one of a superblock.
    pub fn falls_through_to(&self, block: &Block) -> Option<u64> {
        let last = (block.first_insn as usize + usize::from(block.insns)).checked_sub(1)?;
        let Instruction { pc, bytes, .. } = *self.instructions.get(last)?;
        Some(pc + u64::from(bytes))
    }

    /// The instruction of reference `index` of a superblock, counted there.
    pub fn insn_of(&self, block: &Block, index: usize) -> u16 {
        self.insn_of[block.first_ref as usize + index]
    }

    /// The fetch of instruction `index` of a superblock.
    pub fn fetch(&self, block: &Block, index: usize) -> Ref {
        let i = self.instructions[block.first_insn as usize + index];
        Ref {
            addr: i.pc,
            site: i.site,
            insns: 1,
            op: Op::Fetch,
            size: u16::from(i.bytes),
        }
    }

    /// Gives the sites of a superblock their numbers, if it has not got them. `pcs`: sites have
    /// their program counters; `fetches`: instructions are sites, too.
    #[inline(always)]
    pub fn name(&mut self, number: usize, pcs: bool, fetches: bool, site: impl FnMut(Site) -> SiteId) {
        if self.get(number).is_some_and(|block| !block.named) {
            self.name_now(number, pcs, fetches, site);
        }
    }

    #[cold]
    fn name_now(&mut self, number: usize, pcs: bool, fetches: bool, mut site: impl FnMut(Site) -> SiteId) {
        let block = match number.checked_sub(AT_LINES) {
            None => &mut self.blocks[number],
            Some(copy) => &mut self.at_lines[copy].0,
        };
        block.named = true;
        let instructions = &mut self.instructions[block.first_insn as usize..][..usize::from(block.insns)];
        let first = block.first_ref as usize;
        for index in first..first + usize::from(block.refs) {
            let r = &mut self.templates[index];
            let pc = if pcs {
                instructions[usize::from(self.insn_of[index])].pc
            } else {
                0
            };
            r.site = site(Site {
                pc,
                op: r.op,
                size: r.size,
            });
        }
        if fetches {
            for i in instructions {
                let pc = if pcs { i.pc } else { 0 };
                i.site = site(Site {
                    pc,
                    op: Op::Fetch,
                    size: u16::from(i.bytes),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two instructions: a read of 8 bytes, then a branch that may leave, then a write of 4.
    fn descriptor(number: u64) -> Vec<u64> {
        vec![
            number,
            3 | 2 << 16 | 2 << 32 | 1 << 48,
            0x1000 | 4 << 56,
            0x1004 | 2 << 56,
            0x1006 | 3 << 56,
            8 << 16,
            2 | 4 << 16 | 1 << 32,
            1 | 2 << 16 | 1 << 40,
            2 | 3 << 16 | 1 << 41,
            1 << 3,
            0,
            1 << 16,
            1,
            1 << 16 | 1 << 5,
            1 << 2,
            1 | 7 << 16,
            1 << 16,
        ]
    }

    #[test]
    fn a_superblock_says_what_addresses_come_from() {
        let mut blocks = Blocks::default();
        blocks.define(&descriptor(0)).unwrap();
        let block = *blocks.get(0).unwrap();
        let flows = blocks.flows(&block);
        assert_eq!(flows[0].address.registers().collect::<Vec<_>>(), [3]);
        assert_eq!(flows[1].address.loads().collect::<Vec<_>>(), [0]);
        assert_eq!(flows[1].data.registers().collect::<Vec<_>>(), [0]);
        assert!(flows[0].data.is_nothing());
        let writes = blocks.register_writes(&block);
        assert_eq!((writes.len(), writes[0].insn, writes[0].number), (1, 1, 7));
        let mut wrong = descriptor(1);
        wrong[11] = 3 << 16;
        assert_eq!(blocks.define(&wrong), Err(Malformed), "a reference beyond the last");
    }

    #[test]
    fn a_superblock_says_what_was_run_before_each_exit() {
        let mut blocks = Blocks::default();
        blocks.define(&descriptor(0)).unwrap();
        let block = *blocks.get(0).unwrap();
        let steps: Vec<_> = blocks
            .templates(&block)
            .iter()
            .map(|r| (r.insns, r.op, r.size))
            .collect();
        assert_eq!(steps, [(1, Op::Read, 8), (2, Op::Write, 4)]);
        assert_eq!(blocks.instructions_run(&block, 2, None), Ok(3));
        assert_eq!(blocks.instructions_run(&block, 1, None), Ok(2));
        assert_eq!(blocks.instructions_run(&block, 0, None), Err(Malformed));
        assert_eq!(blocks.instructions_run(&block, 1, Some(0)), Ok(2));
        assert_eq!(blocks.instructions_run(&block, 1, Some(1)), Err(Malformed));
    }

    #[test]
    fn a_copy_for_a_line_has_sites_of_its_own_and_all_else_of_the_superblock() {
        let mut blocks = Blocks::default();
        blocks.define(&descriptor(0)).unwrap();
        let mut next = 0;
        let mut site = |_| {
            next += 1;
            next
        };
        blocks.name(0, true, true, &mut site);
        let copy = blocks.at_line(0, 5).unwrap();
        assert_eq!(blocks.at_line(0, 5), Some(copy));
        assert_ne!(blocks.at_line(0, 6), Some(copy));
        assert_eq!(blocks.at_line(1, 5), None);
        let copy = copy as usize;
        assert!(blocks.body(copy).is_none());
        blocks.name(copy, true, true, &mut site);
        let (of, at_line) = (*blocks.get(0).unwrap(), *blocks.get(copy).unwrap());
        let bare = |block| -> Vec<Ref> { blocks.templates(block).iter().map(|r| Ref { site: 0, ..*r }).collect() };
        assert_eq!(bare(&of), bare(&at_line));
        let sites = |block| -> Vec<SiteId> { blocks.templates(block).iter().map(|r| r.site).collect() };
        assert!(sites(&of).iter().all(|site| !sites(&at_line).contains(site)));
        assert_eq!((blocks.line_of(0), blocks.line_of(copy)), (None, Some(5)));
        assert_eq!((blocks.tools_number(0), blocks.tools_number(copy)), (0, 0));
        assert_eq!(blocks.pc(copy), blocks.pc(0));
    }

    #[test]
    fn sites_are_named_once() {
        let mut blocks = Blocks::default();
        blocks.define(&descriptor(0)).unwrap();
        let mut sites = Vec::new();
        for _ in 0..2 {
            blocks.name(0, true, true, |s| {
                sites.push(s);
                sites.len() as SiteId + 9
            });
        }
        let pcs: Vec<_> = sites.iter().map(|s| (s.pc, s.op)).collect();
        assert_eq!(
            pcs,
            [
                (0x1000, Op::Read),
                (0x1006, Op::Write),
                (0x1000, Op::Fetch),
                (0x1004, Op::Fetch),
                (0x1006, Op::Fetch)
            ]
        );
        let block = *blocks.get(0).unwrap();
        assert_eq!(blocks.templates(&block)[1].site, 11);
        assert_eq!(blocks.fetch(&block, 2).site, 14);
    }

    #[test]
    fn malformed_descriptors_are_refused() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.define(&[]), Err(Malformed));
        assert_eq!(blocks.define(&descriptor(1)), Err(Malformed), "numbers have no gaps");
        assert_eq!(blocks.define(&descriptor(0)), Ok(()));
        assert_eq!(
            blocks.define(&descriptor(0)),
            Err(Malformed),
            "nor are they given twice"
        );
        for cut in 0..descriptor(0).len() {
            assert_eq!(blocks.define(&descriptor(0)[..cut]), Err(Malformed));
        }
        let mut wrong = descriptor(0);
        wrong[5] = 9 | 8 << 16;
        assert_eq!(blocks.define(&wrong), Err(Malformed), "an instruction beyond the end");
    }
}
