//! The page table and the page frames of each node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use machine::{Index, Kind, Machine};
use policy::cdpc::PageColors;
use policy::{Accessed, Action, Domains, Observation, Page, Placement, Policy, Touch, World};

pub struct Pages {
    page_bytes: u64,
    colors: u64,
    nodes: u64,
    /// The first `cpu_nodes` have cpus.
    cpu_nodes: u64,
    cpus: u32,
    caches: Option<policy::slots::Caches>,
    domains: Option<Arc<Domains>>,
    /// Threads that run on each cpu or wait there, as policies see it.
    pub runnable: Vec<u32>,
    /// Of each node: its frames, or 0.
    limits: Vec<u64>,
    /// For each node: as many as there are numbers for.
    frames: Vec<u64>,
    /// Numbers from one node's first frame to the next one's.
    frames_per_node: u64,
    used: HashSet<u64>,
    /// The first copy of each page.
    table: HashMap<Page, u64>,
    /// The frames of other copies.
    replicas: HashMap<Page, Vec<u64>>,
    /// Bit c: the page is closed to cpu c.
    closed: HashMap<Page, u128>,
    /// Nodes that have become short of frames; the policy has not been told yet.
    pub pressed: Vec<u64>,
    most_used: usize,
    policy: Box<dyn Policy>,
}

/// The frames of each node, with cpus and without; 0: more than any program touches.
fn limits(machine: &Machine) -> Vec<u64> {
    let memory = &machine.memory;
    let with_cpus = (0..memory.nodes).map(|_| memory.frames_per_node);
    with_cpus.chain(memory.tiers.iter().map(|tier| tier.frames)).collect()
}

/// The same, with a number for each.
pub fn frames(machine: &Machine) -> Vec<u64> {
    let limits = limits(machine).into_iter();
    limits.map(|limit| if limit > 0 { limit } else { 1 << 24 }).collect()
}

/// No node has a free frame.
#[derive(Debug)]
pub struct OutOfFrames;

impl Pages {
    pub fn new(machine: &Machine, policy: Box<dyn Policy>) -> Pages {
        let frames = frames(machine);
        Pages {
            page_bytes: machine.page_bytes,
            colors: colors(machine),
            nodes: frames.len() as u64,
            cpu_nodes: u64::from(machine.memory.nodes),
            cpus: machine.cpus,
            caches: super::slots::caches(machine),
            domains: domains(machine),
            runnable: vec![0; machine.cpus as usize],
            limits: limits(machine),
            frames_per_node: frames.iter().copied().max().unwrap_or(0),
            frames,
            used: HashSet::new(),
            table: HashMap::new(),
            replicas: HashMap::new(),
            closed: HashMap::new(),
            pressed: Vec::new(),
            most_used: 0,
            policy,
        }
    }

    pub fn count(&self) -> u64 {
        self.table.len() as u64
    }

    /// The most frames that were in use at once.
    pub fn most_used(&self) -> u64 {
        self.most_used as u64
    }

    /// Returns whether a page has a color of its own.
    pub fn colors(&self, page: Page) -> bool {
        self.policy.colors(page)
    }

    pub fn interest(&self) -> policy::Interest {
        self.policy.interest()
    }

    pub fn node_of_cpu(&self, cpu: u32) -> u64 {
        u64::from(cpu) * self.cpu_nodes / u64::from(self.cpus)
    }

    /// The number of copies of a page; 0 before it is touched.
    pub fn copies(&self, page: Page) -> usize {
        match self.table.get(&page) {
            None => 0,
            Some(_) => 1 + self.replicas.get(&page).map_or(0, Vec::len),
        }
    }

    /// The frame of the copy that cpus of a node use.
    fn nearest(&self, page: Page, node: u64) -> Option<u64> {
        let first = *self.table.get(&page)?;
        let near = |frame: &u64| *frame / self.frames_per_node == node;
        let replicas = self.replicas.get(&page).into_iter().flatten();
        Some(
            std::iter::once(&first)
                .chain(replicas)
                .copied()
                .find(near)
                .unwrap_or(first),
        )
    }

    pub fn node_of(&self, physical_address: u64) -> u64 {
        physical_address / self.page_bytes / self.frames_per_node
    }

