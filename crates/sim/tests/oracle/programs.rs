//! Random programs: few lines, so that caches and threads get in each other's way.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use trace::{Event, Op};

use crate::reference::{Item, Program};

#[derive(Clone, Debug)]
enum Draw {
    Ref {
        op: Op,
        place: u64,
        offset: u64,
        size: u16,
        insns: u8,
    },
    Work(u64),
    Barrier(u32),
    Lock(u64),
    Unlock(u64),
    Post,
    Wait,
    Spawn(u32),
    Join(u32),
    Exit,
    TeamBegin,
    TeamEnd,
}

fn draw(threads: u32, synchronized: bool, fetches: bool) -> BoxedStrategy<Draw> {
    let ops = match fetches {
        true => vec![
            Op::Read,
            Op::Read,
            Op::Write,
            Op::Modify,
            Op::Fetch,
            Op::Fetch,
            Op::Prefetch,
        ],
        false => vec![Op::Read, Op::Read, Op::Write, Op::Write, Op::Modify, Op::Prefetch],
    };
    let sizes = prop_oneof![6 => select(vec![1u16, 2, 4, 4, 8]), 1 => select(vec![16, 64, 300])];
    let insns = prop_oneof![4 => 0..4u8, 1 => any::<u8>()];
    let reference =
        (select(ops), 0..24u64, 0..24u64, sizes, insns).prop_map(|(op, place, offset, size, insns)| Draw::Ref {
            op,
            place,
            offset: offset * 4 % 64 + offset % 2,
            size,
            insns,
        });
    if !synchronized {
        return reference.boxed();
    }
    prop_oneof![
        30 => reference,
        1 => (0..200u64).prop_map(Draw::Work),
        1 => (1..=threads + 1).prop_map(Draw::Barrier),
        1 => (0..2u64).prop_map(Draw::Lock),
        1 => (0..2u64).prop_map(Draw::Unlock),
        1 => Just(Draw::Post),
        1 => Just(Draw::Wait),
        1 => (0..threads).prop_map(Draw::Spawn),
        1 => (0..threads).prop_map(Draw::Join),
        1 => Just(Draw::Exit),
        1 => Just(Draw::TeamBegin),
        1 => Just(Draw::TeamEnd),
    ]
    .boxed()
}

/// The addresses of references: a handful of places spread over a handful of pages, near to each other and far apart.
fn address(place: u64, offset: u64) -> u64 {
    let page = [
        0x40_0000u64,
        0x40_0200,
        0x40_1000,
        0x7fff_ffff_e000,
        0x10_0000_0000,
        0x40_0600,
    ][place as usize % 6];
    page + place / 6 * 48 + offset
}

/// Programs of 1 to `threads` threads and up to `length` items.
pub fn programs(threads: u32, length: usize) -> impl Strategy<Value = Program> {
    let kind = (1..=threads, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    kind.prop_flat_map(move |(threads, synchronized, fetches, counts, two_spaces)| {
        let item = (0..threads, draw(threads, synchronized && threads > 1, fetches));
        vec(item, 1..length).prop_map(move |draws| {
            let (mut posted, mut awaited) = (0, 0);
            let items = draws.into_iter().map(|(thread, draw)| {
                let event = match draw {
                    Draw::Ref {
                        op,
                        place,
                        offset,
                        size,
                        insns,
                    } => {
                        let addr = address(place, offset);
                        let site = (place % 5) as u32;
                        return (
                            thread,
                            Item::Ref {
                                op,
                                addr,
                                size,
                                insns,
                                site,
                            },
                        );
                    }
                    Draw::Work(instructions) => Event::Work { instructions },
                    Draw::Barrier(threads) => Event::Barrier { object: 7, threads },
                    Draw::Lock(object) => Event::Lock { object },
                    Draw::Unlock(object) => Event::Unlock { object },
                    Draw::Post => {
                        posted += 1;
                        Event::Post { ticket: posted }
                    }
                    Draw::Wait => {
                        awaited += 1;
                        Event::Wait { ticket: awaited }
                    }
                    Draw::Spawn(child) => Event::Spawn { child },
                    Draw::Join(child) => Event::Join { child },
                    Draw::Exit => Event::Exit,
                    Draw::TeamBegin => Event::TeamBegin { object: 3, threads: 0 },
                    Draw::TeamEnd => Event::TeamEnd { object: 3 },
                };
                (thread, Item::Event(event))
            });
            Program {
                arrays: Vec::new(),
                spaces: (0..threads)
                    .map(|thread| if two_spaces { thread % 2 } else { 0 })
                    .collect(),
                counts_instructions: counts,
                has_fetches: fetches,
                dependences: Vec::new(),
                paces: Vec::new(),
                mispredictions: Vec::new(),
                items: items.collect(),
            }
        })
    })
}
