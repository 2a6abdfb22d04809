//! Changed programs: the engine and the reference model agree, and a changed program is the one that was written so.

use machine::Machine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use results::{Field, ProgramChange};
use trace::{Allocation, Array, Event, Op};

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::{asking_machines, machines, overlapping_machines, prefetching_machines};
use crate::oracle::textbook;
use crate::reference::changes::BLOCKS;
use crate::reference::{Item, Program};

const GRID: (u64, u64) = (0x50_0010, 6144);
const SMALL: (u64, u64) = (0x60_0ff0, 96);
/// The places of blocks that come and go: three small ones, and one of more than a page.
const PLACES: [u64; 4] = [0x70_0010, 0x70_0090, 0x70_0400, 0x71_0010];

fn array(name: &str, (addr, bytes): (u64, u64)) -> Array {
    Array {
        process: 0,
        name: name.to_string(),
        addr,
        bytes,
    }
}

fn alloc(addr: u64, bytes: u64) -> Event {
    Event::Alloc {
        addr,
        bytes,
        stack: 0,
        kind: Allocation::Heap,
    }
}

/// Programs that work on two arrays, and on blocks that come and go.
fn programs() -> impl Strategy<Value = Program> {
    let op = select(vec![Op::Read, Op::Read, Op::Write, Op::Modify, Op::Prefetch]);
    let size = prop_oneof![5 => select(vec![1u16, 4, 8]), 1 => select(vec![16u16, 33, 200])];
    let draw = (0..3u32, 0..8usize, 0..6200u64, op, size, 0..40u32, 1..300u64);
    (vec(draw, 1..150), any::<bool>(), any::<bool>()).prop_map(|(draws, counts, two_spaces)| {
        let mut program = Program::new(3);
        program.counts_instructions = counts;
        program.spaces[2] = u32::from(two_spaces);
        program.arrays = vec![array("grid", GRID), array("small", SMALL)];
        let mut live = [false; PLACES.len()];
        for (thread, place, offset, op, size, event, bytes) in draws {
            let at = match place {
                0..=2 => GRID.0 - 8 + offset,
                3 => SMALL.0 - 8 + offset % 110,
                block => PLACES[block - 4] - 4 + offset % if block == 7 { 5100 } else { 130 },
            };
            let number = event as usize % PLACES.len();
            // Blocks do not overlap; those of other processes have no name.
            if event < 8 && program.spaces[thread as usize] == 0 {
                let was = live[number];
                live[number] = !was;
                let event = match was {
                    true => Event::Free { addr: PLACES[number] },
                    false => alloc(PLACES[number], if number == 3 { 4600 + bytes } else { 1 + bytes % 120 }),
                };
                program.event(thread, event);
            }
            let insns = (offset % 4) as u8;
            let addr = at;
            program.items.push((
                thread,
                Item::Ref {
                    op,
                    addr,
                    size,
                    insns,
                    site: 0,
                },
            ));
        }
        program
    })
}

fn field(offset: u64, bytes: u64) -> Field {
    Field { offset, bytes }
}

