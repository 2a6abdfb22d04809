//! The cpus that touch each page of each array, and the arrays that are used together: one pass over a trace.
//!
//! Memory grows with the pages that the program touches (two sets of cpus each) and not with the trace.

use std::collections::BTreeSet;

use trace::{Event, Op, Ref};

use super::arrays::{Array, ArrayId, Arrays, Owner};
use super::replay::{Visitor, replay};
use super::teams::Teams;
use crate::config::Window;
use crate::error::SimError;
use crate::input::Input;
use crate::pages::PageTable;
use crate::window::{Passes, Progress};

/// A page and the cpus that touched it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub space: u32,
    pub page: u64,
    pub owner: Owner,
    /// Bit `c`: cpu `c` touched it.
    pub cpus: u128,
    /// The same for work that several threads did at once.
    pub parallel: u128,
}

/// The results of the pass.
#[derive(Debug, Default)]
pub struct Touches {
    /// In no order that means anything.
    pub pages: Vec<Touched>,
    pub arrays: Vec<Array>,
    /// Arrays that a thread used between two moments at which threads meet: in work that several threads did at once,
    /// and in work that one did alone. The first [`GROUPS`] different sets of each.
    pub together: Vec<Vec<ArrayId>>,
    pub together_alone: Vec<Vec<ArrayId>>,
}

#[derive(Clone, Copy)]
struct Page {
    cpus: u128,
    parallel: u128,
    owner: Owner,
    epoch: u32,
}

/// Different sets of arrays used together that are kept; a bound on memory.
pub const GROUPS: usize = 4096;

/// Pages that a thread noted lately, by the lowest bits of their number.
const NOTED: usize = 64;

struct Thread {
    space: u32,
    bit: u128,
    last: (u64, u64),
    noted: [(u64, u64); NOTED],
    /// True if it is at work together with others.
    parallel: bool,
    /// Arrays used since threads met last.
    used: Bits,
}

struct Pass {
    page_bits: u32,
    table: PageTable,
    pages: Vec<Page>,
    arrays: Arrays,
    teams: Teams,
    threads: Vec<Thread>,
    /// In work done alone, and together.
    groups: [Groups; 2],
    /// The counted window, and whether it is open now.
    window: Progress,
    open: bool,
    /// Touches noted before this changed are to be noted again.
    stamp: u64,
}

/// Goes through a trace. `page_bytes` is a power of two; thread `t` is on cpu `t mod cpus`.
pub fn touches(
    input: &mut dyn Input,
    page_bytes: u64,
    cpus: u32,
    window: Option<&Window>,
) -> Result<Touches, SimError> {
    let thread = |(number, about): (usize, &crate::input::ThreadAbout)| Thread {
        space: about.space,
        bit: 1 << (number as u32 % cpus.clamp(1, 128)),
        last: (0, 0),
        noted: [(0, 0); NOTED],
        parallel: false,
        used: Bits::default(),
    };
    let mut pass = Pass {
        page_bits: page_bytes.trailing_zeros(),
        table: PageTable::new(),
        pages: Vec::new(),
        arrays: Arrays::new(&input.names().tables, page_bytes),
        teams: Teams::new(input.threads()),
        threads: input.threads().iter().enumerate().map(thread).collect(),
        groups: Default::default(),
        open: window.is_none_or(|window| window.from_phase.is_none()),
        window: Progress::new(window),
        stamp: 1,
    };
    replay(input, &mut pass)?;
    for thread in 0..pass.threads.len() {
        pass.meet(thread as u32);
    }
    let [alone, together] = pass.groups.map(|groups| groups.known.into_iter().collect());
    let pages = pass.pages.iter().enumerate();
    let page = |(number, page): (usize, &Page)| {
        let at = pass.table.page(number as u32);
        Touched {
            space: at.space,
            page: at.number,
            owner: page.owner,
            cpus: page.cpus,
            parallel: page.parallel,
        }
    };
    Ok(Touches {
        pages: pages.map(page).collect(),
        arrays: pass.arrays.into_found(),
        together,
        together_alone: alone,
    })
}

