//! Threads that wait for earlier ones.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use proptest::prelude::*;
use threads::{Error, Keep, Scheduler, Shape, ThreadId, Tour};

#[test]
fn a_thread_waits_for_those_that_it_names() {
    let mut scheduler = Scheduler::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    let first = scheduler.fork(&[0], "waits").unwrap();
    scheduler.fork(&[1], "same bin").unwrap();
    let second = scheduler.fork(&[20], "goes first").unwrap();
    scheduler.fork_after(&[20], "after both", &[first, second]).unwrap();
    scheduler.depend(first, second).unwrap();
    for _ in 0..2 {
        let mut order = Vec::new();
        let report = scheduler.run(Keep::Yes, |&thread, _| order.push(thread)).unwrap();
        assert_eq!(order, ["same bin", "goes first", "waits", "after both"]);
        assert_eq!(report.turns, 2);
    }
}

#[test]
fn a_cycle_is_refused_and_named() {
    let mut scheduler = Scheduler::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    let ids: Vec<ThreadId> = (0..5)
        .map(|thread| scheduler.fork(&[thread * 10], thread).unwrap())
        .collect();
    for pair in ids.windows(2) {
        scheduler.depend(pair[0], pair[1]).unwrap();
    }
    let refused = scheduler.depend(ids[3], ids[1]).unwrap_err();
    assert_eq!(refused, Error::Cycle(vec![ids[3], ids[2], ids[1]]));
    let (a, b, c) = (ids[3], ids[2], ids[1]);
    assert_eq!(
        refused.to_string(),
        format!("these threads would wait for each other: {a} before {b} before {c} before {a}")
    );
    assert_eq!(scheduler.depend(ids[2], ids[2]), Err(Error::Cycle(vec![ids[2]])));
    // What was refused changes nothing.
    let mut order = Vec::new();
    scheduler.run(Keep::No, |&thread, _| order.push(thread)).unwrap();
    assert_eq!(order, [4, 3, 2, 1, 0]);
}

#[test]
fn names_of_threads_that_have_run_need_not_be_waited_for() {
    let mut scheduler = Scheduler::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    let old = scheduler.fork(&[0], 0).unwrap();
    scheduler.run(Keep::No, |_, _| ()).unwrap();
    let new = scheduler.fork_after(&[0], 1, &[old]).unwrap();
    assert_ne!(old, new);
    assert_eq!(scheduler.depend(old, new), Err(Error::HasRun(old)));
    assert_eq!(ThreadId::from_bits(new.to_bits()), new);
    let never = ThreadId::from_bits(new.to_bits() + 1);
    assert_eq!(scheduler.depend(new, never), Err(Error::Unknown(never)));
    assert_eq!(scheduler.fork_after(&[0], 2, &[new, never]), Err(Error::Unknown(never)));
    assert_eq!(scheduler.len(), 1);
    assert_eq!(scheduler.run(Keep::No, |_, _| ()).unwrap().threads, 1);
}

/// A wavefront over a grid of tiles, on one to three workers: each tile finds its neighbours done.
#[test]
fn a_wavefront_runs_in_order_on_any_number_of_workers() {
    const SIDE: usize = if cfg!(miri) { 8 } else { 40 };
    for workers in 1..=3 {
        let mut scheduler = Scheduler::new(Shape::new(&[4, 4]).unwrap(), Tour::Hilbert);
        let mut ids: Vec<ThreadId> = Vec::new();
        for tile in 0..SIDE * SIDE {
            let (row, column) = (tile / SIDE, tile % SIDE);
            let mut earlier = Vec::new();
            if row > 0 {
                earlier.push(ids[tile - SIDE]);
            }
            if column > 0 {
                earlier.push(ids[tile - 1]);
            }
            ids.push(
                scheduler
                    .fork_after(&[row as u64, column as u64], tile, &earlier)
                    .unwrap(),
            );
        }
        for keep in [Keep::Yes, Keep::No] {
            let clock = AtomicU64::new(1);
            let done: Vec<AtomicU64> = (0..SIDE * SIDE).map(|_| AtomicU64::new(0)).collect();
            let workers = NonZeroUsize::new(workers).unwrap();
            let report = scheduler
                .run_on(workers, keep, |&tile, _| {
                    assert!(tile < SIDE || done[tile - SIDE].load(SeqCst) > 0);
                    assert!(tile % SIDE == 0 || done[tile - 1].load(SeqCst) > 0);
                    assert_eq!(done[tile].swap(clock.fetch_add(1, SeqCst), SeqCst), 0);
                })
                .unwrap();
            assert_eq!(report.threads as usize, SIDE * SIDE);
        }
    }
}

#[test]
fn a_panic_leaves_those_that_wait_pending() {
    let mut scheduler = Scheduler::new(Shape::new(&[1]).unwrap(), Tour::FirstFork);
    let last = scheduler.fork(&[0], 3).unwrap();
    let middle = scheduler.fork(&[1], 2).unwrap();
    let first = scheduler.fork(&[2], 1).unwrap();
    scheduler.depend(last, middle).unwrap();
    scheduler.depend(middle, first).unwrap();
    let mut order = Vec::new();
    for expected in [vec![1, 2], vec![1, 2, 3]] {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            scheduler.run(Keep::No, |&thread, _| {
                order.push(thread);
                assert!(thread != 2);
            })
        }));
        assert_eq!(order, expected);
        assert_eq!(outcome.is_err(), expected.len() == 2);
    }
    assert!(scheduler.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { harness::cases(48) }))]

    /// Any edges: those that would close a cycle are refused, exactly; the rest is respected, on any number of workers.
    #[test]
    fn dependencies_are_respected(
        hints in prop::collection::vec(0..50u64, 2..150),
        edges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..200),
        workers in 1..4usize,
    ) {
        let threads = hints.len();
        let mut scheduler = Scheduler::new(Shape::new(&[7]).unwrap(), Tour::FirstFork);
        let ids: Vec<ThreadId> =
            hints.iter().enumerate().map(|(at, &hint)| scheduler.fork(&[hint], at).unwrap()).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); threads];
        for (later, earlier) in edges {
            let (later, earlier) = (later.index(threads), earlier.index(threads));
            let closes = reaches(&after, earlier, later);
            match scheduler.depend(ids[later], ids[earlier]) {
                Ok(()) => {
                    prop_assert!(!closes);
                    after[later].push(earlier);
                }
                Err(Error::Cycle(cycle)) => {
                    prop_assert!(closes);
                    prop_assert_eq!((cycle.first(), cycle.last()), (Some(&ids[later]), Some(&ids[earlier])));
                    for pair in cycle.windows(2) {
                        let at = |id| ids.iter().position(|known| known == id).unwrap();
                        prop_assert!(after[at(&pair[1])].contains(&at(&pair[0])));
                    }
                }
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
        let clock = AtomicU64::new(1);
        let ran: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
        let report = scheduler.run_on(NonZeroUsize::new(workers).unwrap(), Keep::No, |&thread, _| {
            assert_eq!(ran[thread].swap(clock.fetch_add(1, SeqCst), SeqCst), 0);
        }).unwrap();
        prop_assert_eq!(report.threads as usize, threads);
        for (later, earlier) in after.iter().enumerate() {
            for &earlier in earlier {
                prop_assert!(ran[earlier].load(SeqCst) < ran[later].load(SeqCst));
            }
        }
    }
}

/// Whether `from` waits for `to`, directly or not, or is the same.
fn reaches(after: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; after.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            open.extend(&after[at]);
        }
    }
    false
}
