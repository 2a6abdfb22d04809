//! Policy `cdpc`: both simulators make the same of random programs, with random summaries and without.

use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use trace::{Allocation, Event};

use crate::oracle::both::{self, Setup};
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::{Item, Program};

fn access() -> impl Strategy<Value = Access> {
    select(vec![Access::Read, Access::Write, Access::ReadWrite])
}

/// Summaries of the memory that random programs use.
fn summaries() -> impl Strategy<Value = Summary> {
    let place = prop_oneof![
        4 => 0x40_0000u64..0x40_4000,
        1 => 0x7fff_ffff_d000..0x7fff_ffff_f000u64,
        1 => Just(u64::MAX - 10),
    ];
    let communication = prop_oneof![
        2 => Just(Communication::None),
        1 => (-600i64..600).prop_map(Communication::Shift),
        1 => (-3i64..3).prop_map(Communication::Rotate),
    ];
    (place, 1..0x3000u64, -900i64..900, 0..700u64, communication, access()).prop_map(
        |(start, bytes, unit, span, communication, access)| Summary {
            name: format!("{start:x}"),
            start,
            bytes,
            offset: 0,
            unit,
            span,
            inner: Vec::new(),
            communication,
            access,
        },
    )
}

fn loops() -> impl Strategy<Value = Event> {
    let schedule = prop_oneof![
        Just(Schedule::Even),
        Just(Schedule::Blocked),
        (0..4u64).prop_map(Schedule::Chunked)
    ];
    let a_loop = (0..5u32, 0..20u64, schedule, any::<bool>(), vec(summaries(), 0..4));
    a_loop.prop_map(|(threads, iterations, schedule, reverse, summaries)| {
        let a_loop = Loop {
            place: format!("{threads} x {iterations}"),
            threads,
            iterations,
            schedule,
            direction: if reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            },
            summaries,
        };
        let text = serde_json::to_string(&a_loop).unwrap();
        Event::Summary { text }
    })
}

/// Further events that a recorder would write: summaries, teams, and blocks in places of their own.
fn said(summaries: bool) -> impl Strategy<Value = Event> {
    // None reaches the large blocks of `sweeping`: two live blocks never share a byte.
    let block = (0..6u64, prop_oneof![1..400u64, 400..60_000u64]).prop_map(|(place, bytes)| Event::Alloc {
        addr: 0x3f_ff00 + place * 0x500 + place / 3 * 0x10_0000,
        bytes: bytes.min(if place % 3 < 2 { 0x500 } else { 0x8_0000 }),
        stack: 0,
        kind: Allocation::Heap,
    });
    let free = (0..6u64).prop_map(|place| Event::Free {
        addr: 0x3f_ff00 + place * 0x500 + place / 3 * 0x10_0000,
    });
    let team = prop_oneof![
        (0..4u32).prop_map(|threads| Event::TeamBegin { object: 1, threads }),
        Just(Event::TeamEnd { object: 1 })
    ];
    let phase = Just(Event::Phase {
        name: "next".to_string(),
    });
    match summaries {
        true => prop_oneof![4 => loops(), 2 => block, 1 => free, 1 => team, 1 => phase].boxed(),
        false => prop_oneof![5 => block, 3 => free, 3 => team, 1 => phase].boxed(),
    }
}

/// A block is there once: one that comes in the place of a live one is left out.
fn tidy(mut program: Program) -> Program {
    let mut live = std::collections::HashSet::new();
    let spaces = program.spaces.clone();
    program.items.retain(|(thread, item)| match item {
        Item::Event(Event::Alloc { addr, .. }) => spaces[*thread as usize] == 0 && live.insert(*addr),
        Item::Event(Event::Free { addr }) => {
            live.remove(addr);
            true
        }
        _ => true,
    });
    program
}

pub fn described_programs() -> impl Strategy<Value = Program> {
    any::<bool>().prop_flat_map(|summaries| {
        let events = vec((any::<Index>(), any::<Index>(), said(summaries)), 0..20);
        (programs(4, 200), events).prop_map(|(mut program, events)| {
            for (thread, place, event) in events {
                let thread = thread.index(program.spaces.len()) as u32;
                let place = place.index(program.items.len() + 1);
                program.items.insert(place, (thread, Item::Event(event)));
            }
            tidy(program)
        })
    })
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn both_simulators_agree_on_hints(
        machine in machines(vec![1, 2, 3]),
        program in described_programs(),
        recorded: bool,
        classes: bool,
        trace: bool,
        hopping: bool,
        steps: bool,
    ) {
        let mut sets = Vec::new();
        if steps {
            sets.extend(["cdpc.fit=no", "cdpc.weigh=no"].map(str::to_string));
        }
        if trace {
            sets.push("cdpc.from=trace".to_string());
        }
        if hopping {
            sets.push("cdpc.rest=bin-hopping".to_string());
        }
        let setup = Setup { recorded, classes, sets: &sets, ..Setup::default() };
        for policy in ["cdpc", "round-robin+cdpc"] {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }
}

/// Threads that sweep over many pages, of two large blocks, several small ones, and of memory without a name.
fn sweeping() -> impl Strategy<Value = Program> {
    const STEP: u64 = 512;
    #[derive(Clone, Debug)]
    enum Draw {
        Sweep(u64, u64),
        Event(Event),
    }
    let sweep = (0..100u64, 1..60u64).prop_map(|(first, count)| Draw::Sweep(first, count));
    let event = |event: Event| Just(Draw::Event(event));
    let ticket = || 0..3u64;
    let wait = prop_oneof![
        ticket().prop_map(|ticket| Event::Post { ticket }),
        ticket().prop_map(|ticket| Event::Wait { ticket }),
        (1..4u32).prop_map(|threads| Event::Barrier { object: 3, threads }),
        (0..4u32).prop_map(|child| Event::Join { child }),
    ];
    let draw = prop_oneof![
        10 => sweep,
        2 => said(false).prop_map(Draw::Event),
        1 => wait.prop_map(Draw::Event),
        1 => event(Event::TeamBegin { object: 1, threads: 3 }),
        1 => event(Event::TeamEnd { object: 1 }),
    ];
    (1..5u32, any::<bool>(), vec((any::<Index>(), draw), 1..40)).prop_map(|(threads, two_spaces, draws)| {
        let mut program = Program::new(threads as usize);
        if two_spaces {
            program.spaces = (0..threads).map(|thread| thread % 2).collect();
        }
        for (addr, bytes) in [(0x41_0000 + 300, 17 * 4096), (0x45_0000, 20 * 4096)] {
            let (stack, kind) = (0, Allocation::Heap);
            program.event(
                0,
                Event::Alloc {
                    addr,
                    bytes,
                    stack,
                    kind,
                },
            );
        }
        for (thread, draw) in draws {
            let thread = thread.index(threads as usize) as u32;
            match draw {
                Draw::Event(event) => program.event(thread, event),
                Draw::Sweep(first, count) => {
                    for step in first..first + count {
                        // From unnamed memory into the large blocks.
                        program.read(thread, 0x3f_e000 + step * STEP * 6 + step % STEP);
                    }
                }
            }
        }
        tidy(program)
    })
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn both_simulators_agree_on_what_a_trace_shows(
        machine in machines(vec![1, 2, 3]),
        program in sweeping(),
        part: bool,
    ) {
        let has_phase = program.items.iter().any(|(_, item)| matches!(item, Item::Event(Event::Phase { .. })));
        let from_phase = (part && has_phase).then_some("next");
        let setup = Setup { from_phase, ..Setup::default() };
        both::agree(&machine, &program, "cdpc", &setup)?;
    }
}
