//! Every order of steps of a few processes that attach, read, write, replicate, move between nodes and exit at any moment.
//!
//! One state is the shared control block, the contents of all copies, and what each process has mapped and is about to
//! do. In each reachable state, every byte that a process could read by its mapping must be the master's: no read is
//! ever stale. No write is lost. If nothing can happen any more, no process waits.

use std::collections::{HashSet, VecDeque};

const PROCESSES: usize = 2;
const WRITES: u8 = 2;
const REPLICATIONS: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum From {
    Master,
    Replica(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Outside,
    /// It maps the master, and has no slot yet.
    Mapped,
    Attached,
    Gone,
}

/// The state of a process's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    None,
    Lock {
        write: bool,
    },
    Collapse,
    /// For the process of that slot; then it writes, or replicates.
    Wait(usize, bool),
    Free {
        write: bool,
    },
    Load,
    Store(u8),
    Fill(usize),
    Announce,
    Unlock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    life: Life,
    node: usize,
    mapped: From,
    acknowledged: Option<u8>,
    /// The epoch that it found and has not acknowledged yet.
    found: Option<u8>,
    /// It mapped the copy for that epoch.
    remapped: bool,
    /// It moved, and has not mapped its new node's copy.
    moved: bool,
    call: Call,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// Odd: replicated.
    epoch: u8,
    /// The processes that have a slot.
    slots: [bool; PROCESSES],
    lock: Option<usize>,
    master: u8,
    replicas: [u8; 2],
    filled: [bool; 2],
    written: u8,
    /// The calls that may still begin.
    writes: u8,
    replications: u8,
    moves: u8,
    processes: [Process; PROCESSES],
}

/// Steps left out or exchanged, which the explorer must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    AcknowledgesBeforeItMaps,
    DoesNotWait,
    WaitsForTheGone,
    LooksBeforeItHasASlot,
    NoLock,
    AnnouncesBeforeItFills,
    FillsWhatIsStillRead,
}

/// The value that is read if nothing was written yet, or if the memory was freed.
const EMPTY: u8 = u8::MAX;

impl World {
    fn new() -> World {
        let process = |node| Process {
            life: Life::Outside,
            node,
            mapped: From::Master,
            acknowledged: None,
            found: None,
            remapped: false,
            moved: false,
            call: Call::None,
        };
        World {
            epoch: 0,
            slots: [false; PROCESSES],
            lock: None,
            master: 0,
            replicas: [EMPTY; 2],
            filled: [false; 2],
            written: 0,
            writes: WRITES,
            replications: REPLICATIONS,
            moves: 1,
            processes: std::array::from_fn(process),
        }
    }

    /// Every value that could be read now must be the master's.
    fn check(&self) -> Result<(), String> {
        for process in &self.processes {
            let reads = match process.mapped {
                From::Replica(node) if matches!(process.life, Life::Mapped | Life::Attached) => self.replicas[node],
                _ => self.master,
            };
            if reads != self.master {
                return Err(format!("stale: {reads} instead of {}: {self:?}", self.master));
            }
        }
        if self.master != self.written {
            return Err(format!("{} writes, {} left: {self:?}", self.written, self.master));
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.life == Life::Attached && process.call != Call::None)
    }

    /// All states that one step leads to.
    fn next(&self, fault: Fault) -> Vec<World> {
        let mut next = Vec::new();
        for at in 0..PROCESSES {
            self.attaching(at, fault, &mut next);
            if self.processes[at].life == Life::Attached {
                self.settling(at, fault, &mut next);
                self.calling(at, fault, &mut next);
            }
            if !matches!(self.processes[at].life, Life::Outside | Life::Gone) {
                let mut world = self.clone();
                world.processes[at].life = Life::Gone;
                next.push(world);
            }
        }
        next
    }

    fn attaching(&self, at: usize, fault: Fault, next: &mut Vec<World>) {
        let mut world = self.clone();
        let process = &mut world.processes[at];
        match process.life {
            Life::Outside => {
                process.life = Life::Mapped;
                if fault == Fault::LooksBeforeItHasASlot {
                    process.found = Some(self.epoch);
                }
            }
            Life::Mapped => {
                process.life = Life::Attached;
                process.acknowledged = None;
                world.slots[at] = true;
            }
            _ => return,
        }
        next.push(world);
    }

    fn nearest(&self, node: usize) -> From {
        let filled = [node, 1 - node].into_iter().find(|&node| self.filled[node]);
        filled.map_or(From::Master, From::Replica)
    }

    /// The service of a process: finds the epoch, maps its copy, acknowledges.
    fn settling(&self, at: usize, fault: Fault, next: &mut Vec<World>) {
        let process = &self.processes[at];
        let mut world = self.clone();
        let one = &mut world.processes[at];
        match process.found {
            None if process.acknowledged != Some(self.epoch) || process.moved => one.found = Some(self.epoch),
            None => return,
            Some(found) => {
                let maps = process.remapped == (fault == Fault::AcknowledgesBeforeItMaps);
                if maps {
                    one.mapped = match found % 2 {
                        0 => From::Master,
                        _ => self.nearest(process.node),
                    };
                    one.moved = false;
                } else {
                    one.acknowledged = Some(found);
                }
                one.remapped = !process.remapped;
                if process.remapped {
                    one.found = None;
                }
            }
        }
        next.push(world);
    }

