//! Synchronization: the operations of the wrappers and the futex calls, as events that a simulator can replay by its
//! own clocks.
//!
//! Locks and barriers become [`Event::Lock`], [`Event::Unlock`], [`Event::Barrier`]: the simulator decides itself which
//! thread gets them. Calls that pass a signal on (condition variables, semaphores, OpenMP teams, and any other futex)
//! become a [`Event::Post`] and a [`Event::Wait`] of the same ticket.

use std::collections::{BTreeMap, HashMap, VecDeque};

use trace::{Event, ThreadId};

use crate::wire::sync as op;

/// Bytes after the address of a lock, condition or barrier whose futexes are internal to it: none of glibc's is larger.
const OBJECT_BYTES: u64 = 64;

/// Tickets, unique in the trace.
#[derive(Default)]
pub struct Tickets {
    next: u64,
}

impl Tickets {
    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// An OpenMP team at work.
#[derive(Clone, Default)]
struct Team {
    start: u64,
    master: ThreadId,
    left: Vec<u64>,
    /// True if its begin was reported: a team of one is not reported.
    reported: bool,
}

/// The synchronization objects of an address space.
#[derive(Clone, Default)]
pub struct Objects {
    /// Distinguishes objects of different processes.
    space: u64,
    /// How many times each thread holds each lock for writing, since some locks are recursive. By thread, because a
    /// thread may report that it has a lock before the previous holder reports its release.
    holders: HashMap<(u64, ThreadId), u32>,
    barriers: HashMap<u64, u32>,
    signals: HashMap<u64, u64>,
    /// For each semaphore: units, and whose post each came from (`None`: its initial value).
    semaphores: HashMap<u64, VecDeque<Option<u64>>>,
    futexes: HashMap<u64, u64>,
    teams: HashMap<u64, Team>,
    /// Objects that the wrappers handle, so that their futexes are not counted twice.
    known: BTreeMap<u64, ()>,
}

impl Objects {
    pub fn new(process: u32) -> Objects {
        Objects {
            space: u64::from(process) << 48,
            ..Objects::default()
        }
    }

    /// After fork: the same objects, of another process.
    pub fn of_child(&self, process: u32) -> Objects {
        Objects {
            space: u64::from(process) << 48,
            ..self.clone()
        }
    }

    pub(crate) fn number(&self, object: u64) -> u64 {
        self.space | (object & ((1 << 48) - 1))
    }

    fn is_known(&self, address: u64) -> bool {
        self.known
            .range(..=address)
            .next_back()
            .is_some_and(|(at, ())| address - at < OBJECT_BYTES)
    }

