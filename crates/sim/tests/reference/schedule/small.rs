//! The small scheduler, word for word: it recomputes everything at each call.

use std::collections::{BTreeSet, HashMap};

use sim::Scheduling;

use super::super::program::Program;
use super::{Schedule, State};

pub struct Small {
    /// True if each program has cpus of its own.
    parts: bool,
    affinity: u64,
    decay: u64,
    /// The most halvings that a time has asked for.
    halvings: u64,
    last: Vec<usize>,
    used: Vec<u64>,
    wants: Vec<bool>,
    program: Vec<u32>,
    queue: Vec<u32>,
    /// Programs that take part, in the order in which they began to.
    order: Vec<u32>,
    cpus: HashMap<u32, BTreeSet<usize>>,
    guests: HashMap<u32, usize>,
    /// Cpus whose thread is to leave after its next item.
    recalled: Vec<bool>,
}

impl Small {
    pub fn new(scheduling: Scheduling, program: &Program, cpus: usize, places: &[usize]) -> Option<Small> {
        let times = scheduling.times()?;
        Some(Small {
            parts: matches!(scheduling, Scheduling::Partition(_)),
            affinity: times.affinity_ns << 20,
            decay: times.decay_ns << 20,
            halvings: 0,
            last: places.to_vec(),
            used: vec![0; places.len()],
            wants: vec![false; places.len()],
            program: program.spaces.clone(),
            queue: Vec::new(),
            order: Vec::new(),
            cpus: HashMap::new(),
            guests: HashMap::new(),
            recalled: vec![false; cpus],
        })
    }

    pub fn queued(&self, cpu: usize) -> u32 {
        let queued = self.queue.iter().filter(|thread| self.last[**thread as usize] == cpu);
        queued.count() as u32
    }

    fn weight(&self, thread: u32, cpu: usize) -> u64 {
        let thread = thread as usize;
        match self.last[thread] == cpu {
            true => self.used[thread],
            false => self.used[thread] + self.affinity,
        }
    }

    fn may(&self, thread: u32, cpu: usize) -> bool {
        let program = self.program[thread as usize];
        let own = || self.cpus.get(&program).is_some_and(|cpus| cpus.contains(&cpu));
        !self.parts || own() || self.guests.get(&program) == Some(&cpu)
    }

    /// Returns whether a thread of the program that wants a cpu was on this one last.
    fn was(&self, program: u32, cpu: usize) -> bool {
        let threads = 0..self.last.len();
        let mut wanting = threads.filter(|thread| self.program[*thread] == program && self.wants[*thread]);
        wanting.any(|thread| self.last[thread] == cpu)
    }

    /// The thread that a cpu would take of the queue.
    fn least(&self, cpu: usize) -> Option<u32> {
        let mut least: Option<u32> = None;
        for &thread in &self.queue {
            if self.may(thread, cpu) && least.is_none_or(|other| self.weight(thread, cpu) < self.weight(other, cpu)) {
                least = Some(thread);
            }
        }
        least
    }

    fn divide(&mut self, on: &[Option<u32>]) {
        let wanting = |program: u32| {
            let threads = self.program.iter().zip(&self.wants);
            threads.filter(|(of, wants)| **of == program && **wants).count()
        };
        let mut programs = self.program.clone();
        programs.sort_unstable();
        programs.dedup();
        self.order.retain(|program| wanting(*program) > 0);
        for program in programs {
            if wanting(program) > 0 && !self.order.contains(&program) {
                self.order.push(program);
            }
        }
        let mut dealt: HashMap<u32, usize> = HashMap::new();
        let mut left = self.recalled.len();
        while left > 0 {
            let has = |program: &u32| dealt.get(program).copied().unwrap_or(0);
            let short = self.order.iter().filter(|program| has(program) < wanting(**program));
            // The one with the fewest, the first of equals: so they come in turn.
            let Some(program) = short.min_by_key(|program| has(program)) else {
                break;
            };
            *dealt.entry(*program).or_default() += 1;
            left -= 1;
        }
        let mut cpus: HashMap<u32, BTreeSet<usize>> = HashMap::new();
        for program in &self.order {
            let had = self.cpus.get(program).cloned().unwrap_or_default();
            let (own, others): (Vec<usize>, Vec<usize>) = had.into_iter().partition(|cpu| self.was(*program, *cpu));
            let share = dealt.get(program).copied().unwrap_or(0);
            cpus.insert(*program, own.into_iter().chain(others).take(share).collect());
        }
        self.guests.clear();
        for (place, program) in self.order.iter().enumerate() {
            let share = dealt.get(program).copied().unwrap_or(0);
            while cpus[program].len() < share {
                let free = |cpu: &usize| !cpus.values().any(|others| others.contains(cpu));
                let own = (0..on.len()).filter(free).find(|cpu| self.was(*program, *cpu));
                let taken = own.or_else(|| (0..on.len()).find(free));
                let taken = taken.expect("no more are dealt than there are");
                cpus.get_mut(program).expect("it has its share").insert(taken);
            }
            if share == 0 {
                self.guests.insert(*program, place % on.len());
            }
        }
        self.cpus = cpus;
        for (cpu, thread) in on.iter().enumerate() {
            if thread.is_some_and(|thread| !self.may(thread, cpu)) {
                self.recalled[cpu] = true;
            }
        }
    }
}

