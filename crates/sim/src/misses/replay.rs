//! A policy over a stream of misses: a host that keeps of each page where it is and nothing else.

use machine::Machine;
use policy::{
    Action, Following, HomesFrom, Interest, MissLevel, Nature, Observation, Policy, Pressure, Ran, Tick, Touch,
    Touched, World,
};
use rayon::prelude::*;
use results::{Cpu, CpuMemory, Outcome};

use crate::candidate::pool;
use crate::clock::{Units, whole_ns};
use crate::config::{Config, Costs, PolicySpec};
use crate::error::SimError;
use crate::frames::Frames;
use crate::homes;
use crate::memory::Memory;

mod together;

use super::record::best_homes;
use super::stream::{Miss, MissStream};

/// Each policy of `config` over the stream, in their order, on as many threads of the host as are allowed. The stream is
/// that of `config.machine`.
pub fn replay(stream: &MissStream, config: &Config) -> Result<Vec<Outcome>, SimError> {
    let one = |spec: &PolicySpec| {
        let policy = policy::build(&spec.name, &spec.sets)?;
        replay_with(stream, config, &spec.name.to_string(), policy)
    };
    match config.threads {
        Some(1) => config.policies.iter().map(one).collect(),
        _ => pool(config)?.install(|| config.policies.par_iter().map(one).collect()),
    }
}

/// The same with a policy that was made by hand.
pub fn replay_with(
    stream: &MissStream,
    config: &Config,
    name: &str,
    policy: Box<dyn Policy>,
) -> Result<Outcome, SimError> {
    let mut host = host(stream, config, name, policy)?;
    host.run(stream, &stream.misses)?;
    host.place_until(stream, stream.pages.len())?;
    Ok(host.outcome(stream, name))
}

/// The time that all cpus together wait for memory and spend on moving pages from miss number `from` on, in
/// nanoseconds, under each policy of `config`, with pages where the misses before have left them: the time of a run
/// that has warmed up.
pub fn waits_from(stream: &MissStream, config: &Config, from: usize) -> Result<Vec<u64>, SimError> {
    let one = |spec: &PolicySpec| {
        let (name, policy) = (spec.name.to_string(), policy::build(&spec.name, &spec.sets)?);
        let mut host = host(stream, config, &name, policy)?;
        let (before, after) = stream.misses.split_at(from.min(stream.misses.len()));
        host.run(stream, before)?;
        if !after.is_empty() {
            host.served.fill(0);
            host.overhead_ns.fill(0.0);
        }
        host.run(stream, after)?;
        let time = host.outcome(stream, &name).time_ns;
        Ok(time.local_stall + time.remote_stall + time.policy_overhead)
    };
    pool(config)?.install(|| config.policies.par_iter().map(one).collect())
}

/// A host that has done nothing yet.
fn host(stream: &MissStream, config: &Config, name: &str, mut policy: Box<dyn Policy>) -> Result<Host, SimError> {
    if policy.interest().touches {
        let policy = name.to_string();
        return Err(SimError::NoTouches { policy });
    }
    match policy.wants_best_homes() {
        Some(HomesFrom::Misses) => policy.take_best_homes(&std::sync::Arc::new(best_homes(stream, &config.machine))),
        Some(HomesFrom::Summaries) => {
            let policy = name.to_string();
            return Err(SimError::NotSaid { policy });
        }
        None => {}
    }
    policy.take_prices(&Memory::prices(&config.machine, config.costs, Following::default()));
    let mut host = Host::new(&config.machine, config.costs, policy);
    if let Some(frames) = config.frames_together {
        host.together = true;
        host.world.free_frames.fill(frames);
    }
    Ok(host)
}

/// The place of a page: the node of its first copy, which cpus without a copy of their own use, and [`REPLICATED`]. Two
/// bytes, so that all of them stay in a cache of the host.
type Home = u16;

/// There are other copies.
const REPLICATED: Home = 1 << 15;

struct Host {
    policy: Box<dyn Policy>,
    world: World,
    interest: Interest,
    costs: Costs,
    memory: Memory,
    /// Node of each cpu.
    nodes: Vec<u8>,
    pages: Vec<Home>,
    /// For replicated pages: bit n: node n has a copy.
    copies: Vec<u128>,
    /// Misses of each cpu, by the node that served them.
    served: Vec<u64>,
    overhead_ns: Vec<f64>,
    next_tick_ns: Vec<u64>,
    seen: [u32; 2],
    actions: Vec<Action>,
    /// Nodes that have become short of frames.
    pressed: Vec<u32>,
    /// A frame can be any node's: all have the same number free.
    together: bool,
    counts: Moves,
    used: Used,
}

