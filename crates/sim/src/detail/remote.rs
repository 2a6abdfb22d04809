//! Data that is far from its users: the nodes that each page's misses come from, and the thread that touched it first.
//!
//! It counts the misses that go beyond all caches: those that memory serves, or another cpu's dirty cache on another
//! node. The classes are by page, the counts by page and data structure.

use std::cmp::Reverse;
use std::collections::HashMap;

use results::{FirstToucher, RemoteMisses, RemoteReason, RemoteStructure};
use rustc_hash::FxHashMap;

use super::code::{Code, Spot};
use crate::outcome::OtherNodes;
use crate::pieces::Access;
use crate::structures::{StructureId, Structures};

/// Structures that are reported, and first touches of each.
const MOST: usize = 20;
const MOST_TOUCHES: usize = 3;

/// A page is one node's that has so large a part of its misses: two of three.
const OWNED: [u64; 2] = [2, 3];
/// A page that goes from node to node has at least this many misses for each time that it does.
const STAYS: u64 = 8;
/// A page is read by many if it has at least this many misses for each one that writes.
const READ: u64 = 16;

/// The first touch of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Touch {
    thread: u32,
    space: u32,
    site: u32,
    /// The place where the program's own code called that of the site, if that is a library's.
    caller: Option<u32>,
    node: u32,
}

/// Data of a page beside its misses by node.
#[derive(Clone, Copy, Debug, Default)]
struct PageUse {
    first: Option<Touch>,
    /// The node that missed last.
    last: u32,
    /// Misses of the first node before another one missed: they fill the page, and do not show its user.
    before: u64,
    /// The number of misses by another node than the one before.
    changes: u64,
    /// Misses that write, since a second node came.
    writes: u64,
    remote: u64,
}

/// The pages of a run.
pub struct Remote {
    /// Nodes with cpus, and all, of which some may have memory alone.
    nodes: usize,
    all_nodes: usize,
    /// Misses by node of the cpu and node of the memory.
    traffic: Vec<u64>,
    pages: Vec<PageUse>,
    /// Misses by page and node.
    by_node: Vec<u64>,
    /// Misses by page, structure, and node of the cpu: local, remote.
    data: FxHashMap<(u32, StructureId, u32), [u64; 2]>,
}

impl Remote {
    pub fn new(memory: &machine::Memory) -> Remote {
        let (nodes, all_nodes) = (memory.nodes as usize, memory.all_nodes() as usize);
        Remote {
            nodes,
            all_nodes,
            traffic: vec![0; nodes * all_nodes],
            pages: Vec::new(),
            by_node: Vec::new(),
            data: FxHashMap::default(),
        }
    }

    /// Counts begin here; first touches stay known.
    pub fn restart(&mut self) {
        for page in &mut self.pages {
            *page = PageUse {
                first: page.first,
                last: page.last,
                ..PageUse::default()
            };
        }
        self.by_node.fill(0);
        self.traffic.fill(0);
        self.data.clear();
    }

    /// A miss of a cpu on `node` was served by `home`. `caller`: the caller of a library that makes it; `quiet`: it is
    /// not counted.
    pub fn reached(
        &mut self,
        a: &Access,
        structure: StructureId,
        caller: impl Fn() -> Option<u32>,
        [node, home]: [u32; 2],
        quiet: bool,
    ) {
        let number = a.page as usize;
        if number >= self.pages.len() {
            self.pages.resize(number + 1, PageUse::default());
            self.by_node.resize((number + 1) * self.nodes, 0);
        }
        let page = &mut self.pages[number];
        let first = *page.first.get_or_insert_with(|| {
            page.last = node;
            Touch {
                thread: a.who.thread,
                space: a.who.space,
                site: a.pc_site,
                caller: caller(),
                node,
            }
        });
        if quiet {
            return;
        }
        page.changes += u64::from(page.last != node);
        page.last = node;
        let shared = page.changes > 0 || node != first.node;
        page.before += u64::from(!shared);
        page.writes += u64::from(a.write && shared);
        page.remote += u64::from(node != home);
        self.by_node[number * self.nodes + node as usize] += 1;
        self.traffic[node as usize * self.all_nodes + home as usize] += 1;
        self.data.entry((a.page, structure, node)).or_default()[usize::from(node != home)] += 1;
    }

