//! Policy `slots`: cases worked out by hand, and random programs that speak of slots in both simulators.

use machine::Machine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use results::ProgramChange;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::{Item, Program};

const PAGE: u64 = 4096;
const LINES: u64 = PAGE / 64;

/// A cache of 8 colors, 2-way: one color is 2 pages.
fn machine(cpus: u32) -> Machine {
    let mut machine = textbook::machine(cpus, 1);
    machine.caches = vec![textbook::cache("L1", 1, 16 * PAGE, 2)];
    machine
}

fn each_line(program: &mut Program, thread: u32, first: u64, pages: u64) {
    for line in 0..pages * LINES {
        program.read(thread, first + line * 64);
    }
}

fn slot(slot: u64, colors: u64, private: bool) -> Event {
    let bytes = colors * 2 * PAGE;
    Event::Slot { slot, bytes, private }
}

fn data(program: &mut Program, set: u64, addr: u64, pages: u64, slot: Option<u64>) {
    let bytes = pages * PAGE;
    program.event(0, Event::DataRange { set, addr, bytes });
    program.event(0, Event::Allocate { set, slot });
}

const STRONG: u64 = 0x10_0000;
const STREAM: u64 = 0x80_0000;
/// The strong array has half of the cache, and is read so often.
const STRONG_PAGES: u64 = 8;
const ROUNDS: u64 = 10;
/// This much of the stream goes by between two readings.
const STREAMED: u64 = 32;

fn strong_and_streaming(program: &mut Program) {
    for round in 0..ROUNDS {
        each_line(program, 0, STRONG, STRONG_PAGES);
        each_line(program, 0, STREAM + round * STREAMED * PAGE, STREAMED);
    }
}

/// A strong array of half the cache and a streaming one. Without slots the stream takes all of the cache between two
/// readings, and everything misses always; with them the strong array misses when it is first read, and never again.
#[test]
fn a_private_slot_keeps_a_stream_away() {
    let machine = machine(1);
    let streamed = ROUNDS * STREAMED * LINES;
    let mut alone = Program::new(1);
    strong_and_streaming(&mut alone);
    let outcome = both::run(&machine, &alone, "page-coloring");
    outcome.cache("L1", "misses", ROUNDS * STRONG_PAGES * LINES + streamed);

    let mut program = Program::new(1);
    program.event(0, slot(1, 4, true));
    program.event(0, slot(2, 4, false));
    data(&mut program, 1, STRONG, STRONG_PAGES, Some(1));
    data(&mut program, 2, STREAM, ROUNDS * STREAMED, Some(2));
    strong_and_streaming(&mut program);
    let outcome = both::run(&machine, &program, "slots");
    outcome.cache("L1", "misses", STRONG_PAGES * LINES + streamed);
    outcome.cache("L1", "cold", STRONG_PAGES * LINES + streamed);
    outcome.memory("recolorings", 0);
    outcome.time("policy_overhead", 0);
}

/// The same if the stream is only marked as not worth caching: it gets one color.
#[test]
fn a_data_set_without_a_slot_has_one_color() {
    let mut program = Program::new(1);
    program.event(0, slot(1, 4, true));
    data(&mut program, 1, STRONG, STRONG_PAGES, Some(1));
    data(&mut program, 2, STREAM, ROUNDS * STREAMED, None);
    strong_and_streaming(&mut program);
    let outcome = both::run(&machine(1), &program, "slots");
    outcome.cache("L1", "cold", STRONG_PAGES * LINES + ROUNDS * STREAMED * LINES);
    outcome.cache("L1", "misses", STRONG_PAGES * LINES + ROUNDS * STREAMED * LINES);
    // Two pages of it fit in its color, a third does not.
    let mut program = Program::new(1);
    data(&mut program, 2, STREAM, 3, None);
    for _ in 0..10 {
        each_line(&mut program, 0, STREAM, 2);
    }
    for _ in 0..10 {
        each_line(&mut program, 0, STREAM, 3);
    }
    let outcome = both::run(&machine(1), &program, "slots");
    outcome.cache("L1", "misses", 2 * LINES + LINES + 9 * 3 * LINES);
}

