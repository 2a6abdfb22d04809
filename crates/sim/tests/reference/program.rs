//! The simulated program, as a list that people can read: the items of all threads in one order.

use std::fmt::Write as _;

use trace::{Array, Event, Op};

/// A reference or an event, with the instructions that come before it.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Ref {
        op: Op,
        addr: u64,
        size: u16,
        insns: u8,
        site: u32,
    },
    Event(Event),
}

/// A program's items in their recorded order; each thread's own order follows from it.
#[derive(Clone, Default)]
pub struct Program {
    /// The process of each thread.
    pub spaces: Vec<u32>,
    pub counts_instructions: bool,
    pub has_fetches: bool,
    /// The sites whose addresses come from loaded data.
    pub dependences: Vec<trace::Dependence>,
    /// The time of instructions that wait for each other.
    pub paces: Vec<trace::Pace>,
    pub mispredictions: Vec<trace::Misprediction>,
    /// Names of memory of the first process.
    pub arrays: Vec<Array>,
    pub items: Vec<(u32, Item)>,
}

impl Program {
    /// `threads` threads of one process; instructions are not counted.
    pub fn new(threads: usize) -> Program {
        Program {
            spaces: vec![0; threads],
            ..Program::default()
        }
    }

    pub fn push(&mut self, thread: u32, op: Op, addr: u64, size: u16) {
        self.push_at(thread, 0, op, addr, size);
    }

    /// By the instruction of a site.
    pub fn push_at(&mut self, thread: u32, site: u32, op: Op, addr: u64, size: u16) {
        let item = Item::Ref {
            op,
            addr,
            size,
            insns: 0,
            site,
        };
        self.has_fetches |= op == Op::Fetch;
        self.items.push((thread, item));
    }

    pub fn read(&mut self, thread: u32, addr: u64) {
        self.push(thread, Op::Read, addr, 4);
    }

    pub fn write(&mut self, thread: u32, addr: u64) {
        self.push(thread, Op::Write, addr, 4);
    }

    pub fn event(&mut self, thread: u32, event: Event) {
        self.items.push((thread, Item::Event(event)));
    }

    /// All threads wait for each other.
    pub fn barrier(&mut self) {
        let threads = self.spaces.len() as u32;
        for thread in 0..threads {
            self.event(thread, Event::Barrier { object: 1, threads });
        }
    }

    /// Prefetches are none.
    pub fn references(&self) -> u64 {
        let is_reference = |item: &Item| matches!(item, Item::Ref { op, .. } if *op != Op::Prefetch);
        self.items.iter().filter(|(_, item)| is_reference(item)).count() as u64
    }

    /// The references as `<hex address> <bytes>` lines.
    pub fn loads(&self) -> String {
        let lines = self.items.iter().filter_map(|(_, item)| match item {
            Item::Ref { addr, size, .. } => Some(format!("{addr:x} {size}\n")),
            Item::Event(_) => None,
        });
        lines.collect()
    }

    /// One item a line, in the text format where it has one.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# threads of processes {:?}, instructions {}, fetches {}, {:?}, {:?}, {:?}\n",
            self.spaces, self.counts_instructions, self.has_fetches, self.dependences, self.paces, self.mispredictions
        );
        for array in &self.arrays {
            let _ = writeln!(text, "# {array:?}");
        }
        for (thread, item) in &self.items {
            let _ = match item {
                Item::Ref {
                    op,
                    addr,
                    size,
                    insns,
                    site,
                } => {
                    let letter = match op {
                        Op::Read => 'r',
                        Op::Write => 'w',
                        Op::Modify => 'm',
                        Op::Fetch => 'i',
                        Op::Prefetch => 'p',
                    };
                    writeln!(
                        text,
                        "{thread} {letter} {addr:x} {size}   # {insns} instructions, site {site}"
                    )
                }
                Item::Event(event) => writeln!(text, "{thread} {event:?}"),
            };
        }
        text
    }
}

/// The output of a failing property.
impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}
