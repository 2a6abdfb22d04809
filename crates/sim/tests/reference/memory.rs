//! The nodes' memory: which requests are local, and how long a busy node makes a request wait.

use std::iter;
use std::sync::Arc;

use machine::Machine;
use policy::{Following, Prices};

use super::hierarchy::{Piece, Wait};
use super::software_prefetch::From;

/// The requests that memory served, for each cpu.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    pub local: u64,
    pub remote: u64,
}

pub struct Memory {
    cpus: u64,
    /// Those with cpus.
    nodes: u64,
    pub local: u64,
    /// Latency of each node's memory from each node with cpus.
    latencies: Vec<Vec<u64>>,
    dirty_remote: u64,
    /// Of one block, by node.
    transfer: Vec<u64>,
    /// Of an upgrade.
    upgrade: Vec<u64>,
    free_at: Vec<u64>,
    /// The latest moment at which each node was asked.
    latest: Vec<u64>,
    overlaps: bool,
    /// The time that all nodes were occupied by data, by write-backs, by upgrades.
    pub occupied: [u64; 3],
    frame_bytes_per_node: u64,
    pub served: Vec<Served>,
    /// True if memory, or another cpu's cache over its bus, has served what a cpu waits for.
    pub reached: bool,
}

/// The latency of a miss for the cpus of a node, by the node that serves it.
fn latencies(machine: &Machine) -> Vec<Vec<u64>> {
    let memory = &machine.memory;
    let nodes = memory.nodes as usize;
    let tiers = |from: u32| {
        let near = move |tier: &machine::Tier| tier.near.is_empty() || tier.near.contains(&from);
        let tiers = memory.tiers.iter();
        tiers.map(move |tier| {
            super::units(if near(tier) {
                tier.latency_ns
            } else {
                tier.far_latency_ns
            })
        })
    };
    let elsewhere = |from: usize, to: usize| {
        let distances = (0..nodes).flat_map(|a| (0..nodes).filter(move |b| a != *b).map(move |b| (a, b)));
        let nearest = distances.map(|(a, b)| memory.distances[a][b]).min();
        let scale = nearest.map_or(1.0, |nearest| {
            f64::from(memory.distances[from][to]) / f64::from(nearest)
        });
        memory.remote_ns * scale
    };
    let latency = |from: usize, to: usize| match (from == to, memory.distances.is_empty()) {
        (true, _) => super::units(memory.local_ns),
        (false, true) => super::units(memory.remote_ns),
        (false, false) => super::units(elsewhere(from, to)),
    };
    (0..nodes)
        .map(|from| {
            (0..nodes)
                .map(|to| latency(from, to))
                .chain(tiers(from as u32))
                .collect()
        })
        .collect()
}

/// The costs that policies may know.
pub fn prices(machine: &Machine) -> Arc<Prices> {
    let ns = |units: u64| units as f64 / (1 << 20) as f64;
    Arc::new(Prices {
        cost: sim::VERGHESE96,
        nodes: machine.memory.nodes + machine.memory.tiers.len() as u32,
        latency_ns: latencies(machine).into_iter().flatten().map(ns).collect(),
        following: Following {
            switch_ns: machine.regions.map(|regions| regions.switch_ns as u64),
            ..Following::default()
        },
    })
}

impl Memory {
    pub fn new(machine: &Machine) -> Memory {
        let memory = &machine.memory;
        let nodes = memory.nodes as usize + memory.tiers.len();
        let gbps = iter::repeat_n(memory.bandwidth_gbps, memory.nodes as usize);
        let gbps: Vec<f64> = gbps
            .chain(memory.tiers.iter().map(|tier| tier.bandwidth_gbps))
            .collect();
        let block = machine.caches.iter().map(|cache| cache.line_bytes).max().unwrap_or(1);
        let frames = super::pages::frames(machine).into_iter().max().unwrap_or(0);
        Memory {
            cpus: machine.cpus.into(),
            nodes: memory.nodes.into(),
            local: super::units(memory.local_ns),
            latencies: latencies(machine),
            dirty_remote: super::units(memory.dirty_remote_ns),
            transfer: gbps
                .iter()
                .map(|gbps| match gbps {
                    0.0 => 0,
                    gbps => super::units(f64::from(block) / gbps),
                })
                .collect(),
            upgrade: gbps
                .iter()
                .map(|gbps| match gbps {
                    0.0 => 0,
                    _ => super::units(memory.upgrade_ns),
                })
                .collect(),
            occupied: [0; 3],
            free_at: vec![0; nodes],
            latest: vec![0; nodes],
            overlaps: machine.core.is_some(),
            frame_bytes_per_node: frames * machine.page_bytes,
            served: vec![Served::default(); machine.cpus as usize],
            reached: false,
        }
    }

    fn home(&self, physical_address: u64) -> usize {
        (physical_address / self.frame_bytes_per_node) as usize
    }

    /// One use of a node for a time, by what ([`Memory::occupied`]); how long it waits for its node.
    fn occupy(&mut self, physical_address: u64, asked: u64, by: usize) -> u64 {
        let home = self.home(physical_address);
        let time = if by == 2 {
            self.upgrade[home]
        } else {
            self.transfer[home]
        };
        if time == 0 {
            return 0;
        }
        self.latest[home] = self.latest[home].max(asked);
        let asked = if self.overlaps { self.latest[home] } else { asked };
        let start = asked.max(self.free_at[home]);
        self.free_at[home] = start + time;
        self.occupied[by] += time;
        start - asked
    }

    pub fn count_anew(&mut self) {
        self.served.fill(Served::default());
        self.occupied = [0; 3];
    }

    /// Memory serves a piece.
    pub fn serve(&mut self, piece: &Piece, waits: bool, wait: &mut Wait) {
        let queued = self.occupy(piece.physical_address, piece.asked, 0);
        let from = (u64::from(piece.cpu) * self.nodes / self.cpus) as usize;
        let to = self.home(piece.physical_address);
        self.reached |= waits;
        let stall = if waits { queued + self.latencies[from][to] } else { 0 };
        let served = &mut self.served[piece.cpu as usize];
        if from == to {
            served.local += 1;
            wait.local += stall;
            wait.from = From::Local;
        } else {
            served.remote += 1;
            wait.remote += stall;
            wait.from = From::Remote;
        }
    }

    /// Another cpu's cache serves a piece, over the memory's bus.
    pub fn supply(&mut self, piece: &Piece, wait: &mut Wait) {
        let queued = self.occupy(piece.physical_address, piece.asked, 0);
        self.served[piece.cpu as usize].remote += 1;
        self.reached = true;
        wait.remote += queued + self.dirty_remote;
        wait.from = From::Remote;
    }

    /// Dirty data, or a write that no cache keeps, goes to memory.
    pub fn store(&mut self, physical_address: u64, asked: u64) {
        self.occupy(physical_address, asked, 1);
    }

    /// A cache's own prefetcher brings a block for a cpu; how long that takes, and from where it comes.
    pub fn bring(&mut self, piece: &Piece) -> (u64, From) {
        let queued = self.occupy(piece.physical_address, piece.asked, 0);
        let from = (u64::from(piece.cpu) * self.nodes / self.cpus) as usize;
        let to = self.home(piece.physical_address);
        let whose = if from == to { From::Local } else { From::Remote };
        (queued + self.latencies[from][to], whose)
    }

    /// A request to write a line that others hold. Returns how long it waits.
    pub fn upgrade(&mut self, piece: &Piece) -> u64 {
        self.occupy(piece.physical_address, piece.asked, 2)
    }
}
