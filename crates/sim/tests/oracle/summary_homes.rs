//! Policy `summary-homes`: serial and parallel initialisation worked out by hand, and random programs in both simulators.

use machine::Machine;
use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use proptest::prelude::*;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::hints::described_programs;
use crate::oracle::machines::machines;
use crate::reference::{Item, Program};

const PAGE: u64 = 4096;
const LINES: u64 = PAGE / 64;
/// An array of 16 pages, of which each of four cpus has four, and a table of 4 pages that all read.
const ARRAY: u64 = 0x100;
const PART: u64 = 4;
const TABLE: u64 = 0x140;
const ROUNDS: u64 = 3;

/// Caches of one line: every line misses.
fn machine(cpus: u32, nodes: u32) -> Machine {
    let text = format!(
        "name = \"nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = {cpus}\n\
         [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
         cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
         [memory]\nnodes = {nodes}\nlocal_ns = 300.0\nremote_ns = 1200.0\ndirty_remote_ns = 1200.0\n"
    );
    machine::from_toml(&text, "nodes.toml").expect("the machine is valid")
}

fn summary(name: &str, first: u64, pages: u64, unit: u64, span: u64) -> Summary {
    Summary {
        name: name.to_string(),
        start: first * PAGE,
        bytes: pages * PAGE,
        offset: 0,
        unit: unit as i64,
        span,
        inner: Vec::new(),
        communication: Communication::None,
        access: Access::Read,
    }
}

fn say(program: &mut Program) {
    let a_loop = Loop {
        place: "sweep".into(),
        threads: 4,
        iterations: 4 * PART,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries: vec![
            summary("array", ARRAY, 4 * PART, PAGE, PAGE),
            summary("table", TABLE, 4, 0, 4 * PAGE),
        ],
    };
    let text = serde_json::to_string(&a_loop).unwrap();
    program.event(0, Event::Summary { text });
}

fn each_line(program: &mut Program, thread: u32, first: u64, pages: u64) {
    for line in 0..pages * LINES {
        program.read(thread, first * PAGE + line * 64);
    }
}

/// The array is filled by cpu 0 or by all, the table by cpu 0; then each cpu sweeps over its part.
fn program(serial: bool, table: bool) -> Program {
    let mut program = Program::new(4);
    say(&mut program);
    for thread in 0..4 {
        let filler = if serial { 0 } else { thread };
        each_line(&mut program, filler, ARRAY + PART * u64::from(thread), PART);
    }
    if table {
        each_line(&mut program, 0, TABLE, 4);
    }
    program.barrier();
    for _ in 0..ROUNDS {
        for thread in 0..4 {
            each_line(&mut program, thread, ARRAY + PART * u64::from(thread), PART);
            if table {
                each_line(&mut program, thread, TABLE, 4);
            }
        }
        program.barrier();
    }
    program
}

#[track_caller]
fn misses(machine: &Machine, program: &Program, policy: &str, local: u64, remote: u64) {
    let outcome = both::run(machine, program, policy);
    outcome.memory("local", local);
    outcome.memory("remote", remote);
}

/// Under first touch three quarters of each sweep are remote; by summaries only cpu 0's fills of the others' parts.
#[test]
fn what_one_cpu_fills_is_with_those_who_use_it() {
    let (machine, program) = (machine(4, 4), program(true, false));
    let part = PART * LINES;
    misses(
        &machine,
        &program,
        "first-touch",
        4 * part + ROUNDS * part,
        ROUNDS * 3 * part,
    );
    misses(&machine, &program, "summary-homes", part + ROUNDS * 4 * part, 3 * part);
    misses(
        &machine,
        &program,
        "summary-homes+random",
        part + ROUNDS * 4 * part,
        3 * part,
    );
}

#[test]
fn where_all_fill_their_parts_it_is_first_touch() {
    let (machine, program) = (machine(4, 4), program(false, false));
    let all = (1 + ROUNDS) * 4 * PART * LINES;
    for policy in ["first-touch", "summary-homes"] {
        misses(&machine, &program, policy, all, 0);
    }
}

/// Two cpus to a node: pages that one of them fills are local to the other.
#[test]
fn cpus_of_a_node_are_one() {
    let (machine, program) = (machine(4, 2), program(true, false));
    let part = PART * LINES;
    misses(
        &machine,
        &program,
        "summary-homes",
        2 * part + ROUNDS * 4 * part,
        2 * part,
    );
}

/// A quarter of the table is on each node: as much is remote as on one node, but no node serves it all.
#[test]
fn a_table_that_all_read_is_spread() {
    let (machine, program) = (machine(4, 4), program(false, true));
    let part = PART * LINES;
    let table = 4 * LINES;
    let local = (1 + ROUNDS) * 4 * part + table / 4 + ROUNDS * table;
    misses(
        &machine,
        &program,
        "summary-homes",
        local,
        table * 3 / 4 + ROUNDS * 3 * table,
    );
    let first = (1 + ROUNDS) * 4 * part + table + ROUNDS * table;
    misses(&machine, &program, "first-touch", first, ROUNDS * 3 * table);
}

/// Without summaries the policy would be first touch by another name.
#[test]
fn without_summaries_there_are_no_homes_by_them() {
    let mut program = Program::new(4);
    each_line(&mut program, 0, ARRAY, 1);
    let failed = engine::simulate(&machine(4, 4), &program, &["summary-homes"], &Setup::default());
    let why = format!("{:?}", failed.expect_err("nothing was described"));
    assert!(why.contains("the trace has none that can be used"), "{why}");
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn both_simulators_agree_on_homes(machine in machines(vec![1, 2, 3]), program in described_programs(), recorded: bool) {
        let mut program = program;
        let mut described = Program::new(1);
        say(&mut described);
        // One that can be used, so that there are homes.
        let event: (u32, Item) = described.items.remove(0);
        program.items.insert(0, event);
        let setup = Setup { recorded, ..Setup::default() };
        for policy in ["summary-homes", "summary-homes+bin-hopping"] {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }
}
