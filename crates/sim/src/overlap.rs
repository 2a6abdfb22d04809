//! Processors that overlap: a load that has not come holds its cpu up only where nothing else can go on.
//!
//! The exact rules are in "A processor that overlaps" of the contract. A cpu's clock is the time at which its last
//! instruction left. The lead of the entering of instructions over that follows from its delays within the last
//! `window` instructions; nothing else is kept of these. So the wait for a piece is known when it is carried out, and
//! is attributed to it at once.

mod asks;
mod branches;
mod depends;
mod lane;
mod requests;
mod sets;

use machine::Machine;
use trace::{Dependence, Misprediction, Op, Pace};

use crate::clock::Units;
use crate::engine::Engine;
use crate::layout::Layout;
use crate::lookup::SetLine;
use crate::pieces::{Access, Who};
use crate::prefetch::Prefetchers;
use crate::steps::Step;
use branches::Branches;
use depends::Depends;
pub use depends::Loads;
use lane::{Lane, Whence};
use sets::Sets;

/// Instructions that a prefetch of the program takes: the address, and the prefetch.
const PREFETCH: Units = 2;

/// The cpus of a machine with `[core]`.
pub struct Overlap {
    window: u64,
    /// The time of `window - 1` instructions.
    ahead: Units,
    /// For so long a walk keeps a walker.
    walk: Units,
    period: Units,
    store_buffer: usize,
    /// Of a line of the first cache.
    line_bits: u32,
    lanes: Vec<Lane>,
    depends: Depends,
    paces: Vec<Takes>,
    branches: Option<Branches>,
    /// By instance and place in it: the time at which the line there comes.
    coming: Vec<Vec<Coming>>,
    /// When lines come that are taken in now.
    pub comes: Coming,
    at_hand: AtHand,
}

/// The time that the instructions of a site's reference take beyond [`Overlap::period`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Takes {
    /// Each, because it waits for others.
    each: Units,
    /// All together, because there are more.
    more: Units,
}

/// The time at which a line comes to the cpu that asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    at: Units,
    cpu: u32,
    from: From,
}

pub const HERE: Coming = Coming {
    at: 0,
    cpu: 0,
    from: From::Cache,
};

/// The supplier of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Cache,
    Local,
    Remote,
}

/// The current piece.
#[derive(Clone, Copy, Debug, Default)]
struct AtHand {
    /// It is not of a fetch.
    data: bool,
    /// Found in its first cache.
    near: bool,
    /// It waits for its line's turn, which another asked for, and is no request.
    joined: bool,
    /// A write alone.
    store: bool,
    refill: Units,
    /// The time at which the source of its address has come.
    address: Units,
    /// When its instruction entered.
    entered: Units,
    /// When it is asked for by a prefetch of the program, at the latest.
    ahead: Option<Units>,
    /// The first piece of its reference.
    first: bool,
    upgrade: Option<Upgrade>,
    /// The total wait for it, without the translation, and the wait for the translation.
    waited: Units,
    translation: Units,
}

/// The right to write was asked for.
#[derive(Clone, Copy, Debug)]
struct Upgrade {
    cost: Units,
    counts: u32,
    cached: bool,
}

impl Overlap {
    /// `None` where each reference waits by itself.
    pub fn new(
        machine: &Machine,
        layout: &Layout,
        dependences: &[Dependence],
        paces: &[Pace],
        mispredictions: &[Misprediction],
        loads: &Loads,
    ) -> Option<Box<Overlap>> {
        let core = machine.core?;
        let period = period(machine);
        let first = machine
            .caches
            .iter()
            .filter(|cache| cache.kind != machine::Kind::Instruction)
            .min_by_key(|cache| cache.level);
        let walkers = machine.tlb.as_ref().map_or(0, |tlb| tlb.walkers as usize);
        let lane = || Lane::new(&core, walkers, Sets::new(&core, first));
        let mut depends = Depends::new(dependences, loads);
        let lines = |place: &crate::layout::Place| layout.caches[place.cache].lines() as usize;
        Some(Box::new(Overlap {
            window: core.window.into(),
            ahead: Units::from(core.window - 1) * period,
            walk: machine.tlb.as_ref().map_or(0, |tlb| crate::clock::units(tlb.refill_ns)),
            period,
            store_buffer: core.store_buffer as usize,
            line_bits: first.map_or(6, |cache| cache.line_bytes.trailing_zeros()),
            lanes: (0..machine.cpus).map(|_| lane()).collect(),
            branches: Branches::new(machine, mispredictions, &mut depends),
            depends,
            paces: beyond(machine, period, paces, loads),
            coming: layout.places.iter().map(|place| vec![HERE; lines(place)]).collect(),
            comes: HERE,
            at_hand: AtHand::default(),
        }))
    }

