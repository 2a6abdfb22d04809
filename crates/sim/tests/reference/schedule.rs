//! The thread that goes next, and what holds it.

mod small;

use std::collections::{HashMap, HashSet, VecDeque};

use sim::Scheduling;
use trace::Event;

use super::program::{Item, Program};
use small::Small;

/// The reason that keeps a thread from going on.
#[derive(Clone, Debug, PartialEq)]
enum Hold {
    Spawn,
    Barrier {
        object: u64,
    },
    Lock {
        object: u64,
    },
    Ticket(u64),
    Child(u32),
    /// The beginning of a window, or the point from which it is counted.
    Place(u64),
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Ready,
    Held(Hold),
    Ended,
}

/// The run of one cpu: its clock in units, and the threads that want it; the first one has it.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    pub clock: u64,
    /// Its clock when counting began.
    pub begin: u64,
    pub imbalance: u64,
    pub sequential: u64,
    pub synchronization: u64,
    ready: VecDeque<u32>,
    slice_began: u64,
}

struct Lock {
    holder: u32,
    depth: u64,
    waiting: VecDeque<u32>,
}

pub struct Schedule {
    pub cpus: Vec<Cpu>,
    slice: u64,
    /// After how long threads go to the next cpu, and where each is.
    moving: Option<u64>,
    /// Decides where threads run, if they have no cpus of their own.
    small: Option<Small>,
    places: Vec<usize>,
    /// The number of turns of each.
    times: Vec<u64>,
    states: Vec<State>,
    left: Vec<VecDeque<Item>>,
    /// Threads in the order in which they came to a barrier.
    barriers: HashMap<u64, Vec<u32>>,
    locks: HashMap<u64, Lock>,
    posted: HashSet<u64>,
    pub teams: Teams,
    /// Waits that teams distinguish: of a cpu, from when to when.
    waits: Vec<(usize, u64, u64)>,
    /// The time of the code of a barrier.
    barrier: u64,
    /// Cpus that some thread is on, or was moved to.
    pub used: Vec<bool>,
}

/// When masters were alone, and when they were ending a team.
#[derive(Default)]
pub struct Teams {
    open: u64,
    any: bool,
    /// Alone since then, if no team is open.
    since: u64,
    alone: Vec<(u64, u64)>,
    ending: Vec<(u64, u64)>,
}

impl Teams {
    fn begin(&mut self, now: u64) {
        if self.open == 0 {
            self.alone.push((self.since, now));
        }
        self.any = true;
        self.open += 1;
    }

    /// At `now` the master has taken `cost` to end its team.
    fn end(&mut self, now: u64, cost: u64) {
        let before = self.ending.last().map_or(0, |(_, end)| *end);
        self.ending.push((before.max(now - cost), now));
        if self.open == 1 {
            self.since = now;
        }
        self.open = self.open.saturating_sub(1);
    }

    /// The parts of a time in which masters were alone, and ended teams; asked after the run.
    fn within(&self, from: u64, to: u64) -> (u64, u64) {
        let overlap = |(start, end): &(u64, u64)| (*end).min(to).saturating_sub((*start).max(from));
        let mut alone = self.alone.clone();
        if self.open == 0 {
            alone.push((self.since, u64::MAX));
        }
        match self.any {
            true => (alone.iter().map(overlap).sum(), self.ending.iter().map(overlap).sum()),
            false => (0, 0),
        }
    }
}

impl Schedule {
    pub fn new(
        program: &Program,
        cpus: u32,
        places: Vec<usize>,
        slice: u64,
        scheduling: Scheduling,
        barrier: u64,
    ) -> Schedule {
        let moving = match scheduling {
            Scheduling::Next { every_ns } => Some(every_ns << 20),
            _ => None,
        };
        let threads = program.spaces.len();
        let mut left = vec![VecDeque::new(); threads];
        let mut spawned = HashSet::new();
        for (thread, item) in &program.items {
            left[*thread as usize].push_back(item.clone());
            if let Item::Event(Event::Spawn { child }) = item {
                spawned.insert(*child);
            }
        }
        let mut schedule = Schedule {
            cpus: vec![Cpu::default(); cpus as usize],
            slice: scheduling.times().map_or(slice, |times| times.slice_ns << 20),
            moving,
            small: Small::new(scheduling, program, cpus as usize, &places),
            used: (0..cpus as usize)
                .map(|cpu| places.contains(&cpu) || scheduling != Scheduling::Stay)
                .collect(),
            places,
            times: vec![0; threads],
            states: Vec::new(),
            left,
            barriers: HashMap::new(),
            locks: HashMap::new(),
            posted: HashSet::new(),
            teams: Teams::default(),
            waits: Vec::new(),
            barrier,
        };
        for thread in 0..threads as u32 {
            let held = spawned.contains(&thread);
            schedule
                .states
                .push(if held { State::Held(Hold::Spawn) } else { State::Ready });
            if !held && schedule.small.is_none() {
                schedule.cpu_of(thread).ready.push_back(thread);
            }
        }
        if schedule.small.is_some() {
            let ready = |thread: &u32| schedule.states[*thread as usize] == State::Ready;
            for thread in (0..threads as u32).filter(ready).collect::<Vec<_>>() {
                schedule.ready(thread, 0);
            }
        }
        schedule
    }

