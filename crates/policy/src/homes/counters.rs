//! Counts of pages: misses of each cpu, writes and moves since the last reset, and the nodes of their copies.
//!
//! Pages are known by the world's numbers, and all data for a miss lies in two places of two arrays: a policy hears of
//! tens of millions of misses a second.

use crate::page::Page;
use crate::seam::Miss;

/// A copy beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replica {
    node: u32,
    /// The last interval in which a cpu of the node missed on it.
    used: u64,
}

/// The counts of all pages.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Node of each cpu.
    nodes: Vec<u32>,
    /// Of each page [`HEAD`] words, and the misses of each cpu.
    words: Vec<u32>,
    /// Words of a page.
    stride: usize,
    /// Data that few misses ask for, by page.
    rest: Vec<Rest>,
}

#[derive(Clone, Debug)]
struct Rest {
    page: Page,
    /// The thread whose write was counted when it found replicas: its miss is not counted again.
    counted: u32,
    replicas: Vec<Replica>,
}

const HEAD: usize = 4;
/// Words of a line of the host's cache.
const LINE: usize = 16;

// The words of a page's head: the reset interval of the counts (its lower bits), writes, moves, and its first copy's
// node with the data to be looked up.
const INTERVAL: usize = 0;
const WRITES: usize = 1;
const MOVES: usize = 2;
const HOME: usize = 3;

const NODE: u32 = 0xffff;
const REPLICATED: u32 = 1 << 16;
const COUNTED: u32 = 1 << 17;
const HEARD: u32 = 1 << 18;

/// True if an interval comes after that of a page's counts.
#[inline(always)]
fn begins(interval: u64, counted: u32) -> bool {
    (interval as u32).wrapping_sub(counted).cast_signed() > 0
}

/// One page's.
pub struct OfPage<'a> {
    nodes: &'a [u32],
    head: &'a mut [u32],
    misses: &'a mut [u32],
    rest: &'a mut Rest,
    interval: u64,
}

impl Counters {
    /// `nodes`: the node of each cpu.
    pub fn new(nodes: Vec<u32>) -> Counters {
        let words = HEAD + nodes.len();
        Counters {
            stride: words.next_multiple_of(if words > LINE / 2 { LINE } else { 1 }),
            nodes,
            ..Counters::default()
        }
    }

    #[inline]
    pub fn node_of(&self, cpu: u32) -> u32 {
        self.nodes[cpu as usize]
    }

    /// The page's counts, as of an interval: all counts restart with each interval. A cpu whose clock is behind counts
    /// in the interval of the first.
    #[inline]
    pub fn of(&mut self, index: u32, interval: u64) -> OfPage<'_> {
        let at = index as usize;
        if at >= self.rest.len() {
            self.grow(at + 1);
        }
        let words = &mut self.words[at * self.stride..(at + 1) * self.stride];
        let (head, misses) = words.split_at_mut(HEAD);
        let misses = &mut misses[..self.nodes.len()];
        if begins(interval, head[INTERVAL]) {
            head[INTERVAL] = interval as u32;
            (head[WRITES], head[MOVES]) = (0, 0);
            misses.fill(0);
        }
        OfPage {
            nodes: &self.nodes,
            head,
            misses,
            rest: &mut self.rest[at],
            interval,
        }
    }

    /// Counts a miss of a page of which nothing is to be looked up, as of an interval, and returns the misses of its cpu by now.
    /// That is nearly every miss; of any other miss nothing is counted.
    #[inline(always)]
    pub fn count_plain(&mut self, miss: &Miss, interval: u64) -> Option<u32> {
        let at = miss.index as usize * self.stride;
        let words = self.words.get_mut(at..at + self.stride)?;
        let (head, misses) = words.split_first_chunk_mut::<HEAD>()?;
        let misses = misses.get_mut(miss.cpu as usize)?;
        let begins = begins(interval, head[INTERVAL]);
        if begins || head[HOME] & (REPLICATED | COUNTED | HEARD) != HEARD {
            return None;
        }
        head[HOME] = HEARD | miss.served_by;
        head[WRITES] = head[WRITES].saturating_add(miss.write.into());
        *misses = misses.saturating_add(1);
        Some(*misses)
    }

    #[cold]
    fn grow(&mut self, pages: usize) {
        let unheard = Rest {
            page: Page { space: 0, number: 0 },
            counted: 0,
            replicas: Vec::new(),
        };
        self.rest.resize(pages, unheard);
        self.words.resize(pages * self.stride, 0);
    }

    /// Pages with a replica on the node that was used neither in this interval nor in the one before, by their names.
    pub fn idle_on(&self, node: u32, interval: u64) -> Vec<(Page, u32)> {
        let idle = |replica: &Replica| replica.node == node && replica.used + 1 < interval;
        let pages = self.rest.iter().zip(0..);
        let pages = pages.filter(|(rest, _)| rest.replicas.iter().any(idle));
        let mut pages: Vec<_> = pages.map(|(rest, index)| (rest.page, index)).collect();
        pages.sort();
        pages
    }
}

