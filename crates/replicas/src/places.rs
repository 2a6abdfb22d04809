//! The nodes that should have copies, and the copy that the threads of a node without one read: pure.

use sys::nodes::NodeReading;

/// The nodes that have cpus, and the node of each cpu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    nodes: Vec<Node>,
    /// By the kernel's number of the cpu: a place in `nodes`. Not empty.
    node_of_cpu: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    number: u32,
    /// To the others, in the order of `nodes`.
    distances: Vec<u32>,
}

impl Places {
    /// A node without cpus has no readers. Cpus without a known node count as the first node's, as do cpus that may
    /// come later.
    ///
    /// `None` if no node has a cpu.
    pub fn new(found: &[NodeReading]) -> Option<Places> {
        let with_cpus = || found.iter().enumerate().filter(|(_, node)| !node.cpus.is_empty());
        let distance = |from: &NodeReading, to: usize| {
            let known = from.distances.as_ref().and_then(|distances| distances.get(to).copied());
            known.unwrap_or(u32::from(from.number != found[to].number))
        };
        let nodes: Vec<Node> = with_cpus()
            .map(|(_, node)| Node {
                number: node.number,
                distances: with_cpus().map(|(to, _)| distance(node, to)).collect(),
            })
            .collect();
        let last = with_cpus().filter_map(|(_, node)| node.cpus.iter().max()).max()?;
        let mut node_of_cpu = vec![0; *last as usize + 1];
        for (at, (_, node)) in with_cpus().enumerate() {
            node.cpus.iter().for_each(|&cpu| node_of_cpu[cpu as usize] = at);
        }
        Some(Places { nodes, node_of_cpu })
    }

    /// The kernel's numbers of the nodes, in ascending order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.nodes.iter().map(|node| node.number)
    }

    /// For each node, the copy that its threads read: its own, else the nearest. `copies` gives the node of each;
    /// `None` is an unknown place.
    ///
    /// Pre: there is a copy.
    fn copy_of_nodes(&self, copies: &[Option<u32>]) -> Vec<usize> {
        let far = |from: &Node, copy: usize| {
            let to = copies[copy].and_then(|number| self.nodes().position(|node| node == number));
            to.map_or(u32::MAX, |to| from.distances[to])
        };
        let nearest = |node: &Node| {
            let own = copies.iter().position(|&copy| copy == Some(node.number));
            own.unwrap_or_else(|| (0..copies.len()).min_by_key(|&copy| far(node, copy)).unwrap_or(0))
        };
        self.nodes.iter().map(nearest).collect()
    }

    /// For each cpu, the copy that its threads read, as [`Places::copy_of_nodes`].
    pub fn copy_of_cpus(&self, copies: &[Option<u32>]) -> Vec<usize> {
        let of_nodes = self.copy_of_nodes(copies);
        self.node_of_cpu.iter().map(|&node| of_nodes[node]).collect()
    }

    /// The kernel's number of the node that a cpu is on.
    #[cfg(any(test, not(feature = "loom")))]
    pub fn node_of(&self, cpu: usize) -> u32 {
        self.nodes[self.node_of_cpu.get(cpu).copied().unwrap_or(0)].number
    }

    /// The copy that the threads of a node read.
    pub fn copy_of(&self, node: u32, copies: &[Option<u32>]) -> usize {
        let place = self.nodes().position(|number| number == node).unwrap_or(0);
        self.copy_of_nodes(copies)[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32, cpus: &[u32], distances: &[u32]) -> NodeReading {
        NodeReading {
            number,
            cpus: cpus.to_vec(),
            distances: (!distances.is_empty()).then(|| distances.to_vec()),
            memory_bytes: None,
            access: None,
        }
    }

    /// A ring of four nodes, of which one has no cpus; numbers have a gap.
    fn ring() -> Places {
        let found = [
            node(0, &[0, 3], &[10, 16, 22, 16]),
            node(1, &[], &[16, 10, 16, 22]),
            node(2, &[1], &[22, 16, 10, 16]),
            node(5, &[2], &[16, 22, 16, 10]),
        ];
        Places::new(&found).unwrap()
    }

    #[test]
    fn each_cpu_reads_the_copy_of_its_node() {
        assert_eq!(ring().nodes().collect::<Vec<_>>(), [0, 2, 5]);
        assert_eq!(ring().copy_of_cpus(&[Some(0), Some(2), Some(5)]), [0, 1, 2, 0]);
        assert_eq!(ring().copy_of_cpus(&[Some(5), Some(0), Some(2)]), [1, 2, 0, 1]);
    }

    #[test]
    fn a_node_without_a_copy_reads_the_nearest() {
        assert_eq!(ring().copy_of_cpus(&[Some(0), Some(5)]), [0, 1, 1, 0]);
        assert_eq!((ring().node_of(2), ring().node_of(99)), (5, 0));
        assert_eq!(ring().copy_of(2, &[Some(0), Some(5)]), 1);
        assert_eq!(ring().copy_of_cpus(&[Some(2)]), [0; 4]);
        assert_eq!(ring().copy_of_cpus(&[None]), [0; 4]);
    }

    #[test]
    fn without_distances_the_own_copy_is_the_nearest() {
        let places = Places::new(&[node(0, &[0], &[]), node(1, &[1], &[])]).unwrap();
        assert_eq!(places.copy_of_cpus(&[Some(1), Some(0)]), [1, 0]);
        assert_eq!(Places::new(&[node(0, &[], &[10])]), None);
    }
}
