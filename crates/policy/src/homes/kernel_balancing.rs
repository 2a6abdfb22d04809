//! Linux's automatic NUMA balancing (kernel/sched/fair.c: task_numa_work, task_numa_fault, should_numa_migrate_memory;
//! Documentation/admin-guide/sysctl/kernel.rst, numa_balancing; the parameters are described in
//! Documentation/scheduler/sched-debug.rst), as far as it moves pages. It does not move threads here.
//!
//! At intervals a part of each process's pages is closed, and a thread that touches one takes a fault. The fault shows
//! which thread uses the page and from where: a page goes to the node of a cpu that faults on it twice in a row, or
//! once for a thread that has had it to itself. The rate follows from the share of faults that were local, or of single
//! threads.

mod process;

use std::collections::{BTreeMap, HashMap};

use crate::page::Page;
use crate::seam::{Action, Interest, Observation, Placement, Policy, Touch, Touched, World};
use crate::settings::{Param, PolicyError, Range, Settings};
use process::{Fault, Pace, Process};

const fn param(name: &'static str, summary: &'static str, unit: &'static str, least: u64, default: u64) -> Param {
    // A day in us; an address space in bytes.
    let most = 1 << 48;
    Param {
        name,
        summary,
        unit,
        range: Range { least, most },
        default,
        names: &[],
    }
}

pub const PARAMS: &[Param] = &[
    param(
        "delay",
        "a process's pages are first closed so long after its first touch (scan_delay_ms: 1000)",
        "us",
        0,
        1_000_000,
    ),
    param(
        "scan-min",
        "the shortest time in which all pages of a process are closed once (scan_period_min_ms: 1000)",
        "us",
        1,
        1_000_000,
    ),
    param(
        "scan-max",
        "the longest such time (scan_period_max_ms: 60000)",
        "us",
        1,
        60_000_000,
    ),
    param(
        "scan-size",
        "so much is closed at once (scan_size_mb: 256)",
        "bytes",
        1,
        256 << 20,
    ),
    param(
        "scan-rate",
        "so much may be closed in a second; 0: no bound (MAX_SCAN_WINDOW: 2560 MB)",
        "bytes",
        0,
        2560 << 20,
    ),
    param(
        "tick",
        "how often it is looked whether it is time to close pages (the scheduler's tick: CONFIG_HZ=250)",
        "us",
        1,
        4000,
    ),
    param(
        "rate",
        "so many pages may move to a node in a second; 0: no bound (Linux since 4.20; 3.8 to 4.19 had 128 MB in 100 ms)",
        "pages",
        0,
        0,
    ),
    param(
        "fault",
        "what a fault takes (ours: a fault on shared memory that is present took 1.5 to 1.8 us in a virtual machine, AMD EPYC, \
         Linux 6.18)",
        "ns",
        1,
        1500,
    ),
];

/// The known facts about a page.
struct OfPage {
    home: u32,
    /// The node and the thread of the last fault.
    last: Option<(u32, u32)>,
}

pub struct KernelBalancing {
    pace: Pace,
    tick_ns: u64,
    fault_ns: u64,
    /// Pages that may move to a node in a second; 0: no bound.
    rate: u64,
    /// For each node the second that is counted, and the number of pages that have moved in it.
    moved: Vec<(u64, u64)>,
    processes: BTreeMap<u32, Process>,
    pages: HashMap<Page, OfPage>,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let ns = |name: &str| settings.integer(name).saturating_mul(1000);
    Ok(Box::new(KernelBalancing {
        pace: Pace {
            delay_ns: ns("delay"),
            least_ns: ns("scan-min"),
            most_ns: ns("scan-max"),
            bytes: settings.integer("scan-size"),
            bytes_per_second: settings.integer("scan-rate"),
        },
        tick_ns: ns("tick"),
        fault_ns: settings.integer("fault"),
        rate: settings.integer("rate"),
        moved: Vec::new(),
        processes: BTreeMap::new(),
        pages: HashMap::new(),
    }))
}

/// All cpus.
fn everybody(world: &World) -> u128 {
    match world.cpus {
        cpus @ 0..128 => (1 << cpus) - 1,
        _ => u128::MAX,
    }
}

impl KernelBalancing {
    /// Returns true if a page may move to a node now; the move is counted then.
    fn may_move(&mut self, node: u32, world: &World) -> bool {
        if world.free_frames[node as usize] == 0 {
            return false;
        }
        self.moved.resize(world.nodes as usize, (0, 0));
        let (second, moved) = &mut self.moved[node as usize];
        let now = world.now_ns / 1_000_000_000;
        // A cpu whose clock is behind counts in the second of the first.
        if now > *second {
            (*second, *moved) = (now, 0);
        }
        if self.rate > 0 && *moved >= self.rate {
            return false;
        }
        *moved += 1;
        true
    }

    fn touched(&mut self, touched: &Touched, world: &World, actions: &mut Vec<Action>) {
        let Touched { page, thread, cpu, .. } = *touched;
        actions.push(Action::Open {
            page,
            cpus: everybody(world),
        });
        let here = world.node_of(cpu);
        let (Some(of_page), Some(process)) = (self.pages.get_mut(&page), self.processes.get_mut(&page.space)) else {
            return;
        };
        process.opened(page.number);
        let home = of_page.home;
        let last = of_page.last.replace((here, thread));
        let mut fault = Fault {
            cpu_node: here,
            page_node: home,
            local: here == home,
            private: last.is_none_or(|(_, other)| other == thread),
            failed: false,
        };
        if process.wants(last, &fault) && !fault.local {
            match self.may_move(here, world) {
                true => {
                    if let Some(of_page) = self.pages.get_mut(&page) {
                        of_page.home = here;
                    }
                    fault.page_node = here;
                    let to = Placement {
                        color: None,
                        node: Some(here),
                    };
                    actions.push(Action::Move { page, to });
                }
                false => fault.failed = true,
            }
        }
        if let Some(process) = self.processes.get_mut(&page.space) {
            process.count(&fault, &self.pace, world);
        }
    }

    /// Closes the next pages of every process whose time has come.
    fn scan(&mut self, world: &World, actions: &mut Vec<Action>) {
        let cpus = everybody(world);
        for (&space, process) in &mut self.processes {
            for number in process.scan(&self.pace, world) {
                let page = Page { space, number };
                actions.push(Action::Close { page, cpus });
            }
        }
    }
}

impl Policy for KernelBalancing {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let node = world.node_of(touch.cpu);
        // If the node has no frame left, the next node that has one gives it.
        let nodes = (node..world.nodes).chain(0..node);
        let mut free = nodes.filter(|node| world.free_frames[*node as usize] > 0);
        let home = free.next().unwrap_or(node);
        self.pages.insert(touch.page, OfPage { home, last: None });
        let process = self.processes.entry(touch.page.space);
        let process = process.or_insert_with(|| Process::new(&self.pace, world));
        process.add(touch.page.number);
        Placement {
            color: None,
            node: Some(node),
        }
    }

    fn interest(&self) -> Interest {
        Interest {
            touches: true,
            touch_fault_ns: self.fault_ns,
            tick_ns: self.tick_ns,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        match observation {
            Observation::Touched(touched) => self.touched(touched, world, actions),
            Observation::Tick(_) => self.scan(world, actions),
            _ => {}
        }
    }
}
