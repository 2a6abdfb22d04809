//! The dependences between threads: a graph without cycles, kept in topological order as it grows.
//!
//! It contains only threads that wait or are waited for. Each has a rank, and every edge goes from a lower rank to a
//! higher one. An edge that agrees with the ranks costs nothing more. For another one, the threads between its ends are
//! searched and ranked again; it is a cycle exactly if the search meets its own start (Pearce and Kelly, "A dynamic
//! topological sort algorithm for directed acyclic graphs", Journal of Experimental Algorithmics 11, 2006). Programs
//! that fork in an order in which they could run never pay for that search.

//!
//! Threads are found by their places through a table for each group that has any in the graph; edges are chained in one
//! array. So an edge needs no separate allocation, and a cleared graph leaves its memory to the next.

use std::collections::TryReserveError;

use crate::groups::{GROUP, NONE, Place, at_of, group_of};

/// Why an edge was refused.
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
    edges: Vec<Edge>,
    groups: Vec<Named>,
    numbers: Vec<[u32; GROUP]>,
    /// Counts the searches, so that marks of earlier ones need not be cleared.
    searches: u64,
}

struct Node {
    place: Place,
    rank: u32,
    /// Edges to the threads that it waits for, and how many.
    earlier: u32,
    waits_for: u32,
    /// Edges to the threads that wait for it, in the order in which they came.
    later: u32,
    last_later: u32,
    /// The search that saw this node last, and the node it came from.
    seen: u64,
    from: u32,
}

#[derive(Clone, Copy)]
struct Edge {
    node: u32,
    next: u32,
}

/// The threads of a group that are in the graph, and the table with their numbers.
#[derive(Clone, Copy)]
struct Named {
    mask: u64,
    table: u32,
}

/// The two kinds of a node's edges.
#[derive(Clone, Copy)]
enum Side {
    Earlier,
    Later,
}

impl Dependencies {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Makes one thread wait for another.
    pub fn add(&mut self, later: Place, earlier: Place) -> Result<(), Refused> {
        if later == earlier {
            return Err(Refused::Cycle(vec![later]));
        }
        let before = self.node(earlier)?;
        let after = self.node(later)?;
        self.edges.try_reserve(2)?;
        if self.edges.len() + 2 > NONE as usize {
            return Err(Refused::OutOfMemory);
        }
        if self.nodes[before as usize].rank > self.nodes[after as usize].rank {
            self.rank_anew(before, after)?;
        }
        let edge = self.edges.len() as u32;
        self.edges.push(Edge {
            node: after,
            next: NONE,
        });
        let node = &mut self.nodes[before as usize];
        let last = std::mem::replace(&mut node.last_later, edge);
        if last == NONE {
            node.later = edge;
        } else {
            self.edges[last as usize].next = edge;
        }
        let node = &mut self.nodes[after as usize];
        let next = std::mem::replace(&mut node.earlier, edge + 1);
        self.edges.push(Edge { node: before, next });
        node.waits_for += 1;
        Ok(())
    }

    /// Removes a thread's newest edges: everything that it waits for.
    pub fn forget(&mut self, place: Place) {
        let Some(number) = self.number(place) else { return };
        let mut edge = std::mem::replace(&mut self.nodes[number].earlier, NONE);
        self.nodes[number].waits_for = 0;
        while edge != NONE {
            let Edge { node, next } = self.edges[edge as usize];
            self.unlink(node as usize, number as u32);
            edge = next;
        }
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        self.groups.clear();
        self.numbers.clear();
    }

    /// The threads of a group that are in the graph.
    #[inline]
    pub fn named(&self, group: u32) -> u64 {
        self.groups.get(group as usize).map_or(0, |named| named.mask)
    }

    /// The number of a thread that is in the graph: dense, from 0.
    pub fn number(&self, place: Place) -> Option<usize> {
        let named = self.groups.get(group_of(place) as usize)?;
        (named.mask >> at_of(place) & 1 == 1).then(|| self.numbers[named.table as usize][at_of(place)] as usize)
    }

    /// The threads in the graph by number, each with how many it waits for.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (Place, u32)> + '_ {
        self.nodes.iter().map(|node| (node.place, node.waits_for))
    }

    /// The places and numbers of the threads that wait for one.
    pub fn waiting_for(&self, number: usize) -> impl Iterator<Item = (Place, usize)> + '_ {
        let mut edge = self.nodes[number].later;
        std::iter::from_fn(move || {
            let Edge { node, next } = *self.edges.get(edge as usize)?;
            edge = next;
            Some((self.nodes[node as usize].place, node as usize))
        })
    }

    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.edges.capacity() * size_of::<Edge>()
            + self.groups.capacity() * size_of::<Named>()
            + self.numbers.capacity() * size_of::<[u32; GROUP]>()
    }

    fn node(&mut self, place: Place) -> Result<u32, Refused> {
        if let Some(number) = self.number(place) {
            return Ok(number as u32);
        }
        let group = group_of(place) as usize;
        if self.groups.len() <= group {
            self.groups.try_reserve(group + 1 - self.groups.len())?;
            self.groups.resize(group + 1, Named { mask: 0, table: NONE });
        }
        self.nodes.try_reserve(1)?;
        if self.groups[group].table == NONE {
            self.numbers.try_reserve(1)?;
            self.groups[group].table = self.numbers.len() as u32;
            self.numbers.push([0; GROUP]);
        }
        let number = self.nodes.len() as u32;
        let named = &mut self.groups[group];
        named.mask |= 1 << at_of(place);
        self.numbers[named.table as usize][at_of(place)] = number;
        self.nodes.push(Node {
            place,
            rank: number,
            earlier: NONE,
            waits_for: 0,
            later: NONE,
            last_later: NONE,
            seen: 0,
            from: NONE,
        });
        Ok(number)
    }

    /// Removes the edges to `later` from a node's list.
    fn unlink(&mut self, node: usize, later: u32) {
        let mut kept = NONE;
        let mut edge = self.nodes[node].later;
        while edge != NONE {
            let Edge { node: to, next } = self.edges[edge as usize];
            if to == later {
                if kept == NONE {
                    self.nodes[node].later = next;
                } else {
                    self.edges[kept as usize].next = next;
                }
            } else {
                kept = edge;
            }
            edge = next;
        }
        self.nodes[node].last_later = kept;
    }

    /// Makes room for an edge against the ranks: everything after its head moves behind everything before its tail,
    /// within the ranks of both.
    fn rank_anew(&mut self, before: u32, after: u32) -> Result<(), Refused> {
        let (low, high) = (self.nodes[after as usize].rank, self.nodes[before as usize].rank);
        let behind = self.search(after, Side::Later, |rank| rank <= high, Some(before))?;
        let ahead = self.search(before, Side::Earlier, |rank| rank >= low, None)?;
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
        side: Side,
        within: impl Fn(u32) -> bool,
        forbidden: Option<u32>,
    ) -> Result<Vec<u32>, Refused> {
        self.searches += 1;
        let mut found = Vec::new();
        found.try_reserve(1)?;
        found.push(start);
        self.nodes[start as usize].seen = self.searches;
        let mut next = 0;
        while let Some(&here) = found.get(next) {
            next += 1;
            let mut edge = match side {
                Side::Earlier => self.nodes[here as usize].earlier,
                Side::Later => self.nodes[here as usize].later,
            };
            while edge != NONE {
                let Edge { node: there, next } = self.edges[edge as usize];
                edge = next;
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
