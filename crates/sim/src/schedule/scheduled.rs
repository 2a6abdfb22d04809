//! Turns under a scheduler: its input, and how its decisions are carried out.

use super::Schedule;
use crate::clock::Units;
use crate::scheduler::{Decisions, Leaves};
use crate::waits::Hold;

impl Schedule<'_> {
    pub(super) fn leave_scheduled(&mut self, cpu: usize, why: Leaves) {
        let now = self.engine.cpus[cpu].clock;
        let turns = &mut self.turns[cpu];
        turns.running = None;
        turns.idle = self.teams.mark(now);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.leaves(cpu as u32, why, now - turns.began, now);
        }
    }

    /// A slice is over; returns whether the thread left the cpu.
    pub(super) fn slice_scheduled(&mut self, cpu: usize) -> bool {
        let now = self.engine.cpus[cpu].clock;
        let turns = &mut self.turns[cpu];
        let ran = now - std::mem::replace(&mut turns.began, now);
        turns.slice_end = now.saturating_add(self.slice);
        let scheduler = self.scheduler.as_mut();
        let Some(decisions) = scheduler.and_then(|scheduler| scheduler.slice_over(cpu as u32, ran, now)) else {
            return false;
        };
        turns.running = None;
        turns.idle = self.teams.mark(now);
        self.follow(decisions, None, now);
        true
    }

    /// Carries out the decisions made at `now`, when `woken` became ready.
    pub(super) fn follow(&mut self, decisions: Decisions, woken: Option<u32>, now: Units) {
        for (cpu, number) in decisions.given {
            let cpu = cpu as usize;
            let thread = &mut self.threads[number as usize];
            thread.cpu = cpu as u32;
            // A cpu that waits for another one waits for no lock and no barrier.
            let hold = if woken == Some(number) {
                thread.hold
            } else {
                Hold::Other
            };
            self.wait(cpu, hold, now);
            let clock = self.engine.cpus[cpu].clock;
            let turns = &mut self.turns[cpu];
            turns.running = Some(number);
            turns.began = clock;
            turns.slice_end = clock.saturating_add(self.slice);
        }
        for cpu in decisions.recalled {
            self.turns[cpu as usize].slice_end = 0;
        }
        let Some(scheduler) = &self.scheduler else { return };
        let runnable = &mut self.engine.homes.world.runnable;
        for (cpu, runnable) in (0..).zip(runnable) {
            *runnable = scheduler.runnable(cpu);
        }
    }
}