/// Up to three changes: sizes that divide those of the arrays.
fn changes() -> impl Strategy<Value = Vec<ProgramChange>> {
    let data = select(vec!["grid", "small", BLOCKS]).prop_map(String::from);
    let one = (data, 0..7usize, select(vec![1u64, 8, 24, 56, 200]), any::<bool>());
    let one = one.prop_map(|(data, kind, bytes, other)| match kind {
        0 => ProgramChange::Pad {
            data,
            row_bytes: if other { 32 } else { 96 },
            pad_bytes: bytes,
        },
        1 => ProgramChange::Transpose {
            data,
            element_bytes: if other { 4 } else { 8 },
            columns: 4,
        },
        2 => ProgramChange::Fields {
            data,
            element_bytes: 32,
            groups: match other {
                true => vec![vec![field(8, 8), field(0, 4)], vec![field(24, 8)]],
                false => vec![vec![field(16, 16), field(0, 16)]],
            },
        },
        3 => ProgramChange::Shift { data, bytes },
        4 => ProgramChange::Separate {
            data,
            element_bytes: if other { 8 } else { 48 },
        },
        _ => ProgramChange::HugePages {
            data: other.then_some(data),
        },
    });
    // Blocks of all sizes, large and small, between the elements of others, and partial elements at their ends.
    let joined = (
        select(vec![1u64, 8, 24]),
        select(vec!["grid", "small", BLOCKS]),
        1..4usize,
        any::<bool>(),
    );
    let joined = joined.prop_map(|(element_bytes, data, times, huge)| {
        let mut with = vec![BLOCKS.to_string(); times];
        with.push("grid".to_string());
        let mut changes = vec![ProgramChange::Interleave {
            data: data.to_string(),
            element_bytes,
            part_bytes: None,
            with,
        }];
        changes.extend(huge.then(|| ProgramChange::HugePages {
            data: Some(BLOCKS.to_string()),
        }));
        changes
    });
    let several = vec(one, 1..4).prop_map(|mut changes| {
        // A change finds whole rows and elements only where those before left them: of each variable one moves bytes.
        let mut seen = Vec::new();
        changes.retain(|change| {
            let data = change.data().map(String::from);
            let fixed = matches!(change, ProgramChange::Shift { .. } | ProgramChange::HugePages { .. });
            let free = fixed || data.as_deref() == Some(BLOCKS) || !seen.contains(&data);
            seen.extend((!fixed).then_some(data));
            free
        });
        changes
    });
    prop_oneof![3 => several, 1 => joined]
}