    fn cpu_of(&mut self, thread: u32) -> &mut Cpu {
        &mut self.cpus[self.places[thread as usize]]
    }

    /// The cpu and thread whose turn it is, and its next item; `None` for the item at the end of its stream.
    pub fn next(&mut self) -> Option<(usize, u32, Option<Item>)> {
        loop {
            let running = (0..self.cpus.len()).filter(|&cpu| !self.cpus[cpu].ready.is_empty());
            if let Some(cpu) = running.min_by_key(|&cpu| (self.cpus[cpu].clock, cpu)) {
                let thread = self.cpus[cpu].ready[0];
                return Some((cpu, thread, self.left[thread as usize].pop_front()));
            }
            let held = self.states.iter().position(|state| matches!(state, State::Held(_)))?;
            self.give_up(held as u32);
        }
    }

    /// An item was carried out and its time added to the cpu's clock: updates what it holds or sets free, and the next
    /// thread here.
    ///
    /// `place`: the place at which a window holds it.
    pub fn after(&mut self, cpu: usize, thread: u32, item: Option<&Item>, place: Option<u64>) {
        let now = self.cpus[cpu].clock;
        let hold = match item {
            None => {
                self.states[thread as usize] = State::Ended;
                self.leaves(cpu, true);
                self.cpus[cpu].ready.pop_front();
                self.cpus[cpu].slice_began = now;
                self.release(now, |hold| *hold == Hold::Child(thread));
                self.fill(None, now);
                return;
            }
            Some(Item::Ref { .. }) => None,
            Some(Item::Event(event)) => self.event(thread, event, now).or(place.map(Hold::Place)),
        };
        if hold.is_none() && self.moves(cpu, thread, now) {
            return;
        }
        if hold.is_some() {
            self.leaves(cpu, matches!(hold, Some(Hold::Child(_))));
        } else if self.small.is_some() {
            self.slice_over(cpu);
            return;
        }
        if let Some(hold) = hold {
            let cpu = &mut self.cpus[cpu];
            self.states[thread as usize] = State::Held(hold);
            cpu.ready.pop_front();
            cpu.slice_began = now;
            self.fill(None, now);
        } else {
            self.slice(cpu);
        }
    }

    /// The next thread has its turn if the first has used up its slice: also one that this item put there, if the
    /// policy's actions took that long.
    pub fn slice(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        if !cpu.ready.is_empty() && cpu.clock - cpu.slice_began >= self.slice {
            cpu.ready.rotate_left(1);
            cpu.slice_began = cpu.clock;
        }
    }

    /// The policy moves a thread; if that is on its cpu, it first ends its current item. Returns whether that is so.
    pub fn move_thread(&mut self, thread: u32, to: usize, asked: u64) -> bool {
        let from = std::mem::replace(&mut self.places[thread as usize], to);
        self.used[to] = true;
        if self.states[thread as usize] != State::Ready {
            return false;
        }
        let cpu = &mut self.cpus[from];
        let runs = cpu.ready.front() == Some(&thread);
        let now = if runs { asked.max(cpu.clock) } else { asked };
        cpu.ready.retain(|other| *other != thread);
        if runs {
            cpu.slice_began = cpu.clock;
        }
        self.ready(thread, now);
        runs
    }