    /// The physical address; the first touch of a page gives it a frame.
    pub fn translate(
        &mut self,
        space: u32,
        address: u64,
        thread: u32,
        cpu: u32,
        write: bool,
        now_ns: u64,
    ) -> Result<u64, OutOfFrames> {
        let page = Page {
            space,
            number: address / self.page_bytes,
        };
        let frame = match self.nearest(page, self.node_of_cpu(cpu)) {
            Some(frame) => frame,
            None => {
                let touch = Touch {
                    page,
                    thread,
                    cpu,
                    write,
                };
                let frame = self.place(&touch, now_ns)?;
                self.table.insert(page, frame);
                frame
            }
        };
        Ok(frame * self.page_bytes + address % self.page_bytes)
    }

    /// Pages in use that have a hint, and those in a frame of that color. Valid if nothing moves.
    pub fn followed(&self, hints: &PageColors) -> (u64, u64) {
        let colors = self
            .table
            .iter()
            .filter_map(|(page, frame)| Some((hints.of(*page)?, *frame)));
        let honoured: Vec<bool> = colors
            .map(|(color, frame)| u64::from(color) % self.colors == frame % self.colors)
            .collect();
        (
            honoured.len() as u64,
            honoured.iter().filter(|honoured| **honoured).count() as u64,
        )
    }

    /// The physical address, if the page has a frame.
    pub fn find(&self, space: u32, address: u64, cpu: u32) -> Option<u64> {
        let number = address / self.page_bytes;
        if self.is_closed(Page { space, number }, cpu) {
            return None;
        }
        let frame = self.nearest(Page { space, number }, self.node_of_cpu(cpu))?;
        Some(frame * self.page_bytes + address % self.page_bytes)
    }

    pub fn is_closed(&self, page: Page, cpu: u32) -> bool {
        self.closed.get(&page).is_some_and(|cpus| cpus >> cpu & 1 == 1)
    }

    pub fn close(&mut self, page: Page, cpus: u128) {
        *self.closed.entry(page).or_default() |= cpus;
    }

    pub fn open(&mut self, page: Page, cpus: u128) {
        *self.closed.entry(page).or_default() &= !cpus;
    }

    fn place(&mut self, touch: &Touch, now_ns: u64) -> Result<u64, OutOfFrames> {
        let world = self.world(now_ns);
        let wish = self.policy.place(touch, &world);
        let color = u64::from(wish.color.unwrap_or(0)) % self.colors;
        let node = u64::from(wish.node.unwrap_or(0)) % self.nodes;
        for node in (node..self.nodes).chain(0..node) {
            if let Some(frame) = self.free_on(node, color) {
                self.take(frame);
                return Ok(frame);
            }
        }
        Err(OutOfFrames)
    }

    /// A free frame of the node, of the color or the nearest one upwards.
    fn free_on(&self, node: u64, color: u64) -> Option<u64> {
        (color..self.colors).chain(0..color).find_map(|color| {
            let first = self.range(node).find(|frame| frame % self.colors == color)?;
            let mut of_color = (first..self.range(node).end).step_by(self.colors as usize);
            of_color.find(|frame| !self.used.contains(frame))
        })
    }

    fn take(&mut self, frame: u64) {
        let node = frame / self.frames_per_node;
        let before = self.free(node);
        self.used.insert(frame);
        self.most_used = self.most_used.max(self.used.len());
        let limit = self.policy.interest().pressure_frames;
        if before >= limit && self.free(node) < limit {
            self.pressed.push(node);
        }
    }

    /// Free frames of a node, as the policy sees them.
    pub fn free(&self, node: u64) -> u64 {
        match self.limits[node as usize] > 0 {
            true => self.range(node).filter(|frame| !self.used.contains(frame)).count() as u64,
            false => u64::MAX,
        }
    }

    fn world(&self, now_ns: u64) -> World {
        World {
            page_bytes: self.page_bytes,
            colors: self.colors as u32,
            cpus: self.cpus,
            nodes: self.nodes as u32,
            cpu_nodes: self.cpu_nodes as u32,
            free_frames: (0..self.nodes).map(|node| self.free(node)).collect(),
            now_ns,
            caches: self.caches.clone(),
            domains: self.domains.clone(),
            runnable: self.runnable.clone(),
        }
    }

