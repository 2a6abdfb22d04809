//! Turns on a cpu: its queue, slices, threads that become ready, end, or go to another cpu.

use std::collections::VecDeque;

use super::{Schedule, State};
use crate::clock::Units;
use crate::scheduler::Leaves;
use crate::waits::{Hold, Mark};

/// The turns of one cpu's threads.
#[derive(Default)]
pub(super) struct Turns {
    pub running: Option<u32>,
    pub queue: VecDeque<u32>,
    pub slice_end: Units,
    /// When the thread got the cpu, or its slice was over there last; under a scheduler.
    pub began: Units,
    /// When it had nothing to run last, as teams were then.
    pub idle: Mark,
    /// Its waits that counted as imbalance, and become time without a team if the program turns out to have teams.
    pub before_teams: Units,
}

impl Schedule<'_> {
    /// Threads that are ready from the start take their places.
    pub(super) fn begin(&mut self) {
        let ready = |number: &u32| self.threads[*number as usize].state == State::Ready;
        let ready: Vec<u32> = (0..self.threads.len() as u32).filter(ready).collect();
        for number in ready {
            match self.scheduler {
                Some(_) => self.ready(number, 0),
                None => self.enqueue(number),
            }
        }
        for cpu in 0..self.turns.len() {
            self.put_on(cpu);
        }
    }

    pub(super) fn end(&mut self, cpu: usize, number: u32) {
        self.threads[number as usize].state = State::Ended;
        self.leave(cpu, Leaves::WantsNone);
        self.sync.ended(number);
        self.wake(cpu);
        self.put_on(cpu);
        self.meet(cpu);
    }

    /// Threads that an item of `cpu` let go on become ready.
    pub(super) fn wake(&mut self, cpu: usize) {
        let now = self.engine.cpus[cpu].clock;
        while let Some(number) = self.sync.freed() {
            self.ready(number, now);
        }
    }

    /// The thread on a cpu is held, or ended.
    pub(super) fn leave(&mut self, cpu: usize, why: Leaves) {
        match self.scheduler {
            Some(_) => self.leave_scheduled(cpu, why),
            None => self.turns[cpu].running = None,
        }
    }

    pub(super) fn ready(&mut self, number: u32, now: Units) {
        self.threads[number as usize].state = State::Ready;
        if let Some(scheduler) = &mut self.scheduler {
            let decisions = scheduler.ready(number);
            self.follow(decisions, Some(number), now);
            return;
        }
        self.enqueue(number);
        let cpu = self.threads[number as usize].cpu as usize;
        if self.turns[cpu].running.is_none() && self.turns[cpu].queue.len() == 1 {
            self.wait(cpu, self.threads[number as usize].hold, now);
            self.put_on(cpu);
        }
    }

    pub(super) fn enqueue(&mut self, number: u32) {
        let cpu = self.threads[number as usize].cpu as usize;
        self.turns[cpu].queue.push_back(number);
        self.count_runnable(cpu);
    }

    /// The first in the queue gets the cpu, if it has nothing to run.
    pub(super) fn put_on(&mut self, cpu: usize) {
        if let Some(scheduler) = &mut self.scheduler {
            let decisions = scheduler.fill();
            self.follow(decisions, None, self.engine.cpus[cpu].clock);
            return;
        }
        let turns = &mut self.turns[cpu];
        if turns.running.is_some() {
            return;
        }
        let clock = self.engine.cpus[cpu].clock;
        turns.running = turns.queue.pop_front();
        turns.slice_end = clock.saturating_add(self.slice);
        if turns.running.is_none() {
            turns.idle = self.teams.mark(clock);
        }
        self.count_runnable(cpu);
    }

    /// Policies see how many threads a cpu has.
    fn count_runnable(&mut self, cpu: usize) {
        let turns = &self.turns[cpu];
        self.engine.homes.world.runnable[cpu] = turns.queue.len() as u32 + u32::from(turns.running.is_some());
    }

    /// After an item: a thread that has used up its slice makes room for the next. Returns whether other cpus may have another
    /// thread now, too.
    pub(super) fn slice(&mut self, cpu: usize) -> bool {
        let clock = self.engine.cpus[cpu].clock;
        let turns = &mut self.turns[cpu];
        let Some(number) = turns.running else { return false };
        if clock < turns.slice_end {
            return false;
        }
        if self.scheduler.is_some() {
            return self.slice_scheduled(cpu);
        }
        if let Some(next) = turns.queue.pop_front() {
            turns.queue.push_back(number);
            turns.running = Some(next);
        }
        turns.slice_end = clock.saturating_add(self.slice);
        false
    }

    /// Carries out the policy's wishes to run threads elsewhere.
    pub(super) fn move_threads(&mut self) {
        let Some(dynamic) = &mut self.engine.dynamic else {
            return;
        };
        let moves = std::mem::take(&mut dynamic.moves);
        let allowed = std::mem::take(&mut dynamic.allowed);
        if self.scheduler.is_some() {
            return;
        }
        self.carry_out_moves(moves);
        if allowed.is_empty() {
            return;
        }
        for (by, number, to) in self.places(&allowed) {
            self.engine.move_thread(by, number, to);
        }
        let moves = (self.engine.dynamic.as_mut()).map(|dynamic| std::mem::take(&mut dynamic.moves));
        self.carry_out_moves(moves.unwrap_or_default());
    }

    /// New cpus for threads that must leave theirs: the cpu of each action, the thread, and its new cpu. Each goes to the one of its own with the
    /// fewest threads. Those that leave are not counted where they were.
    fn places(&self, allowed: &[(u32, u32, u128)]) -> Vec<(u32, u32, u32)> {
        let mut counts: Vec<u32> = self.engine.homes.world.runnable.clone();
        let may = |cpus: u128, cpu: u32| cpus >> cpu & 1 == 1;
        // The last word on a thread counts.
        let mut wanted: Vec<(u32, u32, u128)> = Vec::new();
        for &(by, number, cpus) in allowed {
            wanted.retain(|&(_, other, _)| other != number);
            wanted.push((by, number, cpus));
        }
        wanted.retain(|&(_, number, cpus)| {
            let any = (0..counts.len() as u32).any(|cpu| may(cpus, cpu));
            any && !may(cpus, self.threads[number as usize].cpu)
        });
        let is_ready = |number: u32| self.threads[number as usize].state == State::Ready;
        for &(_, number, _) in wanted.iter().filter(|&&(_, number, _)| is_ready(number)) {
            counts[self.threads[number as usize].cpu as usize] -= 1;
        }
        let mut places = Vec::new();
        for (by, number, cpus) in wanted {
            let all = (0..counts.len() as u32).filter(|&cpu| may(cpus, cpu));
            let Some(to) = all.min_by_key(|&cpu| counts[cpu as usize]) else {
                continue;
            };
            counts[to as usize] += u32::from(is_ready(number));
            places.push((by, number, to));
        }
        places
    }

    fn carry_out_moves(&mut self, moves: Vec<(u32, u32, Units)>) {
        for (number, to, now) in moves {
            let thread = &mut self.threads[number as usize];
            let from = thread.cpu as usize;
            thread.cpu = to;
            self.used[to as usize] = true;
            if thread.state != State::Ready {
                continue;
            }
            // A cpu that waits for it waits for no lock and no barrier.
            thread.hold = Hold::Other;
            let mut now = now;
            let turns = &mut self.turns[from];
            if turns.running == Some(number) {
                turns.running = None;
                // It first ends its current action.
                now = now.max(self.engine.cpus[from].clock);
            } else {
                turns.queue.retain(|&other| other != number);
                // The thread that runs there goes on, so that no other count changes.
                self.count_runnable(from);
            }
            self.ready(number, now);
            self.put_on(from);
        }
    }

    /// After an item of a thread: if threads move and its time has come, it goes to its next cpu. Returns whether it
    /// left this one.
    pub(super) fn move_on(&mut self, cpu: usize, number: u32) -> bool {
        let Some(every) = self.moving else { return false };
        let now = self.engine.cpus[cpu].clock;
        let thread = &mut self.threads[number as usize];
        if now < thread.moves_at || self.turns[cpu].running != Some(number) {
            return false;
        }
        let times = now / every;
        thread.moves_at = every.saturating_mul(times.saturating_add(1));
        let cpus = self.turns.len() as Units;
        let to = ((Units::from(number) + times) % cpus) as u32;
        if to as usize == cpu {
            return false;
        }
        thread.cpu = to;
        // A cpu that waits for it waits for no lock and no barrier.
        thread.hold = Hold::Other;
        self.turns[cpu].running = None;
        self.ready(number, now);
        self.put_on(cpu);
        true
    }

    /// No thread can go on: those that wait at the first place of a window do so all the same, or, if none waits at
    /// one, the waiting thread of the lowest number.
    pub(super) fn break_deadlock(&mut self) -> bool {
        if let Some(place) = self.meeting.first() {
            let clocks = self.engine.cpus.iter().map(|cpu| cpu.clock);
            let last = clocks.enumerate().max_by_key(|(_, clock)| *clock);
            self.go_on_from(place, last.map_or(0, |(cpu, _)| cpu));
            return true;
        }
        let Some(number) = self.threads.iter().position(|thread| thread.state == State::Waiting) else {
            return false;
        };
        let now = self.engine.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        self.sync.give_up(number as u32);
        self.ready(number as u32, now);
        true
    }
}