    /// The time from which the store buffer has room.
    fn room(&self, cpu: u32) -> Units {
        let stores = &self.lanes[cpu as usize].stores;
        match stores.len() < self.store_buffer {
            true => 0,
            false => stores.front().copied().unwrap_or(0),
        }
    }
}

/// By site: the time that its instructions take beyond `period`.
fn beyond(machine: &Machine, period: Units, paces: &[Pace], loads: &Loads) -> Vec<Takes> {
    let mut beyond = Vec::new();
    let mut of = |site: u32, takes: &dyn Fn(&mut Takes)| {
        let site = site as usize;
        beyond.resize(beyond.len().max(site + 1), Takes::default());
        takes(&mut beyond[site]);
    };
    for Pace { site, clocks } in paces {
        let takes = crate::clock::units(1000.0 / machine.clock_mhz * f64::from(*clocks) / 1024.0);
        let each = takes.saturating_sub(period);
        if each > 0 {
            of(*site, &|takes| takes.each = each);
        }
    }
    for site in loads.ahead.keys() {
        of(*site, &|takes| takes.more = PREFETCH * period);
    }
    beyond
}

/// The time of an instruction.
pub fn period(machine: &Machine) -> Units {
    let each = machine.core.map_or(1.0, |core| core.instructions_per_clock);
    crate::clock::units(1000.0 / machine.clock_mhz / each)
}

impl Engine {
    /// Instructions have passed that make no reference; the next one's pace is theirs.
    pub fn passed_between(&mut self, number: u32, instructions: u64) {
        if let Some(overlap) = &mut self.overlap {
            let cpu = &self.cpus[number as usize];
            let lane = &mut overlap.lanes[number as usize];
            if !lane.is_as_left(cpu.clock, cpu.passed, overlap.period) {
                lane.between = 0;
            }
            lane.between += instructions;
        }
        self.work(number, instructions);
    }

    /// The instructions of a reference have passed; they may have waited for each other, and a branch among them may
    /// have been mispredicted.
    #[inline(always)]
    pub fn passed(&mut self, who: Who, site: u32, instructions: u64) {
        let Some(overlap) = &mut self.overlap else { return };
        let cpu = &mut self.cpus[who.cpu as usize];
        let lane = &mut overlap.lanes[who.cpu as usize];
        let mut between = 0;
        if lane.between > 0 {
            between = std::mem::take(&mut lane.between);
        }
        if let Some(&takes) = overlap.paces.get(site as usize)
            && takes != Takes::default()
        {
            let as_left = lane.is_as_left(cpu.clock, cpu.passed, overlap.period);
            let count = if as_left { instructions + between } else { instructions };
            lane.forget(cpu.passed, overlap.window);
            if takes.each > 0 && count > 0 {
                lane.hold_up_each(cpu.passed, count, takes.each);
            }
            if takes.more > 0 {
                lane.hold_up(cpu.passed, takes.more);
            }
            let time = takes.each * count + takes.more;
            cpu.clock += time;
            cpu.spent.busy += time;
        }
        if let Some(branches) = &mut overlap.branches
            && let Some(takes) = branches.mispredicted(who.cpu, site)
        {
            self.mispredicted(who, site, takes);
        }
    }

    /// Branches before a reference were mispredicted, which costs `takes` once they are resolved.
    #[inline(never)]
    fn mispredicted(&mut self, who: Who, site: u32, takes: Units) {
        let Some(overlap) = &mut self.overlap else { return };
        let cpu = &mut self.cpus[who.cpu as usize];
        let lane = &mut overlap.lanes[who.cpu as usize];
        let entered = lane.entered(cpu.clock, cpu.passed, overlap.period, overlap.window, overlap.ahead);
        let on = overlap.branches.as_ref().map_or(&[][..], |branches| branches.on(site));
        let known = overlap.depends.came(who.thread, on);
        let time = lane.enters_at(cpu.clock, entered.max(known) + takes);
        cpu.clock += time;
        cpu.spent.busy += time;
    }

