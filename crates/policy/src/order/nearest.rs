//! Nearest neighbour: from the first bin forked, always to the nearest bin that has not been visited.
//!
//! Distance is the sum over dimensions of the blocks by which two bins differ: each dimension along which a bin differs
//! from the one before is a block of memory to load again. Among equally near bins the one forked first goes first.
//!
//! The bins stand in a k-d tree whose empty subtrees are skipped, so a tour of n bins takes about n log n steps where
//! blocks fill their space more or less evenly, as those of programs do.

use super::Block;

/// Subtrees no larger than this are searched one by one.
const LEAF: usize = 8;

/// The tour of these blocks, of which the first `hints` dimensions count.
pub fn tour(blocks: &[Block], hints: usize) -> Vec<u32> {
    let mut order = Vec::with_capacity(blocks.len());
    if blocks.is_empty() {
        return order;
    }
    let mut tree = Tree::new(blocks, hints);
    let mut here = 0;
    loop {
        tree.visit(here);
        order.push(here);
        match tree.nearest(&blocks[here as usize]) {
            Some(next) => here = next,
            None => return order,
        }
    }
}

/// A k-d tree over the blocks; visited blocks are removed from it.
struct Tree<'a> {
    blocks: &'a [Block],
    hints: usize,
    /// The blocks' positions, those of a node side by side.
    members: Vec<u32>,
    nodes: Vec<Node>,
    /// The leaf of each block.
    leaf: Vec<u32>,
}

struct Node {
    low: Block,
    high: Block,
    parent: Option<u32>,
    /// The two halves; none in a leaf.
    halves: Option<(u32, u32)>,
    from: usize,
    to: usize,
    /// The number not visited yet; in a leaf they stand first.
    left: usize,
}

impl<'a> Tree<'a> {
    fn new(blocks: &'a [Block], hints: usize) -> Tree<'a> {
        let mut tree = Tree {
            blocks,
            hints,
            members: (0..blocks.len() as u32).collect(),
            nodes: Vec::new(),
            leaf: vec![0; blocks.len()],
        };
        tree.build(0, blocks.len(), None);
        tree
    }

    fn build(&mut self, from: usize, to: usize, parent: Option<u32>) -> u32 {
        let mut low = self.blocks[self.members[from] as usize];
        let mut high = low;
        for &member in &self.members[from..to] {
            for dimension in 0..self.hints {
                let at = self.blocks[member as usize].0[dimension];
                low.0[dimension] = low.0[dimension].min(at);
                high.0[dimension] = high.0[dimension].max(at);
            }
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            low,
            high,
            parent,
            halves: None,
            from,
            to,
            left: to - from,
        });
        if to - from <= LEAF {
            for &member in &self.members[from..to] {
                self.leaf[member as usize] = number;
            }
            return number;
        }
        let widest = (0..self.hints).max_by_key(|&d| high.0[d] - low.0[d]).unwrap_or(0);
        let middle = from + (to - from) / 2;
        let blocks = self.blocks;
        self.members[from..to]
            .select_nth_unstable_by_key(middle - from, |&member| (blocks[member as usize].0[widest], member));
        let first = self.build(from, middle, Some(number));
        let second = self.build(middle, to, Some(number));
        self.nodes[number as usize].halves = Some((first, second));
        number
    }

    /// Takes a block out.
    fn visit(&mut self, block: u32) {
        let leaf = self.leaf[block as usize];
        let (from, left) = {
            let node = &self.nodes[leaf as usize];
            (node.from, node.left)
        };
        let those_left = &mut self.members[from..from + left];
        if let Some(at) = those_left.iter().position(|&member| member == block) {
            those_left.swap(at, left - 1);
        }
        let mut node = Some(leaf);
        while let Some(number) = node {
            let node_here = &mut self.nodes[number as usize];
            node_here.left -= 1;
            node = node_here.parent;
        }
    }

    fn nearest(&self, from: &Block) -> Option<u32> {
        let mut best = None;
        self.search(0, from, &mut best);
        best.map(|(_, block)| block)
    }

    fn search(&self, number: u32, from: &Block, best: &mut Option<(u128, u32)>) {
        let node = &self.nodes[number as usize];
        if node.left == 0 || best.is_some_and(|(distance, _)| self.away(node, from) > distance) {
            return;
        }
        match node.halves {
            Some((first, second)) => {
                let near_first =
                    self.away(&self.nodes[first as usize], from) <= self.away(&self.nodes[second as usize], from);
                let (near, far) = if near_first { (first, second) } else { (second, first) };
                self.search(near, from, best);
                self.search(far, from, best);
            }
            None => {
                debug_assert!(node.to - node.from >= node.left);
                for &member in &self.members[node.from..node.from + node.left] {
                    let found = (distance(&self.blocks[member as usize], from, self.hints), member);
                    if best.is_none_or(|best| found < best) {
                        *best = Some(found);
                    }
                }
            }
        }
    }

    /// The distance to the node's box: no block in it is nearer.
    fn away(&self, node: &Node, from: &Block) -> u128 {
        (0..self.hints)
            .map(|d| {
                let at = from.0[d];
                u128::from(at.clamp(node.low.0[d], node.high.0[d]).abs_diff(at))
            })
            .sum()
    }
}

fn distance(one: &Block, other: &Block, hints: usize) -> u128 {
    (0..hints).map(|d| u128::from(one.0[d].abs_diff(other.0[d]))).sum()
}