impl OfPage<'_> {
    /// `here`: the node of the cpu that misses. Returns its misses by now.
    #[inline]
    pub fn count(&mut self, miss: &Miss, here: u32) -> u32 {
        match self.head[HOME] & (REPLICATED | COUNTED | HEARD) {
            HEARD => self.head[HOME] = HEARD | miss.served_by,
            _ => self.look_up(miss, here),
        }
        if miss.write {
            self.head[WRITES] = self.head[WRITES].saturating_add(1);
        }
        let misses = &mut self.misses[miss.cpu as usize];
        *misses = misses.saturating_add(1);
        *misses
    }

    /// The page is seen for the first time, has replicas, or a write of it is counted already.
    fn look_up(&mut self, miss: &Miss, here: u32) {
        if self.head[HOME] & HEARD == 0 {
            self.rest.page = miss.page;
            self.head[HOME] |= HEARD;
        }
        if self.head[HOME] & COUNTED != 0 {
            self.head[HOME] &= !COUNTED;
            if miss.write && self.rest.counted == miss.thread {
                self.head[WRITES] = self.head[WRITES].saturating_sub(1);
            }
        }
        let used = self.interval_of_counts();
        let replicas = &mut self.rest.replicas;
        if miss.served_by != here {
            // A node without a copy of its own uses the first.
            let home = miss.served_by;
            replicas.retain(|replica| replica.node != here && replica.node != home);
            self.set_home(home);
        } else if let Some(replica) = replicas.iter_mut().find(|replica| replica.node == here) {
            replica.used = used;
        } else {
            self.set_home(here);
        }
        self.mark_replicated();
    }

    /// The interval of the page's counts: this one, or a later one if this cpu's clock is behind.
    fn interval_of_counts(&self) -> u64 {
        let ahead = self.head[INTERVAL].wrapping_sub(self.interval as u32);
        self.interval + u64::from(ahead)
    }

    /// The node of the first copy.
    pub fn home(&self) -> u32 {
        self.head[HOME] & NODE
    }

    fn set_home(&mut self, node: u32) {
        self.head[HOME] = self.head[HOME] & !NODE | node;
    }

    fn mark_replicated(&mut self) {
        match self.rest.replicas.is_empty() {
            true => self.head[HOME] &= !REPLICATED,
            false => self.head[HOME] |= REPLICATED,
        }
    }

    pub fn misses_of(&self, cpu: u32) -> u32 {
        self.misses[cpu as usize]
    }

    pub fn writes(&self) -> u32 {
        self.head[WRITES]
    }

    pub fn moves(&self) -> u32 {
        self.head[MOVES]
    }

    pub fn is_on(&self, node: u32) -> bool {
        self.home() == node || self.rest.replicas.iter().any(|replica| replica.node == node)
    }

    /// The most misses of a cpu other than this one that has a copy on its node.
    pub fn by_holder(&self, cpu: u32) -> u32 {
        let others = self.misses.iter().zip(self.nodes).zip(0..);
        let holders = others.filter(|&((_, &node), other)| other != cpu && self.is_on(node));
        holders.map(|((&misses, _), _)| misses).max().unwrap_or(0)
    }

    /// The misses of each cpu, with its node.
    pub fn by_node(&self) -> impl Iterator<Item = (u32, u32)> {
        self.nodes.iter().copied().zip(self.misses.iter().copied())
    }

    pub fn move_to(&mut self, node: u32) {
        self.head[MOVES] = self.head[MOVES].saturating_add(1);
        self.set_home(node);
        self.collapse();
    }

    pub fn copy_to(&mut self, node: u32) {
        let used = self.interval_of_counts();
        self.rest.replicas.push(Replica { node, used });
        self.mark_replicated();
    }

    /// A thread of a node writes, and finds replicas: its node's copy is kept, else the first.
    pub fn written(&mut self, thread: u32, node: u32) {
        self.head[WRITES] = self.head[WRITES].saturating_add(1);
        self.head[HOME] |= COUNTED;
        self.rest.counted = thread;
        if self.is_on(node) {
            self.set_home(node);
        }
        self.collapse();
    }

    pub fn collapse(&mut self) {
        self.rest.replicas.clear();
        self.mark_replicated();
    }
}