#[derive(Default)]
struct Moves {
    migrations: u64,
    replications: u64,
    collapses: u64,
}

/// Frames in use, over time.
#[derive(Default)]
struct Used {
    now: u64,
    max: u64,
    /// When the first one was taken, and the number changed last.
    begin_ns: u64,
    since_ns: u64,
    /// Frames times nanoseconds.
    sum: f64,
}

impl Used {
    fn change(&mut self, by: i64, now_ns: u64) {
        // The clocks of cpus differ a little.
        let now_ns = now_ns.max(self.since_ns);
        if self.max == 0 {
            (self.begin_ns, self.since_ns) = (now_ns, now_ns);
        }
        self.sum += self.now as f64 * (now_ns - self.since_ns) as f64;
        self.since_ns = now_ns;
        self.now = self.now.saturating_add_signed(by);
        self.max = self.max.max(self.now);
    }

    fn average(&self) -> f64 {
        match self.since_ns - self.begin_ns {
            0 => self.now as f64,
            time => self.sum / time as f64,
        }
    }
}

impl Host {
    fn new(machine: &Machine, costs: Costs, policy: Box<dyn Policy>) -> Host {
        let frames = Frames::new(machine, 1);
        let world = homes::world(machine, &frames);
        let (cpus, interest) = (machine.cpus as usize, policy.interest());
        let first_tick = if interest.tick_ns == 0 {
            u64::MAX
        } else {
            interest.tick_ns
        };
        Host {
            policy,
            interest,
            costs,
            memory: Memory::new(machine, 1),
            nodes: (0..machine.cpus).map(|cpu| world.node_of(cpu) as u8).collect(),
            pages: Vec::new(),
            copies: Vec::new(),
            served: vec![0; cpus * world.nodes as usize],
            overhead_ns: vec![0.0; cpus],
            next_tick_ns: vec![first_tick; cpus],
            seen: [0; 2],
            actions: Vec::new(),
            pressed: Vec::new(),
            together: false,
            counts: Moves::default(),
            used: Used::default(),
            world,
        }
    }

    #[inline]
    fn miss(&mut self, stream: &MissStream, miss: Miss) -> Result<(), SimError> {
        let (cpu, page) = (miss.cpu() as usize, miss.page() as usize);
        self.world.now_ns = miss.now_ns();
        if page >= self.pages.len() {
            self.place_until(stream, page + 1)?;
        }
        if self.pages[page] & REPLICATED != 0 && miss.is_write() {
            self.written(stream, miss);
        }
        let served_by = self.copy_for(page, self.nodes[cpu]);
        let level = miss.level();
        if level == MissLevel::Cache {
            self.served[cpu * self.world.nodes as usize + served_by as usize] += 1;
        }
        if self.sampled(level) {
            let observed = policy::Miss {
                level,
                page: stream.pages[page].page,
                index: miss.page(),
                thread: miss.thread(),
                cpu: cpu as u32,
                served_by,
                write: miss.is_write(),
                fetch: miss.is_fetch(),
            };
            self.observe(stream, cpu, Observation::Miss(observed), page);
        }
        self.tell_of_pressure(stream, cpu, page);
        if miss.now_ns() >= self.next_tick_ns[cpu] {
            let tick = self.interest.tick_ns;
            self.next_tick_ns[cpu] = (miss.now_ns() / tick + 1) * tick;
            let ran = Ran {
                thread: miss.thread(),
                space: stream.pages[page].page.space,
            };
            let tick = Tick {
                cpu: cpu as u32,
                ran: Some(ran),
            };
            self.observe(stream, cpu, Observation::Tick(tick), page);
        }
        Ok(())
    }

    #[inline]
    fn tell_of_pressure(&mut self, stream: &MissStream, cpu: usize, page: usize) {
        while let Some(node) = self.pressed.pop() {
            let free_frames = self.world.free_frames[node as usize];
            self.observe(stream, cpu, Observation::Pressure(Pressure { node, free_frames }), page);
        }
    }

    /// The node whose copy cpus of a node use.
    #[inline]
    fn copy_for(&self, page: usize, node: u8) -> u32 {
        let home = self.pages[page];
        if home & REPLICATED != 0 && self.copies[page] >> node & 1 == 1 {
            return node.into();
        }
        u32::from(home & !REPLICATED)
    }

    /// Bit n: node n has a copy.
    fn copies_of(&self, page: usize) -> u128 {
        match self.pages[page] {
            home if home & REPLICATED == 0 => 1 << home,
            _ => self.copies[page],
        }
    }

