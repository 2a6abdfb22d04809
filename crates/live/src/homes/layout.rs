//! Numbers of nodes and cpus: those of Linux, and those that policies know.
//!
//! A policy's cpu `c` is on node `c * nodes / cpus` ([`policy::World::node_of`]): its nodes are numbered from 0 without
//! gaps, and each has as many cpus as the next. Linux's nodes need not be so. Here nodes are numbered in their order,
//! and cpus node by node: cpu `i` of node `n` is `n * per_node + i`, where `per_node` is that of the node with the most
//! cpus. Numbers without a cpu are never used.
//!
//! Most sources of information know the node of a touch, but not the cpu. For these `per_node` is 1: a policy's cpu
//! stands for all cpus of a node, as in the paper, whose machine has one on each.

use std::collections::BTreeMap;

use policy::World;
use sys::Root;
use sys::cpus::CpuSet;
use sys::memory::PAGE;

use super::error::HomesError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Linux's numbers, ascending.
    nodes: Vec<u32>,
    /// Each cpu, by Linux's number: its node as policies number it, and its place there.
    cpus: BTreeMap<u32, (u32, u32)>,
    per_node: u32,
}

impl Layout {
    /// This machine's, with each cpu by itself or all of a node as one.
    ///
    /// Errors: the kernel shows no nodes.
    pub fn read(root: &Root, each_cpu: bool) -> Result<Layout, HomesError> {
        let nodes = sys::nodes::nodes(root)?;
        let nodes: Vec<_> = nodes.into_iter().map(|node| (node.number, node.cpus)).collect();
        Ok(Layout::new(&nodes, each_cpu))
    }

    /// Pre: ascending by node.
    pub fn new(nodes: &[(u32, CpuSet)], each_cpu: bool) -> Layout {
        let most = nodes.iter().map(|(_, cpus)| cpus.len() as u32).max().unwrap_or(0);
        let mut places = BTreeMap::new();
        for (node, (_, cpus)) in (0..).zip(nodes) {
            for (place, &cpu) in (0..).zip(cpus) {
                places.insert(cpu, (node, place));
            }
        }
        Layout {
            nodes: nodes.iter().map(|(number, _)| *number).collect(),
            cpus: places,
            per_node: if each_cpu { most.max(1) } else { 1 },
        }
    }

    /// A policy's view of the machine, before anything is known of its memory.
    pub fn world(&self) -> World {
        World {
            page_bytes: PAGE as u64,
            colors: 1,
            cpus: self.count() * self.per_node,
            nodes: self.count(),
            cpu_nodes: self.count(),
            free_frames: vec![u64::MAX; self.nodes.len()],
            now_ns: 0,
            caches: None,
            domains: None,
            runnable: Vec::new(),
        }
    }

    pub fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub fn per_node(&self) -> u32 {
        self.per_node
    }

    /// Linux's numbers of the nodes, in the order of the policy's.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The policy's number of a node of Linux.
    pub fn node(&self, linux: u32) -> Option<u32> {
        self.nodes.binary_search(&linux).ok().map(|node| node as u32)
    }

    /// Linux's number of a policy's node.
    pub fn linux_node(&self, node: u32) -> Option<u32> {
        self.nodes.get(node as usize).copied()
    }

    /// The policy's number of the node that a cpu of Linux is on.
    pub fn node_of(&self, linux_cpu: u32) -> Option<u32> {
        self.cpus.get(&linux_cpu).map(|(node, _)| *node)
    }

    /// The policy's number of a cpu of Linux.
    pub fn cpu(&self, linux_cpu: u32) -> Option<u32> {
        let (node, place) = self.cpus.get(&linux_cpu)?;
        Some(node * self.per_node + place.min(&(self.per_node - 1)))
    }

    /// The policy's cpu that stands for a node of its own.
    pub fn cpu_on(&self, node: u32) -> u32 {
        node * self.per_node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes 0, 2 and 5, of 2, 3 and no cpus, whose numbers are dealt in turn.
    fn nodes() -> Vec<(u32, CpuSet)> {
        vec![(0, vec![0, 2]), (2, vec![1, 3, 4]), (5, vec![])]
    }

    #[test]
    fn each_cpu_is_on_its_node_for_the_policy_too() {
        let layout = Layout::new(&nodes(), true);
        let world = layout.world();
        assert_eq!((world.nodes, world.cpus), (3, 9));
        for (linux, node) in [(0, 0), (2, 0), (1, 1), (3, 1), (4, 1)] {
            assert_eq!(layout.node_of(linux), Some(node));
            assert_eq!(world.node_of(layout.cpu(linux).unwrap()), node, "cpu {linux}");
        }
        let mut numbers: Vec<_> = (0..5).map(|linux| layout.cpu(linux).unwrap()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 5);
        assert_eq!((layout.cpu(5), layout.node_of(9)), (None, None));
    }

    #[test]
    fn a_node_is_one_cpu_where_no_more_is_known() {
        let layout = Layout::new(&nodes(), false);
        let world = layout.world();
        assert_eq!((world.nodes, world.cpus), (3, 3));
        for node in 0..3 {
            assert_eq!(world.node_of(layout.cpu_on(node)), node);
        }
        assert_eq!(layout.cpu(4), Some(1));
        assert_eq!((layout.node(2), layout.node(1)), (Some(1), None));
        assert_eq!((layout.linux_node(2), layout.linux_node(3)), (Some(5), None));
    }
}
