//! A search through all interleavings of the engine, two threads that use one stack in turn, and the thread that makes
//! and joins them: the joining thread goes on once the other has ended, and not before.
//!
//! `super::due` decides what is due for a word, as in the engine.

use std::collections::HashSet;

use sys::owed::Life;

use super::{Due, due};

const THREADS: usize = 2;
/// The number of times that the engine takes the page.
const FLIGHTS: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Thread {
    Unmade,
    Runs,
    /// It is ending; the kernel has not written yet.
    Ends,
    /// The kernel has written, if it could, and has not yet woken the joining thread.
    Written,
    /// It has called, if it could.
    Called,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Engine {
    Idle,
    /// The page is with the engine.
    Taken,
    /// It is back in its place, and registered.
    Put,
    Settles,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// The page with the descriptor: absent while it is with the engine. It holds the number of a thread, or 0.
    page: Option<usize>,
    /// The word when its page was taken.
    old: usize,
    threads: [Thread; THREADS],
    /// The thread that is made or joined next, and whether it was made.
    joins: (usize, bool),
    /// True if the joining thread sleeps until it is woken.
    asleep: bool,
    engine: Engine,
    /// The content of the page: the thread that it named, or 0.
    owed: Option<usize>,
    flights: u8,
}

#[derive(Clone, Copy)]
struct Rules {
    /// Taken pages are searched for words.
    noted: bool,
    /// Threads that are ending are waited for.
    waits: bool,
    /// The engine checks that the word still names the thread.
    looks: bool,
    /// After the engine writes a word, it wakes the threads that wait for it.
    calls: bool,
}

const NOW: Rules = Rules {
    noted: true,
    waits: true,
    looks: true,
    calls: true,
};

impl World {
    fn life(&self, number: usize) -> Life {
        match self.threads[number - 1] {
            Thread::Runs => Life::Runs,
            Thread::Ends | Thread::Written | Thread::Called => Life::Ends,
            Thread::Unmade | Thread::Ended => Life::Ended,
        }
    }

    fn next(&self, rules: Rules) -> Result<Vec<World>, String> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            next.push(world);
        };
        for at in 0..THREADS {
            let becomes = match self.threads[at] {
                Thread::Runs => Thread::Ends,
                Thread::Ends => Thread::Written,
                Thread::Written => Thread::Called,
                Thread::Called => Thread::Ended,
                Thread::Unmade | Thread::Ended => continue,
            };
            step(&|world| {
                world.threads[at] = becomes;
                // It waits for no page.
                if becomes == Thread::Written && world.page.is_some() {
                    world.page = Some(0);
                }
                if becomes == Thread::Called && world.page.is_some() {
                    world.asleep = false;
                }
            });
        }
        match self.joins {
            (THREADS, _) => {}
            _ if self.asleep => {}
            // The kernel puts the number in before the thread runs; the thread that makes it waits for
            // the page.
            (at, false) if self.page.is_some() => step(&|world| {
                world.page = Some(at + 1);
                world.threads[at] = Thread::Runs;
                world.joins.1 = true;
            }),
            (at, true) if self.page == Some(0) => {
                if self.threads[at] < Thread::Written {
                    return Err(format!("joined before it ended: {self:?}"));
                }
                step(&|world| world.joins = (at + 1, false));
            }
            (_, true) if self.page.is_some() => step(&|world| world.asleep = true),
            _ => {}
        }
        match self.engine {
            Engine::Idle if self.flights == 0 => {}
            Engine::Idle => step(&|world| {
                world.flights -= 1;
                world.old = world.page.take().unwrap_or(0);
                world.engine = Engine::Taken;
            }),
            Engine::Taken => step(&|world| {
                world.page = Some(world.old);
                let counts = |&number: &usize| if number == 0 { rules.calls } else { rules.noted };
                world.owed = Some(world.old).filter(counts);
                world.engine = Engine::Put;
            }),
            Engine::Put => step(&|world| {
                let life = world
                    .owed
                    .filter(|&number| number != 0)
                    .map(|number| world.life(number));
                if life.is_some_and(|life| due(life, || true) == Due::Nothing) {
                    world.owed = None;
                }
                world.engine = Engine::Settles;
            }),
            Engine::Settles => match self.owed {
                None => step(&|world| world.engine = Engine::Idle),
                Some(0) => step(&|world| (world.asleep, world.owed) = (false, None)),
                Some(number) => match due(self.life(number), || !rules.looks || self.page == Some(number)) {
                    // It looks again when something has changed.
                    Due::Later if rules.waits => {}
                    Due::Later | Due::Nothing => step(&|world| world.owed = None),
                    Due::Now => step(&|world| {
                        world.page = Some(0);
                        (world.asleep, world.owed) = (false, None);
                    }),
                },
            },
        }
        Ok(next)
    }
}

/// Searches all worlds. Returns their number, or the error of one.
fn search(rules: Rules) -> Result<usize, String> {
    let start = World {
        page: Some(0),
        old: 0,
        threads: [Thread::Unmade; THREADS],
        joins: (0, false),
        asleep: false,
        engine: Engine::Idle,
        owed: None,
        flights: FLIGHTS,
    };
    let mut seen = HashSet::new();
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let next = world.next(rules)?;
        if next.is_empty() && (world.joins.0 < THREADS || world.engine != Engine::Idle) {
            return Err(format!("waits for ever: {world:?}"));
        }
        open.extend(next);
    }
    Ok(seen.len())
}

#[test]
fn whoever_joins_a_thread_goes_on_once_it_has_ended() {
    let worlds = search(NOW).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(worlds > 200, "{worlds} worlds: the search did not search");
}

/// Without any one rule the search finds an error.
#[test]
fn without_any_of_the_rules_a_join_goes_wrong() {
    let without = [
        (Rules { noted: false, ..NOW }, "waits for ever"),
        (Rules { waits: false, ..NOW }, "waits for ever"),
        (Rules { looks: false, ..NOW }, "joined before it ended"),
        (Rules { calls: false, ..NOW }, "waits for ever"),
    ];
    for (rules, finds) in without {
        let found = search(rules).expect_err(finds);
        assert!(found.starts_with(finds), "{found}");
    }
}