    /// Returns whether the policy is told of this one.
    #[inline]
    fn sampled(&mut self, level: MissLevel) -> bool {
        let (every, seen) = match level {
            MissLevel::Cache => (self.interest.cache_misses, &mut self.seen[0]),
            MissLevel::Tlb => (self.interest.tlb_misses, &mut self.seen[1]),
        };
        if every == 0 {
            return false;
        }
        *seen += 1;
        if *seen < every {
            return false;
        }
        *seen = 0;
        true
    }

    /// Pages are placed in the order in which they were first touched.
    fn place_until(&mut self, stream: &MissStream, pages: usize) -> Result<(), SimError> {
        for touch in &stream.pages[self.pages.len()..pages] {
            let touch = Touch {
                page: touch.page,
                thread: touch.thread,
                cpu: touch.cpu,
                write: touch.write,
            };
            let wish = self.policy.place(&touch, &self.world).node.unwrap_or(0);
            let nodes = self.world.nodes;
            let Some(node) = (0..nodes).map(|i| (wish + i) % nodes).find(|&node| self.take(node)) else {
                return Err(SimError::OutOfFrames {
                    pages: self.used.now,
                    nodes,
                    frames_per_node: self.used.now / u64::from(nodes),
                });
            };
            self.pages.push(node as Home);
            self.copies.push(0);
        }
        Ok(())
    }

    fn observe(&mut self, stream: &MissStream, cpu: usize, observation: Observation, page: usize) {
        self.policy.observe(&observation, &self.world, &mut self.actions);
        self.act(stream, cpu, page);
    }

    /// Carries out the policy's actions on a miss.
    #[inline]
    fn act(&mut self, stream: &MissStream, cpu: usize, page: usize) {
        if self.actions.is_empty() {
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            self.carry_out(stream, cpu, action, page);
        }
        self.actions = actions;
    }

    /// A write finds copies: one is left, regardless of the policy.
    fn written(&mut self, stream: &MissStream, miss: Miss) {
        let (cpu, page) = (miss.cpu() as usize, miss.page() as usize);
        let touched = Touched {
            page: stream.pages[page].page,
            index: miss.page(),
            thread: miss.thread(),
            cpu: miss.cpu(),
            write: true,
            nature: Nature::Data,
        };
        self.observe(stream, cpu, Observation::ReplicaWritten(touched), page);
        self.collapse(cpu, page, Some(self.nodes[cpu].into()), self.costs.collapse_ns);
    }

    /// `near`: the page's likely place.
    fn carry_out(&mut self, stream: &MissStream, cpu: usize, action: Action, near: usize) {
        let find = |page: policy::Page| stream.number_of(page, near).filter(|&page| page < self.pages.len());
        match action {
            Action::Move { page, to } => {
                if let (Some(page), Some(node)) = (find(page), to.node) {
                    self.move_page(cpu, page, node % self.world.nodes);
                }
            }
            Action::Copy { page, node } => {
                if let Some(page) = find(page) {
                    self.copy_page(cpu, page, node % self.world.nodes);
                }
            }
            Action::Collapse { page, node } => {
                if let Some(page) = find(page) {
                    self.collapse(cpu, page, node, self.costs.collapse_ns);
                }
            }
            // A stream has no touches that hit, and its threads stay where they were.
            Action::Close { .. }
            | Action::Open { .. }
            | Action::MoveThread { .. }
            | Action::Allow { .. }
            | Action::Work { .. } => {}
        }
    }

    fn move_page(&mut self, cpu: usize, page: usize, node: u32) {
        self.collapse(cpu, page, None, 0.0);
        let home = self.pages[page];
        if u32::from(home) == node || !self.take(node) {
            return;
        }
        self.give_back(1 << home);
        self.pages[page] = node as Home;
        self.counts.migrations += 1;
        self.overhead_ns[cpu] += self.costs.move_page_ns;
    }

    fn copy_page(&mut self, cpu: usize, page: usize, node: u32) {
        let copies = self.copies_of(page);
        if copies >> node & 1 == 1 || !self.take(node) {
            return;
        }
        self.copies[page] = copies | 1 << node;
        self.pages[page] |= REPLICATED;
        self.counts.replications += 1;
        self.overhead_ns[cpu] += self.costs.copy_page_ns;
    }

    /// Gives up all copies but that of a node, if it has one, else but the first.
    fn collapse(&mut self, cpu: usize, page: usize, node: Option<u32>, cost_ns: f64) {
        if self.pages[page] & REPLICATED == 0 {
            return;
        }
        let copies = self.copies[page];
        let first = u32::from(self.pages[page] & !REPLICATED);
        let kept = node.filter(|node| copies >> node & 1 == 1).unwrap_or(first);
        self.give_back(copies & !(1 << kept));
        self.pages[page] = kept as Home;
        self.counts.collapses += 1;
        self.overhead_ns[cpu] += cost_ns;
    }