fn agree(machine: &Machine, program: &Program, setup: &Setup) -> Result<(), TestCaseError> {
    for policy in ["page-coloring", "random"] {
        let Some(model) = both::model(machine, program, policy, setup) else {
            prop_assert!(engine::simulate(machine, program, &[policy], setup).is_err());
            continue;
        };
        let outcome = engine::simulate(machine, program, &[policy], setup).map_err(TestCaseError::fail)?;
        let different = both::differences(&model, &outcome[0]);
        prop_assert!(
            different.is_empty(),
            "{:?}{}",
            setup,
            both::report(machine, program, policy, &different)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn both_simulate_the_same_change(
        machine in prop_oneof![
            machines(vec![1, 2, 3]),
            asking_machines(vec![1, 3]),
            prefetching_machines(vec![1, 2]),
            overlapping_machines(vec![1, 2]),
        ],
        program in programs(),
        changes in changes(),
        recorded: bool,
    ) {
        agree(&machine, &program, &Setup { recorded, changes: &changes, ..Setup::default() })?;
    }
}

/// Reads and writes of a matrix of 8-byte elements, walked down its columns, with something else in between.
fn walk(place: impl Fn(u64, u64) -> u64, rows: u64, columns: u64) -> Program {
    let mut program = Program::new(1);
    for c in 0..columns {
        for r in 0..rows {
            program.push(0, Op::Read, place(r, c), 8);
            program.push(0, Op::Write, 0x9_0000 + c * 8, 8);
        }
    }
    program
}

/// The change's outcome, and that of the program written so, are equal except for the report of changes and the
/// policy's.
#[track_caller]
fn same(before: &Program, changes: &[ProgramChange], after: &Program) {
    for machine in [textbook::machine(1, 8), with_tlb()] {
        let setup = Setup {
            changes,
            ..Setup::default()
        };
        let changed = both::run_with(&machine, before, "page-coloring", &setup);
        let mut changed = changed.value().clone();
        assert!(
            changed["changes"]
                .as_array()
                .is_some_and(|list| list.len() == changes.len())
        );
        changed.as_object_mut().map(|fields| fields.remove("changes"));
        let written = both::run(&machine, after, "page-coloring");
        assert_eq!(&changed, written.value());
        let plain = both::run(&machine, before, "page-coloring");
        assert_ne!(&changed, plain.value(), "the change makes a difference");
    }
}

fn with_tlb() -> Machine {
    let mut machine = textbook::machine(1, 4);
    machine.tlb = Some(machine::Tlb {
        entries: 2,
        ways: 2,
        wired: 0,
        refill_ns: 20.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    });
    machine
}

const ROWS: u64 = 16;
const COLUMNS: u64 = 64;
const MATRIX: (u64, u64) = (0x20_0000, ROWS * COLUMNS * 8);
/// The place of its room: the first there is, at the same place within 2 MiB.
const ROOM: u64 = 1 << 60;

fn matrix() -> Program {
    let mut program = walk(|r, c| MATRIX.0 + (r * COLUMNS + c) * 8, ROWS, COLUMNS);
    program.arrays = vec![array("m", MATRIX)];
    program
}

#[test]
fn a_padded_matrix_is_one_that_was_written_so() {
    let pad = ProgramChange::Pad {
        data: "m".to_string(),
        row_bytes: COLUMNS * 8,
        pad_bytes: 72,
    };
    let written = walk(|r, c| ROOM + r * (COLUMNS * 8 + 72) + c * 8, ROWS, COLUMNS);
    same(&matrix(), &[pad], &written);
}

#[test]
fn a_transposed_matrix_is_one_that_was_written_so() {
    let transpose = ProgramChange::Transpose {
        data: "m".to_string(),
        element_bytes: 8,
        columns: COLUMNS,
    };
    let written = walk(|r, c| ROOM + (c * ROWS + r) * 8, ROWS, COLUMNS);
    same(&matrix(), &[transpose], &written);
}

#[test]
fn a_shifted_matrix_is_one_that_was_written_so() {
    let shift = ProgramChange::Shift {
        data: "m".to_string(),
        bytes: 4096 + 64,
    };
    let written = walk(|r, c| ROOM + 4160 + (r * COLUMNS + c) * 8, ROWS, COLUMNS);
    same(&matrix(), &[shift], &written);
}

/// Of structs of 64 bytes the first 8 and the last 4 are used.
#[test]
fn split_structs_are_those_that_were_written_so() {
    let walk = |place: &dyn Fn(u64) -> (u64, u64)| {
        let mut program = Program::new(1);
        for _ in 0..3 {
            for element in 0..64 {
                let (key, count) = place(element);
                program.push(0, Op::Read, key, 8);
                program.push(0, Op::Modify, count, 4);
            }
        }
        program
    };
    let start = 0x40_0040;
    let mut before = walk(&|element| (start + element * 64, start + element * 64 + 60));
    before.arrays = vec![array("structs", (start, 64 * 64))];
    let change = ProgramChange::Fields {
        data: "structs".to_string(),
        element_bytes: 64,
        groups: vec![vec![field(0, 8), field(60, 4)]],
    };
    let after = walk(&|element| (ROOM + 0x40 + element * 12, ROOM + 0x40 + element * 12 + 8));
    same(&before, &[change], &after);
}

/// Two arrays and two blocks, used at one index in no order, beside one array of elements that have all four.
#[test]
fn interleaved_arrays_are_one_that_was_written_so() {
    let (grid, small) = ((0x50_0000, 6144), (0x60_0000, 6144));
    let blocks = [0x70_0000, 0x74_0000];
    let walk = |place: &dyn Fn(u64, u64) -> u64| {
        let mut random = policy::Random::new(7);
        let mut program = Program::new(1);
        for _ in 0..2000 {
            let at = u64::from(random.below(768));
            for array in 0..4 {
                program.read(0, place(array, at));
            }
        }
        program
    };
    let starts = [grid.0, small.0, blocks[0], blocks[1]];
    let mut before = walk(&|array, at| starts[array as usize] + at * 8);
    before.arrays = vec![array("grid", grid), array("small", small)];
    for (number, block) in blocks.into_iter().enumerate() {
        before.items.insert(number, (0, Item::Event(alloc(block, 6144))));
    }
    let change = |with: &[&str]| ProgramChange::Interleave {
        data: "grid".to_string(),
        element_bytes: 8,
        part_bytes: None,
        with: with.iter().map(ToString::to_string).collect(),
    };
    let all = [change(&["small", BLOCKS, BLOCKS])];
    same(&before, &all, &walk(&|array, at| (1 << 60) + at * 32 + array * 8));
}

/// Two threads count in words side by side: false sharing, and none where each has a line.
#[test]
fn separate_words_are_not_shared() {
    let mut program = Program::new(2);
    program.arrays = vec![array("counters", (0x40_0000, 16))];
    for _ in 0..50 {
        program.push(0, Op::Modify, 0x40_0000, 8);
        program.push(1, Op::Modify, 0x40_0008, 8);
    }
    let machine = textbook::machine(2, 8);
    let shared = both::run(&machine, &program, "page-coloring");
    let change = [ProgramChange::Separate {
        data: "counters".to_string(),
        element_bytes: 8,
    }];
    let setup = Setup {
        changes: &change,
        ..Setup::default()
    };
    let separate = both::run_with(&machine, &program, "page-coloring", &setup);
    let false_sharing = |run: &both::Agreed| run.value()["caches"][0]["false_sharing"].as_u64();
    assert!(false_sharing(&shared) > Some(40), "{:?}", shared.value());
    assert_eq!(false_sharing(&separate), Some(0));
    separate.cache("L1", "misses", 2);
}

/// A walk over 64 pages, eight times, with a TLB of two entries; 64 pages of 4 KiB are one of 2 MiB.
#[test]
fn huge_pages_translate_by_2_mib() {
    let mut program = Program::new(1);
    for _ in 0..8 {
        for page in 0..64 {
            program.read(0, 0x40_0000 + page * 4096);
        }
    }
    program.arrays = vec![array("a", (0x40_0000, 32 * 4096))];
    let machine = with_tlb();
    let plain = both::run(&machine, &program, "page-coloring");
    plain.tlb(512, 512);
    let pages = plain.value()["memory"]["pages"].as_u64();
    for (data, misses) in [(None, 1), (Some("a".to_string()), 1 + 8 * 32 + 7)] {
        let change = [ProgramChange::HugePages { data }];
        let setup = Setup {
            changes: &change,
            ..Setup::default()
        };
        let huge = both::run_with(&machine, &program, "page-coloring", &setup);
        huge.tlb(512, misses);
        assert_eq!(huge.value()["memory"]["pages"].as_u64(), pages);
        assert_eq!(huge.value()["caches"], plain.value()["caches"]);
    }
}

/// A matrix that is walked row by row, three times, and does not fit: tiled, each part of it is walked three times in turn.
#[test]
fn tiled_walks_are_those_that_were_written_so() {
    const BLOCK: u64 = 1024;
    let walk = |order: &[(u64, u64)]| {
        let mut program = Program::new(1);
        program.write(0, 0x9_0000);
        for &(_, block) in order {
            for offset in (0..BLOCK).step_by(16) {
                program.push(0, Op::Read, 0x20_0000 + block * BLOCK + offset, 8);
                program.push(0, Op::Modify, 0x30_0000 + offset, 8);
            }
        }
        program
    };
    let rounds: Vec<(u64, u64)> = (0..3)
        .flat_map(|round| (0..8).map(move |block| (round, block)))
        .collect();
    let mut tiled = rounds.clone();
    tiled.sort_by_key(|(round, block)| (*block, *round));
    let mut before = walk(&rounds);
    before.arrays = vec![array("m", (0x20_0000, 8 * BLOCK))];
    let change = [ProgramChange::Tile {
        data: "m".to_string(),
        bytes: BLOCK,
    }];
    let setup = Setup {
        changes: &change,
        ..Setup::default()
    };
    let machine = textbook::machine(1, 40);
    let changed = engine::simulate(&machine, &before, &["page-coloring"], &setup)
        .expect("it runs")
        .remove(0);
    let written = both::run(&machine, &walk(&tiled), "page-coloring");
    let plain = both::run(&machine, &before, "page-coloring");
    for field in ["caches", "tlb", "time_ns", "memory", "references"] {
        assert_eq!(changed[field], written.value()[field], "{field}");
    }
    assert_ne!(changed["caches"], plain.value()["caches"]);
    assert_eq!(changed["order"]["items"].as_u64(), Some(24));
    assert_eq!(changed["order"]["bins"].as_u64(), Some(8));
    // Work from before a meeting of threads stays before it.
    let mut phases = Program {
        items: Vec::new(),
        ..before.clone()
    };
    for (number, item) in before.items.iter().enumerate() {
        if number % 700 == 699 {
            phases.event(
                0,
                Event::Phase {
                    name: number.to_string(),
                },
            );
        }
        phases.items.push(item.clone());
    }
    let apart = engine::simulate(&machine, &phases, &["page-coloring"], &setup)
        .expect("it runs")
        .remove(0);
    assert!(apart["order"]["runs"].as_u64() > Some(3), "{}", apart["order"]);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let machine = textbook::machine(1, 8);
    let refused = |text: &str, policy: &str| {
        let change = [text.parse().expect("a change")];
        let setup = Setup {
            changes: &change,
            ..Setup::default()
        };
        engine::simulate(&machine, &matrix(), &[policy], &setup).expect_err("no such change")
    };
    for (change, reason) in [
        ("shift,bytes=8,data=n", "names no data `n`"),
        ("shift,bytes=8,data=M", "near it are `m`"),
        ("shift,bytes=0,data=m", "bytes is 0"),
        (
            "pad,row_bytes=500,pad_bytes=8,data=m",
            "no whole number of rows of 500 bytes",
        ),
        (
            "transpose,element_bytes=8,columns=65,data=m",
            "no whole number of rows of 520 bytes",
        ),
        ("separate,element_bytes=3000000000,data=m", "from 1 to"),
        (
            "fields,element_bytes=8,groups=0:4/2:4,data=m",
            "fields 0:4 and 2:4 overlap",
        ),
        (
            "fields,element_bytes=8,groups=4:8,data=m",
            "outside an element of 8 bytes",
        ),
        ("fields,element_bytes=8,groups=4:0,data=m", "field 4:0 has no bytes"),
        ("interleave,element_bytes=8,data=m + n", "names no data `n`"),
        ("interleave,element_bytes=8,data=m", "several names are joined by ` + `"),
        (
            "interleave,element_bytes=24,data=m + m",
            "`m` is no whole number of elements of 24 bytes",
        ),
        (
            r#"{"kind":"interleave","data":"m","element_bytes":0,"with":["m"]}"#,
            "element_bytes is 0",
        ),
        ("shift,bytes=8,data=(memory without a name)", "neither a variable nor"),
    ] {
        let said = refused(change, "page-coloring");
        assert!(said.contains(reason), "{change}: {said}");
    }
    let both =
        ["shift,bytes=8,data=m", "interleave,element_bytes=8,data=m + m"].map(|text| text.parse().expect("a change"));
    let setup = Setup {
        changes: &both,
        ..Setup::default()
    };
    let said = engine::simulate(&machine, &matrix(), &["random"], &setup).expect_err("two changes");
    assert!(said.contains("changed in no other way"), "{said}");
    assert!(refused("tile,bytes=64,data=n", "random").contains("names no data `n`"));
    assert!(refused("shift,bytes=8,data=m", "cdpc").contains("`cdpc`"));
    assert!(refused("shift,bytes=8,data=m", "first-touch+slots").contains("`slots`"));
}

/// A guest's huge pages that its host keeps in small ones: as many misses as without them, each with the walk time of
/// that case.
#[test]
fn huge_pages_that_the_host_splits_save_walks_no_misses() {
    let mut machine = textbook::machine(1, 1024);
    let tlb = |huge_refill_ns| machine::Tlb {
        entries: 4,
        ways: 4,
        wired: 0,
        refill_ns: 40.0,
        walkers: 0,
        huge_refill_ns,
        far: Vec::new(),
    };
    let mut program = Program::new(1);
    for _ in 0..2 {
        (0..8).for_each(|page| program.read(0, page * 4096));
    }
    let changes = [ProgramChange::HugePages { data: None }];
    for (huge_refill_ns, misses, ns) in [(None, 1, 40), (Some(30.0), 16, 16 * 30)] {
        machine.tlb = Some(tlb(huge_refill_ns));
        let setup = Setup {
            changes: &changes,
            ..Setup::default()
        };
        let outcome = both::run_with(&machine, &program, "page-coloring", &setup);
        assert_eq!(outcome.value()["tlb"]["misses"].as_u64(), Some(misses));
        outcome.time("tlb_stall", ns);
    }
}
