//! Page frames: which are free, node by node and color by color.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use machine::Machine;

/// Frames of a node where the machine does not say how many it has.
const UNLIMITED: u64 = 1 << 24;

pub struct Frames {
    colors: u64,
    /// Numbers of frames from one node's first to the next one's.
    per_node: u64,
    nodes: Vec<Node>,
    /// Frames of one node and color.
    shelves: HashMap<(u32, u32), Shelf>,
    used: u64,
    used_max: u64,
}

struct Node {
    free: u64,
    all: u64,
    limited: bool,
}

#[derive(Default)]
struct Shelf {
    /// Frames given so far and not counting those given back.
    given: u64,
    back: BinaryHeap<Reverse<u64>>,
}

impl Frames {
    pub fn new(machine: &Machine, colors: u32) -> Self {
        let memory = &machine.memory;
        let node = |node: u32| match memory.frames_of(node) {
            0 => Node {
                free: UNLIMITED,
                all: UNLIMITED,
                limited: false,
            },
            frames => Node {
                free: frames,
                all: frames,
                limited: true,
            },
        };
        let nodes: Vec<Node> = (0..memory.all_nodes()).map(node).collect();
        Frames {
            colors: u64::from(colors.max(1)),
            per_node: nodes.iter().map(|node| node.all).max().unwrap_or(UNLIMITED),
            nodes,
            shelves: HashMap::new(),
            used: 0,
            used_max: 0,
        }
    }

    pub fn colors(&self) -> u32 {
        self.colors as u32
    }

    /// Free frames of a node, as policies see them.
    pub fn free(&self, node: u32) -> u64 {
        match &self.nodes[node as usize] {
            node if node.limited => node.free,
            _ => u64::MAX,
        }
    }

    pub fn per_node(&self) -> u64 {
        self.per_node
    }

    /// Most frames that were in use at once.
    pub fn used_max(&self) -> u64 {
        self.used_max
    }

    pub fn node_of(&self, frame: u64) -> u32 {
        (frame / self.per_node) as u32
    }

    pub fn color_of(&self, frame: u64) -> u32 {
        (frame % self.colors) as u32
    }

    /// A frame of the node and color, else of the nearest color upwards, else of the next node.
    pub fn take(&mut self, node: u32, color: u32) -> Option<u64> {
        let nodes = self.nodes.len() as u32;
        (0..nodes).find_map(|i| self.take_on((node + i) % nodes, color))
    }

    /// The same on one node only.
    pub fn take_on(&mut self, node: u32, color: u32) -> Option<u64> {
        if self.nodes[node as usize].free == 0 {
            return None;
        }
        let colors = self.colors as u32;
        let frame =
            (0..colors).find_map(|i| self.take_of(node, ((u64::from(color) + u64::from(i)) % self.colors) as u32))?;
        self.nodes[node as usize].free -= 1;
        self.used += 1;
        self.used_max = self.used_max.max(self.used);
        Some(frame)
    }

    fn take_of(&mut self, node: u32, color: u32) -> Option<u64> {
        let start = u64::from(node) * self.per_node;
        let first = start + (u64::from(color) + self.colors - start % self.colors) % self.colors;
        let shelf = self.shelves.entry((node, color)).or_default();
        if let Some(Reverse(frame)) = shelf.back.pop() {
            return Some(frame);
        }
        let frame = first + shelf.given * self.colors;
        if frame >= start + self.nodes[node as usize].all {
            return None;
        }
        shelf.given += 1;
        Some(frame)
    }

    pub fn give_back(&mut self, frame: u64) {
        let node = self.node_of(frame);
        let color = self.color_of(frame);
        self.shelves.entry((node, color)).or_default().back.push(Reverse(frame));
        self.nodes[node as usize].free += 1;
        self.used -= 1;
    }
}

/// The machine's color count: the least common multiple over its physically indexed caches of
/// the number of pages after which sets repeat.
pub fn colors(machine: &Machine) -> u32 {
    let mut colors = 1u64;
    for cache in &machine.caches {
        if cache.index == machine::Index::Virtual {
            continue;
        }
        let slices = cache.hash.as_ref().map_or(1, |hash| u64::from(hash.slices.max(1)));
        let way_bytes = cache.bytes / u64::from(cache.ways.max(1)) / slices;
        let period = (way_bytes / gcd(way_bytes, machine.page_bytes)).max(1);
        colors = (colors / gcd(colors, period)).saturating_mul(period);
    }
    u32::try_from(colors).unwrap_or(u32::MAX)
}

/// The ways of the outermost cache whose colors count.
pub fn ways(machine: &Machine) -> u32 {
    let physical = machine
        .caches
        .iter()
        .filter(|cache| cache.index != machine::Index::Virtual);
    physical
        .max_by_key(|cache| cache.level)
        .map_or(1, |cache| cache.ways.max(1))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
