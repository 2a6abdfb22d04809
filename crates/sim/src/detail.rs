//! Counts beyond the totals: by thread, data structure and page, and the lines that threads with different data take
//! from one another.
//!
//! A run without detail has no [`Detail`], and pays one test for each piece and miss. The engine reports misses,
//! stalls, accesses to pages' memory that others invalidated, and allocations; [`report`] evaluates them at the end.

mod callers;
mod clashes;
mod code;
mod evidence;
mod lines;
mod remote;
mod report;
mod rows;
mod stacks;
mod timeline;
mod together;

use trace::{Dependence, Event, Op, Site};

use crate::causes::Causes;
use crate::clock::Units;
use crate::config::{self, Config};
use crate::counts::Class;
use crate::curves::Curves;
use crate::engine::Engine;
use crate::layout::Layout;
use crate::pieces::{Access, Who};
use crate::steps::Step;
use crate::structures::{StructureId, Structures, Tables, UNKNOWN};
pub use code::{UNKNOWN as UNKNOWN_CODE, sites_of};

use callers::Callers;
use clashes::{Clashes, NO_PAIR};
use lines::Lines;
use remote::Remote;
use rows::Rows;
use stacks::Stacks;
use timeline::{Place, Timeline};
use together::{Together, Touch};

/// The names that a run's input has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    pub tables: Tables<'a>,
    /// The sites of the references.
    pub sites: &'a [Site],
    /// The sites that each site waits for; `None` if that is not known.
    pub dependences: Option<&'a [Dependence]>,
}

/// The attribution of a miss; kept with a sharing miss until its class is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    thread: u32,
    structure: StructureId,
    page: u32,
    /// The two accesses that collided.
    pair: u32,
    /// The place in the code; 0 if places are not counted.
    place: u32,
}

/// One run's counts beyond the totals.
pub struct Detail {
    wanted: config::Detail,
    classes: bool,
    structures: Structures,
    threads: Option<Rows>,
    by_structure: Option<Rows>,
    pages: Option<Rows>,
    lines: Option<Lines>,
    /// By page: the structure that has most of it, and by how much.
    tenants: Vec<(StructureId, u64)>,
    clashes: Option<Clashes>,
    curves: Option<Box<Curves>>,
    causes: Option<Causes>,
    remote: Option<Box<Remote>>,
    together: Option<Box<Together>>,
    /// Beside `remote`, whose first touches it names.
    callers: Option<Callers>,
    timeline: Option<Box<Timeline>>,
    stacks: Option<Box<Stacks>>,
    /// The kind of the first caches for data.
    first: u16,
    references: Vec<u64>,
    /// Only `together` looks: the supplier of each piece is not asked for.
    touches_only: bool,
    /// Events are not counted: they warm caches.
    pub quiet: bool,
}

impl Detail {
    /// `None` where nothing is wanted that this counts.
    pub fn new(config: &Config, layout: &Layout, names: &Names, threads: usize) -> Option<Box<Detail>> {
        let wanted = config.detail;
        let rows = |wanted: bool| wanted.then(|| Rows::new(layout.caches.len()));
        // Without classes it is unknown which misses are false sharing.
        let collisions = wanted.false_sharing > 0 && config.classes;
        let curves = || {
            let caches = crate::slots::caches(&config.machine).filter(|_| wanted.curves)?;
            let kind = *layout.data.last()?;
            let line_bits = layout.caches[kind].line_bits as u8;
            Some(Box::new(Curves::new(
                caches,
                kind as u16,
                line_bits,
                &names.tables,
                wanted.exact,
            )))
        };
        wanted.is_close().then(|| {
            Box::new(Detail {
                wanted,
                classes: config.classes,
                structures: Structures::new(&names.tables),
                threads: rows(wanted.threads),
                by_structure: rows(wanted.structures),
                pages: rows(wanted.pages > 0),
                lines: (wanted.source_lines > 0 || wanted.causes || wanted.profile)
                    .then(|| Lines::new(layout.caches.len())),
                tenants: Vec::new(),
                clashes: collisions.then(|| Clashes::new(layout)),
                curves: curves(),
                causes: wanted
                    .causes
                    .then(|| Causes::new(layout, code::source_lines(names), wanted.exact))
                    .flatten(),
                remote: wanted.remote.then(|| Box::new(Remote::new(&config.machine.memory))),
                together: wanted.sharing.then(|| Box::new(Together::new(threads, layout))),
                callers: wanted.remote.then(|| Callers::new(names)),
                timeline: wanted
                    .timeline
                    .then(|| Box::new(Timeline::new(layout.page_bits, crate::frames::colors(&config.machine)))),
                stacks: wanted.profile.then(|| Box::new(Stacks::new(names))),
                first: layout.data.first().map_or(0, |&kind| kind as u16),
                references: Vec::new(),
                touches_only: {
                    let others = config::Detail {
                        sharing: false,
                        ..wanted
                    };
                    !others.is_close()
                },
                quiet: false,
            })
        })
    }