impl Visitor for Pass {
    fn references(&mut self, thread: u32, refs: &[Ref]) {
        self.teams.goes_on(thread);
        if !self.open {
            return;
        }
        let parallel = self.teams.is_parallel(thread);
        if parallel != self.threads[thread as usize].parallel {
            self.meet(thread);
            self.threads[thread as usize].parallel = parallel;
            self.stamp += 1;
        }
        for r in refs {
            if matches!(r.op, Op::Fetch | Op::Prefetch) {
                continue;
            }
            let first = r.addr >> self.page_bits;
            let last = r.addr.saturating_add(u64::from(r.size.max(1)) - 1) >> self.page_bits;
            self.touch(thread, first);
            if last != first {
                self.touch(thread, last);
            }
        }
    }

    fn event(&mut self, thread: u32, event: &Event) {
        let space = self.threads[thread as usize].space;
        match event {
            Event::Alloc { .. } | Event::Free { .. } | Event::Spawn { .. } => {
                let before = self.arrays.epoch();
                self.arrays.apply(space, thread, event);
                self.stamp += u64::from(self.arrays.epoch() != before);
            }
            Event::Phase { name } => self.phase(name),
            _ => {}
        }
        match event {
            Event::Barrier { .. }
            | Event::Post { .. }
            | Event::Wait { .. }
            | Event::Spawn { .. }
            | Event::Join { .. }
            | Event::Phase { .. }
            | Event::TeamBegin { .. }
            | Event::TeamEnd { .. }
            | Event::Exit => {
                self.meet(thread);
                self.teams.goes_on(thread);
                self.teams.event(thread, event);
            }
            _ => {}
        }
    }
}

impl Pass {
    fn phase(&mut self, name: &str) {
        match self.window.enters(name) {
            Passes::Begins => self.open = true,
            Passes::Ends => self.open = false,
            Passes::Nothing => {}
        }
    }

    #[inline(always)]
    fn touch(&mut self, thread: u32, page: u64) {
        let state = &mut self.threads[thread as usize];
        if state.last == (page, self.stamp) {
            return;
        }
        state.last = (page, self.stamp);
        let slot = &mut state.noted[page as usize % NOTED];
        if *slot != (page, self.stamp) {
            *slot = (page, self.stamp);
            self.note(thread, page);
        }
    }

    #[inline(never)]
    fn note(&mut self, thread: u32, number: u64) {
        let thread = &mut self.threads[thread as usize];
        let (at, new) = self.table.touch(thread.space, number);
        if new {
            self.pages.push(Page {
                cpus: 0,
                parallel: 0,
                owner: Owner::Small,
                epoch: 0,
            });
        }
        let page = &mut self.pages[at as usize];
        page.cpus |= thread.bit;
        if thread.parallel {
            page.parallel |= thread.bit;
        }
        if page.epoch != self.arrays.epoch() {
            page.epoch = self.arrays.epoch();
            let owner = self.arrays.owner(thread.space, number);
            // A block that is gone leaves its page to the next owner.
            if !matches!((page.owner, owner), (Owner::Array(_), Owner::Small | Owner::Unnamed)) {
                page.owner = owner;
            }
        }
        if let Owner::Array(array) = page.owner {
            thread.used.set(array);
        }
    }

    /// The arrays that the thread used since threads last met were used together.
    fn meet(&mut self, thread: u32) {
        let thread = &mut self.threads[thread as usize];
        if !thread.used.is_empty() {
            self.groups[usize::from(thread.parallel)].add(&thread.used);
            thread.used.clear();
            self.stamp += 1;
        }
    }
}

/// A set of arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn set(&mut self, array: ArrayId) {
        let word = array as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (array % 64);
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    fn iter(&self) -> impl Iterator<Item = ArrayId> + '_ {
        let arrays = |(at, &word): (usize, &u64)| {
            let set = move |bit: &u32| word & (1 << bit) != 0;
            (0..64u32).filter(set).map(move |bit| at as u32 * 64 + bit)
        };
        self.words.iter().enumerate().flat_map(arrays)
    }
}

/// Sets of arrays that were used together.
#[derive(Clone, Debug, Default)]
struct Groups {
    known: BTreeSet<Vec<ArrayId>>,
    /// The set that was added last: mostly the next is the same.
    last: Bits,
}

impl Groups {
    fn add(&mut self, used: &Bits) {
        if self.last == *used || self.known.len() >= GROUPS {
            return;
        }
        self.last.clone_from(used);
        self.known.insert(used.iter().collect());
    }
}
