//! The order of execution: threads take turns on their cpus, the cpu with the smallest clock goes next, and events hold
//! threads until what they wait for has happened.

mod carry_out;
mod recorded;
mod scheduled;
mod turns;

use trace::{Event, Ref, Timed};

use crate::changes::Changes;
use crate::clock::{Units, units};
use crate::config::{Config, Order};
use crate::counted::{Aside, Counting};
use crate::engine::Engine;
use crate::error::SimError;
use crate::held::Held;
use crate::input::{Batch, Input};
use crate::meeting::{Meeting, Place};
use crate::pieces::Who;
use crate::scheduler::{Leaves, Scheduler};
use crate::scheduling::Scheduling;
use crate::synchronization::{Readiness, Synchronization};
use crate::waits::{Hold, Teams, Wait};
use crate::window::{Passes, Progress};
use turns::Turns;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// On its cpu, or in its queue.
    Ready,
    /// Held by an event, or not started.
    Waiting,
    Ended,
}

struct Thread {
    space: u32,
    cpu: u32,
    /// When it goes to another cpu.
    moves_at: Units,
    state: State,
    /// Its present wait, or its last one.
    hold: Hold,
    batch: Batch,
    next_ref: usize,
    /// References up to here can be carried out: the next event, or the end of the batch.
    stop: usize,
    next_event: usize,
    /// The batch was given up in its midst, and is to be got again.
    given_up: bool,
    /// The range of references looked ahead at, if there was reason to, and the number of lines that had come to the
    /// cpu from memory by then.
    looked: usize,
    warmed: usize,
    far: u64,
}

/// The next thing that a thread does.
enum Next {
    /// References, up to [`Thread::stop`].
    Refs,
    Event,
    End,
}

pub struct Schedule<'a> {
    engine: &'a mut Engine,
    input: &'a mut dyn Input,
    threads: Vec<Thread>,
    /// The threads whose batches are in memory, if there are many threads.
    held: Option<Held>,
    changes: Option<Box<Changes>>,
    turns: Vec<Turns>,
    /// The clock of each cpu that has a thread on it, else the end of time.
    clocks: Vec<Units>,
    sync: Synchronization,
    teams: Teams,
    /// The time of the code of a barrier.
    barrier: Units,
    window: Progress,
    counting: Counting,
    meeting: Meeting,
    slice: Units,
    /// After how long threads go to the next cpu, again and again.
    moving: Option<Units>,
    /// Decides which thread is on which cpu, unless the cpus' own queues do.
    scheduler: Option<Scheduler>,
    /// Cpus that some thread is on, or was moved to.
    used: Vec<bool>,
    done: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// Number of references to look ahead at; the same number passes between two checks of whether that helps.
const WARM: usize = 32;
const UNWARMED: usize = 512;
/// References between two calls of `progress`, which also ends a run that is no longer wanted: tens of milliseconds.
const REPORT: u64 = 1 << 16;