    /// Counts begin here; the names of addresses, and the thread that each line was taken from, stay known.
    pub fn restart(&mut self) {
        let rows = [&mut self.threads, &mut self.by_structure, &mut self.pages];
        rows.into_iter().flatten().for_each(Rows::restart);
        if let Some(lines) = &mut self.lines {
            lines.restart();
        }
        self.tenants.clear();
        self.references.clear();
        if let Some(clashes) = &mut self.clashes {
            clashes.restart();
        }
        if let Some(curves) = &mut self.curves {
            curves.restart();
        }
        if let Some(causes) = &mut self.causes {
            causes.restart();
        }
        if let Some(remote) = &mut self.remote {
            remote.restart();
        }
        if let Some(together) = &mut self.together {
            together.restart();
        }
        if let Some(timeline) = &mut self.timeline {
            **timeline = timeline.anew();
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.restart();
        }
    }

    fn key(&mut self, a: &Access) -> Key {
        let structure = self.structures.lookup(a.who.space, a.named_address);
        let place = |lines: &mut Lines| lines.row(a.who.space, a.pc_site, structure);
        Key {
            thread: a.who.thread,
            structure,
            page: a.page,
            pair: NO_PAIR,
            place: self.lines.as_mut().map_or(0, place),
        }
    }

    /// The first cache, of this kind, served a piece of a process without a wait, and the rest of the engine need not
    /// know of it. Returns whether those who look at the run need not either.
    #[inline(always)]
    fn passes(&mut self, space: u32, kind: u16, [from, to]: [u64; 2], fetch: bool) -> bool {
        if self.curves.as_ref().is_some_and(|curves| curves.are_of(kind)) {
            return false;
        }
        match &mut self.causes {
            Some(causes) if !fetch && !self.quiet => causes.passes(space, from, (to - from) as u32 + 1),
            _ => true,
        }
    }

    /// The same for a miss that may be false sharing.
    fn shared_key(&mut self, a: &Access) -> Key {
        let mut key = self.key(a);
        if let Some(clashes) = &mut self.clashes {
            key.pair = clashes.pair(a, &mut self.structures);
        }
        key
    }

    fn rows(&mut self, key: Key) -> impl Iterator<Item = (&mut Rows, u32)> {
        let threads = self.threads.as_mut().map(|rows| (rows, key.thread));
        let structures = self.by_structure.as_mut().map(|rows| (rows, key.structure));
        let pages = self.pages.as_mut().map(|rows| (rows, key.page));
        let lines = self.lines.as_mut().map(|lines| (&mut lines.rows, key.place));
        [threads, structures, pages, lines].into_iter().flatten()
    }

    fn miss(&mut self, key: Key, kind: usize, class: Option<Class>) {
        if self.quiet {
            return;
        }
        for (rows, row) in self.rows(key) {
            rows.miss(row, kind, class);
        }
        if class == Some(Class::FalseSharing)
            && let Some(clashes) = &mut self.clashes
        {
            clashes.count(key.pair, kind);
        }
        self.lives_in(key, 1);
    }

    fn stall(&mut self, key: Key, stall: Units) {
        for (rows, row) in self.rows(key) {
            rows.stall(row, stall);
        }
        self.lives_in(key, stall);
    }

    /// Shows a piece to the measurement of causes. `translation`: the wait for it, if the TLB missed.
    #[inline(always)]
    fn watch(&mut self, a: &Access, translation: Option<Units>, stall: Units) {
        if !self
            .causes
            .as_mut()
            .is_some_and(|causes| causes.wants(a, translation.is_some(), stall))
        {
            return;
        }
        let Key { place, structure, .. } = self.key(a);
        if let Some(causes) = &mut self.causes {
            let structures = &mut self.structures;
            let extent = || structures.extent(a.who.space, a.virtual_address);
            causes.touch(a, [place, structure], translation, stall, extent);
        }
    }

