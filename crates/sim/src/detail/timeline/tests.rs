//! Intervals, blocks and rows that are put together when there are too many.

use super::*;

const LONG: Units = 1 << SHORTEST;

fn place(now: Units, page: u32) -> Place {
    Place {
        now,
        thread: page % 3,
        space: page % 2,
        page,
        address: u64::from(page) << 12,
        physical: u64::from(page) << 12,
    }
}

#[test]
fn intervals_and_blocks_grow_and_lose_nothing() {
    let mut timeline = Timeline::new(12, 128);
    for page in 0..5000u32 {
        let at = place(7 * LONG + u64::from(page) * LONG, page * 3);
        timeline.missed(at, || page % 40);
        timeline.waited(at, page % 40, u64::from(page));
    }
    let all = (0..5000u64).sum::<u64>();
    let total = |rows: &[Option<Box<Intervals>>]| rows.iter().flatten().flat_map(|row| row.iter()).sum::<u64>();
    assert_eq!((total(&timeline.structures), total(&timeline.threads)), (all, all));
    assert_eq!((total(&timeline.by_color), timeline.by_color.len()), (all, 64));
    let of_blocks = |of: fn(&Block) -> u64| timeline.blocks.iter().map(of).sum::<u64>();
    assert_eq!(of_blocks(|block| block.stall.iter().sum()), all);
    assert_eq!(of_blocks(|block| block.threads.iter().sum()), all);
    assert_eq!(of_blocks(|block| block.misses.iter().sum()), 5000);
    // 5000 intervals fit into 128 of 64 each, 15000 pages into 192 blocks of 128 pages each in two spaces.
    assert_eq!((timeline.length, timeline.pages), (SHORTEST + 6, 8));
    assert!(timeline.blocks.len() <= BLOCKS);
    let last = timeline.structures[39].as_ref().unwrap();
    assert_eq!((last[4959 / 64], last[4999 / 64]), (4959, 4999));
    assert_eq!(last[4999 / 64 + 1..], [0; INTERVALS - 4999 / 64 - 1]);
}

#[test]
fn more_processes_than_blocks_have_one_together() {
    let mut timeline = Timeline::new(12, 128);
    for space in 0..500u32 {
        for page in [0, 1, 0x7_ffff] {
            let at = Place {
                space,
                page: space * 3 + page % 3,
                address: u64::from(page) << 12,
                ..place(LONG, 0)
            };
            timeline.waited(at, space, 1);
        }
    }
    assert_eq!(timeline.blocks.len(), BLOCKS + 1);
    let all: u64 = timeline.blocks.iter().flat_map(|block| block.stall.iter()).sum();
    assert_eq!(all, 1500);
    let (names, structures) = (Names::default(), Structures::new(&Names::default().tables));
    let report = timeline.report(&structures, &names);
    assert_eq!(
        report
            .blocks
            .last()
            .map(|block| (block.process, block.address, block.bytes)),
        Some((u32::MAX, 0, u64::MAX))
    );
}

#[test]
fn threads_that_waited_least_have_one_row() {
    let mut timeline = Timeline::new(12, 128);
    for thread in 0..100u32 {
        let at = Place {
            thread,
            ..place(LONG, 7)
        };
        timeline.waited(at, 0, u64::from(thread) << 20);
    }
    let report = timeline.report(&Structures::new(&Names::default().tables), &Names::default());
    assert_eq!(report.threads.len(), THREADS + 1);
    let sums: Vec<u64> = report.threads.iter().map(|row| row.stall_ns.iter().sum()).collect();
    assert_eq!((sums[0], sums[THREADS]), (37, (0..37).sum()));
    assert_eq!(report.blocks[0].threads_stall_ns, sums);
}

#[test]
fn a_cpu_behind_the_first_is_in_the_first_interval() {
    let mut timeline = Timeline::new(12, 128);
    timeline.missed(place(10 * LONG, 0), || 7);
    timeline.missed(place(2 * LONG, 0), || 7);
    timeline.missed(place(12 * LONG, 0), || 7);
    assert_eq!(timeline.blocks[0].tenant.0, 7);
    assert_eq!(timeline.blocks[0].misses[..3], [2, 0, 1]);
}

#[test]
fn phases_and_moved_pages_have_their_times() {
    let mut timeline = Timeline::new(12, 1);
    timeline.entered(LONG, "build");
    timeline.waited(place(2 * LONG, 0), 0, 1 << 20);
    timeline.entered(3 * LONG, "probe");
    timeline.entered(4 * LONG, "probe");
    timeline.moved(5 * LONG);
    timeline.moved(5 * LONG);
    let report = timeline.report(&Structures::new(&Names::default().tables), &Names::default());
    let phases: Vec<(&str, u64)> = report.phases.iter().map(|of| (&*of.name, of.begin_ns)).collect();
    assert_eq!(phases, [("build", 0), ("probe", 1024)]);
    assert_eq!(report.moved_pages, [0, 0, 0, 2]);
    assert!(report.colors.is_empty(), "one color decides nothing");
}
