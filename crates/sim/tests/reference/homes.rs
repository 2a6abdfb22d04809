//! Policies that act while the program runs: the reports they get, and the fate of pages and their copies.

use std::collections::{BTreeSet, HashSet};

use policy::{
    Accessed, Action, Interest, Miss, MissLevel, Nature, Observation, Page, Placement, Pressure, Ran, Tick, Touched,
};

use super::{Model, units};

/// State kept between observations.
pub struct Moments {
    interest: Interest,
    /// Misses of the caches and TLBs so far.
    cache_misses: u64,
    tlb_misses: u64,
    /// The multiple of the tick that each cpu's clock has yet to reach, in units.
    next_tick: Vec<u64>,
    /// Pages in the order in which they were heard of, which numbers them.
    heard: Vec<Page>,
    /// The multiple of the interval between looks at accessed pages that no clock has reached, in units.
    next_look: u64,
    /// Pages touched since the last look, and pages ever executed, by their numbers.
    accessed: BTreeSet<u32>,
    executed: HashSet<u32>,
    /// Threads to be moved: thread, cpu, and when.
    pub moves: Vec<(u32, u32, u64)>,
    /// Threads to be kept on cpus: by which cpu's doing, the thread, and its cpus.
    pub allowed: Vec<(usize, u32, u128)>,
}

impl Moments {
    pub fn new(interest: Interest, cpus: u32) -> Moments {
        Moments {
            interest,
            cache_misses: 0,
            tlb_misses: 0,
            next_tick: vec![interest.tick_ns << 20; cpus as usize],
            heard: Vec::new(),
            next_look: interest.accessed_ns << 20,
            accessed: BTreeSet::new(),
            executed: HashSet::new(),
            moves: Vec::new(),
            allowed: Vec::new(),
        }
    }

    fn nature(&self, index: u32) -> Nature {
        match self.executed.contains(&index) {
            true => Nature::Code,
            false => Nature::Data,
        }
    }

    fn index(&mut self, page: Page) -> u32 {
        let known = self.heard.iter().position(|&known| known == page);
        let index = known.unwrap_or(self.heard.len());
        if known.is_none() {
            self.heard.push(page);
        }
        index as u32
    }
}

/// Returns whether the latest of `every` is one that is reported.
fn sampled(count: &mut u64, every: u32) -> bool {
    *count += 1;
    every > 0 && count.is_multiple_of(every.into())
}

/// A piece, as policies see it.
#[derive(Clone, Copy)]
pub struct Seen {
    pub cpu: usize,
    pub thread: u32,
    pub page: Page,
    pub write: bool,
    pub fetch: bool,
}