/// Pages that were touched before the slot is given move to its colors, which costs, and are cold there.
#[test]
fn pages_touched_before_are_moved() {
    let mut program = Program::new(1);
    each_line(&mut program, 0, STRONG, STRONG_PAGES);
    program.event(0, slot(1, 4, true));
    // Page-coloring alone would not move anything: `slots` has put the pages anywhere.
    data(&mut program, 1, STRONG, STRONG_PAGES, Some(1));
    data(&mut program, 2, STREAM, ROUNDS * STREAMED, None);
    strong_and_streaming(&mut program);
    let outcome = both::run(&machine(1), &program, "slots");
    let value = outcome.value();
    let moved = value["memory"]["recolorings"].as_u64().unwrap();
    assert!((1..=STRONG_PAGES).contains(&moved), "{moved}");
    let cost = sim::VERGHESE96.recolor_page_ns as u64;
    assert_eq!(value["time_ns"]["policy_overhead"], moved * cost);
    // Data that did not move may have been evicted by its neighbors before: each line is missed at most twice.
    let misses = value["caches"][0]["misses"].as_u64().unwrap();
    let streamed = ROUNDS * STREAMED * LINES;
    assert!(misses >= streamed + (STRONG_PAGES + moved) * LINES, "{misses}");
    assert!(misses <= streamed + 2 * STRONG_PAGES * LINES, "{misses}");
    assert_eq!(value["slots"]["data_sets"], 2);
    assert_eq!(value["slots"]["private"], 1);
}

/// Threads on two caches: each has a private slot of the whole of its own cache, because only the caches of a
/// data set's threads are concerned.
#[test]
fn only_the_caches_of_a_data_sets_threads_are_concerned() {
    let mut program = Program::new(2);
    for thread in 0..2 {
        let set = u64::from(thread) + 1;
        program.event(0, slot(set, 8, true));
        program.event(0, Event::DataThread { set, thread });
        data(&mut program, set, STRONG * set, 16, Some(set));
    }
    program.barrier();
    for _ in 0..5 {
        for thread in 0..2 {
            each_line(&mut program, thread, STRONG * (u64::from(thread) + 1), 16);
        }
    }
    let outcome = both::run(&machine(2), &program, "slots");
    outcome.cache("L1", "misses", 2 * 16 * LINES);
    assert_eq!(outcome.value()["slots"]["private"], 2);

    // It is used by all, so that the second finds nothing free, and is told so; it has random colors then.
    program
        .items
        .retain(|(_, item)| !matches!(item, Item::Event(Event::DataThread { .. })));
    let outcome = both::run(&machine(2), &program, "slots");
    let slots = &outcome.value()["slots"];
    assert_eq!((&slots["private"], &slots["refusals"]), (&1.into(), &1.into()));
    let why = slots["refused"][0].as_str().unwrap();
    assert!(why.contains("data set 2") && why.contains("not free"), "{why}");
}

/// Pages of no data set stay out of private colors where that is asked for.
#[test]
fn the_rest_can_be_confined() {
    let mut program = Program::new(1);
    program.event(0, slot(1, 4, true));
    data(&mut program, 1, STRONG, STRONG_PAGES, Some(1));
    strong_and_streaming(&mut program);
    let sets = ["slots.rest=confine".to_string()];
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let outcome = both::run_with(&machine(1), &program, "slots", &setup);
    outcome.cache("L1", "misses", STRONG_PAGES * LINES + ROUNDS * STREAMED * LINES);
    let outcome = both::run(&machine(1), &program, "slots");
    let misses = outcome.value()["caches"][0]["misses"].as_u64().unwrap();
    assert!(misses > STRONG_PAGES * LINES + ROUNDS * STREAMED * LINES);
}

/// Without a word about slots, the policy is `random`.
#[test]
fn nothing_said_is_random() {
    let mut program = Program::new(1);
    strong_and_streaming(&mut program);
    let setup = Setup::default();
    let outcomes = engine::simulate(&machine(1), &program, &["random", "slots"], &setup).unwrap();
    assert_eq!(outcomes[0]["caches"], outcomes[1]["caches"]);
    assert_eq!(outcomes[0]["time_ns"], outcomes[1]["time_ns"]);
}

