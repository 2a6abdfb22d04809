//! Which thread goes next, and what holds it.

use std::collections::{HashMap, HashSet, VecDeque};

use trace::Event;

use super::program::{Item, Program};

/// What keeps a thread from going on.
#[derive(Clone, Debug, PartialEq)]
enum Hold {
    Spawn,
    Barrier { object: u64 },
    Lock { object: u64 },
    Ticket(u64),
    Child(u32),
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
    pub imbalance: u64,
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
    states: Vec<State>,
    left: Vec<VecDeque<Item>>,
    /// Threads in the order in which they came to a barrier.
    barriers: HashMap<u64, Vec<u32>>,
    locks: HashMap<u64, Lock>,
    posted: HashSet<u64>,
}

impl Schedule {
    pub fn new(program: &Program, cpus: u32, slice: u64) -> Schedule {
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
            slice,
            states: Vec::new(),
            left,
            barriers: HashMap::new(),
            locks: HashMap::new(),
            posted: HashSet::new(),
        };
        for thread in 0..threads as u32 {
            let held = spawned.contains(&thread);
            schedule
                .states
                .push(if held { State::Held(Hold::Spawn) } else { State::Ready });
            if !held {
                schedule.cpu_of(thread).ready.push_back(thread);
            }
        }
        schedule
    }

    fn cpu_of(&mut self, thread: u32) -> &mut Cpu {
        let cpus = self.cpus.len();
        &mut self.cpus[thread as usize % cpus]
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

    /// An item was carried out and its time added to the cpu's clock: what it holds or sets free, and who is next here.
    pub fn after(&mut self, cpu: usize, thread: u32, item: Option<&Item>) {
        let now = self.cpus[cpu].clock;
        let hold = match item {
            None => {
                self.states[thread as usize] = State::Ended;
                self.cpus[cpu].ready.pop_front();
                self.cpus[cpu].slice_began = now;
                self.release(now, |hold| *hold == Hold::Child(thread));
                return;
            }
            Some(Item::Ref { .. }) => None,
            Some(Item::Event(event)) => self.event(thread, event, now),
        };
        let cpu = &mut self.cpus[cpu];
        if let Some(hold) = hold {
            self.states[thread as usize] = State::Held(hold);
            cpu.ready.pop_front();
            cpu.slice_began = now;
        } else if now - cpu.slice_began >= self.slice {
            cpu.ready.rotate_left(1);
            cpu.slice_began = now;
        }
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
            _ => {}
        }
        None
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

    /// All threads with such a hold become ready, the lowest number first.
    fn release(&mut self, now: u64, met: impl Fn(&Hold) -> bool) {
        for thread in 0..self.states.len() {
            if matches!(&self.states[thread], State::Held(hold) if met(hold)) {
                self.ready(thread as u32, now);
            }
        }
    }

    fn ready(&mut self, thread: u32, now: u64) {
        self.states[thread as usize] = State::Ready;
        let cpu = self.cpu_of(thread);
        if cpu.ready.is_empty() {
            cpu.imbalance += now.saturating_sub(cpu.clock);
            cpu.clock = cpu.clock.max(now);
            cpu.slice_began = cpu.clock;
        }
        cpu.ready.push_back(thread);
    }

    /// Nothing can run: the wait of a thread is taken as met.
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
                Hold::Spawn | Hold::Ticket(_) | Hold::Child(_) => {}
            }
        }
        self.ready(thread, now);
    }
}