    /// A page is reported with the structure that has the majority of it (Boyer and Moore's vote).
    fn lives_in(&mut self, key: Key, weight: u64) {
        if self.pages.is_none() {
            return;
        }
        let page = key.page as usize;
        if self.tenants.len() <= page {
            self.tenants.resize(page + 1, (UNKNOWN, 0));
        }
        let (tenant, votes) = &mut self.tenants[page];
        if *tenant == key.structure {
            *votes += weight;
        } else if *votes >= weight {
            *votes -= weight;
        } else {
            (*tenant, *votes) = (key.structure, weight - *votes);
        }
    }
}

/// A thread's number; its name too, unless all have the same.
fn thread_name(names: &Names, thread: u32) -> String {
    let threads = names.tables.threads;
    match threads.get(thread as usize) {
        None => thread.to_string(),
        Some(known) if known.name.is_empty() || threads.iter().all(|other| other.name == known.name) => {
            known.number.to_string()
        }
        Some(known) => format!("{} ({})", known.number, known.name),
    }
}

/// The key of a miss whose class is not decided yet.
#[inline(always)]
pub fn waiting(detail: &mut Option<Box<Detail>>, a: &Access) -> Option<Key> {
    detail.as_mut().map(|detail| match detail.touches_only {
        true => Key::default(),
        false => detail.shared_key(a),
    })
}

/// The engine's reports. Each does nothing if no detail is wanted.
impl Engine {
    /// A thread is about to make a reference.
    #[inline(always)]
    pub fn detail_passed(&mut self, who: Who, site: u32) {
        let Some(detail) = &mut self.detail else { return };
        if let Some(callers) = &mut detail.callers {
            callers.passed(who.thread, site);
        }
        if let Some(stacks) = &mut detail.stacks {
            stacks.passed(who.space, who.thread, site);
        }
    }

    /// A thread touches a piece of data. `address` is where it lies.
    #[inline(always)]
    pub fn detail_touched(&mut self, who: Who, page: u32, address: u64, op: Op) {
        let moved = self.moved;
        let Some(detail) = &mut self.detail else { return };
        if let Some(together) = &mut detail.together
            && op != Op::Fetch
            && !detail.quiet
        {
            let touch = Touch {
                space: who.space,
                thread: who.thread,
                page,
                named: address.wrapping_sub(moved),
                address,
                write: matches!(op, Op::Write | Op::Modify),
            };
            together.touched(&touch, &mut detail.structures);
        }
    }

    /// A piece was served by its first cache, and the rest of the engine need not know of it. Returns whether that is
    /// all: it is, if no detail is wanted. `place`: its first and last byte; `now`: its cpu's clock before.
    #[inline(always)]
    pub fn detail_served(&mut self, who: Who, op: Op, place: [u64; 2], tlb_missed: bool, now: Units) -> bool {
        let Some(detail) = self.detail.as_mut().filter(|detail| !detail.touches_only) else {
            return true;
        };
        if tlb_missed || self.cpus[who.cpu as usize].clock != now {
            return false;
        }
        let fetch = op == Op::Fetch;
        let (first, _) = self.steps.route(who.cpu, fetch);
        detail.passes(who.space, self.steps.at(first).kind, place, fetch)
    }

    /// A cache was looked up for a piece.
    #[inline(always)]
    pub fn detail_looked_up(&mut self, a: &Access, step: &Step, hit: bool) {
        let Some(detail) = &mut self.detail else { return };
        if let Some(curves) = &mut detail.curves {
            curves.looked_up(a, step.kind, step.instance, hit, !detail.quiet);
        }
        if let Some(causes) = &mut detail.causes
            && !a.fetch
            && !detail.quiet
        {
            causes.looked_up(step.kind, hit);
        }
        if let Some(timeline) = &mut detail.timeline
            && !hit
            && !a.fetch
            && !detail.quiet
            && step.kind == detail.first
        {
            let structures = &mut detail.structures;
            let structure = || structures.lookup(a.who.space, a.named_address);
            timeline.missed(Place::of(a, self.cpus[a.who.cpu as usize].clock), structure);
        }
    }

