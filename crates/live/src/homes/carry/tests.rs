//! Moves and their outcomes on a made-up machine.

use sys::memory::PAGE;

use super::super::fake::{Fake, Process};
use super::*;

const FOREVER: Duration = Duration::MAX;
const PID: u32 = 9;

fn machine(process: Process) -> Fake {
    Fake {
        processes: [(PID, process)].into(),
        ..Fake::default()
    }
}

fn to_node(node: u32, pages: std::ops::Range<usize>) -> Vec<Wanted> {
    let wanted = |page| Wanted {
        unit: Unit {
            address: page * PAGE,
            pages: 1,
            shared: false,
        },
        node,
    };
    pages.map(wanted).collect()
}

fn left(became: &Became, why: Left) -> Vec<usize> {
    let mut pages: Vec<usize> = became
        .iter()
        .filter(|(_, left)| *left == Err(why))
        .map(|(wanted, _)| wanted.unit.address / PAGE)
        .collect();
    pages.sort_unstable();
    pages
}

fn moved(became: &Became) -> usize {
    became.iter().filter(|(_, left)| left.is_ok()).count()
}

#[test]
fn pages_are_moved_in_batches_and_counted_once() {
    let mut linux = machine(Process::on(0, 8000, &[0]));
    let became = carry_out(&mut linux, PID, to_node(1, 0..8000), FOREVER);
    assert_eq!((became.len(), moved(&became)), (8000, 8000));
    assert_eq!(linux.processes[&PID].on_node(1), 8000);
    assert_eq!(
        linux.calls.iter().map(Vec::len).collect::<Vec<_>>(),
        [2048, 2048, 2048, 1856]
    );
}

#[test]
fn four_huge_pages_are_a_batch() {
    let mut linux = machine(Process::on(0, 4096, &[0]));
    let mut wanted = to_node(1, 0..6);
    wanted[..5].iter_mut().for_each(|wanted| wanted.unit.pages = 512);
    carry_out(&mut linux, PID, wanted, FOREVER);
    let pages = |pages: std::ops::Range<usize>| pages.map(|page| page * PAGE).collect::<Vec<_>>();
    assert_eq!(linux.calls, [pages(0..4), pages(4..6)]);
}

#[test]
fn one_page_that_is_held_keeps_no_other_from_moving() {
    let mut process = Process::on(0, 200, &[0]);
    process.held = [3 * PAGE, 77 * PAGE].into();
    let mut linux = machine(process);
    let became = carry_out(&mut linux, PID, to_node(1, 0..200), FOREVER);
    assert_eq!(became.len(), 200);
    assert_eq!(left(&became, Left::Busy), [3, 77]);
    assert_eq!(linux.processes[&PID].on_node(1), 198);
}

#[test]
fn each_page_keeps_its_own_error() {
    let mut process = Process::on(0, 8, &[0]);
    process.pages.remove(&(2 * PAGE));
    process.shared = [5 * PAGE].into();
    let mut linux = machine(process);
    let became = carry_out(&mut linux, PID, to_node(1, 0..8), FOREVER);
    assert_eq!(left(&became, Left::Absent), [2]);
    assert_eq!(left(&became, Left::Shared), [5]);
    assert_eq!(moved(&became), 6);
}

#[test]
fn nothing_is_asked_for_that_a_process_may_not_have() {
    let mut process = Process::on(0, 4, &[0]);
    process.allowed = vec![0, 2];
    let mut linux = machine(process);
    let mut wanted = to_node(1, 0..2);
    wanted.extend(to_node(2, 2..4));
    let became = carry_out(&mut linux, PID, wanted, FOREVER);
    assert_eq!(left(&became, Left::NotAllowed), [0, 1]);
    assert_eq!(linux.calls, [vec![2 * PAGE, 3 * PAGE]]);
}

#[test]
fn memory_whose_nodes_the_program_chose_is_its_own_affair() {
    let mut process = Process::on(0, 6, &[0]);
    let chosen = |page: usize, nodes: Option<Vec<u32>>| Chosen {
        start: page * PAGE,
        nodes,
    };
    process.chosen = vec![chosen(1, None), chosen(2, Some(vec![0, 1])), chosen(4, None)];
    let mut linux = machine(process);
    let became = carry_out(&mut linux, PID, to_node(1, 0..6), FOREVER);
    assert_eq!(left(&became, Left::Chosen), [2, 3]);
    assert_eq!(moved(&became), 4);
}

#[test]
fn a_process_that_ends_in_the_middle_leaves_pages_behind_and_no_more() {
    let mut linux = machine(Process::on(0, 8000, &[0]));
    linux.ends = Some((PID, 2));
    let became = carry_out(&mut linux, PID, to_node(1, 0..8000), FOREVER);
    assert_eq!((became.len(), moved(&became)), (8000, 4096));
    assert_eq!(left(&became, Left::Gone).len(), 3904);
    let became = carry_out(&mut linux, PID, to_node(1, 0..3), FOREVER);
    assert_eq!(left(&became, Left::Gone), [0, 1, 2]);
}

#[test]
fn what_the_kernel_refuses_has_its_reason() {
    for (number, why) in [
        (EPERM, Left::Refused),
        (EACCES, Left::NotAllowed),
        (ENOMEM, Left::NoMemory),
        (19, Left::Other(19)),
    ] {
        let mut process = Process::on(0, 400, &[0]);
        process.fails = Some(number);
        let mut linux = machine(process);
        let became = carry_out(&mut linux, PID, to_node(1, 0..400), FOREVER);
        assert_eq!(left(&became, why), (0..400).collect::<Vec<_>>(), "{number}");
        assert_eq!(linux.calls.len(), 1);
        assert!(!why.why().is_empty());
    }
}

#[test]
fn what_there_is_no_time_for_is_late() {
    let mut linux = machine(Process::on(0, 8000, &[0]));
    linux.call_takes = Duration::from_millis(2);
    let became = carry_out(&mut linux, PID, to_node(1, 0..8000), Duration::from_millis(3));
    assert_eq!((moved(&became), left(&became, Left::Late).len()), (4096, 3904));
    // However late it is, something is moved.
    let became = carry_out(&mut linux, PID, to_node(0, 0..8000), Duration::ZERO);
    assert_eq!((moved(&became), left(&became, Left::Late).len()), (2048, 5952));
}
