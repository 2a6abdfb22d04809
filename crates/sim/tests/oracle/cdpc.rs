//! Policy `cdpc`: programs where the counts are known.

use machine::Machine;
use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use results::ProgramChange;
use trace::{Allocation, Event};

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::reference::{Item, Program};

const PAGE: u64 = 4096;
const LINES: u64 = PAGE / 64;

fn machine(cpus: u32, colors: u64, frames_per_node: u64) -> Machine {
    let text = format!(
        "name = \"colored\"\nclock_mhz = 1000\ncpus = {cpus}\npage_bytes = 4096\n\
         [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\ncpus_per_instance = 1\nbytes = {}\nline_bytes = 64\n\
         ways = 1\nindex = \"physical\"\nhit_ns = 1\n\
         [memory]\nlocal_ns = 100\nremote_ns = 100\ndirty_remote_ns = 100\nframes_per_node = {frames_per_node}\n",
        colors * PAGE
    );
    machine::from_toml(&text, "colored").unwrap()
}

fn each_line(program: &mut Program, thread: u32, first: u64, pages: u64) {
    for line in 0..pages * LINES {
        program.read(thread, first * PAGE + line * 64);
    }
}

fn summary(name: &str, first: u64, pages: u64, communication: Communication) -> Summary {
    Summary {
        name: name.to_string(),
        start: first * PAGE,
        bytes: pages * PAGE,
        offset: 0,
        unit: PAGE as i64,
        span: PAGE,
        inner: Vec::new(),
        communication,
        access: Access::Read,
    }
}

fn a_loop(place: &str, threads: u32, iterations: u64, summaries: Vec<Summary>) -> Loop {
    Loop {
        place: place.to_string(),
        threads,
        iterations,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries,
    }
}

fn say(program: &mut Program, thread: u32, a_loop: &Loop) {
    let text = serde_json::to_string(a_loop).unwrap();
    program.event(thread, Event::Summary { text });
}

/// Two arrays of 8 pages (0 to 7, and 64 to 71: at the same colors) that two cpus share evenly; each cpu's part is 4 + 4
/// pages, which fills a cache of 8 colors.
const A: u64 = 0x100;
const B: u64 = 0x140;

fn halves(program: &mut Program, rounds: u64) {
    for _ in 0..rounds {
        for thread in 0..2 {
            each_line(program, thread, A + 4 * u64::from(thread), 4);
            each_line(program, thread, B + 4 * u64::from(thread), 4);
        }
        program.barrier();
    }
}

fn halves_loop() -> Loop {
    let arrays = [("a", A), ("b", B)].map(|(name, first)| summary(name, first, 8, Communication::None));
    a_loop("halves", 2, 8, arrays.to_vec())
}

/// Pages with hints are small where all data is on huge pages; colors that every page gets keep none from there.
#[test]
fn what_has_a_hint_is_on_no_huge_page() {
    const ROUNDS: u64 = 3;
    let mut machine = machine(2, 8, 0);
    machine.tlb = Some(machine::Tlb {
        entries: 2,
        ways: 2,
        wired: 0,
        refill_ns: 20.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    });
    let mut program = Program::new(2);
    say(&mut program, 1, &halves_loop());
    halves(&mut program, ROUNDS);
    let changes = [ProgramChange::HugePages { data: None }];
    let setup = Setup {
        changes: &changes,
        ..Setup::default()
    };
    // Both arrays are in one huge page: each cpu walks once, or for each of its pages in each round.
    for (policy, walks) in [("page-coloring", 2), ("cdpc", 16 * ROUNDS)] {
        let outcome = both::run_with(&machine, &program, policy, &setup);
        assert_eq!(outcome.value()["tlb"]["misses"].as_u64(), Some(walks), "{policy}");
    }
}