impl<'a> Schedule<'a> {
    pub fn new(
        engine: &'a mut Engine,
        input: &'a mut dyn Input,
        changes: Option<Box<Changes>>,
        config: &Config,
        progress: &'a (dyn Fn(u64) + Sync),
    ) -> Self {
        if input.warmed() {
            engine.aside = Some(Aside::new(engine));
            engine.take_all(true);
            if let Some(detail) = &mut engine.detail {
                detail.quiet = true;
            }
        }
        // Recorded order has no time that all cpus share.
        let schedule = match config.order {
            Order::Clock => config.schedule,
            Order::Recorded => Scheduling::Stay,
        };
        let slice_ns = schedule.times().map_or(config.slice_ns, |times| times.slice_ns);
        let slice = slice_ns.saturating_mul(1 << 20) as Units;
        let moving = match schedule {
            Scheduling::Next { every_ns } => Some((every_ns.max(1).saturating_mul(1 << 20)) as Units),
            _ => None,
        };
        let cpus = engine.layout.cpus;
        let threads = input.threads().to_vec();
        let thread = |(number, about): (usize, &crate::input::ThreadAbout)| Thread {
            space: about.space,
            cpu: config.first_cpu(number as u32),
            moves_at: moving.unwrap_or(Units::MAX),
            state: if about.spawned { State::Waiting } else { State::Ready },
            hold: Hold::Other,
            batch: Batch::default(),
            next_ref: 0,
            stop: 0,
            next_event: 0,
            given_up: false,
            warmed: 0,
            looked: 0,
            far: 0,
        };
        let mut used = vec![schedule != Scheduling::Stay; cpus as usize];
        for number in 0..threads.len() as u32 {
            used[config.first_cpu(number) as usize] = true;
        }
        let places = (0..)
            .zip(&threads)
            .map(|(number, about)| (about.space, config.first_cpu(number)));
        Schedule {
            scheduler: Scheduler::new(schedule, cpus, places),
            changes,
            held: Held::new(threads.len()).filter(|_| input.repeats()),
            teams: Teams::default(),
            barrier: units(config.barrier_ns),
            window: Progress::new(config.window.as_ref()),
            counting: Counting::default(),
            meeting: Meeting::new(threads.len()),
            sync: Synchronization::new(threads.iter().map(|about| about.spawned)),
            threads: threads.iter().enumerate().map(thread).collect(),
            turns: (0..cpus).map(|_| Turns::default()).collect(),
            clocks: vec![Units::MAX; cpus as usize],
            engine,
            input,
            slice: slice.max(1),
            moving,
            used,
            done: 0,
            progress,
        }
    }

    /// Runs all threads to their end in the order of the clocks.
    pub fn by_clock(mut self) -> Result<Vec<bool>, SimError> {
        self.begin();
        match (self.engine.coherent, self.engine.classes) {
            (false, false) => self.race::<false, false>()?,
            (false, true) => self.race::<false, true>()?,
            (true, false) => self.race::<true, false>()?,
            (true, true) => self.race::<true, true>()?,
        }
        self.wait_for_the_last();
        if self.counting.counts() {
            self.engine.put_aside();
        }
        self.window.check()?;
        Ok(self.used)
    }

    /// The run is over: cpus have waited for the last.
    fn wait_for_the_last(&mut self) {
        let end = self.engine.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        for cpu in 0..self.turns.len() {
            if self.used[cpu] {
                let hold = match self.turns[cpu].running {
                    // The window ends in the midst of the run.
                    Some(_) => Hold::Barrier,
                    None => Hold::Other,
                };
                self.wait(cpu, hold, end);
            }
        }
    }

    /// A cpu had nothing to run until `now`, when a thread that was held by `hold` goes on.
    fn wait(&mut self, cpu: usize, hold: Hold, now: Units) {
        let wait = now.saturating_sub(self.engine.cpus[cpu].clock);
        if hold == Hold::Other && !self.teams.any() {
            self.turns[cpu].before_teams += wait;
        }
        let wait = self.teams.split(hold, self.turns[cpu].idle, wait, now);
        self.engine.waited(cpu as u32, wait);
    }

    /// A master begins a team. At the first one, the waits of cpus so far turn out to be time without a team.
    fn begin_team(&mut self, cpu: usize) {
        if !self.teams.any() {
            for (turns, cpu) in self.turns.iter_mut().zip(&mut self.engine.cpus) {
                let wait = std::mem::take(&mut turns.before_teams);
                cpu.spent.imbalance -= wait;
                cpu.spent.sequential += wait;
            }
        }
        self.teams.begin(self.engine.cpus[cpu].clock);
    }