    /// A piece missed in a kind of cache; `class` is `None` where classes are off.
    #[inline(always)]
    pub fn detail_missed(&mut self, a: &Access, kind: u16, class: Option<Class>) {
        if let Some(detail) = self.detail.as_mut().filter(|detail| !detail.touches_only) {
            let key = match class {
                Some(Class::FalseSharing) => detail.shared_key(a),
                _ => detail.key(a),
            };
            if let Some(stacks) = detail.stacks.as_mut().filter(|_| !detail.quiet) {
                stacks.missed(key.thread, key.place);
            }
            detail.miss(key, kind as usize, class);
        }
    }

    /// A miss went beyond all caches: `node` is its cpu's, `home` the memory's.
    #[inline(always)]
    pub fn detail_reached_memory(&mut self, a: &Access, node: u32, home: u32) {
        if let Some(detail) = &mut self.detail
            && detail.remote.is_some()
        {
            let Key { structure, .. } = detail.key(a);
            let quiet = detail.quiet;
            if let Some(remote) = &mut detail.remote {
                let callers = detail.callers.as_ref();
                let caller = || callers.and_then(|callers| callers.of(a.who.thread, a.pc_site));
                remote.reached(a, structure, caller, [node, home], quiet);
            }
        }
    }

    /// A sharing miss has its class at last. `counts`: index of the counts that it belongs to.
    pub fn detail_decided(&mut self, key: Key, counts: u32, class: Class) {
        if let Some(detail) = self.detail.as_mut().filter(|detail| !detail.touches_only) {
            detail.miss(key, counts as usize % self.layout.caches.len(), Some(class));
        }
    }

    /// A piece is done: reports its cpu's wait.
    #[inline(always)]
    pub fn detail_done(&mut self, a: &Access, tlb_missed: bool) {
        if self
            .detail
            .as_ref()
            .is_none_or(|detail| detail.quiet || detail.touches_only)
        {
            return;
        }
        let now = self.cpus[a.who.cpu as usize].clock;
        let stall = self.waited_for(a);
        let translation = tlb_missed.then(|| self.waited_for_translation(a));
        if let Some(detail) = &mut self.detail {
            if stall > 0 {
                let key = detail.key(a);
                detail.stall(key, stall);
                if let Some(timeline) = &mut detail.timeline {
                    timeline.waited(Place::of(a, now), key.structure, stall);
                }
                if let Some(stacks) = &mut detail.stacks {
                    stacks.waited(a.who.thread, key.place, stall);
                }
            }
            if detail.causes.is_some() && !a.fetch {
                detail.watch(a, translation, stall);
            }
        }
    }

    /// A write took lines of its block from other cores.
    pub fn detail_took(&mut self, a: &Access) {
        if let Some(clashes) = self.detail.as_mut().and_then(|detail| detail.clashes.as_mut()) {
            clashes.took(a);
        }
    }

    /// Memory was allocated or freed, or a process began: the names of addresses change. Or a lock was asked for, or
    /// the thread's call stack is known.
    pub fn structures(&mut self, space: u32, thread: u32, event: &Event) {
        if let Some(detail) = &mut self.detail {
            detail.structures.apply(space, thread, event);
            if let (Some(callers), Event::Spawn { child }) = (&mut detail.callers, event) {
                callers.spawned(thread, *child);
            }
            if let Some(stacks) = &mut detail.stacks {
                match event {
                    Event::Called { stack } => stacks.called(thread, *stack, detail.quiet),
                    Event::Window { .. } => stacks.forget(thread),
                    _ => {}
                }
            }
            if let Some(causes) = &mut detail.causes {
                causes.apply(space, event);
            }
            if let Some(curves) = &mut detail.curves {
                curves.apply(space, thread, event);
            }
        }
    }

    /// A thread made `references` references.
    pub fn detail_ran(&mut self, thread: u32, references: u64) {
        if let Some(detail) = self.detail.as_mut().filter(|detail| !detail.quiet) {
            let thread = thread as usize;
            if detail.references.len() <= thread {
                detail.references.resize(thread + 1, 0);
            }
            detail.references[thread] += references;
        }
    }
}