    fn calling(&self, at: usize, fault: Fault, next: &mut Vec<World>) {
        let mut world = self.clone();
        let call = &mut world.processes[at].call;
        match self.processes[at].call {
            Call::None => {
                if self.writes > 0 {
                    let mut world = self.clone();
                    world.writes -= 1;
                    world.processes[at].call = Call::Lock { write: true };
                    next.push(world);
                }
                if self.replications > 0 {
                    let mut world = self.clone();
                    world.replications -= 1;
                    world.processes[at].call = Call::Lock { write: false };
                    next.push(world);
                }
                if self.moves > 0 {
                    let mut world = self.clone();
                    world.moves -= 1;
                    let process = &mut world.processes[at];
                    (process.node, process.moved) = (1 - process.node, true);
                    next.push(world);
                }
                return;
            }
            Call::Lock { write } => {
                let free = self.lock.is_none_or(|holder| self.processes[holder].life == Life::Gone);
                if !free && fault != Fault::NoLock {
                    return;
                }
                *call = match (write, self.epoch % 2, fault) {
                    (true, ..) => Call::Collapse,
                    (false, 0, Fault::AnnouncesBeforeItFills) => Call::Announce,
                    // A process died while it collapsed.
                    (false, 0, _) if self.filled != [false; 2] && fault != Fault::FillsWhatIsStillRead => {
                        Call::Wait(0, false)
                    }
                    (false, 0, _) => Call::Fill(0),
                    // It is replicated.
                    (false, ..) => Call::Unlock,
                };
                world.lock = Some(at);
            }
            Call::Collapse => {
                *call = match fault {
                    Fault::DoesNotWait => Call::Free { write: true },
                    _ => Call::Wait(0, true),
                };
                world.epoch += self.epoch % 2;
            }
            Call::Wait(slot, write) => {
                let gone =
                    self.slots[slot] && self.processes[slot].life == Life::Gone && fault != Fault::WaitsForTheGone;
                if self.slots[slot] && !gone && self.processes[slot].acknowledged != Some(self.epoch) {
                    return;
                }
                if gone {
                    world.slots[slot] = false;
                }
                *call = match slot + 1 < PROCESSES {
                    true => Call::Wait(slot + 1, write),
                    false => Call::Free { write },
                };
            }
            Call::Free { write } => {
                *call = if write { Call::Load } else { Call::Fill(0) };
                (world.replicas, world.filled) = ([EMPTY; 2], [false; 2]);
            }
            Call::Load => *call = Call::Store(self.master),
            Call::Store(found) => {
                *call = Call::Unlock;
                world.master = found + 1;
                world.written += 1;
            }
            Call::Fill(node) => {
                *call = match (node, fault) {
                    (0, _) => Call::Fill(1),
                    (_, Fault::AnnouncesBeforeItFills) => Call::Unlock,
                    _ => Call::Announce,
                };
                (world.replicas[node], world.filled[node]) = (self.master, true);
                // Or the node has no memory left: the populated part is freed.
                let mut without = world.clone();
                (without.replicas[node], without.filled[node]) = (EMPTY, false);
                next.push(without);
            }
            Call::Announce => {
                *call = match fault {
                    Fault::AnnouncesBeforeItFills => Call::Fill(0),
                    _ => Call::Unlock,
                };
                world.epoch += 1;
            }
            Call::Unlock => {
                *call = Call::None;
                world.lock = world.lock.filter(|&holder| holder != at);
            }
        }
        next.push(world);
    }
}

/// The number of states, or the error in one of them.
fn explore(fault: Fault) -> Result<usize, String> {
    let mut seen = HashSet::from([World::new()]);
    let mut todo = VecDeque::from([World::new()]);
    while let Some(world) = todo.pop_front() {
        world.check()?;
        let next = world.next(fault);
        // A process may always exit; the check is whether anything else can happen.
        let goes_on = next.iter().any(|to| {
            let alive = |world: &World| {
                world
                    .processes
                    .iter()
                    .filter(|process| process.life != Life::Gone)
                    .count()
            };
            alive(to) == alive(&world)
        });
        if !goes_on && world.waits() {
            return Err(format!("somebody waits for ever: {world:?}"));
        }
        todo.extend(next.into_iter().filter(|to| seen.insert(to.clone())));
    }
    Ok(seen.len())
}

#[test]
fn no_read_is_stale_no_write_lost_and_nobody_waits_for_ever() {
    let states = explore(Fault::None).unwrap();
    assert!(states > 100_000, "{states} states are too few to have tried anything");
}

#[test]
fn what_is_left_out_is_found() {
    for (fault, found) in [
        (Fault::AcknowledgesBeforeItMaps, "stale"),
        (Fault::DoesNotWait, "stale"),
        (Fault::WaitsForTheGone, "waits for ever"),
        (Fault::LooksBeforeItHasASlot, "stale"),
        (Fault::NoLock, ""),
        (Fault::AnnouncesBeforeItFills, "stale"),
        (Fault::FillsWhatIsStillRead, "stale"),
    ] {
        let wrong = explore(fault).expect_err(&format!("{fault:?} was not found"));
        assert!(wrong.contains(found), "{fault:?}: {wrong}");
    }
}
