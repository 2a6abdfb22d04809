//! Cases that a textbook works out by hand.

use machine::{Cache, Index, Kind, Machine, Memory, Replacement, Tlb, Write};
use trace::{Event, Op};

use crate::oracle::both::{self, Setup};
use crate::reference::Program;

/// A direct-mapped data cache of `lines` lines of 64 bytes that costs nothing, and memory at 100 ns.
pub fn machine(cpus: u32, lines: u64) -> Machine {
    Machine {
        name: "textbook".into(),
        clock_mhz: 1000.0,
        page_bytes: 4096,
        cpus,
        caches: vec![cache("L1", 1, lines * 64, 1)],
        tlb: None,
        prefetch: None,
        core: None,
        regions: None,
        memory: Memory {
            nodes: 1,
            local_ns: 100.0,
            remote_ns: 300.0,
            dirty_remote_ns: 500.0,
            bandwidth_gbps: 0.0,
            upgrade_ns: 0.0,
            fault_ns: 0.0,
            clear_ns: 0.0,
            huge_pages: machine::HugeData::Never,
            frames_per_node: 0,
            distances: Vec::new(),
            tiers: Vec::new(),
        },
    }
}

pub fn cache(name: &str, level: u8, bytes: u64, ways: u32) -> Cache {
    Cache {
        name: name.into(),
        level,
        kind: Kind::Unified,
        bytes,
        ways,
        line_bytes: 64,
        cpus_per_instance: 1,
        index: Index::Physical,
        hash: None,
        hit_ns: 0.0,
        transfer_ns: 0.0,
        others_gbps: 0.0,
        write: Write::Back,
        allocate_on_write: true,
        inclusive: false,
        replacement: Replacement::Lru,
        prefetch: None,
    }
}

const PAGE: u64 = 4096;

/// Two pages of one color thrash a direct-mapped cache: all conflict. With two colors: none.
#[test]
fn two_pages_of_one_color_conflict() {
    let machine = machine(1, 2 * PAGE / 64);
    let mut program = Program::new(1);
    for _ in 0..10 {
        program.read(0, 0);
        program.read(0, 2 * PAGE);
    }
    // Page coloring: pages 0 and 2 are both of color 0.
    let same = both::run(&machine, &program, "page-coloring");
    same.cache("L1", "misses", 20);
    same.cache("L1", "cold", 2);
    same.cache("L1", "conflict", 18);
    // Bin hopping: the second page touched has the second color.
    let different = both::run(&machine, &program, "bin-hopping");
    different.cache("L1", "misses", 2);
    different.cache("L1", "cold", 2);
    different.cache("L1", "conflict", 0);
}

/// Looping over one line more than an LRU cache holds misses every time, for lack of capacity.
#[test]
fn a_loop_just_larger_than_the_cache_misses_for_capacity() {
    let mut machine = machine(1, 8);
    machine.caches[0].ways = 8;
    let mut program = Program::new(1);
    for _ in 0..5 {
        for line in 0..9 {
            program.read(0, line * 64);
        }
    }
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.cache("L1", "cold", 9);
    outcome.cache("L1", "capacity", 36);
    outcome.cache("L1", "hits", 0);
}

/// A counter that two cpus add to in turn: each finds the other's write.
#[test]
fn a_counter_that_goes_to_and_fro_is_true_sharing() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    for _ in 0..10 {
        program.push(0, Op::Modify, 0, 4);
        program.push(1, Op::Modify, 0, 4);
    }
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache("L1", "misses", 20);
    outcome.cache("L1", "cold", 2);
    outcome.cache("L1", "true_sharing", 18);
    outcome.cache("L1", "false_sharing", 0);
    // One miss is served by memory, the others by the other cpu's dirty line.
    outcome.time("local_stall", 100);
    outcome.time("remote_stall", 19 * 500);
}

/// Two counters of two cpus in one line: neither needs the other's writes.
#[test]
fn two_counters_in_one_line_are_false_sharing() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    for _ in 0..10 {
        program.push(0, Op::Modify, 0, 4);
        program.push(1, Op::Modify, 8, 4);
    }
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache("L1", "cold", 2);
    outcome.cache("L1", "false_sharing", 18);
    outcome.cache("L1", "true_sharing", 0);
}