    /// New places of threads that are kept on cpus on which they are not, of several wishes for one thread by the last.
    pub fn keep(&self, allowed: &[(usize, u32, u128)]) -> Vec<(usize, u32, usize)> {
        let last: Vec<(usize, u32, u128)> = (0..allowed.len())
            .filter(|&at| allowed[at + 1..].iter().all(|(_, thread, _)| *thread != allowed[at].1))
            .map(|at| allowed[at])
            .collect();
        let cpus: Vec<usize> = (0..self.cpus.len()).collect();
        let of = |mask: u128| cpus.iter().copied().filter(move |cpu| mask >> cpu & 1 == 1);
        let leaves = |(_, thread, mask): &(usize, u32, u128)| {
            of(*mask).next().is_some() && !of(*mask).any(|cpu| cpu == self.places[*thread as usize])
        };
        let leaving: Vec<(usize, u32, u128)> = last.into_iter().filter(leaves).collect();
        // Those that are ready stay, those that leave do not count where they are, but where they go.
        let mut there: Vec<Vec<u32>> = self
            .cpus
            .iter()
            .map(|cpu| cpu.ready.iter().copied().collect())
            .collect();
        for threads in &mut there {
            threads.retain(|thread| leaving.iter().all(|(_, other, _)| other != thread));
        }
        let mut places = Vec::new();
        for (by, thread, mask) in leaving {
            let fewest = of(mask).map(|cpu| there[cpu].len()).min();
            let Some(to) = of(mask).find(|&cpu| Some(there[cpu].len()) == fewest) else {
                continue;
            };
            if self.states[thread as usize] == State::Ready {
                there[to].push(thread);
            }
            places.push((by, thread, to));
        }
        places
    }

    /// Returns whether a thread goes to another cpu now; it stands at the end of the queue there.
    fn moves(&mut self, cpu: usize, thread: u32, now: u64) -> bool {
        let Some(moving) = self.moving else { return false };
        let times = now / moving;
        // The clock of the cpu that it reached may be behind that of the one it left.
        if times <= self.times[thread as usize] {
            return false;
        }
        self.times[thread as usize] = times;
        let to = (thread as usize + times as usize) % self.cpus.len();
        if to == cpu {
            return false;
        }
        self.cpus[cpu].ready.pop_front();
        self.cpus[cpu].slice_began = now;
        self.places[thread as usize] = to;
        self.ready(thread, now);
        true
    }

    fn event(&mut self, thread: u32, event: &Event, now: u64) -> Option<Hold> {
        match *event {
            Event::Barrier { object, threads } => {
                let waiting = self.barriers.entry(object).or_default();
                waiting.push(thread);
                if waiting.len() < threads as usize {
                    return Some(Hold::Barrier { object });
                }
                let mut together = std::mem::take(waiting);
                together.pop();
                for thread in together {
                    self.ready(thread, now);
                }
            }
            Event::Lock { object } => match self.locks.get_mut(&object) {
                Some(lock) if lock.holder == thread => lock.depth += 1,
                Some(lock) => {
                    lock.waiting.push_back(thread);
                    return Some(Hold::Lock { object });
                }
                None => {
                    let lock = Lock {
                        holder: thread,
                        depth: 1,
                        waiting: VecDeque::new(),
                    };
                    self.locks.insert(object, lock);
                }
            },
            Event::Unlock { object } => self.unlock(thread, object, now),
            Event::Post { ticket } => {
                self.posted.insert(ticket);
                self.release(now, |hold| *hold == Hold::Ticket(ticket));
            }
            Event::Wait { ticket } if !self.posted.contains(&ticket) => return Some(Hold::Ticket(ticket)),
            Event::Spawn { child } if self.states.get(child as usize) == Some(&State::Held(Hold::Spawn)) => {
                self.ready(child, now);
            }
            Event::Join { child } => {
                let state = self.states.get(child as usize);
                if state.is_some_and(|state| *state != State::Ended) {
                    return Some(Hold::Child(child));
                }
            }
            Event::TeamBegin { .. } => self.teams.begin(now),
            Event::TeamEnd { .. } if self.teams.open > 0 => self.teams.end(now, self.barrier),
            _ => {}
        }
        None
    }

    /// The time of the code of an event.
    pub fn cost(&self, event: &Event) -> u64 {
        match event {
            Event::Barrier { .. } => self.barrier,
            Event::TeamEnd { .. } if self.teams.open > 0 => self.barrier,
            _ => 0,
        }
    }

    /// A cpu has had nothing to run up to `now`, when a thread goes on that was held so.
    fn waited(&mut self, cpu: usize, hold: Option<&Hold>, now: u64) {
        let from = self.cpus[cpu].clock;
        let wait = now.saturating_sub(from);
        self.cpus[cpu].clock += wait;
        match hold {
            Some(Hold::Barrier { .. }) => self.cpus[cpu].imbalance += wait,
            Some(Hold::Lock { .. }) => self.cpus[cpu].synchronization += wait,
            _ => self.waits.push((cpu, from, from + wait)),
        }
    }

    /// The run is over: the cpus that were used wait for the last of all.
    pub fn end(&mut self) {
        let wall = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        for cpu in 0..self.cpus.len() {
            if !self.used[cpu] {
                continue;
            }
            if self.cpus[cpu].ready.is_empty() {
                self.waited(cpu, None, wall);
            } else {
                self.waited(cpu, Some(&Hold::Barrier { object: 0 }), wall);
            }
        }
        for (cpu, from, to) in std::mem::take(&mut self.waits) {
            let (sequential, synchronization) = self.teams.within(from, to);
            let cpu = &mut self.cpus[cpu];
            cpu.sequential += sequential;
            cpu.synchronization += synchronization;
            cpu.imbalance += to - from - sequential - synchronization;
        }
    }

