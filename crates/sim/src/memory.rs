//! Main memory: how far a node is from another, and how busy it is.

use std::sync::Arc;

use machine::Machine;
use policy::Prices;

use crate::clock::{Units, units};
use crate::config::Costs;

pub struct Memory {
    local: Units,
    /// Latency from each cpu's node (row) to each frame's.
    latency: Vec<Units>,
    nodes: usize,
    pub dirty_remote: Units,
    /// Time that one transfer takes of a node; 0: no contention.
    transfer: Units,
    /// The same for an upgrade.
    upgrade: Units,
    busy_until: Vec<Units>,
    /// Where cpus overlap, when the latest request was asked for.
    latest: Option<Vec<Units>>,
    /// What occupied the nodes.
    pub moved: Moved,
}

/// What occupied the nodes' memory, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Blocks that cpus asked for.
    pub data: u64,
    /// Blocks that went to memory.
    pub writebacks: u64,
    pub upgrades: u64,
}

impl Moved {
    pub fn add(&mut self, other: &Moved) {
        self.data += other.data;
        self.writebacks += other.writebacks;
        self.upgrades += other.upgrades;
    }
}

impl Memory {
    pub fn new(machine: &Machine, block_bytes: u64) -> Self {
        let memory = &machine.memory;
        let nodes = memory.nodes as usize;
        let distance = |from: usize, to: usize| memory.distances.get(from).and_then(|row| row.get(to)).copied();
        let apart = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let nearest = apart
            .clone()
            .filter(|(from, to)| from != to)
            .filter_map(|(from, to)| distance(from, to))
            .min();
        let latency = |(from, to): (usize, usize)| match (from == to, distance(from, to), nearest) {
            (true, ..) => units(memory.local_ns),
            (_, Some(far), Some(near)) if near > 0 => units(memory.remote_ns * f64::from(far) / f64::from(near)),
            _ => units(memory.remote_ns),
        };
        let transfer = match memory.bandwidth_gbps > 0.0 {
            // A gigabyte a second is a byte a nanosecond.
            true => units(block_bytes as f64 / memory.bandwidth_gbps),
            false => 0,
        };
        Memory {
            local: units(memory.local_ns),
            latency: apart.map(latency).collect(),
            nodes,
            dirty_remote: units(memory.dirty_remote_ns),
            transfer,
            upgrade: match memory.bandwidth_gbps > 0.0 {
                true => units(memory.upgrade_ns),
                false => 0,
            },
            moved: Moved::default(),
            busy_until: vec![0; nodes],
            latest: machine.core.map(|_| vec![0; nodes]),
        }
    }

    /// What misses and actions take, as policies may weigh them.
    pub fn prices(machine: &Machine, cost: Costs) -> Arc<Prices> {
        let memory = Memory::new(machine, 1);
        let ns = |latency: &Units| *latency as f64 / (1u64 << 20) as f64;
        Arc::new(Prices {
            cost,
            nodes: machine.memory.nodes,
            latency_ns: memory.latency.iter().map(ns).collect(),
        })
    }

    pub fn local(&self) -> Units {
        self.local
    }

    /// Latency from a cpu's node to a frame's.
    #[inline(always)]
    pub fn latency(&self, from: u32, to: u32) -> Units {
        self.latency[from as usize * self.nodes + to as usize]
    }

    /// Whether its bandwidth is without bound, so that transfers need not be reported.
    #[inline(always)]
    pub fn is_endless(&self) -> bool {
        self.transfer == 0
    }

    /// A cpu's transfer, asked for at `now`; returns how long it waits for its turn.
    #[inline(always)]
    pub fn transfer(&mut self, node: u32, now: Units) -> Units {
        if self.transfer == 0 {
            return 0;
        }
        self.moved.data += 1;
        self.occupy(node, now, self.transfer)
    }

    /// A block goes to memory; nobody waits for it.
    #[inline(always)]
    pub fn write_back(&mut self, node: u32, now: Units) {
        if self.transfer > 0 {
            self.moved.writebacks += 1;
            self.occupy(node, now, self.transfer);
        }
    }

    /// A cpu asks for the right to write; returns how long it waits for its turn.
    #[inline]
    pub fn upgrade(&mut self, node: u32, now: Units) -> Units {
        if self.upgrade == 0 {
            return 0;
        }
        self.moved.upgrades += 1;
        self.occupy(node, now, self.upgrade)
    }

    #[inline(always)]
    fn occupy(&mut self, node: u32, mut now: Units, time: Units) -> Units {
        // Cpus that overlap do not ask in the order in which their pieces are carried out: who asks earlier than another
        // waits for what there is to do then, and not for the other's moment.
        if let Some(latest) = &mut self.latest {
            let latest = &mut latest[node as usize];
            *latest = now.max(*latest);
            now = *latest;
        }
        let free = &mut self.busy_until[node as usize];
        let start = now.max(*free);
        *free = start + time;
        start - now
    }

    /// How long the nodes were occupied by data, by what went to memory, and by upgrades, all nodes together.
    pub fn occupied(&self) -> [Units; 3] {
        let Moved {
            data,
            writebacks,
            upgrades,
        } = self.moved;
        [
            data * self.transfer,
            writebacks * self.transfer,
            upgrades * self.upgrade,
        ]
    }
}