    fn race<const COHERENT: bool, const CLASSES: bool>(&mut self) -> Result<(), SimError> {
        self.look_at_clocks();
        loop {
            while let Some((cpu, bound)) = self.least() {
                let number = self.turns[cpu].running.unwrap_or(0);
                let thread = &self.threads[number as usize];
                if thread.next_ref < thread.stop {
                    self.references::<COHERENT, CLASSES>(cpu, number, bound)?;
                    if self.engine.moves_threads() {
                        self.move_threads();
                        self.look_at_clocks();
                    }
                    if self.move_on(cpu, number) || self.slice(cpu) {
                        self.look_at_clocks();
                    }
                    self.clocks[cpu] = match self.turns[cpu].running {
                        Some(_) => self.engine.cpus[cpu].clock,
                        None => Units::MAX,
                    };
                } else {
                    self.turn(cpu)?;
                    if self.window.has_ended() {
                        return Ok(());
                    }
                    self.look_at_clocks();
                }
            }
            if !self.break_deadlock() {
                return Ok(());
            }
            self.look_at_clocks();
        }
    }

    fn look_at_clocks(&mut self) {
        for (clock, (turns, cpu)) in self.clocks.iter_mut().zip(self.turns.iter().zip(&self.engine.cpus)) {
            *clock = if turns.running.is_some() { cpu.clock } else { Units::MAX };
        }
    }

    /// The cpu that goes next, and the time up to which it may run without looking at others.
    #[inline(always)]
    fn least(&self) -> Option<(usize, Units)> {
        let (mut cpu, mut least) = (0, self.clocks[0]);
        // The smallest clock of the others, one later where it is of a cpu of higher number.
        let mut bound = Units::MAX;
        for (other, &clock) in self.clocks.iter().enumerate().skip(1) {
            if clock < least {
                bound = least;
                (cpu, least) = (other, clock);
            } else {
                bound = bound.min(clock.saturating_add(1));
            }
        }
        (least < Units::MAX).then_some((cpu, bound))
    }

    /// An event, the end of a thread, or its next batch.
    fn turn(&mut self, cpu: usize) -> Result<(), SimError> {
        let Some(number) = self.turns[cpu].running else {
            return Ok(());
        };
        match self.next(number)? {
            Next::Refs => return Ok(()),
            Next::Event => {
                let thread = &mut self.threads[number as usize];
                let event = thread.batch.events[thread.next_event].event.clone();
                thread.next_event += 1;
                self.event(cpu, number, &event)?;
            }
            Next::End => {
                self.end(cpu, number);
                return Ok(());
            }
        }
        if !self.move_on(cpu, number) {
            self.slice(cpu);
        }
        Ok(())
    }