    fn reason(&self, number: usize) -> RemoteReason {
        let page = &self.pages[number];
        let counts = &self.by_node[number * self.nodes..(number + 1) * self.nodes];
        let first = page.first.map_or(0, |first| first.node as usize);
        let filled = if page.changes > 0 { page.before } else { 0 };
        let count = |node: usize| counts[node] - if node == first { filled } else { 0 };
        let all: u64 = (0..counts.len()).map(count).sum();
        let (owner, most) = (0..counts.len())
            .map(|node| (node, count(node)))
            .fold((0, 0), |most, of| if of.1 > most.1 { of } else { most });
        let owned = most * OWNED[1] >= all * OWNED[0];
        if owned && owner != first {
            RemoteReason::FirstTouch
        } else if !owned && page.changes * STAYS <= all {
            RemoteReason::MovesOn
        } else if page.writes * READ <= all {
            RemoteReason::ReadByMany
        } else {
            RemoteReason::WrittenByMany
        }
    }

    pub fn report(&self, structures: &Structures, code: &Code) -> OtherNodes {
        OtherNodes {
            structures: self.structures(structures, code),
            traffic: self.traffic.chunks(self.all_nodes).map(<[u64]>::to_vec).collect(),
        }
    }

    /// The structures with remote misses, those with most first.
    fn structures(&self, structures: &Structures, code: &Code) -> Vec<RemoteStructure> {
        let mut sums: HashMap<StructureId, Sum> = HashMap::new();
        for (&(page, structure, node), &[local, remote]) in &self.data {
            let sum = sums.entry(structure).or_insert_with(|| Sum::new(self.nodes));
            sum.local += local;
            sum.nodes[node as usize] += local + remote;
            *sum.pages.entry(page).or_default() += remote;
        }
        let mut sums: Vec<(StructureId, Sum)> = sums.into_iter().filter(|(_, sum)| sum.remote() > 0).collect();
        sums.sort_by_key(|(structure, sum)| (Reverse(sum.remote()), *structure));
        sums.truncate(MOST);
        let report = |(structure, sum): (StructureId, Sum)| {
            let about = structures.describe(structure);
            RemoteStructure {
                name: about.name,
                kind: about.kind,
                file: about.file,
                line: about.line,
                pages: sum.pages.len() as u64,
                local: sum.local,
                remote: sum.remote(),
                reasons: self.reasons(&sum),
                first_touches: self.first_touches(&sum, code),
                nodes: sum.nodes,
            }
        };
        sums.into_iter().map(report).collect()
    }

    fn reasons(&self, sum: &Sum) -> Vec<RemoteMisses> {
        let mut of = [0; RemoteReason::ALL.len()];
        for (&page, &remote) in &sum.pages {
            of[self.reason(page as usize) as usize] += remote;
        }
        let mut reasons: Vec<RemoteMisses> = RemoteReason::ALL
            .into_iter()
            .map(|reason| RemoteMisses {
                reason,
                remote: of[reason as usize],
            })
            .filter(|of| of.remote > 0)
            .collect();
        reasons.sort_by_key(|of| (Reverse(of.remote), of.reason));
        reasons
    }

    fn first_touches(&self, sum: &Sum, code: &Code) -> Vec<FirstToucher> {
        // By place, function of a library, thread and node: pages, and remote misses on them.
        type By = (Spot, Option<String>, u32, u32);
        let mut by: HashMap<By, (u64, u64)> = HashMap::new();
        for (&page, &remote) in sum.pages.iter().filter(|(_, remote)| **remote > 0) {
            if let Some(first) = self.pages[page as usize].first {
                let spot = code.spot(first.space, first.site);
                let (spot, through) = match first.caller {
                    Some(caller) => (code.spot(first.space, caller), Some(spot.function)),
                    None => (spot, None),
                };
                let of = by.entry((spot, through, first.thread, first.node)).or_default();
                of.0 += 1;
                of.1 += remote;
            }
        }
        let mut touches: Vec<FirstToucher> = by
            .into_iter()
            .map(|((spot, through, thread, node), (pages, remote))| FirstToucher {
                source: spot.in_short(),
                function: spot.function,
                through,
                thread,
                node,
                pages,
                remote,
            })
            .collect();
        touches.sort_by(|a, b| {
            (b.remote, a.thread, &a.source, &a.through).cmp(&(a.remote, b.thread, &b.source, &b.through))
        });
        touches.truncate(MOST_TOUCHES);
        touches
    }
}

/// The sums of a structure.
struct Sum {
    local: u64,
    nodes: Vec<u64>,
    /// Remote misses by page.
    pages: HashMap<u32, u64>,
}

impl Sum {
    fn new(nodes: usize) -> Sum {
        Sum {
            local: 0,
            nodes: vec![0; nodes],
            pages: HashMap::new(),
        }
    }

    fn remote(&self) -> u64 {
        self.pages.values().sum()
    }
}
