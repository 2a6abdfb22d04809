//! A small scheduler of the simulator, no real one: which ready thread is on which cpu (README.md, "A small scheduler").
//!
//! It is told the actions of threads and their run times, and answers with [`Decisions`]; it has no clocks and carries
//! nothing out. It is part of the simulated world and no policy: nothing of Domicile could apply it to a running
//! system.

mod partition;

use crate::clock::Units;
use crate::scheduling::Scheduling;
use partition::Partition;

pub struct Scheduler {
    threads: Vec<Thread>,
    /// The thread on each cpu.
    running: Vec<Option<u32>>,
    /// Ready threads without a cpu, in the order in which they came.
    queue: Vec<u32>,
    /// Each process has cpus of its own.
    partition: Option<Partition>,
    affinity: Units,
    decay: Units,
    /// How often uses were halved.
    halved: Units,
    decisions: Decisions,
}

struct Thread {
    /// The cpu that it was on last.
    last: u32,
    /// The time that it had a cpu, lately.
    used: Units,
    /// Its process.
    program: u32,
    wants: bool,
}

/// Why a thread leaves its cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It is held, and wants its cpu again soon.
    Held,
    /// It ended, or waits for another's end.
    WantsNone,
}

/// The decisions to be carried out.
#[derive(Debug, Default)]
pub struct Decisions {
    /// Idle cpus, and the thread that each gets.
    pub given: Vec<(u32, u32)>,
    /// Cpus whose thread has its slice over after its next item.
    pub recalled: Vec<u32>,
}

impl Scheduler {
    /// `threads` gives the process of each thread and its first cpu.
    ///
    /// `None`: threads are not scheduled.
    pub fn new(scheduling: Scheduling, cpus: u32, threads: impl Iterator<Item = (u32, u32)>) -> Option<Scheduler> {
        let times = scheduling.times()?;
        let thread = |(program, last)| Thread {
            last,
            used: 0,
            program,
            wants: false,
        };
        Some(Scheduler {
            threads: threads.map(thread).collect(),
            running: vec![None; cpus as usize],
            queue: Vec::new(),
            partition: matches!(scheduling, Scheduling::Partition(_)).then(|| Partition::new(cpus)),
            affinity: times.affinity_ns.saturating_mul(1 << 20),
            decay: times.decay_ns.max(1).saturating_mul(1 << 20),
            halved: 0,
            decisions: Decisions::default(),
        })
    }

    /// A thread is ready.
    pub fn ready(&mut self, thread: u32) -> Decisions {
        if !std::mem::replace(&mut self.threads[thread as usize].wants, true) {
            self.divide(thread, 1);
        }
        self.find_cpu(thread);
        self.fill()
    }

    /// The thread on a cpu leaves it at `now`, after it ran so long. Cpus are to be filled when those are ready that it let go on.
    pub fn leaves(&mut self, cpu: u32, why: Leaves, ran: Units, now: Units) {
        self.charge(cpu, ran, now);
        let Some(thread) = self.running[cpu as usize].take() else {
            return;
        };
        if why == Leaves::WantsNone {
            self.threads[thread as usize].wants = false;
            self.divide(thread, -1);
        }
    }

    /// A slice is over at `now`, in which the thread ran so long; `None`: it begins another one.
    pub fn slice_over(&mut self, cpu: u32, ran: Units, now: Units) -> Option<Decisions> {
        self.charge(cpu, ran, now);
        let thread = self.running[cpu as usize]?;
        if self.may_run(thread, cpu) {
            let next = self.best(cpu)?;
            if self.weight(self.queue[next], cpu) > self.weight(thread, cpu) {
                return None;
            }
            let next = self.queue.remove(next);
            self.give(cpu, next);
        } else {
            self.running[cpu as usize] = None;
        }
        self.find_cpu(thread);
        Some(self.fill())
    }

    /// Idle cpus take threads of the queue. Returns all decisions since the last time.
    pub fn fill(&mut self) -> Decisions {
        for cpu in 0..self.running.len() as u32 {
            if self.running[cpu as usize].is_none()
                && let Some(next) = self.best(cpu)
            {
                let next = self.queue.remove(next);
                self.give(cpu, next);
            }
        }
        std::mem::take(&mut self.decisions)
    }

    /// The number of ready threads that are on a cpu or were there last.
    pub fn runnable(&self, cpu: u32) -> u32 {
        let queued = self.queue.iter();
        let queued = queued
            .filter(|thread| self.threads[**thread as usize].last == cpu)
            .count();
        queued as u32 + u32::from(self.running[cpu as usize].is_some())
    }

    fn charge(&mut self, cpu: u32, ran: Units, now: Units) {
        let times = now / self.decay;
        let more = times.saturating_sub(self.halved);
        if more > 0 {
            self.halved = times;
            for thread in &mut self.threads {
                thread.used = thread
                    .used
                    .checked_shr(u32::try_from(more).unwrap_or(u32::MAX))
                    .unwrap_or(0);
            }
        }
        if let Some(thread) = self.running[cpu as usize] {
            self.threads[thread as usize].used += ran;
        }
    }

    fn weight(&self, thread: u32, cpu: u32) -> Units {
        let thread = &self.threads[thread as usize];
        let away = if thread.last == cpu { 0 } else { self.affinity };
        thread.used.saturating_add(away)
    }

    fn may_run(&self, thread: u32, cpu: u32) -> bool {
        let program = self.threads[thread as usize].program;
        self.partition
            .as_ref()
            .is_none_or(|partition| partition.has(program, cpu))
    }

    /// The place in the queue of the thread that a cpu takes next.
    fn best(&self, cpu: u32) -> Option<usize> {
        let places = 0..self.queue.len();
        let may = places.filter(|&place| self.may_run(self.queue[place], cpu));
        may.min_by_key(|&place| self.weight(self.queue[place], cpu))
    }

    /// A ready thread gets an idle cpu, or waits in the queue.
    fn find_cpu(&mut self, thread: u32) {
        let last = self.threads[thread as usize].last;
        let mut cpus = std::iter::once(last).chain(0..self.running.len() as u32);
        let free = |cpu: &u32| self.running[*cpu as usize].is_none() && self.may_run(thread, *cpu);
        match cpus.find(free) {
            Some(cpu) => self.give(cpu, thread),
            None => self.queue.push(thread),
        }
    }

    fn give(&mut self, cpu: u32, thread: u32) {
        self.running[cpu as usize] = Some(thread);
        self.threads[thread as usize].last = cpu;
        self.decisions.given.push((cpu, thread));
    }

    /// One thread more or fewer of a thread's program wants a cpu.
    fn divide(&mut self, thread: u32, more: i32) {
        let program = self.threads[thread as usize].program;
        let Some(partition) = &mut self.partition else { return };
        let threads = &self.threads;
        let was = |program, cpu| {
            threads
                .iter()
                .any(|of| of.wants && of.program == program && of.last == cpu)
        };
        partition.wants(program, more, was);
        for cpu in 0..self.running.len() as u32 {
            let runs = self.running[cpu as usize];
            if runs.is_some_and(|thread| !self.may_run(thread, cpu)) {
                self.decisions.recalled.push(cpu);
            }
        }
    }
}
