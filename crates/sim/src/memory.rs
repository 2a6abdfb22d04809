//! Main memory: how far a node is from another, and how busy it is.

use std::sync::Arc;

use machine::Machine;
use policy::{Following, Prices};

use crate::clock::{Units, units};
use crate::config::Costs;

pub struct Memory {
    local: Units,
    /// Latency from each cpu's node (row) to each frame's.
    /// The rows are of nodes with cpus.
    latency: Vec<Units>,
    nodes: usize,
    pub dirty_remote: Units,
    /// Time that one transfer takes of each node; 0: no contention.
    transfer: Vec<Units>,
    /// True if none is contended.
    endless: bool,
    /// The same for an upgrade.
    upgrade: Vec<Units>,
    busy_until: Vec<Units>,
    /// If cpus overlap, the time of the latest request.
    latest: Option<Vec<Units>>,
    /// The transfers that occupied the nodes.
    pub moved: Moved,
}

/// For how long the nodes' memory was occupied, all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// By blocks that cpus asked for.
    pub data: Units,
    /// By blocks that went to memory.
    pub writebacks: Units,
    pub upgrades: Units,
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
        let (with_cpus, nodes) = (memory.nodes as usize, memory.all_nodes() as usize);
        let distance = |from: usize, to: usize| memory.distances.get(from).and_then(|row| row.get(to)).copied();
        let apart = (0..with_cpus).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let nearest = apart
            .clone()
            .filter(|(from, to)| from != to)
            .filter_map(|(from, to)| distance(from, to))
            .min();
        let latency = |(from, to): (usize, usize)| match (memory.tier(to as u32), distance(from, to), nearest) {
            (Some(tier), ..) => units(tier.latency_from(from as u32)),
            _ if from == to => units(memory.local_ns),
            (_, Some(far), Some(near)) if near > 0 => units(memory.remote_ns * f64::from(far) / f64::from(near)),
            _ => units(memory.remote_ns),
        };
        let transfer = |node: u32| match memory.bandwidth_of(node) {
            gbps if gbps > 0.0 => units(block_bytes as f64 / gbps),
            _ => 0,
        };
        let upgrade = |node: u32| match memory.bandwidth_of(node) > 0.0 {
            true => units(memory.upgrade_ns),
            false => 0,
        };
        let all = 0..memory.all_nodes();
        Memory {
            local: units(memory.local_ns),
            latency: apart.map(latency).collect(),
            nodes,
            dirty_remote: units(memory.dirty_remote_ns),
            transfer: all.clone().map(transfer).collect(),
            endless: !memory.is_contended(),
            upgrade: all.map(upgrade).collect(),
            moved: Moved::default(),
            busy_until: vec![0; nodes],
            latest: machine.core.map(|_| vec![0; nodes]),
        }
    }

    /// The cost of misses and actions, as policies may weigh them.
    pub fn prices(machine: &Machine, cost: Costs, following: Following) -> Arc<Prices> {
        let memory = Memory::new(machine, 1);
        let ns = |latency: &Units| *latency as f64 / (1u64 << 20) as f64;
        Arc::new(Prices {
            cost,
            nodes: machine.memory.all_nodes(),
            latency_ns: memory.latency.iter().map(ns).collect(),
            following,
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

    /// Returns whether its bandwidth is without bound, so that transfers need not be reported.
    #[inline(always)]
    pub fn is_endless(&self) -> bool {
        self.endless
    }

    /// A cpu's transfer, asked for at `now`; returns how long it waits for its turn.
    #[inline(always)]
    pub fn transfer(&mut self, node: u32, now: Units) -> Units {
        if self.endless {
            return 0;
        }
        let time = self.transfer[node as usize];
        self.moved.data += time;
        self.occupy(node, now, time)
    }

    /// A block goes to memory; no cpu waits for it.
    #[inline(always)]
    pub fn write_back(&mut self, node: u32, now: Units) {
        if !self.endless {
            let time = self.transfer[node as usize];
            self.moved.writebacks += time;
            self.occupy(node, now, time);
        }
    }

    /// A cpu asks for the right to write; returns how long it waits for its turn.
    #[inline]
    pub fn upgrade(&mut self, node: u32, now: Units) -> Units {
        let time = self.upgrade[node as usize];
        self.moved.upgrades += time;
        self.occupy(node, now, time)
    }

    #[inline(always)]
    fn occupy(&mut self, node: u32, mut now: Units, time: Units) -> Units {
        if time == 0 {
            return 0;
        }
        // Cpus that overlap do not ask in the order in which their pieces are carried out: a cpu that asks earlier than
        // another waits for the work pending then, and not for the other's moment.
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

    /// The time that the nodes were occupied by data, by write-backs, and by upgrades, all nodes together.
    pub fn occupied(&self) -> [Units; 3] {
        let Moved {
            data,
            writebacks,
            upgrades,
        } = self.moved;
        [data, writebacks, upgrades]
    }
}