/// Under page coloring, half of the pages of each cpu compete with the other half, and the rest of the cache is empty;
/// by hints each cpu's pages are all of different colors. So they miss once.
#[test]
fn what_fits_is_without_conflicts() {
    const ROUNDS: u64 = 5;
    let machine = machine(2, 8, 0);
    let mut program = Program::new(2);
    say(&mut program, 1, &halves_loop());
    halves(&mut program, ROUNDS);
    let cold = 16 * LINES;
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.cache("L1", "misses", ROUNDS * cold);
    outcome.cache("L1", "conflict", (ROUNDS - 1) * cold);
    for policy in ["cdpc", "first-touch+cdpc"] {
        let outcome = both::run(&machine, &program, policy);
        outcome.cache("L1", "misses", cold);
        outcome.cache("L1", "conflict", 0);
        let cdpc = &outcome.value()["cdpc"];
        assert_eq!(cdpc["from"], "summaries");
        for (field, expected) in [
            ("loops", 1),
            ("arrays", 2),
            ("segments", 4),
            ("sets", 2),
            ("pages", 16),
            ("colors", 8),
            ("asked", 16),
            ("honoured", 16),
            ("malformed_summaries", 0),
        ] {
            assert_eq!(cdpc[field], expected, "{field} in {cdpc}");
        }
        assert_eq!(
            outcome.value()["memory"]["hints"],
            serde_json::json!({"placed": 16, "honoured": 16})
        );
    }
}

/// The same from the trace, without a description: the arrays are heap blocks, which one thread has filled before.
#[test]
fn a_trace_shows_what_nobody_says() {
    const ROUNDS: u64 = 5;
    let machine = machine(2, 32, 0);
    let (a, b) = (0x1000, 0x1040);
    let mut program = Program::new(2);
    for first in [a, b] {
        program.event(
            0,
            Event::Alloc {
                addr: first * PAGE,
                bytes: 32 * PAGE,
                stack: 0,
                kind: Allocation::Heap,
            },
        );
        each_line(&mut program, 0, first, 32);
    }
    program.event(0, Event::TeamBegin { object: 1, threads: 2 });
    for _ in 0..ROUNDS {
        for thread in 0..2 {
            for first in [a, b] {
                each_line(&mut program, thread, first + 16 * u64::from(thread), 16);
            }
        }
        program.barrier();
    }
    program.event(0, Event::TeamEnd { object: 1 });
    let outcome = both::run_recorded(&machine, &program, "cdpc");
    let cdpc = &outcome.value()["cdpc"];
    assert_eq!(
        (&cdpc["from"], &cdpc["segments"], &cdpc["sets"]),
        (&"trace".into(), &4.into(), &2.into()),
        "{cdpc}"
    );
    assert_eq!((&cdpc["pages"], &cdpc["asked"]), (&64.into(), &64.into()));
    // Each cpu reads its half once, as cold; of cpu 0 the second half goes to cpu 1, which it does not keep.
    let per_cpu = |cpu: usize| outcome.value()["per_cpu"][cpu]["caches"][0]["misses"].as_u64().unwrap();
    assert_eq!(per_cpu(1), 32 * LINES);
    // Filling takes 64 pages through a cache of 32: of its own half, cpu 0 may have to read every line once more.
    assert!(per_cpu(0) <= 64 * LINES + 32 * LINES, "{}", per_cpu(0));
    // By page coloring each half would be fetched again in each round.
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache_of(1, "L1", "misses", ROUNDS * 32 * LINES);
}

/// Figure 4: two arrays, two cpus, four colors. Of 14 pages each color has three or four, and cpu 0's array starts are apart.
#[test]
fn figure_4_has_its_colors() {
    let machine = machine(2, 4, 0);
    let mut program = Program::new(2);
    let with_next = |name, first, pages| {
        let next = Communication::Shift(PAGE as i64);
        vec![
            summary(name, first, pages, Communication::None),
            summary(name, first, pages, next),
        ]
    };
    say(&mut program, 0, &a_loop("a", 2, 8, with_next("a", 0x10, 8)));
    say(&mut program, 0, &a_loop("b", 2, 6, with_next("b", 0x18, 6)));
    let both = [("a", 0x10, 8), ("b", 0x18, 6)];
    let both = both.map(|(name, first, pages)| summary(name, first, pages, Communication::None));
    say(&mut program, 0, &a_loop("both", 1, 1, both.to_vec()));
    each_line(&mut program, 0, 0x10, 5);
    each_line(&mut program, 0, 0x18, 4);
    program.barrier();
    each_line(&mut program, 1, 0x14, 4);
    each_line(&mut program, 1, 0x1b, 3);
    let outcome = both::run(&machine, &program, "cdpc");
    let cdpc = &outcome.value()["cdpc"];
    for (field, expected) in [("loops", 3), ("arrays", 2), ("segments", 6), ("sets", 3), ("pages", 14)] {
        assert_eq!(cdpc[field], expected, "{field} in {cdpc}");
    }
    let colors = engine::colors(&machine, &program, "cdpc");
    let order = [0u64, 1, 2, 3, 9, 10, 8, 4, 11, 5, 6, 7, 12, 13];
    for (position, page) in order.into_iter().enumerate() {
        assert_eq!(colors[&(0, 0x10 + page)], position as u32 % 4, "page {page}");
    }
}