    /// A piece was found in its first cache, at this place, by a cpu that nothing moves. Returns whether nothing can
    /// wait for it, not even later, so that it only has to be counted.
    ///
    /// Lines that come before instructions enter by now delay nothing: the entering only goes on. So a load that others
    /// wait for does not matter if everything that its thread ever waited for has come by then, and its line too.
    #[inline(always)]
    pub fn waits_for_nothing(&mut self, who: Who, op: Op, site: u32, place: usize) -> bool {
        let Some(overlap) = &mut self.overlap else { return true };
        let fetch = op == Op::Fetch;
        let (first, _) = self.steps.route(who.cpu, fetch);
        let step = self.steps.at(first);
        let coming = overlap.coming[step.instance as usize][place].at;
        let clock = self.cpus[who.cpu as usize].clock;
        let watched = |prefetchers: &Prefetchers| prefetchers.follow(step.instance as usize);
        if step.hit > 0 || coming > clock || self.prefetchers.as_deref().is_some_and(watched) {
            return false;
        }
        let lane = &overlap.lanes[who.cpu as usize];
        let writes = matches!(op, Op::Write | Op::Modify);
        let number = self.cpus[who.cpu as usize].passed;
        if writes && lane.sets.as_ref().is_some_and(|sets| sets.may_rewrite(number)) {
            return false;
        }
        if fetch || !overlap.depends.is_known(site) {
            return true;
        }
        if overlap.depends.is_changed(site) || op == Op::Modify && overlap.depends.is_own(site) {
            return false;
        }
        // No later than they enter in fact.
        let enters = lane.entered_at_the_earliest(clock, overlap.ahead);
        let nothing = coming.max(overlap.depends.latest(who.thread)) <= enters;
        if nothing {
            // The address of the reference's other pieces is known too.
            overlap.at_hand.address = 0;
        }
        nothing
    }

    /// The right to write costs this much; if cpus overlap that is part of the time of its piece.
    #[inline]
    pub fn upgrade_takes(&mut self, a: &Access, cost: Units, counts: u32, cached: bool) {
        if let Some(overlap) = &mut self.overlap
            && overlap.at_hand.data
        {
            overlap.at_hand.upgrade = Some(Upgrade { cost, counts, cached });
            return;
        }
        self.cpus[a.who.cpu as usize].clock += cost;
        self.upgrade_waits(a, cost, counts, cached);
    }

    fn upgrade_waits(&mut self, a: &Access, cost: Units, counts: u32, cached: bool) {
        self.counts[counts as usize].upgrade_stall += cost;
        let spent = &mut self.cpus[a.who.cpu as usize].spent;
        match cached {
            true => spent.cache += cost,
            false => spent.local += cost,
        }
    }

    /// A piece is served: its own time is `base`, from `from`, if `found` (the cache, and the place in it) has the line
    /// by then. The cpu's clock goes on. Returns how much of that is for `base`.
    #[inline(always)]
    pub fn served(&mut self, a: &Access, base: Units, from: From, found: Option<(&Step, usize)>) -> Units {
        if self.overlap.is_none() {
            self.cpus[a.who.cpu as usize].clock += base;
            return base;
        }
        self.served_in_time(a, base, from, found)
    }

