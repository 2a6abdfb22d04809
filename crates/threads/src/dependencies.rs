//! Which threads wait for which: a graph without cycles, kept in topological order as it grows.
//!
//! Only threads that wait or are waited for are in it. Each has a rank, and every edge goes from a lower rank to a
//! higher one. An edge that agrees with the ranks costs nothing more; one that does not has the threads between its
//! ends searched and ranked anew, and is a cycle exactly if the search meets its own start (Pearce and Kelly, "A dynamic
//! topological sort algorithm for directed acyclic graphs", Journal of Experimental Algorithmics 11, 2006). Programs that fork
//! in an order in which they could run never pay for that search.

use std::collections::HashMap;
use std::collections::TryReserveError;

use crate::groups::Place;

/// Why an edge was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Each of these runs before the next, and the last before the first.
    Cycle(Vec<Place>),
    OutOfMemory,
}

impl From<TryReserveError> for Refused {
    fn from(_: TryReserveError) -> Self {
        Refused::OutOfMemory
    }
}

#[derive(Default)]
pub(crate) struct Dependencies {
    nodes: Vec<Node>,
    numbers: HashMap<Place, u32>,
    /// Counts the searches, so that marks of earlier ones need not be wiped.
    searches: u64,
}

struct Node {
    place: Place,
    rank: u32,
    earlier: Vec<u32>,
    later: Vec<u32>,
    /// The search that saw this node last, and the node it came from.
    seen: u64,
    from: u32,
}

impl Dependencies {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Lets one thread wait for another.
    pub fn add(&mut self, later: Place, earlier: Place) -> Result<(), Refused> {
        if later == earlier {
            return Err(Refused::Cycle(vec![later]));
        }
        let before = self.node(earlier)?;
        let after = self.node(later)?;
        self.nodes[before as usize].later.try_reserve(1)?;
        self.nodes[after as usize].earlier.try_reserve(1)?;
        if self.nodes[before as usize].rank > self.nodes[after as usize].rank {
            self.rank_anew(before, after)?;
        }
        self.nodes[before as usize].later.push(after);
        self.nodes[after as usize].earlier.push(before);
        Ok(())
    }

    /// Forgets what a thread waits for. Nothing waits for it.
    pub fn forget(&mut self, place: Place) {
        if let Some(&number) = self.numbers.get(&place) {
            for earlier in std::mem::take(&mut self.nodes[number as usize].earlier) {
                self.nodes[earlier as usize].later.retain(|&later| later != number);
            }
        }
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.numbers.clear();
    }

    /// The threads in the graph, each with those that wait for it.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (Place, impl Iterator<Item = Place> + '_)> + '_ {
        self.nodes.iter().map(|node| {
            let later = node.later.iter().map(|&later| self.nodes[later as usize].place);
            (node.place, later)
        })
    }

    pub fn memory_bytes(&self) -> usize {
        let edges: usize = self
            .nodes
            .iter()
            .map(|n| n.earlier.capacity() + n.later.capacity())
            .sum();
        self.nodes.capacity() * size_of::<Node>()
            + edges * size_of::<u32>()
            + self.numbers.capacity() * size_of::<(Place, u32)>()
    }

    fn node(&mut self, place: Place) -> Result<u32, Refused> {
        if let Some(&number) = self.numbers.get(&place) {
            return Ok(number);
        }
        let number = self.nodes.len() as u32;
        self.nodes.try_reserve(1)?;
        self.numbers.try_reserve(1)?;
        self.nodes.push(Node {
            place,
            rank: number,
            earlier: Vec::new(),
            later: Vec::new(),
            seen: 0,
            from: number,
        });
        self.numbers.insert(place, number);
        Ok(number)
    }

    /// Makes room for an edge against the ranks: all that comes after its head moves behind all that comes before its
    /// tail, in the ranks that the two have together.
    fn rank_anew(&mut self, before: u32, after: u32) -> Result<(), Refused> {
        let (low, high) = (self.nodes[after as usize].rank, self.nodes[before as usize].rank);
        let behind = self.search(after, |node| &node.later, |rank| rank <= high, Some(before))?;
        let ahead = self.search(before, |node| &node.earlier, |rank| rank >= low, None)?;
        let mut moved = Vec::new();
        moved.try_reserve_exact(ahead.len() + behind.len())?;
        let mut ranks = Vec::new();
        ranks.try_reserve_exact(ahead.len() + behind.len())?;
        for mut side in [ahead, behind] {
            side.sort_unstable_by_key(|&node| self.nodes[node as usize].rank);
            moved.extend(side);
        }
        ranks.extend(moved.iter().map(|&node| self.nodes[node as usize].rank));
        ranks.sort_unstable();
        for (node, rank) in moved.into_iter().zip(ranks) {
            self.nodes[node as usize].rank = rank;
        }
        Ok(())
    }

    /// All nodes that edges lead to from `start`, as far as their ranks are within bounds.
    fn search(
        &mut self,
        start: u32,
        edges: impl Fn(&Node) -> &Vec<u32>,
        within: impl Fn(u32) -> bool,
        forbidden: Option<u32>,
    ) -> Result<Vec<u32>, Refused> {
        self.searches += 1;
        let mut found = vec![start];
        self.nodes[start as usize].seen = self.searches;
        let mut next = 0;
        while let Some(&here) = found.get(next) {
            next += 1;
            for edge in 0..edges(&self.nodes[here as usize]).len() {
                let there = edges(&self.nodes[here as usize])[edge];
                let node = &mut self.nodes[there as usize];
                if node.seen == self.searches || !within(node.rank) {
                    continue;
                }
                node.seen = self.searches;
                node.from = here;
                if forbidden == Some(there) {
                    return Err(Refused::Cycle(self.path(start, there)));
                }
                found.try_reserve(1)?;
                found.push(there);
            }
        }
        Ok(found)
    }

    fn path(&self, start: u32, end: u32) -> Vec<Place> {
        let mut path = vec![self.nodes[end as usize].place];
        let mut here = end;
        while here != start {
            here = self.nodes[here as usize].from;
            path.push(self.nodes[here as usize].place);
        }
        path.reverse();
        path
    }
}
