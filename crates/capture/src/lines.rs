//! The lines of an interpreted program, and the program counters that stand for them in the trace.

use std::collections::HashMap;

use trace::{Frame, Location, Stack, StackId};

use crate::output::Output;

/// The first program counter of lines: no address is so high, and a double holds it exactly.
const FIRST_PC: u64 = 1 << 52;

#[derive(Clone)]
struct Line {
    function: String,
    file: String,
    line: u32,
}

/// The lines of an address space.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    /// By the program's own numbers.
    numbers: HashMap<u64, u32>,
    /// By line and address.
    pcs: HashMap<(u32, u64), u64>,
    /// The trace's numbers, which are of one process.
    stacks: HashMap<Vec<u32>, StackId>,
}

impl Lines {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// By the program's own number.
    pub(crate) fn number(&self, own: u64) -> Option<u32> {
        self.numbers.get(&own).copied()
    }

    /// Handles `record::LINE`; a reused number means the new line from then on.
    pub(crate) fn define(&mut self, number: u64, line: u64, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let (function, file) = name.split_once('\n').unwrap_or((&name, "?"));
        self.numbers.insert(number, self.lines.len() as u32);
        self.lines.push(Line {
            function: function.to_string(),
            file: file.to_string(),
            line: u32::try_from(line).unwrap_or(0),
        });
    }

    /// The program counter at a line of the instruction at `address`; 0 stands for the line itself.
    pub(crate) fn pc(&mut self, process: u32, line: u32, address: u64, locations: &mut Vec<Location>) -> u64 {
        let next = FIRST_PC + self.pcs.len() as u64;
        let pc = *self.pcs.entry((line, address)).or_insert(next);
        if pc == next
            && let Some(Line { function, file, line }) = self.lines.get(line as usize)
        {
            locations.push(Location {
                process,
                pc,
                function: function.clone(),
                file: Some(file.clone()),
                line: Some(*line).filter(|line| *line > 0),
                inlined_into: Vec::new(),
            });
        }
        pc
    }

    pub(crate) fn stack(
        &mut self,
        process: u32,
        at: &[u32],
        out: &mut Output,
        locations: &mut Vec<Location>,
    ) -> StackId {
        if let Some(known) = self.stacks.get(at) {
            return *known;
        }
        let frames = at.iter().map(|line| Frame {
            pc: self.pc(process, *line, 0, locations),
        });
        let frames = frames.collect();
        let id = out.stack(Stack { process, frames });
        self.stacks.insert(at.to_vec(), id);
        id
    }

    /// The lines of a child, which inherits all of them.
    pub(crate) fn of_child(&self, parent: u32, child: u32, locations: &mut Vec<Location>) -> Lines {
        let of_parent = locations.iter().filter(|of| of.process == parent);
        let of_child = of_parent.map(|of| Location {
            process: child,
            ..of.clone()
        });
        let of_child: Vec<Location> = of_child.collect();
        locations.extend(of_child);
        Lines {
            stacks: HashMap::new(),
            ..self.clone()
        }
    }
}