    #[inline(never)]
    fn served_in_time(&mut self, a: &Access, base: Units, from: From, found: Option<(&Step, usize)>) -> Units {
        let on_huge = self.is_on_huge();
        let Some(overlap) = &mut self.overlap else { return base };
        let mut comes_from = from;
        let mut late = 0;
        if let Some((step, place)) = found {
            let coming = overlap.coming[step.instance as usize][place];
            if coming.cpu == a.who.cpu {
                late = coming.at.saturating_sub(a.now).saturating_sub(step.hit);
            }
            if late > 0 {
                comes_from = coming.from;
            }
        }
        let upgrade = overlap.at_hand.upgrade.take();
        let upgrade_takes = upgrade.map_or(0, |upgrade| upgrade.cost);
        let room = overlap.room(a.who.cpu);
        let cpu = &mut self.cpus[a.who.cpu as usize];
        let lane = &mut overlap.lanes[a.who.cpu as usize];
        let at_hand = &mut overlap.at_hand;
        let turn = match at_hand.data && !at_hand.near && !at_hand.joined {
            true => lane.line_turn(whence(found.map(|(step, _)| step), on_huge), a.now, at_hand.entered),
            false => 0,
        };
        let takes = upgrade_takes + base + late + turn;
        let done = a.now + takes;
        let (wait, refill) = if !at_hand.data {
            (takes, 0)
        } else {
            overlap.comes = Coming {
                at: done,
                cpu: a.who.cpu,
                from: comes_from,
            };
            if !at_hand.near && !at_hand.joined {
                lane.request(a.virtual_address >> overlap.line_bits, a.now, done);
            }
            if !at_hand.store {
                overlap.depends.comes(a.who.thread, a.pc_site, done, at_hand.first);
                (done.saturating_sub(cpu.clock), at_hand.refill)
            } else if at_hand.near && takes == 0 {
                (0, 0)
            } else {
                let wait = room.saturating_sub(cpu.clock);
                let before = lane.stores.back().copied().unwrap_or(0);
                if lane.stores.len() == overlap.store_buffer {
                    lane.stores.pop_front();
                }
                lane.stores.push_back(done.max(before).max(cpu.clock + wait));
                (wait, 0)
            }
        };
        // It waits for the end of the piece's time.
        let late = wait.min(late);
        let for_upgrade = (wait - late).min(upgrade_takes);
        let tlb = wait.saturating_sub(takes).min(refill);
        if wait > 0 {
            cpu.clock += wait;
            if at_hand.data {
                lane.hold_up(cpu.passed, wait);
            }
        }
        (at_hand.waited, at_hand.translation) = (wait - tlb, tlb);
        cpu.spent.tlb += tlb;
        if late > 0 {
            match comes_from {
                From::Cache => cpu.spent.cache += late,
                From::Local => cpu.spent.local += late,
                From::Remote => cpu.spent.remote += late,
            }
            if let Some((step, _)) = found {
                self.counts[step.counts as usize].late_stall += late;
            }
        }
        if let Some(Upgrade { counts, cached, .. }) = upgrade {
            self.upgrade_waits(a, for_upgrade, counts, cached);
        }
        wait - late - for_upgrade - tlb
    }

    /// The wait for the current piece, without the translation.
    #[inline(always)]
    pub fn waited_for(&self, a: &Access) -> Units {
        match &self.overlap {
            Some(overlap) => overlap.at_hand.waited,
            None => self.cpus[a.who.cpu as usize].clock - a.now,
        }
    }

    /// The wait for the translation of the current piece: if cpus overlap, a walk may go on beside other work.
    ///
    /// Pre: the TLB missed.
    #[inline(always)]
    pub fn waited_for_translation(&self, a: &Access) -> Units {
        match &self.overlap {
            Some(overlap) if !a.fetch => overlap.at_hand.translation,
            _ => self.refill_here,
        }
    }

    /// A line was taken in at a step.
    #[inline(always)]
    pub fn taken_in(&mut self, step: &Step, SetLine { set, line }: SetLine) {
        if let Some(overlap) = &mut self.overlap
            && let Some(place) = self.caches[step.instance as usize].find(set, line)
        {
            overlap.coming[step.instance as usize][place] = overlap.comes;
        }
    }

    /// A prefetcher brings a line, which `takes` so long from memory, or is held at a step.
    pub fn brings(&mut self, a: &Access, holder: Option<&Step>, takes: Units, from: From) {
        if self.overlap.is_none() {
            return;
        }
        let (mut at, mut from) = (a.now + takes, from);
        let held = holder.and_then(|step| {
            let SetLine { set, line } = self.set_line(a, step);
            let place = self.caches[step.instance as usize].find(set, line)?;
            Some((step, place))
        });
        let on_huge = self.is_on_huge();
        let Some(overlap) = &mut self.overlap else { return };
        if let Some((step, place)) = held {
            (at, from) = (a.now + step.hit, From::Cache);
            let coming = overlap.coming[step.instance as usize][place];
            if coming.cpu == a.who.cpu && coming.at > at {
                (at, from) = (coming.at, coming.from);
            }
        }
        if !a.fetch {
            let whence = whence(holder, on_huge);
            at += overlap.lanes[a.who.cpu as usize].line_turn(whence, a.now, overlap.at_hand.entered);
        }
        overlap.comes = Coming {
            at,
            cpu: a.who.cpu,
            from,
        };
    }
}

/// The place of a line that is held at a step, or at none of the cpu's.
fn whence(holder: Option<&Step>, on_huge: bool) -> Whence {
    match holder {
        Some(step) if step.far => Whence::LastLevel,
        Some(_) => Whence::Near,
        None if on_huge => Whence::HugeMemory,
        None => Whence::Memory,
    }
}