    #[inline(always)]
    fn references<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        cpu: usize,
        number: u32,
        bound: Units,
    ) -> Result<(), SimError> {
        let thread = &mut self.threads[number as usize];
        let bound = bound.min(self.turns[cpu].slice_end).min(thread.moves_at);
        let who = Who {
            cpu: cpu as u32,
            thread: number,
            space: thread.space,
        };
        if thread.next_ref >= thread.warmed {
            // Only if much came from memory since the last look, and at the beginning of a batch: tables of data in
            // caches are small. All tables are small if neither classes nor sharing are kept.
            let far = self.engine.cpus[cpu].far;
            let warms =
                (COHERENT || CLASSES) && far.abs_diff(thread.far) * 8 >= thread.next_ref.abs_diff(thread.looked) as u64;
            thread.looked = thread.next_ref;
            thread.far = far;
            thread.warmed = thread
                .batch
                .refs
                .len()
                .min(thread.next_ref + if warms { WARM } else { UNWARMED });
            if warms {
                let refs = &thread.batch.refs[thread.next_ref..thread.warmed];
                let changes = self.changes.as_deref();
                let now = |r: &Ref| changes.map_or(r.addr, |changes| changes.guess(who.space, r.addr));
                self.engine.warm(who, refs.iter().map(|r| (now(r), r.op)));
            }
        }
        // As far as was looked ahead, and then on from there.
        let refs = &thread.batch.refs[thread.next_ref..thread.stop.min(thread.warmed)];
        let before = self.engine.cpus[cpu].counts.references;
        let done = match &mut self.changes {
            None => carry_out::run::<COHERENT, CLASSES>(self.engine, who, refs, bound)?,
            Some(changes) => carry_out::run_changed::<COHERENT, CLASSES>(self.engine, changes, who, refs, bound)?,
        };
        thread.next_ref += done;
        self.engine
            .detail_ran(number, self.engine.cpus[cpu].counts.references - before);
        self.done += done as u64;
        if self.done >= REPORT {
            (self.progress)(std::mem::take(&mut self.done));
        }
        Ok(())
    }

    fn next(&mut self, number: u32) -> Result<Next, SimError> {
        let thread = &mut self.threads[number as usize];
        if thread.given_up {
            thread.given_up = false;
            self.input.again(number, &mut thread.batch)?;
            self.hold(number);
        }
        let mut thread = &mut self.threads[number as usize];
        loop {
            let refs = thread.batch.refs.len();
            let stop = match thread.batch.events.get(thread.next_event) {
                Some(Timed { at, .. }) if *at as usize <= thread.next_ref || thread.next_ref >= refs => {
                    return Ok(Next::Event);
                }
                Some(Timed { at, .. }) => (*at as usize).min(refs),
                None => refs,
            };
            if stop > thread.next_ref {
                thread.stop = stop;
                return Ok(Next::Refs);
            }
            (thread.next_ref, thread.stop, thread.next_event) = (0, 0, 0);
            (thread.looked, thread.warmed) = (0, 0);
            let more = self.input.next(number, &mut thread.batch)?;
            if !more {
                thread.batch = Batch::default();
            }
            self.hold(number);
            if !more {
                return Ok(Next::End);
            }
            thread = &mut self.threads[number as usize];
        }
    }

    /// A thread has got a batch: others, that do not run, may have to give up theirs.
    fn hold(&mut self, number: u32) {
        let Some(held) = &mut self.held else { return };
        held.got(number, &self.threads[number as usize].batch);
        let (turns, threads) = (&self.turns, &mut self.threads);
        let runs = |thread: u32| turns.iter().any(|turns| turns.running == Some(thread));
        while let Some(other) = held.too_much(number, runs) {
            let other = &mut threads[other as usize];
            other.given_up = other.next_ref < other.batch.refs.len() || other.next_event < other.batch.events.len();
            if !other.given_up {
                (other.next_ref, other.next_event) = (0, 0);
            }
            // The stop keeps anything from being carried out before the batch is here again.
            other.stop = other.next_ref;
            other.batch = Batch::default();
        }
    }

    /// Reports to the run's detail the events that change the names of addresses, and to the policy those that concern
    /// cache slots.
    fn report(&mut self, cpu: usize, number: u32, event: &Event) -> Result<(), SimError> {
        let space = self.threads[number as usize].space;
        if let Some(changes) = &mut self.changes {
            changes.apply(space, number, event);
        }
        self.engine.structures(space, number, event);
        self.engine.mappings(cpu as u32, space, number, event);
        self.engine.slots(cpu as u32, space, event)
    }

    fn event(&mut self, cpu: usize, number: u32, event: &Event) -> Result<(), SimError> {
        let readiness = match event {
            Event::Work { instructions } => {
                self.engine.passed_between(cpu as u32, *instructions);
                return Ok(());
            }
            Event::Alloc { .. }
            | Event::Free { .. }
            | Event::Called { .. }
            | Event::Slot { .. }
            | Event::SlotFree { .. }
            | Event::DataRange { .. }
            | Event::DataThread { .. }
            | Event::Allocate { .. }
            | Event::DataFree { .. } => return self.report(cpu, number, event),
            Event::Spawn { .. } | Event::Lock { .. } => {
                self.report(cpu, number, event)?;
                self.sync.event(number, event)
            }
            Event::Phase { name } => {
                self.enters(cpu, name, true);
                return Ok(());
            }
            Event::Window { .. } | Event::Counted { .. } => self.comes(cpu, number, event),
            Event::TeamBegin { .. } => {
                self.begin_team(cpu);
                return Ok(());
            }
            Event::TeamEnd { .. } if self.teams.is_open() => {
                self.teams.end(self.engine.cpus[cpu].clock, self.barrier);
                self.synchronize(cpu);
                return Ok(());
            }
            Event::Barrier { .. } => {
                self.synchronize(cpu);
                self.sync.event(number, event)
            }
            _ => self.sync.event(number, event),
        };
        if readiness == Readiness::Waiting {
            self.threads[number as usize].hold = Hold::of(event);
            self.threads[number as usize].state = State::Waiting;
            let joins = matches!(event, Event::Join { .. });
            self.leave(cpu, if joins { Leaves::WantsNone } else { Leaves::Held });
        }
        self.wake(cpu);
        if readiness == Readiness::Waiting {
            self.put_on(cpu);
        }
        Ok(())
    }

    /// The code of a barrier.
    fn synchronize(&mut self, cpu: usize) {
        let wait = Wait {
            synchronization: self.barrier,
            ..Wait::default()
        };
        self.engine.waited(cpu as u32, wait);
    }

    /// A thread enters a phase. `waits`: cpus without a running thread wait for one.
    fn enters(&mut self, cpu: usize, phase: &str, waits: bool) {
        if self.window.enters(phase) == Passes::Begins {
            self.count_anew(cpu, waits);
            if let Some(detail) = &mut self.engine.detail {
                detail.restart();
            }
            if let Some(aside) = &mut self.engine.aside {
                aside.restart();
            }
        }
        self.engine.detail_entered(cpu as u32, phase);
    }

    fn count_anew(&mut self, cpu: usize, waits: bool) {
        let now = self.engine.cpus[cpu].clock;
        let turns = &self.turns;
        self.engine
            .begin_window(now, |cpu| waits && turns[cpu].running.is_none());
        self.wait_anew(now);
    }

    /// Cpus that wait have waited since now.
    fn wait_anew(&mut self, now: Units) {
        let idle = self.teams.mark(now);
        for turns in &mut self.turns {
            (turns.idle, turns.before_teams) = (idle, 0);
        }
    }

    /// A thread reaches a window of the trace, or the point from which it is counted. Returns whether all have reached
    /// it.
    fn comes(&mut self, cpu: usize, number: u32, event: &Event) -> Readiness {
        self.engine.end_faults();
        let Some(place) = Place::of(event).filter(|_| self.engine.aside.is_some()) else {
            return Readiness::Ready;
        };
        self.meeting.comes(number, place);
        self.meet(cpu);
        self.meeting.waits(number, place)
    }

    /// Threads that wait at a place that all have now reached go on from there.
    fn meet(&mut self, cpu: usize) {
        while let Some(place) = self.meeting.met(|thread| self.sync.is_alive(thread)) {
            self.go_on_from(place, cpu);
        }
    }

    /// All have reached a place, or never will: `cpu` is that of the last.
    fn go_on_from(&mut self, place: Place, cpu: usize) {
        self.counts(cpu, place, true);
        let now = self.engine.cpus[cpu].clock;
        for number in self.meeting.go_on_from(place) {
            // The last thread to come has not begun to wait.
            if self.threads[number as usize].state == State::Waiting {
                self.ready(number, now);
            }
        }
    }

    /// A window of the trace begins, or is counted from here.
    fn counts(&mut self, cpu: usize, place: Place, waits: bool) {
        if self.engine.aside.is_none() {
            return;
        }
        // Also before counting begins, if the event of the window is missing.
        if self.counting.window(place.index) {
            self.put_aside(waits);
        }
        if place.counted && self.counting.counted(place.index) {
            self.count_anew(cpu, waits);
            if let Some(detail) = &mut self.engine.detail {
                detail.quiet = false;
            }
        }
        self.engine.take_all(!self.counting.counts());
    }

    fn put_aside(&mut self, waits: bool) {
        match waits {
            true => self.wait_for_the_last(),
            false => self.at_one_moment(),
        }
        self.engine.put_aside();
        let now = self.engine.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        self.wait_anew(now);
    }
}
