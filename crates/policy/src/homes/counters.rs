//! What is counted of a page: misses of each cpu, writes and moves since the last reset, and where its copies are.

use crate::seam::{Miss, World};

/// A copy beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replica {
    node: u32,
    /// The last interval in which a cpu of the node missed on it.
    used: u64,
}

#[derive(Clone, Debug)]
pub struct Counters {
    /// The reset interval that the counts are of.
    interval: u64,
    misses: Box<[u32]>,
    pub writes: u32,
    pub moves: u32,
    home: u32,
    replicas: Vec<Replica>,
    /// The thread whose write was counted when it found replicas: its miss is not counted again.
    counted: Option<u32>,
}

impl Counters {
    pub fn new(cpus: u32, home: u32) -> Counters {
        Counters {
            interval: 0,
            misses: vec![0; cpus as usize].into(),
            writes: 0,
            moves: 0,
            home,
            replicas: Vec::new(),
            counted: None,
        }
    }

    /// All counts begin anew with an interval. A cpu whose clock is behind counts in the interval of the first.
    pub fn begin(&mut self, interval: u64) {
        if interval > self.interval {
            self.interval = interval;
            self.misses.fill(0);
            (self.writes, self.moves) = (0, 0);
        }
    }

    pub fn count(&mut self, miss: &Miss, here: u32) {
        if miss.served_by == here {
            match self.replicas.iter_mut().find(|replica| replica.node == here) {
                Some(replica) => replica.used = self.interval,
                None => self.home = here,
            }
        } else {
            // Who has no copy of its own uses the first.
            self.home = miss.served_by;
            let home = self.home;
            self.replicas
                .retain(|replica| replica.node != here && replica.node != home);
        }
        let misses = &mut self.misses[miss.cpu as usize];
        *misses = misses.saturating_add(1);
        let counted = self.counted.take() == Some(miss.thread);
        if miss.write && !counted {
            self.writes = self.writes.saturating_add(1);
        }
    }

    pub fn misses_of(&self, cpu: u32) -> u32 {
        self.misses[cpu as usize]
    }

    pub fn is_on(&self, node: u32) -> bool {
        self.home == node || self.replicas.iter().any(|replica| replica.node == node)
    }

    /// The most misses of a cpu other than this one that has a copy on its node.
    pub fn by_holder(&self, cpu: u32, world: &World) -> u32 {
        let others = (0..world.cpus).filter(|&other| other != cpu && self.is_on(world.node_of(other)));
        others.map(|other| self.misses_of(other)).max().unwrap_or(0)
    }

    pub fn move_to(&mut self, node: u32) {
        self.moves = self.moves.saturating_add(1);
        self.home = node;
        self.replicas.clear();
    }

    pub fn copy_to(&mut self, node: u32) {
        let used = self.interval;
        self.replicas.push(Replica { node, used });
    }

    /// A thread of a node writes, and finds replicas: its node's copy is kept, else the first.
    pub fn written(&mut self, thread: u32, node: u32) {
        self.writes = self.writes.saturating_add(1);
        self.counted = Some(thread);
        if self.is_on(node) {
            self.home = node;
        }
        self.replicas.clear();
    }

    /// Whether a replica on the node was used neither in this interval nor in the one before.
    pub fn is_idle_on(&self, node: u32, interval: u64) -> bool {
        let idle = |replica: &Replica| replica.node == node && replica.used + 1 < interval;
        self.replicas.iter().any(idle)
    }

    pub fn collapse(&mut self) {
        self.replicas.clear();
    }
}
