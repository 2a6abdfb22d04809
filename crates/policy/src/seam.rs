//! The seam between decisions and the worlds that carry them out.
//!
//! A world calls [`Policy::place`] when a page is touched for the first time, and
//! [`Policy::observe`] at the moments that the policy asked for through [`Policy::interest`].
//! The policy answers with a [`Placement`], or with [`Action`]s. A world carries out the actions that it can,
//! charges their costs, and reports nothing to a policy that it did not ask for.

use std::sync::Arc;

use serde::Serialize;

use crate::best_homes::{BestHomes, HomesFrom};
use crate::cdpc::{PageColors, Wanted};
use crate::domains::{Domains, Following};
use crate::page::Page;
use crate::slots::{Caches, Kind};

/// The machine and its present state, as far as a policy may know them.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub page_bytes: u64,
    /// Colors among which page placement chooses; at least 1.
    pub colors: u32,
    pub cpus: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// The first `cpu_nodes` of them have cpus: cpu `c` is on node `c * cpu_nodes / cpus`. The others are memory only.
    pub cpu_nodes: u32,
    /// Free frames on each node; `u64::MAX` where memory is not limited.
    pub free_frames: Vec<u64>,
    /// Nanoseconds since the start of the run, on the clock of the cpu concerned.
    pub now_ns: u64,
    /// The outermost caches, in the way that cache slots see them. Color `c` of [`World::colors`] is color
    /// `c mod caches.colors` of these. `None` if placement does not decide which lines compete in them.
    pub caches: Option<Caches>,
    /// The outermost caches of which there are several, for policies that run threads where their data is cached.
    pub domains: Option<Arc<Domains>>,
    /// Threads that run on each cpu or wait for their turn on it; kept up by the simulator, and where a program's threads follow their data; else empty.
    pub runnable: Vec<u32>,
}

impl World {
    /// The node that a cpu is on.
    pub fn node_of(&self, cpu: u32) -> u32 {
        (u64::from(cpu) * u64::from(self.cpu_nodes) / u64::from(self.cpus.max(1))) as u32
    }
}

/// The first touch of a page that has no frame yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub page: Page,
    pub thread: u32,
    pub cpu: u32,
    pub write: bool,
}

/// The place where a page should be. `None`: this policy has no opinion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    pub color: Option<u32>,
    pub node: Option<u32>,
}

/// The moments at which a policy wants to act. The default asks for none: placement only.
///
/// A policy that asks for nothing never moves a page; worlds may then compute once everything that does not depend on
/// placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Misses of the outermost cache: one in this many is reported; 0: none.
    pub cache_misses: u32,
    /// TLB misses: one in this many; 0: none.
    pub tlb_misses: u32,
    /// Touches of pages that the policy closed.
    pub touches: bool,
    /// The time of a touch of a closed page, in ns, if the policy is of a system for which it is known; 0: the world's own
    /// time ([`Cost::touch_fault_ns`]).
    pub touch_fault_ns: u64,
    /// The time to move a thread, likewise ([`Cost::move_thread_ns`]).
    pub move_thread_ns: u64,
    /// Interval of ticks in nanoseconds of each cpu's clock; 0: none.
    pub tick_ns: u64,
    /// Memory pressure: reported when a node's free frames fall below this; 0: never.
    pub pressure_frames: u64,
    /// Statements about cache slots: by the program, or by a plan for it.
    pub slots: bool,
    /// Interval in nanoseconds at which the accessed pages are reported ([`Policy::observe_accessed`]); 0: never.
    pub accessed_ns: u64,
}

impl Interest {
    /// Placement on first touch and nothing else.
    pub const NONE: Interest = Interest {
        cache_misses: 0,
        tlb_misses: 0,
        touches: false,
        touch_fault_ns: 0,
        move_thread_ns: 0,
        tick_ns: 0,
        pressure_frames: 0,
        slots: false,
        accessed_ns: 0,
    };