    /// The nodes that have one frame less when this one takes one.
    fn sharing(&self, node: u32) -> std::ops::Range<u32> {
        match self.together {
            true => 0..self.world.nodes,
            false => node..node + 1,
        }
    }

    fn take(&mut self, node: u32) -> bool {
        if self.world.free_frames[node as usize] == 0 {
            return false;
        }
        for node in self.sharing(node) {
            let free = &mut self.world.free_frames[node as usize];
            if *free != u64::MAX {
                let before = *free;
                *free -= 1;
                if before >= self.interest.pressure_frames && *free < self.interest.pressure_frames {
                    self.pressed.push(node);
                }
            }
        }
        self.used.change(1, self.world.now_ns);
        true
    }

    fn give_back(&mut self, copies: u128) {
        for node in (0..self.world.nodes).filter(|node| copies >> node & 1 == 1) {
            for node in self.sharing(node) {
                let free = &mut self.world.free_frames[node as usize];
                *free = free.saturating_add(1);
            }
            self.used.change(-1, self.world.now_ns);
        }
    }

    fn of_cpu(&self, cpu: usize, served: &[u64]) -> Counted {
        let here = usize::from(self.nodes[cpu]);
        let time = |node: usize| served[node] * self.memory.latency(here as u32, node as u32);
        let others = || (0..served.len()).filter(|&node| node != here);
        Counted {
            local: served[here],
            remote: others().map(|node| served[node]).sum(),
            local_time: time(here),
            remote_time: others().map(time).sum(),
        }
    }

    /// The run under first touch with other memory times. Cpus wait in proportion to the latencies: overlap, and waits
    /// for contention and dirty lines, are as in that run.
    fn outcome(mut self, stream: &MissStream, name: &str) -> Outcome {
        self.used.change(0, self.world.now_ns);
        let mut run = stream.run.clone();
        run.policy = name.to_string();
        run.replayed_misses = Some(stream.misses.len() as u64);
        run.time_ns = results::Time::default();
        let (mut local, mut remote) = (0, 0);
        let alone = run.per_cpu.is_empty();
        if alone {
            run.per_cpu = vec![Cpu {
                time_ns: stream.run.time_ns,
                ..Cpu::default()
            }];
        }
        let nodes = self.world.nodes as usize;
        for (number, cpu) in run.per_cpu.iter_mut().enumerate() {
            let counted = self.of_cpu(number, &self.served[number * nodes..(number + 1) * nodes]);
            let before = cpu.time_ns;
            let waited = (before.local_stall + before.remote_stall) as f64;
            let node = self.nodes[number].into();
            let ideal = whole_ns(stream.latencies(number as u32, node, &self.memory)) as f64;
            let factor = if ideal > 0.0 { waited / ideal } else { 1.0 };
            let time = &mut cpu.time_ns;
            time.local_stall = (whole_ns(counted.local_time) as f64 * factor) as u64;
            time.remote_stall = (whole_ns(counted.remote_time) as f64 * factor) as u64;
            time.policy_overhead = self.overhead_ns[number] as u64;
            time.stall_by_class = None;
            let gone = before.local_stall + before.remote_stall + before.policy_overhead;
            let come = time.local_stall + time.remote_stall + time.policy_overhead;
            time.total = before.total - gone + come;
            time.wall = before.wall.saturating_sub(gone) + come;
            cpu.memory = CpuMemory {
                local: counted.local,
                remote: counted.remote,
                dirty_remote: 0,
                local_percent: percent(counted.local, counted.remote),
            };
            local += counted.local;
            remote += counted.remote;
            run.time_ns = run.time_ns.plus(&cpu.time_ns);
        }
        if alone {
            run.per_cpu.clear();
        }
        run.memory = results::Memory {
            local,
            remote,
            local_percent: percent(local, remote),
            pages: self.pages.len() as u64,
            pages_max: self.used.max,
            pages_average: Some(self.used.average()),
            migrations: self.counts.migrations,
            replications: self.counts.replications,
            collapses: self.counts.collapses,
            page_faults: run.memory.page_faults,
            ..results::Memory::default()
        };
        run
    }
}

/// Misses that a cpu's own node served, and others, and their time by the latencies alone.
struct Counted {
    local: u64,
    remote: u64,
    local_time: Units,
    remote_time: Units,
}

fn percent(part: u64, other: u64) -> f64 {
    match part + other {
        0 => 0.0,
        all => 100.0 * part as f64 / all as f64,
    }
}