/// Two processes ask for the same colors, of which there are not enough frames.
#[test]
fn under_pressure_hints_are_honoured_as_far_as_frames_allow() {
    let mut program = Program::new(2);
    program.spaces = vec![0, 1];
    for thread in 0..2 {
        say(
            &mut program,
            thread,
            &a_loop("own", 1, 4, vec![summary("a", A, 4, Communication::None)]),
        );
    }
    // One after the other.
    for thread in 0..2 {
        each_line(&mut program, thread, A, 4);
        program.barrier();
    }
    // Ten frames: three of colors 0 and 1, two of 2 and 3.
    let outcome = both::run(&machine(2, 4, 10), &program, "cdpc");
    let cdpc = &outcome.value()["cdpc"];
    assert_eq!(
        (&cdpc["pages"], &cdpc["asked"], &cdpc["honoured"]),
        (&8.into(), &8.into(), &8.into())
    );
    // Eight frames of eight colors: the first process gets the ones it asks for, the second the rest.
    let outcome = both::run(&machine(2, 8, 8), &program, "cdpc");
    let cdpc = &outcome.value()["cdpc"];
    assert_eq!((&cdpc["asked"], &cdpc["honoured"]), (&8.into(), &4.into()));
    let hints = &outcome.value()["memory"]["hints"];
    assert_eq!((&hints["placed"], &hints["honoured"]), (&8.into(), &4.into()));
}

/// Statements that cannot be read or cannot be valid are counted, reported and left out; the others are followed.
#[test]
fn malformed_summaries_are_reported() {
    let machine = machine(2, 8, 0);
    let mut program = Program::new(2);
    let text = "{\"place\": \"nowhere\"".to_string();
    program.event(0, Event::Summary { text });
    let mut wrong = halves_loop();
    wrong.place = "wrong".to_string();
    wrong.summaries[1].span = 0;
    say(&mut program, 1, &wrong);
    let mut huge = halves_loop();
    huge.place = "huge".to_string();
    huge.summaries[0].bytes = 1 << 60;
    say(&mut program, 1, &huge);
    halves(&mut program, 2);
    let outcome = both::run(&machine, &program, "cdpc");
    let cdpc = &outcome.value()["cdpc"];
    // No statement is usable: the trace is looked at. Two arrays of 8 pages without a name are too small.
    assert_eq!(
        (&cdpc["from"], &cdpc["malformed_summaries"]),
        (&"trace".into(), &3.into()),
        "{cdpc}"
    );
    assert_eq!(cdpc["pages"], 0);

    say(&mut program, 0, &halves_loop());
    let outcome = engine::simulate(&machine, &program, &["cdpc"], &Setup::default()).unwrap();
    let cdpc = &outcome[0]["cdpc"];
    assert_eq!(
        (&cdpc["from"], &cdpc["loops"], &cdpc["pages"]),
        (&"summaries".into(), &1.into(), &16.into())
    );
    assert_eq!(cdpc["malformed_summaries"], 3);
    let words = cdpc["malformed"].to_string();
    for part in ["cannot be read", "wrong: b: a span of 0 bytes", "huge: "] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let sets = ["cdpc.from=summaries".to_string()];
    program
        .items
        .retain(|(_, item)| !matches!(item, Item::Event(Event::Summary { text }) if text.contains("halves")));
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let error = engine::simulate(&machine, &program, &["cdpc"], &setup).unwrap_err();
    assert!(
        error.contains("domicile-cc") && error.contains("cdpc.from=trace"),
        "{error}"
    );
}

