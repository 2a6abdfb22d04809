//! Obstacles to a move: full memory, limits of control groups, the kernel's own balancing; and programs that change
//! while their pages are moved.

use std::time::Duration;

use live::homes::{Config, Whom, prepare};
use sys::{Root, move_pages, tasks};

use crate::child::{PAGE, Program};
use crate::group::Group;
use crate::{BALANCING, Machine, PAGES, config, failed, mapped_on_node, on_node, told, until};

#[test]
fn a_node_that_is_full_takes_no_more_and_nothing_is_lost() {
    const SPARE: usize = 1000;
    const MORE: usize = 8000;
    let Some(machine) = Machine::new() else { return };
    let free = |node| sys::nodes::free_bytes(&Root::default(), node).unwrap() / PAGE as u64;
    let room = free(machine.nodes[1]);
    if room > 1 << 18 || free(machine.nodes[0]) < 2 * MORE as u64 {
        return harness::not_here("the nodes are too large to be filled, or too small for the test");
    }
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], MORE);
    let mut other = Program::start();
    other.say(&format!("fill {} {SPARE}", machine.nodes[1]));
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, MORE);
    for _ in 0..20 {
        host.interval(&mut || false).unwrap();
    }
    let report = host.report().unwrap();
    assert!(failed(&report, "ENOMEM") > 0, "{report:?}");
    // Every page is somewhere, and the program goes on.
    let there = |node| on_node(&program, start, MORE, node);
    assert_eq!(there(machine.nodes[0]) + there(machine.nodes[1]), MORE);
    program.use_on(machine.cpus[0]);
}

#[test]
fn nothing_is_put_where_a_cpuset_forbids_it() {
    let Some(machine) = Machine::new() else { return };
    let Some(group) = Group::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    group.write("cpuset.mems", &machine.nodes[0].to_string());
    group.write("cgroup.procs", &program.id().to_string());
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, PAGES);
    for _ in 0..3 {
        host.interval(&mut || false).unwrap();
    }
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    // Once it is allowed, they come.
    group.write("cpuset.mems", &format!("{},{}", machine.nodes[0], machine.nodes[1]));
    host = until(host, 20, || on_node(&program, start, PAGES, machine.nodes[1]) == PAGES);
    let report = host.report().unwrap();
    assert!(failed(&report, "cpuset") >= PAGES as u64, "{report:?}");
    program.kill();
}

#[test]
fn a_limit_of_memory_is_kept_while_pages_move_and_nobody_is_ended() {
    const MORE: usize = 4000;
    let Some(machine) = Machine::new() else { return };
    let Some(group) = Group::new() else { return };
    let mut program = Program::start();
    group.write("cgroup.procs", &program.id().to_string());
    let start = program.map(machine.cpus[0], MORE);
    // The limit is little more than the program's memory, far less than twice as much.
    let used = group.number("memory.current", "");
    let limit = used + 200 * PAGE as u64;
    group.write("memory.max", &limit.to_string());
    program.use_on(machine.cpus[1]);
    let mut host = told(&program, start, MORE);
    host = until(host, 20, || on_node(&program, start, MORE, machine.nodes[1]) == MORE);
    assert_eq!(mapped_on_node(&program, start, machine.nodes[1]), MORE as u64);
    let report = host.report().unwrap();
    assert_eq!((report.moves.moved, &report.moves.failed[..]), (MORE as u64, &[][..]));
    assert!(group.number("memory.current", "") <= limit);
    assert_eq!(group.number("memory.events", "oom_kill"), 0);
    program.kill();
}

