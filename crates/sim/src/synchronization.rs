//! The events that threads wait for: barriers, locks, posts, the start and the end of other
//! threads.

use std::collections::{BTreeMap, HashMap, VecDeque};

use trace::Event;

/// Tells whether a thread goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Waiting,
}

pub struct Synchronization {
    barriers: HashMap<u64, Vec<u32>>,
    locks: HashMap<u64, Lock>,
    posted: Tickets,
    waiting: HashMap<u64, Vec<u32>>,
    joining: HashMap<u32, Vec<u32>>,
    life: Vec<Life>,
    freed: VecDeque<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Unborn,
    Alive,
    Ended,
}

#[derive(Default)]
struct Lock {
    holder: Option<u32>,
    depth: u64,
    queue: VecDeque<u32>,
}

impl Synchronization {
    /// `spawned`: the threads that start by a `Spawn`.
    pub fn new(spawned: impl Iterator<Item = bool>) -> Self {
        Synchronization {
            barriers: HashMap::new(),
            locks: HashMap::new(),
            posted: Tickets::default(),
            waiting: HashMap::new(),
            joining: HashMap::new(),
            life: spawned
                .map(|spawned| if spawned { Life::Unborn } else { Life::Alive })
                .collect(),
            freed: VecDeque::new(),
        }
    }

    /// The next thread that the last event let go on, in the order in which they may.
    pub fn freed(&mut self) -> Option<u32> {
        self.freed.pop_front()
    }

    pub fn event(&mut self, thread: u32, event: &Event) -> Readiness {
        match *event {
            Event::Barrier { object, threads } => self.barrier(thread, object, threads),
            Event::Lock { object } => self.lock(thread, object),
            Event::Unlock { object } => self.unlock(thread, object),
            Event::Post { ticket } => {
                self.posted.insert(ticket);
                let waiting = self.waiting.remove(&ticket);
                self.free_in_order(waiting);
                Readiness::Ready
            }
            Event::Wait { ticket } if !self.posted.contains(ticket) => {
                self.waiting.entry(ticket).or_default().push(thread);
                Readiness::Waiting
            }
            Event::Spawn { child } => {
                if let Some(life) = self.life.get_mut(child as usize)
                    && *life == Life::Unborn
                {
                    *life = Life::Alive;
                    self.freed.push_back(child);
                }
                Readiness::Ready
            }
            Event::Join { child } => match self.life.get(child as usize) {
                None | Some(Life::Ended) => Readiness::Ready,
                Some(_) => {
                    self.joining.entry(child).or_default().push(thread);
                    Readiness::Waiting
                }
            },
            _ => Readiness::Ready,
        }
    }

    fn barrier(&mut self, thread: u32, object: u64, threads: u32) -> Readiness {
        let waiting = self.barriers.entry(object).or_default();
        if waiting.len() as u64 + 1 < u64::from(threads) {
            waiting.push(thread);
            return Readiness::Waiting;
        }
        self.freed.extend(self.barriers.remove(&object).unwrap_or_default());
        Readiness::Ready
    }

    fn lock(&mut self, thread: u32, object: u64) -> Readiness {
        let lock = self.locks.entry(object).or_default();
        match lock.holder {
            Some(holder) if holder != thread => {
                lock.queue.push_back(thread);
                Readiness::Waiting
            }
            _ => {
                lock.holder = Some(thread);
                lock.depth += 1;
                Readiness::Ready
            }
        }
    }

    fn unlock(&mut self, thread: u32, object: u64) -> Readiness {
        let Some(lock) = self.locks.get_mut(&object) else {
            return Readiness::Ready;
        };
        if lock.holder != Some(thread) {
            return Readiness::Ready;
        }
        lock.depth -= 1;
        if lock.depth == 0 {
            lock.holder = lock.queue.pop_front();
            match lock.holder {
                Some(next) => {
                    lock.depth = 1;
                    self.freed.push_back(next);
                }
                None => {
                    self.locks.remove(&object);
                }
            }
        }
        Readiness::Ready
    }

    /// Returns whether a thread has started, and not ended.
    pub fn is_alive(&self, thread: u32) -> bool {
        self.life[thread as usize] == Life::Alive
    }

    pub fn ended(&mut self, thread: u32) {
        self.life[thread as usize] = Life::Ended;
        let joining = self.joining.remove(&thread);
        self.free_in_order(joining);
    }

    /// Several threads that wait for one thing go on in the order of their numbers.
    fn free_in_order(&mut self, threads: Option<Vec<u32>>) {
        let mut threads = threads.unwrap_or_default();
        threads.sort_unstable();
        self.freed.extend(threads);
    }

    /// A waiting thread goes on although its wait is not over; it takes over a lock.
    pub fn give_up(&mut self, thread: u32) {
        if self.life[thread as usize] == Life::Unborn {
            self.life[thread as usize] = Life::Alive;
            return;
        }
        self.barriers.retain(|_, waiting| {
            waiting.retain(|&other| other != thread);
            !waiting.is_empty()
        });
        self.waiting.retain(|_, list| {
            list.retain(|&other| other != thread);
            !list.is_empty()
        });
        self.joining.retain(|_, list| {
            list.retain(|&other| other != thread);
            !list.is_empty()
        });
        for lock in self.locks.values_mut() {
            if lock.queue.contains(&thread) {
                lock.queue.retain(|&other| other != thread);
                lock.holder = Some(thread);
                lock.depth = 1;
            }
        }
    }
}

/// The tickets that were posted, as ranges: tickets that are given out in turn take no room.
#[derive(Default)]
struct Tickets {
    /// First and last of each range.
    ranges: BTreeMap<u64, u64>,
}

impl Tickets {
    fn contains(&self, ticket: u64) -> bool {
        self.ranges
            .range(..=ticket)
            .next_back()
            .is_some_and(|(_, &last)| last >= ticket)
    }

    fn insert(&mut self, ticket: u64) {
        if self.contains(ticket) {
            return;
        }
        let mut range = (ticket, ticket);
        if let Some(before) = ticket.checked_sub(1)
            && let Some((&first, &last)) = self.ranges.range(..=before).next_back()
            && last == before
        {
            range.0 = first;
        }
        if let Some(after) = ticket.checked_add(1)
            && let Some(last) = self.ranges.remove(&after)
        {
            range.1 = last;
        }
        self.ranges.insert(range.0, range.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_posted_in_any_order_become_one_range() {
        let mut tickets = Tickets::default();
        for ticket in [5, 3, 4, 0, 1, 2, u64::MAX] {
            tickets.insert(ticket);
        }
        assert_eq!(tickets.ranges.len(), 2);
        assert!((0..=5).all(|ticket| tickets.contains(ticket)));
        assert!(!tickets.contains(6));
        assert!(tickets.contains(u64::MAX));
    }

    #[test]
    fn locks_go_to_who_asked_first() {
        let mut sync = Synchronization::new([false; 3].into_iter());
        let (lock, unlock) = (Event::Lock { object: 1 }, Event::Unlock { object: 1 });
        assert_eq!(sync.event(0, &lock), Readiness::Ready);
        assert_eq!(sync.event(0, &lock), Readiness::Ready);
        assert_eq!(sync.event(2, &lock), Readiness::Waiting);
        assert_eq!(sync.event(1, &lock), Readiness::Waiting);
        sync.event(1, &unlock);
        sync.event(0, &unlock);
        assert_eq!(sync.freed(), None);
        sync.event(0, &unlock);
        assert_eq!((sync.freed(), sync.freed()), (Some(2), None));
    }
}