/// A constructor does not know how many threads a program will ask for: the team that is described last deals the work.
#[test]
fn a_loop_that_is_described_again_by_another_team_counts_once() {
    let mut program = Program::new(2);
    let mut early = halves_loop();
    early.threads = 1;
    say(&mut program, 0, &early);
    say(&mut program, 0, &halves_loop());
    halves(&mut program, 2);
    let outcome = both::run(&machine(2, 8, 0), &program, "cdpc");
    let mut once = Program::new(2);
    say(&mut once, 0, &halves_loop());
    halves(&mut once, 2);
    let alone = both::run(&machine(2, 8, 0), &once, "cdpc");
    assert_eq!(outcome.value()["cdpc"], alone.value()["cdpc"]);
    assert_eq!(outcome.value()["cdpc"]["loops"], 1);
}

/// Pages of the same address in two processes have hints of their own.
#[test]
fn each_process_has_its_own_hints() {
    let machine = machine(2, 8, 0);
    let mut program = Program::new(2);
    program.spaces = vec![0, 1];
    say(
        &mut program,
        0,
        &a_loop("up", 1, 4, vec![summary("a", A, 4, Communication::None)]),
    );
    // In the second process page A + 2 is alone first: it has color 0.
    say(
        &mut program,
        1,
        &a_loop("one", 1, 2, vec![summary("a", A + 2, 2, Communication::None)]),
    );
    for thread in 0..2 {
        each_line(&mut program, thread, A, 5);
    }
    // So little gains nothing, and would stay with page coloring.
    let sets = ["cdpc.weigh=no", "cdpc.rest=page-coloring"].map(str::to_string);
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let outcome = both::run_with(&machine, &program, "cdpc", &setup);
    assert_eq!(outcome.value()["cdpc"]["pages"], 6);
    assert_eq!(outcome.value()["cdpc"]["asked"], 6);
    let colors = engine::colors_with(&machine, &program, "cdpc", &setup);
    let of = |space: u32| [0, 1, 2, 3, 4].map(|page| colors[&(space, A + page)]);
    assert_eq!(of(0), [0, 1, 2, 3, 4]);
    // Without a hint: page coloring.
    assert_eq!(of(1), [0, 1, 0, 1, 4]);
    let plain = Setup {
        sets: &sets[1..],
        ..Setup::default()
    };
    let weighed = engine::colors_with(&machine, &program, "cdpc", &plain);
    assert!(
        [0, 1]
            .iter()
            .all(|&space| (0..5).all(|page| weighed[&(space, A + page)] == page as u32))
    );
}

/// Faults of several cpus draw colors in the order of their clocks, the lower cpu first where they are equal.
#[test]
fn faults_race_for_colors_by_the_clocks() {
    let machine = machine(4, 16, 0);
    let mut program = Program::new(4);
    // Thread t computes so long before each of its pages.
    let work = [700, 100, 100, 400];
    for thread in 0..4u32 {
        for page in 0..3 {
            let instructions = work[thread as usize];
            program.event(thread, Event::Work { instructions });
            program.read(thread, (0x100 * u64::from(thread + 1) + page) * PAGE);
        }
    }
    let colors = engine::colors(&machine, &program, "bin-hopping");
    let of = |thread: u64| [0, 1, 2].map(|page| colors[&(0, 0x100 * (thread + 1) + page)]);
    // One instruction a ns, and 100 ns for each miss: threads 1 and 2 fault at 101, 302 (with the reference's own
    // instruction) and 503, thread 3 at 401, 902 and 1403, thread 0 at 701, 1502 and 2303.
    assert_eq!(of(1), [0, 2, 5]);
    assert_eq!(of(2), [1, 3, 6]);
    assert_eq!(of(3), [4, 8, 9]);
    assert_eq!(of(0), [7, 10, 11]);
    both::run(&machine, &program, "bin-hopping");
    // A race by chance is another one, and the same each time.
    let sets = ["bin-hopping.race=3".to_string()];
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    both::run_with(&machine, &program, "bin-hopping", &setup);
    let raced = engine::colors_with(&machine, &program, "bin-hopping", &setup);
    assert_ne!(raced, colors);
    assert_eq!(raced, engine::colors_with(&machine, &program, "bin-hopping", &setup));
    let mut given: Vec<u32> = raced.values().copied().collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(
        given.len(),
        12,
        "twelve pages race for at most fifteen places, all of different colors"
    );
}