impl Schedule {
    fn on(&self) -> Vec<Option<u32>> {
        self.cpus.iter().map(|cpu| cpu.ready.front().copied()).collect()
    }

    /// A thread becomes ready, after it was in another state.
    pub(super) fn comes(&mut self, thread: u32, before: &State, now: u64) {
        let on = self.on();
        let Some(small) = &mut self.small else { return };
        if !std::mem::replace(&mut small.wants[thread as usize], true) {
            small.divide(&on);
        }
        let free = |cpu: &usize| on[*cpu].is_none() && small.may(thread, *cpu);
        let last = Some(small.last[thread as usize]).filter(free);
        match last.or_else(|| (0..on.len()).find(free)) {
            Some(cpu) => self.put(thread, cpu, Some(before), now),
            None => small.queue.push(thread),
        }
        self.fill(Some((thread, before)), now);
    }

    fn put(&mut self, thread: u32, cpu: usize, before: Option<&State>, now: u64) {
        let hold = match before {
            Some(State::Held(hold)) => Some(hold),
            _ => None,
        };
        self.waited(cpu, hold, now);
        self.cpus[cpu].ready.push_back(thread);
        self.cpus[cpu].slice_began = self.cpus[cpu].clock;
        self.places[thread as usize] = cpu;
        let Some(small) = &mut self.small else { return };
        small.last[thread as usize] = cpu;
        small.recalled[cpu] = false;
    }

    /// Idle cpus take threads of the queue. `came`: the thread that became ready just now.
    pub(super) fn fill(&mut self, came: Option<(u32, &State)>, now: u64) {
        for cpu in 0..self.cpus.len() {
            let Some(small) = &mut self.small else { return };
            let Some(thread) = small.least(cpu).filter(|_| self.cpus[cpu].ready.is_empty()) else {
                continue;
            };
            small.queue.retain(|other| *other != thread);
            let before = came.filter(|(other, _)| *other == thread).map(|(_, before)| before);
            self.put(thread, cpu, before, now);
        }
    }

    /// The run time of the thread on a cpu is added to its use.
    fn charge(&mut self, cpu: usize) {
        let now = self.cpus[cpu].clock;
        let ran = now - self.cpus[cpu].slice_began;
        let thread = self.cpus[cpu].ready[0] as usize;
        let Some(small) = &mut self.small else { return };
        while small.halvings < now / small.decay && small.used.iter().any(|used| *used > 0) {
            small.used.iter_mut().for_each(|used| *used /= 2);
            small.halvings += 1;
        }
        small.halvings = small.halvings.max(now / small.decay);
        small.used[thread] += ran;
    }

    /// The thread on a cpu is about to be held, or ended.
    pub(super) fn leaves(&mut self, cpu: usize, wants_none: bool) {
        if self.small.is_none() {
            return;
        }
        self.charge(cpu);
        let mut on = self.on();
        let thread = on[cpu].take();
        let Some(small) = &mut self.small else { return };
        if let Some(thread) = thread.filter(|_| wants_none) {
            small.wants[thread as usize] = false;
            small.divide(&on);
        }
    }

    /// After an item that does not hold its thread.
    pub(super) fn slice_over(&mut self, cpu: usize) {
        let now = self.cpus[cpu].clock;
        let Some(small) = &self.small else { return };
        if now - self.cpus[cpu].slice_began < self.slice && !small.recalled[cpu] {
            return;
        }
        self.charge(cpu);
        self.cpus[cpu].slice_began = now;
        let thread = self.cpus[cpu].ready[0];
        let Some(small) = &mut self.small else { return };
        small.recalled[cpu] = false;
        let may = small.may(thread, cpu);
        let next = small
            .least(cpu)
            .filter(|next| small.weight(*next, cpu) <= small.weight(thread, cpu));
        if may && next.is_none() {
            return;
        }
        self.cpus[cpu].ready.pop_front();
        if let Some(next) = next.filter(|_| may) {
            small.queue.retain(|other| *other != next);
            self.put(next, cpu, None, now);
        }
        self.comes(thread, &State::Ready, now);
    }
}