    /// The run is over, and the clocks have nothing to do with each other: each waits until it has run as long as the
    /// one that ran longest.
    pub fn at_one_moment(&mut self) {
        let longest = self.cpus.iter().map(|cpu| cpu.clock - cpu.begin).max().unwrap_or(0);
        let used = self.cpus.iter_mut().zip(&self.used).filter(|(_, used)| **used);
        for (cpu, _) in used {
            let wait = longest - (cpu.clock - cpu.begin);
            cpu.clock += wait;
            cpu.imbalance += wait;
        }
    }

    /// Counting begins: cpus with nothing to run begin now, all others where they are.
    pub fn count_anew(&mut self, now: u64, waits: bool) {
        self.waits.clear();
        for cpu in &mut self.cpus {
            if waits && cpu.ready.is_empty() {
                cpu.clock = cpu.clock.max(now);
            }
            (cpu.begin, cpu.imbalance, cpu.sequential, cpu.synchronization) = (cpu.clock, 0, 0, 0);
        }
    }

    fn unlock(&mut self, thread: u32, object: u64, now: u64) {
        let Some(lock) = self.locks.get_mut(&object) else {
            return;
        };
        if lock.holder != thread {
            return;
        }
        lock.depth -= 1;
        if lock.depth > 0 {
            return;
        }
        match lock.waiting.pop_front() {
            Some(next) => {
                (lock.holder, lock.depth) = (next, 1);
                self.ready(next, now);
            }
            None => {
                self.locks.remove(&object);
            }
        }
    }

    /// Returns whether a thread has started, and not ended.
    pub fn lives(&self, thread: u32) -> bool {
        !matches!(self.states[thread as usize], State::Ended | State::Held(Hold::Spawn))
    }

    /// Threads that run on each cpu or wait for their turn.
    pub fn runnable(&self) -> Vec<u32> {
        let queued = |cpu| self.small.as_ref().map_or(0, |small| small.queued(cpu));
        let cpus = self.cpus.iter().enumerate();
        cpus.map(|(number, cpu)| cpu.ready.len() as u32 + queued(number))
            .collect()
    }

    pub fn nobody_runs(&self) -> bool {
        self.cpus.iter().all(|cpu| cpu.ready.is_empty())
    }

    /// The places at which threads wait at windows.
    pub fn places(&self) -> Vec<u64> {
        let places = self.states.iter().filter_map(|state| match state {
            State::Held(Hold::Place(place)) => Some(*place),
            _ => None,
        });
        places.collect()
    }

    /// Those that wait there go on.
    pub fn leave(&mut self, place: u64, now: u64) {
        self.release(now, |hold| *hold == Hold::Place(place));
    }

    /// All threads with such a hold become ready, the lowest number first.
    fn release(&mut self, now: u64, met: impl Fn(&Hold) -> bool) {
        for thread in 0..self.states.len() {
            if matches!(&self.states[thread], State::Held(hold) if met(hold)) {
                self.ready(thread as u32, now);
            }
        }
    }

    fn ready(&mut self, thread: u32, now: u64) {
        let before = std::mem::replace(&mut self.states[thread as usize], State::Ready);
        if self.small.is_some() {
            self.comes(thread, &before, now);
            return;
        }
        if self.cpu_of(thread).ready.is_empty() {
            let hold = match &before {
                State::Held(hold) => Some(hold),
                _ => None,
            };
            self.waited(self.places[thread as usize], hold, now);
            let cpu = self.cpu_of(thread);
            cpu.slice_began = cpu.clock;
        }
        self.cpu_of(thread).ready.push_back(thread);
    }

    /// No thread can run: the wait of a thread is taken as met.
    fn give_up(&mut self, thread: u32) {
        let now = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        if let State::Held(hold) = self.states[thread as usize].clone() {
            match hold {
                Hold::Barrier { object } => {
                    let waiting = self.barriers.entry(object).or_default();
                    waiting.retain(|other| *other != thread);
                }
                Hold::Lock { object } => {
                    if let Some(lock) = self.locks.get_mut(&object) {
                        lock.waiting.retain(|other| *other != thread);
                        (lock.holder, lock.depth) = (thread, 1);
                    }
                }
                Hold::Spawn | Hold::Ticket(_) | Hold::Child(_) | Hold::Place(_) => {}
            }
        }
        self.ready(thread, now);
    }
}