/// The class is known only later: the miss is on an unshared word, but before the line is lost again a
/// word that the other wrote is read (Dubois93, the essential miss).
#[test]
fn a_sharing_miss_is_true_if_a_later_access_needs_the_new_word() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    program.read(0, 0);
    program.write(1, 32); // takes the line from cpu 0
    program.read(0, 0); // misses; on its face false sharing
    program.read(0, 32); // hits; needs what cpu 1 wrote
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache("L1", "misses", 3);
    outcome.cache("L1", "true_sharing", 1);
    outcome.cache("L1", "false_sharing", 0);
}

/// Two cpus under one cache write the same line in turn: each gets it from the other, in the time of a transfer.
#[test]
fn a_modified_line_goes_from_core_to_core_in_the_time_of_a_transfer() {
    let mut machine = machine(2, 8);
    let mut shared = cache("L2", 2, 64 * 64, 4);
    (shared.cpus_per_instance, shared.hit_ns) = (2, 10.0);
    machine.caches.push(shared);
    let mut program = Program::new(2);
    for _ in 0..10 {
        program.push(0, Op::Modify, 0, 4);
        program.push(1, Op::Modify, 8, 4);
    }
    // It is found in the shared cache, and the other core is told.
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.time("cache_stall", 19 * (10 + 10));
    machine.caches[1].transfer_ns = 27.0;
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.time("cache_stall", 19 * 27);
    // Once it is clean, others get it in the time of a hit.
    let mut reads = Program::new(2);
    reads.write(0, 0);
    reads.read(1, 0);
    for line in 1..9 {
        reads.read(1, line * 64);
    }
    reads.read(1, 0);
    let outcome = both::run_recorded(&machine, &reads, "page-coloring");
    outcome.time("cache_stall", 27 + 10);
}

/// A line that others drive out before a piece is lost before that piece reads the word which another cpu wrote.
#[test]
fn a_word_is_read_after_others_drove_its_line_out() {
    let sharing = |others_gbps| {
        let mut machine = machine(2, 1);
        let l1 = &mut machine.caches[0];
        (l1.bytes, l1.ways, l1.line_bytes) = (48, 3, 16);
        let mut l2 = cache("L2", 2, 32, 1);
        (l2.line_bytes, l2.others_gbps) = (32, others_gbps);
        machine.caches.push(l2);
        let mut program = Program::new(2);
        program.read(1, 0);
        program.event(0, Event::Work { instructions: 150 });
        program.write(0, 16);
        program.event(1, Event::Work { instructions: 400 });
        // Two pieces: the second one reads the written bytes, 100 ns after the first one.
        program.push(1, Op::Read, 14, 4);
        let outcome = both::run(&machine, &program, "page-coloring");
        let count = |name: &str| outcome.value()["caches"][1][name].as_u64().unwrap();
        (count("true_sharing"), count("false_sharing"))
    };
    assert_eq!(sharing(0.0), (1, 0));
    assert_eq!(sharing(2.0), (0, 1));
}

/// A shared cache of four ways keeps a line where others hardly come, and loses it where they bring many.
#[test]
fn lines_of_others_drive_out_a_line_that_is_used_too_seldom() {
    let mut machine = machine(1, 1);
    machine.caches.push(cache("L2", 2, 4 * 64, 4));
    let mut program = Program::new(1);
    for address in [0, 64, 0] {
        program.read(0, address);
    }
    // A line from memory takes 100 ns, so that 100 ns pass from the first line's use to the second's, and again to the last.
    for (apart_ns, misses, capacity) in [(0.0, 2, 0), (100_000.0, 2, 0), (5.0, 3, 1)] {
        machine.caches[1].others_gbps = if apart_ns > 0.0 { 64.0 / apart_ns } else { 0.0 };
        let outcome = both::run(&machine, &program, "page-coloring");
        outcome.cache("L2", "misses", misses);
        outcome.cache("L2", "cold", 2);
        outcome.cache("L2", "capacity", capacity);
    }
}

/// MESI: a line that one cpu alone has read is written without anyone hearing of it; one that two have read is not.
#[test]
fn a_write_to_a_shared_line_upgrades_and_to_an_exclusive_one_does_not() {
    let machine = machine(2, 8);
    let mut exclusive = Program::new(2);
    exclusive.read(0, 0);
    exclusive.write(0, 0);
    let outcome = both::run_recorded(&machine, &exclusive, "page-coloring");
    outcome.cache("L1", "upgrades", 0);

    let mut shared = Program::new(2);
    shared.read(0, 0);
    shared.read(1, 0);
    shared.write(0, 0);
    let outcome = both::run_recorded(&machine, &shared, "page-coloring");
    outcome.cache("L1", "upgrades", 1);
    outcome.cache("L1", "misses", 2);
    outcome.time("local_stall", 300);
}