    /// Both policies' wishes: the finer sampling, the shorter tick, the earlier warning, the longer fault.
    pub fn union(self, other: Interest) -> Interest {
        fn finer(a: u64, b: u64) -> u64 {
            match (a, b) {
                (0, x) | (x, 0) => x,
                (a, b) => a.min(b),
            }
        }
        Interest {
            cache_misses: finer(self.cache_misses.into(), other.cache_misses.into()) as u32,
            tlb_misses: finer(self.tlb_misses.into(), other.tlb_misses.into()) as u32,
            touches: self.touches || other.touches,
            touch_fault_ns: self.touch_fault_ns.max(other.touch_fault_ns),
            move_thread_ns: self.move_thread_ns.max(other.move_thread_ns),
            tick_ns: finer(self.tick_ns, other.tick_ns),
            pressure_frames: self.pressure_frames.max(other.pressure_frames),
            slots: self.slots || other.slots,
            accessed_ns: finer(self.accessed_ns, other.accessed_ns),
        }
    }
}

/// The place at which a miss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissLevel {
    /// The outermost cache: memory was reached.
    Cache,
    Tlb,
}

/// A miss on a page that has a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    pub level: MissLevel,
    pub page: Page,
    /// The world's number of the page, from 0 without gaps: the same as long as the run lasts.
    pub index: u32,
    pub thread: u32,
    pub cpu: u32,
    /// Node of the frame (or of the replica) that served it.
    pub served_by: u32,
    pub write: bool,
    pub fetch: bool,
}

/// A miss at a moment of its cpu's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissAt {
    pub now_ns: u64,
    pub miss: Miss,
}

/// The nature of a page's data, as far as its use shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nature {
    #[default]
    Data,
    /// It was touched to be executed.
    Code,
    /// It is of a thread's stack.
    Stack,
}

/// A page that was accessed since it was looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    pub page: Page,
    /// As in [`Miss`].
    pub index: u32,
    pub nature: Nature,
}

/// A touch of a closed page, before it is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub page: Page,
    /// As in [`Miss`].
    pub index: u32,
    pub thread: u32,
    pub cpu: u32,
    pub write: bool,
    pub nature: Nature,
}

/// A period has passed on a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    pub cpu: u32,
    /// The thread that ran; `None`: the world does not know.
    pub ran: Option<Ran>,
}

/// A thread, and the address space that it runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    pub thread: u32,
    pub space: u32,
}

/// A node is short of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    pub node: u32,
    pub free_frames: u64,
}

/// A statement about cache slots (Ding11, section 3.1). Numbers of slots and of data sets are the speaker's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotWord {
    /// There is a slot of `bytes` in each shared cache.
    Slot { slot: u64, bytes: u64, kind: Kind },
    /// The slot is no more.
    SlotFree { slot: u64 },
    /// `[addr, addr + bytes)` of an address space belongs to the data set; pages count that are covered whole.
    Range {
        set: u64,
        space: u32,
        addr: u64,
        bytes: u64,
    },
    /// A thread of this cpu uses the data set; a data set without such a statement is used by all.
    User { set: u64, cpu: u32 },
    /// The data set gets the slot; `None`: as few colors as can be, because it is not worth caching.
    Allocate { set: u64, slot: Option<u64> },
    /// The data set is no more; its pages may be of any color.
    Free { set: u64 },
}

/// A moment at which a policy may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    Miss(Miss),
    /// A write to a page that has replicas; the world collapses them unless an action does.
    ReplicaWritten(Touched),
    Touched(Touched),
    Tick(Tick),
    Pressure(Pressure),
    /// A statement about cache slots came; called before the next touch.
    Slots(SlotWord),
}

/// An action that a policy asks of its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give the page another frame: on another node (migrate), of another color (recolor), or both.
    Move { page: Page, to: Placement },
    /// Make a copy for the readers of a node.
    Copy { page: Page, node: u32 },
    /// Give up all copies but one, on `node` if given.
    Collapse { page: Page, node: Option<u32> },
    /// Let every touch of the page by these cpus (bit c: cpu c) be reported before it happens.
    Close { page: Page, cpus: u128 },
    /// The opposite of `Close`.
    Open { page: Page, cpus: u128 },
    /// Run a thread on another cpu from now on.
    MoveThread { thread: u32, cpu: u32 },
    /// Run a thread on these cpus only (bit c: cpu c), as `sched_setaffinity(2)` does. One that is on another cpu leaves it.
    Allow { thread: u32, cpus: u128 },
    /// The policy's own work takes this long on the current cpu.
    Work { ns: u64 },
}

/// The costs of the actions in the current world, in nanoseconds, as a policy may weigh them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    pub move_page_ns: f64,
    /// Another frame on the same node.
    pub recolor_page_ns: f64,
    pub copy_page_ns: f64,
    pub collapse_ns: f64,
    pub touch_fault_ns: f64,
    pub move_thread_ns: f64,
}

