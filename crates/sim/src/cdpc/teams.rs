//! The part of a program that several threads execute at once: only there does it matter which thread touches which
//! page.
//!
//! If a process reports its teams (OpenMP), the thread that began the first one is alone outside of them, and all
//! others are members. Elsewhere a thread is alone while all others of its process wait for something, have not begun,
//! or have ended.

use trace::Event;

use crate::input::ThreadAbout;
use crate::synchronization::{Readiness, Synchronization};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Waiting,
    Ended,
}

struct Thread {
    space: u32,
    state: State,
    /// True if another thread of its process was ready at some time since its last event.
    together: bool,
    /// The teams that it began and has not ended: true for each that has more threads than this one.
    teams: Vec<bool>,
}

#[derive(Clone, Default)]
struct Process {
    ready: u32,
    /// The thread that began the first team.
    master: Option<u32>,
}

pub struct Teams {
    sync: Synchronization,
    threads: Vec<Thread>,
    processes: Vec<Process>,
}

/// Teams within teams that are kept apart; deeper ones are as the last of these.
const DEPTH: usize = 64;

impl Teams {
    pub fn new(threads: &[ThreadAbout]) -> Teams {
        let spaces = threads.iter().map(|about| about.space as usize + 1).max().unwrap_or(0);
        let thread = |about: &ThreadAbout| Thread {
            space: about.space,
            // A thread that no other starts begins with its first action.
            state: State::Waiting,
            together: false,
            teams: Vec::new(),
        };
        Teams {
            sync: Synchronization::new(threads.iter().map(|about| about.spawned)),
            threads: threads.iter().map(thread).collect(),
            processes: vec![Process::default(); spaces],
        }
    }

    /// Returns whether the thread is at work together with others.
    pub fn is_parallel(&self, thread: u32) -> bool {
        let number = thread;
        let thread = &self.threads[thread as usize];
        match self.processes[thread.space as usize].master {
            Some(master) if master == number => thread.teams.contains(&true),
            Some(_) => true,
            None => thread.together,
        }
    }

    /// A thread does something: its wait is over.
    pub fn goes_on(&mut self, thread: u32) {
        if self.threads[thread as usize].state == State::Waiting {
            self.sync.give_up(thread);
            self.ready(thread);
        }
    }

    /// A thread came to an event. Locks hold no thread here: a thread that waits for one is at work with its holder.
    pub fn event(&mut self, number: u32, event: &Event) {
        let thread = &mut self.threads[number as usize];
        if thread.state == State::Ended {
            return;
        }
        let process = &mut self.processes[thread.space as usize];
        match *event {
            Event::TeamBegin { threads, .. } => {
                process.master.get_or_insert(number);
                if thread.teams.len() < DEPTH {
                    thread.teams.push(threads != 1);
                }
                return;
            }
            Event::TeamEnd { .. } => {
                thread.teams.pop();
                return;
            }
            Event::Lock { .. } | Event::Unlock { .. } => return,
            _ => {}
        }
        let readiness = self.sync.event(number, event);
        thread.together = process.ready > 1;
        match (readiness, event) {
            (_, Event::Exit) => {
                self.leave(number, State::Ended);
                self.sync.ended(number);
            }
            (Readiness::Waiting, _) => self.leave(number, State::Waiting),
            _ => {}
        }
        while let Some(freed) = self.sync.freed() {
            self.ready(freed);
        }
    }

    fn leave(&mut self, thread: u32, state: State) {
        let thread = &mut self.threads[thread as usize];
        if thread.state == State::Ready {
            self.processes[thread.space as usize].ready -= 1;
        }
        thread.state = state;
    }

    fn ready(&mut self, thread: u32) {
        let thread = &mut self.threads[thread as usize];
        if thread.state != State::Waiting {
            return;
        }
        let space = thread.space;
        (thread.state, thread.together) = (State::Ready, false);
        self.processes[space as usize].ready += 1;
        self.meet(space);
    }

    /// Threads of a process that are ready at the same time are at work together.
    fn meet(&mut self, space: u32) {
        if self.processes[space as usize].ready < 2 {
            return;
        }
        let ready = |thread: &&mut Thread| thread.space == space && thread.state == State::Ready;
        for thread in self.threads.iter_mut().filter(ready) {
            thread.together = true;
        }
    }
}