/// Belady's example in reverse: LRU has the stack property, so more ways never miss more.
#[test]
fn lru_in_a_set_of_three() {
    let mut machine = machine(1, 3);
    machine.caches[0].ways = 3;
    let mut program = Program::new(1);
    for line in [1u64, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5] {
        program.read(0, line * 64);
    }
    // Silberschatz: LRU, three frames, this string: 10 faults.
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 10);
    machine.caches[0].bytes = 4 * 64;
    machine.caches[0].ways = 4;
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 8);
}

/// Tree-PLRU of four ways: after 0 1 2 3 and a hit on 0, the tree points to way 2 (true LRU would be way 1).
#[test]
fn plru_forgets_what_lru_remembers() {
    let mut machine = machine(1, 4);
    machine.caches[0].ways = 4;
    let mut program = Program::new(1);
    for line in [0u64, 1, 2, 3, 0, 4, 1, 2] {
        program.read(0, line * 64);
    }
    // LRU: 4 takes the place of 1, then 1 misses and takes that of 2, which misses.
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 7);
    machine.caches[0].replacement = Replacement::Plru;
    // PLRU: 4 takes the place of 2; 1 hits; 2 misses.
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 6);
}

/// A write-back cache writes a line back once, a write-through one passes every write on.
#[test]
fn write_back_and_write_through() {
    let mut machine = machine(1, 2);
    machine.caches.push(cache("L2", 2, 64 * 64, 4));
    let mut program = Program::new(1);
    for _ in 0..5 {
        program.write(0, 0);
    }
    program.read(0, 2 * 64); // evicts the written line from L1
    let back = both::run(&machine, &program, "page-coloring");
    back.cache("L1", "writebacks", 1);
    back.cache("L2", "accesses", 2);
    machine.caches[0].write = Write::Through;
    let through = both::run(&machine, &program, "page-coloring");
    through.cache("L1", "writebacks", 0);
    through.cache("L1", "hits", 4);
    through.cache("L2", "accesses", 6);
    through.cache("L2", "hits", 4);
}

/// A write miss does not fetch the line into a cache that does not allocate on writes.
#[test]
fn no_write_allocate() {
    let mut machine = machine(1, 2);
    machine.caches[0].allocate_on_write = false;
    let mut program = Program::new(1);
    program.write(0, 0);
    program.write(0, 0);
    program.read(0, 0);
    program.write(0, 0);
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.cache("L1", "misses", 3);
    outcome.cache("L1", "hits", 1);
}

/// The read of a modify is served where it is found; the first cache passes on only a write, which does not fetch the
/// line into a cache that does not allocate on writes.
#[test]
fn the_write_of_a_modify_is_passed_on_as_a_write() {
    let mut machine = machine(1, 2);
    machine.caches[0].write = Write::Through;
    machine.caches.push(cache("L2", 2, 64, 1));
    machine.caches[1].allocate_on_write = false;
    let mut program = Program::new(1);
    let (a, b) = (0, 64);
    program.push(0, Op::Modify, a, 8); // misses both; the read fills both, the write makes L2's line dirty
    program.read(0, b); // misses both, and takes the only line of L2
    program.push(0, Op::Modify, a, 8); // hits L1; the write misses L2 and goes on to memory
    program.push(0, Op::Modify, b, 8); // hits L1; the write finds b where it was
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.cache("L1", "accesses", 4);
    outcome.cache("L1", "hits", 2);
    outcome.cache("L2", "accesses", 4);
    outcome.cache("L2", "misses", 3);
    outcome.cache("L2", "hits", 1);
    outcome.cache("L2", "writebacks", 1);
    // Three of them came to memory; no cpu waited for the last.
    outcome.memory("local", 3);
    outcome.time("local_stall", 200);
}

/// A line that an inclusive cache evicts leaves the caches above it, used or not.
#[test]
fn inclusion_takes_hot_lines_out_of_the_first_level() {
    let mut machine = machine(1, 4);
    machine.caches[0].ways = 4;
    machine.caches.push(cache("L2", 2, 2 * 64, 2));
    let mut program = Program::new(1);
    for line in 1..=3 {
        program.read(0, 0); // hot: always a hit in L1, so L2 never hears of it
        program.read(0, line * 64);
    }
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 4);
    machine.caches[1].inclusive = true;
    both::run(&machine, &program, "page-coloring").cache("L1", "misses", 5);
}