    /// The events that an operation of `thread` produces.
    pub fn events(
        &mut self,
        thread: ThreadId,
        operation: u64,
        object: u64,
        value: u64,
        tickets: &mut Tickets,
    ) -> Vec<Event> {
        let number = self.number(object);
        if matches!(operation, op::LOCK..=op::SEM_WAITED | op::READ_LOCK) {
            self.known.entry(object).or_default();
        }
        match operation {
            op::LOCK => {
                let times = self.holders.entry((object, thread)).or_default();
                *times = times.saturating_add(1);
                vec![Event::Lock { object: number }]
            }
            // Readers share: only a writer's lock excludes others, and only its holder's unlock ends it.
            op::READ_LOCK => Vec::new(),
            op::UNLOCK => match self.holders.get_mut(&(object, thread)) {
                Some(times) => {
                    *times -= 1;
                    if *times == 0 {
                        self.holders.remove(&(object, thread));
                    }
                    vec![Event::Unlock { object: number }]
                }
                None => Vec::new(),
            },
            op::BARRIER_INIT => {
                self.barriers.insert(object, value as u32);
                Vec::new()
            }
            op::BARRIER | op::TEAM_BARRIER => {
                let known = self.barriers.get(&object).copied();
                let threads = if value > 0 { Some(value as u32) } else { known };
                threads
                    // A single thread does not wait.
                    .filter(|&threads| operation == op::BARRIER || threads > 1)
                    .map(|threads| Event::Barrier {
                        object: number,
                        threads,
                    })
                    .into_iter()
                    .collect()
            }
            op::COND_SIGNAL => {
                let ticket = tickets.take();
                self.signals.insert(object, ticket);
                vec![Event::Post { ticket }]
            }
            op::COND_WAITED => wait(self.signals.get(&object).copied()),
            op::SEM_INIT => {
                let units = value.min(1 << 16) as usize;
                self.semaphores
                    .insert(object, std::iter::repeat_n(None, units).collect());
                Vec::new()
            }
            op::SEM_POST => {
                let ticket = tickets.take();
                self.semaphores.entry(object).or_default().push_back(Some(ticket));
                vec![Event::Post { ticket }]
            }
            op::SEM_WAITED => wait(self.semaphores.get_mut(&object).and_then(VecDeque::pop_front).flatten()),
            op::TEAM_START => {
                let start = tickets.take();
                self.teams.insert(
                    object,
                    Team {
                        start,
                        master: thread,
                        left: Vec::new(),
                        reported: false,
                    },
                );
                vec![Event::Post { ticket: start }]
            }
            op::TEAM_ENTER => match self.teams.get_mut(&object) {
                Some(team) if team.master == thread => {
                    team.reported = value != 1;
                    let threads = value as u32;
                    let begin = Event::TeamBegin {
                        object: number,
                        threads,
                    };
                    team.reported.then_some(begin).into_iter().collect()
                }
                team => wait(team.map(|team| team.start)),
            },
            op::TEAM_LEAVE => match self.teams.get_mut(&object).filter(|t| t.master != thread) {
                Some(team) => {
                    let ticket = tickets.take();
                    team.left.push(ticket);
                    vec![Event::Post { ticket }]
                }
                None => Vec::new(),
            },
            op::TEAM_END => match self.teams.remove(&object) {
                Some(team) => {
                    let waits = team.left.into_iter().map(|ticket| Event::Wait { ticket });
                    let end = team.reported.then_some(Event::TeamEnd { object: number });
                    waits.chain(end).collect()
                }
                None => Vec::new(),
            },
            op::FUTEX_WAKE if !self.is_known(object) => {
                let ticket = tickets.take();
                self.futexes.insert(object, ticket);
                vec![Event::Post { ticket }]
            }
            op::FUTEX_WAITED if !self.is_known(object) => wait(self.futexes.get(&object).copied()),
            _ => Vec::new(),
        }
    }
}

fn wait(ticket: Option<u64>) -> Vec<Event> {
    ticket.map(|ticket| Event::Wait { ticket }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_reaches_the_thread_that_waited() {
        let (mut objects, mut tickets) = (Objects::new(1), Tickets::default());
        assert_eq!(objects.events(0, op::COND_WAITED, 0x50, 0, &mut tickets), []);
        let post = objects.events(1, op::COND_SIGNAL, 0x50, 0, &mut tickets);
        let [Event::Post { ticket }] = post[..] else {
            panic!("{post:?}")
        };
        assert_eq!(
            objects.events(0, op::COND_WAITED, 0x50, 0, &mut tickets),
            [Event::Wait { ticket }]
        );
    }

    #[test]
    fn the_first_units_of_a_semaphore_came_from_nobody() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        objects.events(0, op::SEM_INIT, 0x60, 1, &mut tickets);
        let post = objects.events(0, op::SEM_POST, 0x60, 0, &mut tickets);
        assert_eq!(objects.events(1, op::SEM_WAITED, 0x60, 0, &mut tickets), []);
        let [Event::Post { ticket }] = post[..] else {
            panic!("{post:?}")
        };
        assert_eq!(
            objects.events(1, op::SEM_WAITED, 0x60, 0, &mut tickets),
            [Event::Wait { ticket }]
        );
    }

    #[test]
    fn only_the_holder_of_a_lock_lets_it_go() {
        let (mut objects, mut tickets) = (Objects::new(2), Tickets::default());
        let object = 2 << 48 | 0x70;
        assert_eq!(
            objects.events(3, op::LOCK, 0x70, 0, &mut tickets),
            [Event::Lock { object }]
        );
        assert_eq!(objects.events(4, op::UNLOCK, 0x70, 0, &mut tickets), [], "a reader's");
        assert_eq!(
            objects.events(3, op::UNLOCK, 0x70, 0, &mut tickets),
            [Event::Unlock { object }]
        );
    }

    #[test]
    fn a_lock_that_was_taken_twice_is_let_go_twice() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        let counts = [op::LOCK, op::LOCK, op::UNLOCK, op::UNLOCK, op::UNLOCK]
            .map(|operation| objects.events(0, operation, 0x70, 0, &mut tickets).len());
        assert_eq!(counts, [1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_team_of_one_is_none() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        objects.events(0, op::TEAM_START, 0x10, 4, &mut tickets);
        for operation in [op::TEAM_ENTER, op::TEAM_LEAVE, op::TEAM_END] {
            assert_eq!(objects.events(0, operation, 0x10, 1, &mut tickets), []);
        }
    }

    #[test]
    fn a_barrier_of_one_is_none() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        assert_eq!(objects.events(0, op::TEAM_BARRIER, 0x70, 1, &mut tickets), []);
        assert_eq!(objects.events(0, op::TEAM_BARRIER, 0x70, 2, &mut tickets).len(), 1);
    }

    #[test]
    fn futexes_inside_known_objects_are_not_counted_twice() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        objects.events(0, op::LOCK, 0x1000, 0, &mut tickets);
        assert_eq!(objects.events(0, op::FUTEX_WAKE, 0x1008, 1, &mut tickets), []);
        assert_eq!(objects.events(0, op::FUTEX_WAKE, 0x1040, 1, &mut tickets).len(), 1);
        assert_eq!(objects.events(1, op::FUTEX_WAITED, 0x1040, 0, &mut tickets).len(), 1);
    }

    #[test]
    fn a_team_starts_after_its_master_and_ends_before_it() {
        let (mut objects, mut tickets) = (Objects::new(0), Tickets::default());
        let start = objects.events(0, op::TEAM_START, 0x10, 2, &mut tickets);
        let [Event::Post { ticket: first }] = start[..] else {
            panic!("{start:?}")
        };
        assert_eq!(
            objects.events(0, op::TEAM_ENTER, 0x10, 2, &mut tickets),
            [Event::TeamBegin {
                object: 0x10,
                threads: 2
            }]
        );
        assert_eq!(
            objects.events(1, op::TEAM_ENTER, 0x10, 0, &mut tickets),
            [Event::Wait { ticket: first }]
        );
        let left = objects.events(1, op::TEAM_LEAVE, 0x10, 0, &mut tickets);
        let [Event::Post { ticket: last }] = left[..] else {
            panic!("{left:?}")
        };
        assert_eq!(
            objects.events(0, op::TEAM_END, 0x10, 0, &mut tickets),
            [Event::Wait { ticket: last }, Event::TeamEnd { object: 0x10 }]
        );
    }
}
