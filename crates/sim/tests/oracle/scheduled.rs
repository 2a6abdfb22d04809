//! The small scheduler of the simulator: against the one that is written word for word, and its purpose.

use machine::Machine;
use proptest::prelude::*;
use sim::{Config, Scheduling, Times};
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::schedule::Schedule;
use crate::reference::{Item, Program};

/// A cache of one line each, and memory that is equally far from all: each reference of [`lines`] takes 100 ns.
fn even(cpus: u32) -> Machine {
    let text = format!(
        "name = \"even\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = {cpus}\n\
         [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
         cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
         [memory]\nnodes = 1\nlocal_ns = 99.0\nremote_ns = 99.0\ndirty_remote_ns = 99.0\n"
    );
    machine::from_toml(&text, "even.toml").expect("the machine is valid")
}

const REFERENCE_NS: u64 = 100;

/// Threads of processes with the given numbers of threads, each of which reads its own number of lines, none twice in a
/// row.
fn lines(programs: &[u32], of: impl Fn(u32) -> u64) -> Program {
    let mut program = Program::new(0);
    let spaces = (0..)
        .zip(programs)
        .flat_map(|(space, threads)| vec![space; *threads as usize]);
    program.spaces = spaces.collect();
    for thread in 0..program.spaces.len() as u32 {
        for line in 0..of(thread) {
            program.read(thread, u64::from(thread + 1) * 4096 + line % 64 * 64);
        }
    }
    program
}

fn times(slice_ns: u64, affinity_ns: u64, decay_ns: u64) -> Times {
    Times {
        slice_ns,
        affinity_ns,
        decay_ns,
    }
}

/// When which thread missed on which cpu.
fn ran(program: &Program, cpus: u32, schedule: Scheduling) -> Vec<(u64, u32, u32)> {
    let config = Config {
        schedule,
        ..Config::new(even(cpus), Vec::new())
    };
    let stream = sim::misses::record_refs(&engine::streams(program), &config).expect("it can be recorded");
    let misses = stream.misses.iter();
    misses.map(|miss| (miss.now_ns(), miss.thread(), miss.cpu())).collect()
}

/// How often a thread continued on another cpu.
fn moves(ran: &[(u64, u32, u32)]) -> usize {
    let threads = ran
        .iter()
        .map(|(_, thread, _)| *thread)
        .max()
        .map_or(0, |most| most + 1);
    let cpus = |of: u32| {
        ran.iter()
            .filter(move |(_, thread, _)| *thread == of)
            .map(|(_, _, cpu)| *cpu)
    };
    let moves = |of: u32| {
        cpus(of)
            .zip(cpus(of).skip(1))
            .filter(|(before, after)| before != after)
            .count()
    };
    (0..threads).map(moves).sum()
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    let drawn = (
        any::<bool>(),
        1..20_000u64,
        prop_oneof![Just(0), 1..20_000u64],
        1..50_000u64,
    );
    drawn.prop_map(|(parts, slice, affinity, decay)| match parts {
        true => Scheduling::Partition(times(slice, affinity, decay)),
        false => Scheduling::Priority(times(slice, affinity, decay)),
    })
}