impl Model<'_> {
    fn acts(&self) -> bool {
        self.moments.interest != Interest::NONE
    }

    /// The time of a touch of a closed page, and of a write to a page with copies, before it is carried out.
    pub fn before(&mut self, piece: Seen, clock: u64) -> u64 {
        if !self.acts() {
            return 0;
        }
        let index = self.moments.index(piece.page);
        self.moments.accessed.insert(index);
        if piece.fetch {
            self.moments.executed.insert(index);
        }
        let touched = Touched {
            page: piece.page,
            index,
            thread: piece.thread,
            cpu: piece.cpu as u32,
            write: piece.write,
            nature: self.moments.nature(index),
        };
        let mut took = 0;
        if self.pages.is_closed(piece.page, piece.cpu as u32) {
            let own = self.moments.interest.touch_fault_ns;
            took += self.charge(
                piece.cpu,
                if own > 0 {
                    own as f64
                } else {
                    sim::VERGHESE96.touch_fault_ns
                },
            );
            if self.moments.interest.touches {
                took += self.observe(piece.cpu, &Observation::Touched(touched), clock + took);
            }
        }
        if !piece.write || self.pages.copies(piece.page) < 2 {
            return took;
        }
        took += self.observe(piece.cpu, &Observation::ReplicaWritten(touched), clock + took);
        if self.pages.copies(piece.page) > 1 {
            let node = self.pages.node_of_cpu(piece.cpu as u32);
            self.collapse(piece.page, Some(node));
            took += self.charge(piece.cpu, sim::VERGHESE96.collapse_ns);
        }
        took
    }

    /// The policy's actions after a piece. `reached`: memory or a dirty remote cache; `node`: of the copy that was
    /// used.
    pub fn after(&mut self, piece: Seen, tlb_missed: bool, reached: bool, node: u64, clock: u64) -> u64 {
        if !self.acts() {
            return 0;
        }
        let (interest, index) = (self.moments.interest, self.moments.index(piece.page));
        let miss = |level| {
            Observation::Miss(Miss {
                level,
                page: piece.page,
                index,
                thread: piece.thread,
                cpu: piece.cpu as u32,
                served_by: node as u32,
                write: piece.write,
                fetch: piece.fetch,
            })
        };
        let mut took = 0;
        if tlb_missed && sampled(&mut self.moments.tlb_misses, interest.tlb_misses) {
            took += self.observe(piece.cpu, &miss(MissLevel::Tlb), clock + took);
        }
        if reached && sampled(&mut self.moments.cache_misses, interest.cache_misses) {
            took += self.observe(piece.cpu, &miss(MissLevel::Cache), clock + took);
        }
        while let Some(node) = self.pages.pressed.pop() {
            let free_frames = self.pages.free(node);
            let node = node as u32;
            let pressure = Observation::Pressure(Pressure { node, free_frames });
            took += self.observe(piece.cpu, &pressure, clock + took);
        }
        let look = interest.accessed_ns << 20;
        if look > 0 && clock + took >= self.moments.next_look {
            self.moments.next_look = ((clock + took) / look + 1) * look;
            let accessed: Vec<Accessed> = std::mem::take(&mut self.moments.accessed)
                .into_iter()
                .map(|index| Accessed {
                    page: self.moments.heard[index as usize],
                    index,
                    nature: self.moments.nature(index),
                })
                .collect();
            let now_ns = (clock + took) >> 20;
            let actions = self.pages.observe_accessed(&accessed, now_ns);
            took += self.act(piece.cpu, actions, clock + took);
        }
        let tick = interest.tick_ns << 20;
        if tick > 0 && clock + took >= self.moments.next_tick[piece.cpu] {
            self.moments.next_tick[piece.cpu] = ((clock + took) / tick + 1) * tick;
            let cpu = piece.cpu as u32;
            let ran = Some(Ran {
                thread: piece.thread,
                space: piece.page.space,
            });
            took += self.observe(piece.cpu, &Observation::Tick(Tick { cpu, ran }), clock + took);
        }
        took
    }

    /// Tells the policy of an event. Returns how long its actions take the cpu.
    pub fn observe(&mut self, cpu: usize, observation: &Observation, clock: u64) -> u64 {
        let actions = self.pages.observe(observation, clock >> 20);
        self.act(cpu, actions, clock)
    }

    fn act(&mut self, cpu: usize, actions: Vec<Action>, clock: u64) -> u64 {
        let costs = &sim::VERGHESE96;
        let mut took = 0;
        for action in actions {
            let ns = match action {
                Action::Move { page, to } => self.move_page(page, to),
                Action::Copy { page, node } => self.pages.copy(page, node).then(|| {
                    self.untranslate(page);
                    self.copied += 1;
                    costs.copy_page_ns
                }),
                Action::Collapse { page, node } => (self.pages.copies(page) > 1).then(|| {
                    self.collapse(page, node.map(u64::from));
                    costs.collapse_ns
                }),
                Action::Close { page, cpus } => {
                    self.pages.close(page, cpus);
                    None
                }
                Action::Open { page, cpus } => {
                    self.pages.open(page, cpus);
                    None
                }
                Action::Work { ns } => Some(ns as f64),
                Action::Allow { thread, cpus } => {
                    if (thread as usize) < self.program.spaces.len() {
                        self.moments.allowed.push((cpu, thread, cpus));
                    }
                    None
                }
                Action::MoveThread { thread, cpu: to } => {
                    let known = (thread as usize) < self.program.spaces.len() && to < self.machine.cpus;
                    let costs = self.move_thread_ns();
                    known.then(|| {
                        let at = clock + took + units(costs);
                        self.moments.moves.push((thread, to, at));
                        costs
                    })
                }
            };
            took += ns.map_or(0, |ns| self.charge(cpu, ns));
        }
        took
    }

    fn move_thread_ns(&self) -> f64 {
        match self.moments.interest.move_thread_ns {
            0 => sim::VERGHESE96.move_thread_ns,
            own => own as f64,
        }
    }

    /// A cpu has to move a thread. Returns the time of that.
    pub fn charge_move(&mut self, cpu: usize) -> u64 {
        self.charge(cpu, self.move_thread_ns())
    }

    fn charge(&mut self, cpu: usize, ns: f64) -> u64 {
        self.cpus[cpu].time.policy += units(ns);
        units(ns)
    }

    /// Its own translations are gone, and those of the huge page that it is a part of.
    pub fn untranslate(&mut self, page: Page) {
        let address = page.number * self.machine.page_bytes;
        let entries = [true, false].map(|huge| self.translated(page.space, address, huge));
        for tlb in &mut self.tlbs {
            entries.into_iter().for_each(|entry| tlb.remove(entry));
        }
    }

    /// The cost of the move, if the page has a new frame.
    fn move_page(&mut self, page: Page, to: Placement) -> Option<f64> {
        if self.pages.copies(page) > 1 {
            self.collapse(page, None);
        }
        let (old, new) = self.pages.move_page(page, to)?;
        self.forget(old);
        self.untranslate(page);
        let frames = self.machine.page_bytes;
        if self.pages.node_of(old * frames) == self.pages.node_of(new * frames) {
            return Some(sim::VERGHESE96.recolor_page_ns);
        }
        self.moved += 1;
        Some(sim::VERGHESE96.move_page_ns)
    }

    fn collapse(&mut self, page: Page, node: Option<u64>) {
        for frame in self.pages.collapse(page, node) {
            self.forget(frame);
        }
        self.untranslate(page);
        self.collapsed += 1;
    }

    fn forget(&mut self, frame: u64) {
        let bytes = self.machine.page_bytes;
        self.hierarchy.forget(frame * bytes, bytes);
    }
}