/// 16 entries of which 8 are wired hold 8 pages: a walk over 9 misses each time, over 8 only once each.
#[test]
fn a_tlb_with_wired_entries() {
    let mut machine = machine(1, 8);
    machine.tlb = Some(Tlb {
        entries: 16,
        ways: 16,
        wired: 8,
        refill_ns: 50.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    });
    let walk = |pages: u64| {
        let mut program = Program::new(1);
        for _ in 0..4 {
            for page in 0..pages {
                program.read(0, page * PAGE);
            }
        }
        program
    };
    let fits = both::run(&machine, &walk(8), "page-coloring");
    fits.tlb(32, 8);
    fits.time("tlb_stall", 8 * 50);
    both::run(&machine, &walk(9), "page-coloring").tlb(36, 36);
}

/// First touch puts a page where its first user is; round robin does not ask.
#[test]
fn first_touch_is_local_and_round_robin_is_not() {
    let mut machine = machine(2, 1);
    machine.memory.nodes = 2;
    let mut program = Program::new(2);
    for page in 0..4 {
        for thread in 0..2u32 {
            program.read(thread, (u64::from(thread) * 100 + page) * PAGE);
        }
    }
    let first_touch = both::run(&machine, &program, "first-touch");
    first_touch.memory("local", 8);
    first_touch.memory("remote", 0);
    first_touch.time("local_stall", 800);
    // The pages are touched in the order 0 1 0 1 ..., so that start=1 puts each on the wrong node.
    let sets = ["round-robin.start=1".to_string()];
    let setup = Setup {
        sets: &sets,
        recorded: true,
        ..Setup::default()
    };
    let round_robin = both::run_with(&machine, &program, "round-robin", &setup);
    round_robin.memory("remote", 8);
    round_robin.time("remote_stall", 2400);
}

/// Two cpus ask at once for 64 bytes from a memory that gives 1 GB/s: the second waits 64 ns.
#[test]
fn a_busy_memory_makes_the_second_wait() {
    let mut machine = machine(2, 8);
    machine.memory.bandwidth_gbps = 1.0;
    let mut program = Program::new(2);
    program.read(0, 0);
    program.read(1, PAGE);
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.time("local_stall", 100 + 164);
    outcome.time("wall", 1 + 164);
    outcome.time("imbalance", 64);
}

/// The first thread at a barrier waits for the last; that is imbalance, not stall.
#[test]
fn a_barrier_makes_the_early_one_wait() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    program.event(0, Event::Work { instructions: 100 });
    program.event(1, Event::Work { instructions: 700 });
    program.barrier();
    program.event(0, Event::Work { instructions: 50 });
    program.event(1, Event::Work { instructions: 20 });
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.time("busy", 870);
    outcome.time("imbalance", 600 + 30);
    outcome.time("wall", 750);
    outcome.time("total", 1500);
}

/// A lock is had by one at a time, in the order of the clocks.
#[test]
fn a_lock_serializes() {
    let machine = machine(3, 8);
    let mut program = Program::new(3);
    for thread in 0..3 {
        program.event(
            thread,
            Event::Work {
                instructions: 10 * u64::from(thread),
            },
        );
        program.event(thread, Event::Lock { object: 1 });
        program.event(thread, Event::Work { instructions: 100 });
        program.event(thread, Event::Unlock { object: 1 });
    }
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.time("busy", 330);
    outcome.time("wall", 300);
    // The second waits from 10 to 100, the third from 20 to 200, and then they wait for the end.
    outcome.time("synchronization", 90 + 180);
    outcome.time("imbalance", 200 + 100);
}

/// A thread starts with its spawn; a thread that joins it goes on at its end.
#[test]
fn spawn_and_join() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    program.event(0, Event::Work { instructions: 40 });
    program.event(0, Event::Spawn { child: 1 });
    program.event(0, Event::Join { child: 1 });
    program.event(1, Event::Work { instructions: 60 });
    program.event(0, Event::Work { instructions: 5 });
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.time("busy", 105);
    outcome.time("wall", 105);
    outcome.time("imbalance", 60 + 40 + 5);
}

/// A trace that ends before a barrier is met is still simulated to its end.
#[test]
fn a_wait_that_is_never_met_does_not_stop_the_run() {
    let machine = machine(2, 8);
    let mut program = Program::new(2);
    program.event(0, Event::Barrier { object: 1, threads: 2 });
    program.event(0, Event::Wait { ticket: 9 });
    program.read(0, 0);
    program.event(1, Event::Lock { object: 5 });
    program.event(1, Event::Join { child: 1 });
    program.read(1, 64);
    let outcome = both::run(&machine, &program, "page-coloring");
    outcome.cache("L1", "misses", 2);
}