/// The times of misses and actions in the current world, for policies that weigh them.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    pub cost: Cost,
    /// Nodes.
    pub nodes: u32,
    /// The time of a miss, in ns: of the cpus of each node (row), by the node that serves it.
    pub latency_ns: Vec<f64>,
    /// The time it takes to have threads follow their data, and the bounds within which that gains.
    pub following: Following,
}

impl Prices {
    /// The time of a miss of a cpu of one node that another one serves.
    pub fn miss_ns(&self, from: u32, served_by: u32) -> f64 {
        self.latency_ns[(from * self.nodes + served_by) as usize]
    }
}

/// The default of [`Policy::observe_misses`], for policies that have no faster one.
pub(crate) fn one_by_one(
    misses: &[MissAt],
    world: &mut World,
    actions: &mut Vec<Action>,
    mut observe: impl FnMut(&Observation, &World, &mut Vec<Action>),
) -> usize {
    for (heard, at) in (1..).zip(misses) {
        world.now_ns = at.now_ns;
        observe(&Observation::Miss(at.miss), world, actions);
        if !actions.is_empty() {
            return heard;
        }
    }
    misses.len()
}

/// A policy: placements on first touch, and its actions while the program runs.
pub trait Policy: Send {
    /// Called once for each page, when it is first touched.
    fn place(&mut self, touch: &Touch, world: &World) -> Placement;

    /// The moments at which [`Policy::observe`] is to be called. Asked once, before the run.
    fn interest(&self) -> Interest {
        Interest::NONE
    }

    /// Called at the requested moments; actions are pushed onto `actions`.
    fn observe(&mut self, _observation: &Observation, _world: &World, _actions: &mut Vec<Action>) {}

    /// Several misses, as if each came by [`Policy::observe`] with its time in `world`: for worlds that have misses in store, and
    /// for policies that get tens of millions a second. Ends with the first miss that calls for an action, since
    /// that may change by which node the next ones are served. Returns the number of misses that were handled.
    fn observe_misses(&mut self, misses: &[MissAt], world: &mut World, actions: &mut Vec<Action>) -> usize {
        one_by_one(misses, world, actions, |miss, world, actions| {
            self.observe(miss, world, actions)
        })
    }

    /// The pages that were accessed since the last such moment, by their numbers in the world. `world.now_ns` is the clock of the
    /// cpu that came to the moment first.
    fn observe_accessed(&mut self, _accessed: &[Accessed], _world: &World, _actions: &mut Vec<Action>) {}

    /// The hints that [`Policy::take_hints`] is to be given. `None`: the policy takes no hints. Asked once, before the run.
    fn hints_wanted(&self) -> Option<Wanted> {
        None
    }

    /// The colors that pages should have, before the run.
    fn take_hints(&mut self, _hints: &Arc<PageColors>) {}

    /// The homes that [`Policy::take_best_homes`] is to be given. `None`: the policy takes none. Asked once, before the
    /// run.
    fn wants_best_homes(&self) -> Option<HomesFrom> {
        None
    }

    /// Takes the best homes of pages, before the run.
    fn take_best_homes(&mut self, _homes: &Arc<BestHomes>) {}

    /// True if the policy needs [`Policy::take_prices`]. Asked once, before the run.
    fn wants_prices(&self) -> bool {
        false
    }

    /// Takes the times of misses and actions, before the run, if the world knows them.
    fn take_prices(&mut self, _prices: &Arc<Prices>) {}

    /// True if the policy has to know when threads gain from following their data ([`Prices::following`]). Asked once, before the run.
    fn wants_bounds(&self) -> bool {
        false
    }

    /// True if a page has a color for the sake of the data on it: a page of a data set that was given colors, or one
    /// with a hint. Systems keep such a page out of huge pages. A color that every page is given, whatever its data,
    /// does not count.
    fn colors(&self, _page: Page) -> bool {
        false
    }

    /// The outcome for cache slots, if the policy gives them colors. Asked after the run.
    fn slots(&self) -> Option<results::Slots> {
        None
    }

    /// The caches that each process got, if the policy gives them some. Asked after the run.
    fn pairing(&self) -> Option<results::Pairing> {
        None
    }

    /// The findings and actions of region scheduling, if the policy does it. Asked after the run.
    fn regions(&self) -> Option<results::Regions> {
        None
    }
}