#[test]
fn a_limit_below_what_a_program_has_leaves_every_page_somewhere_and_is_no_end_of_the_host() {
    let Some(machine) = Machine::new() else { return };
    let Some(group) = Group::new() else { return };
    let mut program = Program::start();
    group.write("cgroup.procs", &program.id().to_string());
    let start = program.map(machine.cpus[0], PAGES);
    let mut host = told(&program, start, PAGES);
    assert!(host.interval(&mut || false).unwrap());
    program.use_on(machine.cpus[1]);
    // The kernel ends it for that, in the middle of everything: there is no swap.
    let _ = group.try_write("memory.max", &(32 * PAGE).to_string());
    host.run(|| false).unwrap();
    let report = host.report().unwrap();
    assert_eq!(report.processes[0].ended.as_deref(), Some("it has ended"), "{report:?}");
    assert!(group.number("memory.events", "oom_kill") > 0);
}

#[test]
fn the_kernels_own_balancing_is_told_of() {
    let Some(_machine) = Machine::new() else { return };
    if !std::path::Path::new(BALANCING).exists() {
        return harness::not_here("the kernel has no balancing of its own");
    }
    // It is off, and as it was again when the machine is dropped.
    for (mode, on) in [("1", true), ("0", false)] {
        std::fs::write(BALANCING, mode).unwrap();
        let mut program = Program::start();
        let short = Config {
            duration: Some(Duration::from_millis(1)),
            ..config()
        };
        let prepared = match prepare(short, None) {
            Ok(prepared) => prepared,
            Err(error) => return harness::not_here(error),
        };
        let mut host = prepared.watch(Whom::Processes(vec![program.id()]), None).unwrap();
        host.run(|| false).unwrap();
        let report = host.report().unwrap();
        assert_eq!(report.kernel_balancing.map(|balancing| balancing.among_nodes), Some(on));
        let noted = report.notes.iter().any(|note| note.contains("kernel.numa_balancing"));
        assert_eq!(noted, on, "{:?}", report.notes);
        // Each source that is not used says why.
        assert!(
            report.other_sources.len() + 1 == live::homes::sources::NAMES.len(),
            "{report:?}"
        );
        assert!(report.other_sources.iter().all(|other| !other.why.is_empty()));
        program.kill();
    }
}

#[test]
fn threads_that_are_moved_by_others_are_followed() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.use_on(machine.cpus[0]);
    let mut host = told(&program, start, PAGES);
    for _ in 0..3 {
        host.interval(&mut || false).unwrap();
    }
    assert_eq!(on_node(&program, start, PAGES, machine.nodes[0]), PAGES);
    for (cpu, node) in [(1, 1), (0, 0)] {
        // All of its threads, as a scheduler would.
        for task in tasks::of(&Root::default(), program.id()).unwrap() {
            crate::child::pin(task.number, machine.cpus[cpu]);
        }
        host = until(host, 20, || {
            on_node(&program, start, PAGES, machine.nodes[node]) == PAGES
        });
    }
    let report = host.report().unwrap();
    assert_eq!(
        (report.moves.moved, report.samples.shared > 0),
        (2 * PAGES as u64, true),
        "{report:?}"
    );
}

#[test]
fn programs_that_map_unmap_fork_and_end_in_the_middle_keep_what_they_wrote() {
    let Some(machine) = Machine::new() else { return };
    let mut program = Program::start();
    let start = program.map(machine.cpus[0], PAGES);
    program.say(&format!("churn {}", machine.cpus[1]));
    let mut host = told(&program, start, PAGES);
    // Pages go there and back while others of the same process come and go.
    for turn in 0..6 {
        program.use_on(machine.cpus[(turn + 1) % 2]);
        for _ in 0..2 {
            assert!(host.interval(&mut || false).unwrap());
        }
    }
    let turns: u64 = program.say("churned").parse().unwrap();
    assert!(turns > 10, "{turns}");
    let there = |node| on_node(&program, start, PAGES, node);
    assert_eq!(there(machine.nodes[0]) + there(machine.nodes[1]), PAGES);
    // It ends between the policy's word and the move, or within it.
    program.kill();
    host.run(|| false).unwrap();
    let report = host.report().unwrap();
    assert_eq!(report.processes[0].ended.as_deref(), Some("it has ended"));
    assert!(move_pages::nodes_of(Some(program.id()), &[start]).is_err());
}