proptest! {
    #![proptest_config(cases(160))]

    /// Count for count and nanosecond for nanosecond, with more threads than cpus, events that hold them, and threads that
    /// begin later.
    #[test]
    fn both_simulators_agree_on_threads_that_are_scheduled(
        machine in machines(vec![1, 2, 3, 4, 6]),
        program in programs(12, 600),
        processes in 1..6u32,
        schedule in scheduling(),
        placement in prop::option::weighted(0.2, prop::collection::vec(0..8u32, 0..6)),
        barrier_ns in 0..200u32,
        recorded in prop::bool::weighted(0.1),
        classes: bool,
    ) {
        let sets = ["trigger=3", "hold=1", "batch=1", "reset=1000"].map(|set| format!("migrate-replicate.{set}"));
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        for (thread, space) in (0..).zip(&mut program.spaces) {
            *space = thread % processes;
        }
        let setup = Setup { schedule, placement: placement.as_deref(), barrier_ns, recorded, classes, sets: &sets, ..Setup::default() };
        for policy in ["first-touch", "migrate-replicate"] {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }

    /// The same threads on the same cpus at the same times, if each reference takes as long as any other.
    #[test]
    fn the_sequence_is_that_of_the_scheduler_written_word_for_word(
        programs in prop::collection::vec(1..5u32, 1..5),
        lengths in prop::collection::vec(1..120u64, 20),
        cpus in 1..6u32,
        schedule in scheduling(),
    ) {
        let program = lines(&programs, |thread| lengths[thread as usize]);
        let places = (0..program.spaces.len()).map(|thread| thread % cpus as usize).collect();
        let mut model = Schedule::new(&program, cpus, places, 0, schedule, 0);
        let mut expected = Vec::new();
        while let Some((cpu, thread, item)) = model.next() {
            if item.is_some() {
                expected.push((model.cpus[cpu].clock / (1 << 20), thread, cpu as u32));
                model.cpus[cpu].clock += REFERENCE_NS << 20;
            }
            model.after(cpu, thread, item.as_ref(), None);
        }
        let found: Vec<_> = ran(&program, cpus, schedule).into_iter().map(|(now, thread, cpu)| (now - REFERENCE_NS, thread, cpu)).collect();
        prop_assert_eq!(found, expected);
    }

    /// No more threads than cpus: no thread moves, whatever holds it, and everything is as if threads stay.
    #[test]
    fn one_process_a_cpu_stays_where_it_is(
        machine in machines(vec![6]),
        program in programs(6, 400),
        processes in 1..7u32,
        schedule in scheduling(),
    ) {
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        for (thread, space) in (0..).zip(&mut program.spaces) {
            *space = thread % processes;
        }
        let run = |schedule| {
            let setup = Setup { schedule, ..Setup::default() };
            engine::simulate(&machine, &program, &["first-touch"], &setup)
        };
        let (Ok(stays), Ok(scheduled)) = (run(Scheduling::Stay), run(schedule)) else { return Ok(()) };
        let of = |run: &[serde_json::Value], field: &str| run[0][field].clone();
        for field in ["references", "caches", "tlb", "memory"] {
            prop_assert_eq!(of(&stays, field), of(&scheduled, field), "{}", field);
        }
        for part in ["busy", "local_stall", "remote_stall", "wall"] {
            prop_assert_eq!(&stays[0]["time_ns"][part], &scheduled[0]["time_ns"][part], "{}", part);
        }
    }
}

/// Twelve on eight: none of the work is lost or done twice, and all cpus have work as long as there are threads enough.
#[test]
fn work_is_conserved() {
    let program = lines(&[1; 12], |thread| 3000 + 100 * u64::from(thread));
    let total: u64 = (0..12).map(|thread| 3000 + 100 * thread).sum();
    let usual = times(10_000, 60_000, 1_000_000);
    for schedule in [Scheduling::Priority(usual), Scheduling::Partition(usual)] {
        let ran = ran(&program, 8, schedule);
        assert_eq!(ran.len() as u64, total);
        for thread in 0..12 {
            let of = ran.iter().filter(|(_, other, _)| *other == thread).count() as u64;
            assert_eq!(of, 3000 + 100 * u64::from(thread), "{schedule} {thread}");
        }
        let setup = |schedule| Setup {
            schedule,
            ..Setup::default()
        };
        let time = |schedule, part: &str| {
            both::run_with(&even(8), &program, "first-touch", &setup(schedule)).value()["time_ns"][part].as_u64()
        };
        assert_eq!(time(schedule, "busy"), time(Scheduling::Stay, "busy"));
        assert_eq!(time(schedule, "local_stall"), time(Scheduling::Stay, "local_stall"));
    }
    // Four cpus have two threads each where they stay; by priority all are done in little more than an eighth of the work.
    let last = |schedule| ran(&program, 8, schedule).last().map_or(0, |(now, ..)| *now);
    let eighth = total * REFERENCE_NS / 8;
    assert!(last(Scheduling::Priority(usual)) < eighth * 11 / 10);
    assert!(last(Scheduling::Stay) > eighth * 13 / 10);
}

#[test]
fn affinity_keeps_threads_where_they_are() {
    let program = lines(&[1; 12], |_| 5000);
    let with = |affinity_ns| {
        let schedule = Scheduling::Priority(times(10_000, affinity_ns, 1_000_000));
        moves(&ran(&program, 8, schedule))
    };
    let (none, some, much) = (with(0), with(60_000), with(1_000_000_000));
    assert!(some > 0 && some * 2 < none, "{some} of {none}");
    // Those that stood in the queue of the same cpu share it for good, until cpus are left over.
    assert!(much <= 12 && much < some, "{much} of {some}");
}

/// A program that enters takes cpus from one that is there, whose threads come back when it has left.
#[test]
fn programs_are_moved_apart_and_spread_again() {
    let program = {
        let mut program = lines(&[4, 2], |thread| if thread < 4 { 2000 } else { 500 });
        // The first thread of the second program begins the other, after a while.
        program.event(0, Event::Spawn { child: 4 });
        program.event(0, Event::Spawn { child: 5 });
        let at = program.items.iter().position(|(thread, _)| *thread == 1).unwrap_or(0);
        let spawns = program.items.split_off(program.items.len() - 2);
        program.items.splice(at - 1500..at - 1500, spawns);
        program
    };
    let ran = ran(&program, 4, Scheduling::Partition(times(10_000, 0, 1_000_000)));
    let cpus = |of: std::ops::Range<u32>, from: u64, to: u64| {
        let within = ran
            .iter()
            .filter(|(now, thread, _)| of.contains(thread) && (from..to).contains(now));
        within
            .map(|(_, _, cpu)| *cpu)
            .collect::<std::collections::BTreeSet<u32>>()
    };
    let all = |cpus: &[u32]| cpus.iter().copied().collect();
    // From 50 us on the second program has two cpus, for 50 us of work on each.
    assert_eq!(cpus(0..4, 0, 50_000), all(&[0, 1, 2, 3]));
    assert_eq!(cpus(0..4, 50_300, 99_900), all(&[0, 1]));
    assert_eq!(cpus(4..6, 0, 1_000_000), all(&[2, 3]));
    assert_eq!(cpus(0..4, 100_400, 200_000), all(&[0, 1, 2, 3]));
    assert!(moves(&ran) >= 4, "{}", moves(&ran));
}