/// Data of a slot is on small pages when all else is on huge ones: the corresponding walks and page faults come back,
/// and they go with the data set.
#[test]
fn what_has_a_slot_is_on_no_huge_page() {
    let mut machine = machine(1);
    machine.tlb = Some(machine::Tlb {
        entries: 2,
        ways: 2,
        wired: 0,
        refill_ns: 20.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    });
    (machine.memory.fault_ns, machine.memory.clear_ns) = (500.0, 1.0);
    let changes = [ProgramChange::HugePages { data: None }];
    let setup = Setup {
        changes: &changes,
        ..Setup::default()
    };
    // Both arrays are in the huge pages from 0 and from 8 MiB on.
    let mut alone = Program::new(1);
    strong_and_streaming(&mut alone);
    let outcome = both::run_with(&machine, &alone, "slots", &setup);
    let faults = |outcome: &both::Agreed| outcome.value()["memory"]["page_faults"]["first"].as_u64();
    assert_eq!(outcome.value()["tlb"]["misses"].as_u64(), Some(2));
    assert_eq!(faults(&outcome), Some(2));

    let mut program = Program::new(1);
    program.event(0, slot(1, 4, true));
    data(&mut program, 1, STRONG, STRONG_PAGES, Some(1));
    strong_and_streaming(&mut program);
    program.event(0, Event::DataFree { set: 1 });
    let after = 3;
    (0..after).for_each(|page| program.read(0, STRONG + page * PAGE));
    let outcome = both::run_with(&machine, &program, "slots", &setup);
    // Each round walks for each page of the array and once for the stream; when its data set is gone, the array is on one huge page.
    let walks = ROUNDS * (STRONG_PAGES + 1) + 1;
    assert_eq!(outcome.value()["tlb"]["misses"].as_u64(), Some(walks));
    assert_eq!(faults(&outcome), Some(STRONG_PAGES + 1));
}

fn word() -> impl Strategy<Value = Event> {
    let number = || 0..3u64;
    let bytes = prop_oneof![Just(0u64), 1..3000u64, 1..100_000u64];
    let place = prop_oneof![0x40_0000u64..0x40_2000, 0x7fff_ffff_d000..0x7fff_ffff_f000u64];
    prop_oneof![
        2 => (number(), bytes.clone(), any::<bool>())
            .prop_map(|(slot, bytes, private)| Event::Slot { slot, bytes, private }),
        1 => number().prop_map(|slot| Event::SlotFree { slot }),
        3 => (number(), place, 0..9000u64).prop_map(|(set, addr, bytes)| Event::DataRange { set, addr, bytes }),
        1 => (number(), 0..3u32).prop_map(|(set, thread)| Event::DataThread { set, thread }),
        3 => (number(), proptest::option::of(number())).prop_map(|(set, slot)| Event::Allocate { set, slot }),
        1 => number().prop_map(|set| Event::DataFree { set }),
    ]
}

/// Programs with words about slots here and there.
fn speaking() -> impl Strategy<Value = Program> {
    (programs(3, 150), vec((any::<Index>(), any::<Index>(), word()), 1..25)).prop_map(|(mut program, words)| {
        for (thread, place, word) in words {
            let thread = thread.index(program.spaces.len()) as u32;
            let place = place.index(program.items.len() + 1);
            program.items.insert(place, (thread, Item::Event(word)));
        }
        program
    })
}

const POLICIES: [&str; 3] = ["slots", "round-robin+slots", "page-coloring"];

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn both_simulators_agree_on_what_is_said_of_slots(
        machine in machines(vec![1, 2, 3]),
        program in speaking(),
        recorded: bool,
        classes: bool,
        confine: bool,
        huge: bool,
    ) {
        let sets: Vec<String> = confine.then(|| "slots.rest=confine".to_string()).into_iter().collect();
        let changes: Vec<_> = huge.then_some(ProgramChange::HugePages { data: None }).into_iter().collect();
        let setup = Setup { recorded, classes, sets: &sets, changes: &changes, ..Setup::default() };
        for policy in POLICIES {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }
}