    /// The policy's answer to the accessed pages.
    pub fn observe_accessed(&mut self, accessed: &[Accessed], now_ns: u64) -> Vec<Action> {
        let (world, mut actions) = (self.world(now_ns), Vec::new());
        self.policy.observe_accessed(accessed, &world, &mut actions);
        actions
    }

    /// The policy's answer to an event.
    pub fn observe(&mut self, observation: &Observation, now_ns: u64) -> Vec<Action> {
        let (world, mut actions) = (self.world(now_ns), Vec::new());
        self.policy.observe(observation, &world, &mut actions);
        actions
    }

    /// Gives a page that has one copy another frame; the frame that it had and the one that it has, if that changed.
    pub fn move_page(&mut self, page: Page, to: Placement) -> Option<(u64, u64)> {
        let old = *self.table.get(&page)?;
        let color = to.color.map_or(old, u64::from) % self.colors;
        let node = to.node.map_or(old / self.frames_per_node, u64::from) % self.nodes;
        if (node, color) == (old / self.frames_per_node, old % self.colors) {
            return None;
        }
        let frame = self.free_on(node, color)?;
        self.take(frame);
        self.used.remove(&old);
        self.table.insert(page, frame);
        Some((old, frame))
    }

    /// Makes a copy on a node. Returns whether there is a new one.
    pub fn copy(&mut self, page: Page, node: u32) -> bool {
        let node = u64::from(node) % self.nodes;
        let Some(&first) = self.table.get(&page) else {
            return false;
        };
        if self
            .nearest(page, node)
            .is_some_and(|frame| frame / self.frames_per_node == node)
        {
            return false;
        }
        let Some(frame) = self.free_on(node, first % self.colors) else {
            return false;
        };
        self.take(frame);
        self.replicas.entry(page).or_default().push(frame);
        true
    }

    /// Gives up all copies but that on a node, else the first; the frames that were given up.
    pub fn collapse(&mut self, page: Page, node: Option<u64>) -> Vec<u64> {
        let Some(&first) = self.table.get(&page) else {
            return Vec::new();
        };
        let kept = node.and_then(|node| self.nearest(page, node)).unwrap_or(first);
        let mut frames = self.replicas.remove(&page).unwrap_or_default();
        frames.push(first);
        frames.retain(|frame| *frame != kept);
        for frame in &frames {
            self.used.remove(frame);
        }
        self.table.insert(page, kept);
        frames
    }

    fn range(&self, node: u64) -> std::ops::Range<u64> {
        let start = node * self.frames_per_node;
        start..start + self.frames[node as usize]
    }
}

/// The caches of the highest level that not all cpus share, if there are such.
fn domains(machine: &Machine) -> Option<Arc<Domains>> {
    let mut outermost: Option<&machine::Cache> = None;
    for cache in &machine.caches {
        let several = cache.kind != Kind::Instruction && cache.cpus_per_instance < machine.cpus;
        if several && outermost.is_none_or(|known| cache.level >= known.level) {
            outermost = Some(cache);
        }
    }
    outermost.map(|cache| {
        Arc::new(Domains {
            name: cache.name.clone(),
            bytes: cache.bytes,
            of_cpu: (0..machine.cpus).map(|cpu| cpu / cache.cpus_per_instance).collect(),
        })
    })
}

/// The number of frames after which the sets of all physically indexed caches repeat. For the outermost cache that has
/// colors.
pub fn ways(machine: &Machine) -> u32 {
    let mut outermost = (0, 1);
    for cache in machine.caches.iter().filter(|cache| cache.index == Index::Physical) {
        if cache.level >= outermost.0 {
            outermost = (cache.level, cache.ways);
        }
    }
    outermost.1
}

pub fn colors(machine: &Machine) -> u64 {
    let mut colors = 1;
    for cache in machine.caches.iter().filter(|cache| cache.index == Index::Physical) {
        let slices = cache.hash.as_ref().map_or(1, |hash| hash.slices);
        let way = cache.bytes / u64::from(cache.ways) / u64::from(slices);
        let own = (1..).find(|frames| (frames * machine.page_bytes).is_multiple_of(way));
        let own = own.expect("a multiple of the way exists");
        colors = (1..)
            .map(|n| n * colors)
            .find(|n| n % own == 0)
            .expect("a common multiple exists");
    }
    colors
}
