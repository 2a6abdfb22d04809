//! In which order threads run.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Mutex;

use proptest::prelude::*;
use threads::{Error, Keep, Scheduler, Shape, Tour};

const TOURS: [Tour; 3] = [Tour::FirstFork, Tour::Nearest, Tour::Hilbert];

/// Philbin96, section 2.4, with threads numbered as there.
#[test]
fn the_papers_example_runs_its_four_bins_in_its_order() {
    let vector = 8192;
    let (a, b) = (0x10_0000u64, 0x90_0000u64);
    let mut scheduler = Scheduler::new(Shape::new(&[2 * vector, 2 * vector]).unwrap(), Tour::FirstFork);
    for thread in 0..16u64 {
        scheduler
            .fork(&[a + thread / 4 * vector, b + thread % 4 * vector], thread + 1)
            .unwrap();
    }
    assert_eq!((scheduler.len(), scheduler.bins()), (16, 4));
    let mut order = Vec::new();
    let report = scheduler.run(Keep::No, |&thread, _| order.push(thread)).unwrap();
    assert_eq!(order, [1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16]);
    assert_eq!(
        (report.threads, report.bins, report.turns, report.workers),
        (16, 4, 0, 1)
    );
    assert!(scheduler.is_empty());
}

#[test]
fn kept_threads_run_again_in_the_same_order() {
    let mut scheduler = Scheduler::new(Shape::new(&[4]).unwrap(), Tour::FirstFork);
    for thread in 0..300u64 {
        scheduler.fork(&[thread * 7 % 64], thread).unwrap();
    }
    let mut orders = [const { Vec::new() }; 3];
    for (order, keep) in orders.iter_mut().zip([Keep::Yes, Keep::Yes, Keep::No]) {
        scheduler.run(keep, |&thread, _| order.push(thread)).unwrap();
        assert_eq!(scheduler.len(), if keep == Keep::Yes { 300 } else { 0 });
    }
    assert_eq!(orders[0].len(), 300);
    assert!(orders[0] == orders[1] && orders[1] == orders[2]);
    assert_eq!(scheduler.run(Keep::No, |_, _| unreachable!()).unwrap().threads, 0);
}

#[test]
fn threads_can_be_added_to_kept_ones() {
    let mut scheduler = Scheduler::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    scheduler.fork(&[0], 0).unwrap();
    scheduler.fork(&[10], 1).unwrap();
    scheduler.run(Keep::Yes, |_, _| ()).unwrap();
    scheduler.fork(&[5], 2).unwrap();
    let mut order = Vec::new();
    scheduler.run(Keep::No, |&thread, _| order.push(thread)).unwrap();
    assert_eq!(order, [0, 2, 1]);
}

/// The order of first fork is that of the threads that are pending, not of those that ran before.
#[test]
fn a_run_that_keeps_nothing_forgets_the_order_of_bins() {
    let mut scheduler = Scheduler::new(Shape::new(&[1]).unwrap(), Tour::FirstFork);
    for hint in [1, 2, 3] {
        scheduler.fork(&[hint], hint).unwrap();
    }
    scheduler.run(Keep::No, |_, _| ()).unwrap();
    for hint in [3, 1, 2] {
        scheduler.fork(&[hint], hint).unwrap();
    }
    let mut order = Vec::new();
    scheduler.run(Keep::No, |&hint, _| order.push(hint)).unwrap();
    assert_eq!(order, [3, 1, 2]);
}

#[test]
fn the_wrong_number_of_hints_is_an_error() {
    let mut scheduler = Scheduler::new(Shape::new(&[4, 4]).unwrap(), Tour::FirstFork);
    assert_eq!(scheduler.fork(&[1], ()), Err(Error::Hints { expected: 2, given: 1 }));
    scheduler.fork(&[1, 2], ()).unwrap();
    let mut inside_error = None;
    scheduler
        .run(Keep::No, |_, inside| inside_error = inside.fork(&[1, 2, 3], ()).err())
        .unwrap();
    assert_eq!(inside_error, Some(Error::Hints { expected: 2, given: 3 }));
}

#[test]
fn memory_is_reserved_recycled_and_given_back() {
    let mut scheduler = Scheduler::new(Shape::new(&[64]).unwrap(), Tour::FirstFork);
    assert!(scheduler.memory_bytes() < 1024);
    scheduler.reserve(10_000, 100).unwrap();
    let reserved = scheduler.memory_bytes();
    assert!(reserved >= 10_000 * size_of::<[u64; 3]>());
    for _ in 0..3 {
        for thread in 0..10_000u64 {
            scheduler.fork(&[thread * 64 % 6400], [thread; 3]).unwrap();
        }
        let pending = scheduler.memory_bytes();
        scheduler.run(Keep::No, |_, _| ()).unwrap();
        assert!(
            pending <= reserved + reserved / 20,
            "{pending} bytes pending, {reserved} reserved"
        );
    }
    scheduler.shrink();
    assert!(scheduler.memory_bytes() < reserved / 10);
    assert_eq!(scheduler.reserve(usize::MAX / 4, 1), Err(Error::OutOfMemory));
    scheduler.fork(&[0], [0; 3]).unwrap();
    assert_eq!(scheduler.run(Keep::No, |_, _| ()).unwrap().threads, 1);
}

/// 24 bytes for each of a million pending threads, and at most 5 % beyond, also where bins are not even.
#[test]
fn a_pending_thread_takes_its_own_size_and_little_more() {
    const THREADS: u64 = 1 << 20;
    for spread in [1u64, 0x9e37_79b9_7f4a_7c15] {
        let mut scheduler = Scheduler::new(Shape::new(&[1 << 54]).unwrap(), Tour::FirstFork);
        for thread in 0..THREADS {
            let hint = (thread << 44).wrapping_mul(spread) ^ (thread * thread) << 40;
            scheduler.fork(&[hint], [thread; 3]).unwrap();
        }
        let bytes = scheduler.memory_bytes() as f64 / THREADS as f64;
        assert!(scheduler.bins() > 500, "{} bins", scheduler.bins());
        assert!(
            bytes < 24.0 * 1.05,
            "{bytes} bytes a thread in {} bins",
            scheduler.bins()
        );
    }
}

/// Values are dropped once: those that ran, those that were cleared, those that the scheduler took with it.
#[test]
fn what_threads_own_is_dropped_once() {
    let counter = std::sync::Arc::new(());
    let mut scheduler = Scheduler::new(Shape::new(&[2]).unwrap(), Tour::FirstFork);
    let fork = |scheduler: &mut Scheduler<_>| {
        for thread in 0..500u64 {
            scheduler.fork(&[thread % 17], counter.clone()).unwrap();
        }
    };
    fork(&mut scheduler);
    scheduler.run(Keep::Yes, |_, _| ()).unwrap();
    assert_eq!(std::sync::Arc::strong_count(&counter), 501);
    scheduler.run(Keep::No, |_, _| ()).unwrap();
    assert_eq!(std::sync::Arc::strong_count(&counter), 1);
    fork(&mut scheduler);
    scheduler.clear();
    assert_eq!(std::sync::Arc::strong_count(&counter), 1);
    fork(&mut scheduler);
    drop(scheduler);
    assert_eq!(std::sync::Arc::strong_count(&counter), 1);
}

fn hints() -> impl Strategy<Value = (usize, Vec<Vec<u64>>)> {
    (1..=8usize).prop_flat_map(|k| {
        (
            Just(k),
            prop::collection::vec(prop::collection::vec(0..40u64, k), 0..600),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(64)))]

    /// A run is a permutation of the forks; bins hold exactly the hints of their block, in fork order, and are not
    /// interrupted; bins follow the tour.
    #[test]
    fn bins_hold_the_hints_of_their_block((k, hints) in hints(), side in 1..30u64, fold: bool, outer: bool) {
        for tour in TOURS {
            let mut shape = Shape::new(&vec![side; k]).unwrap();
            if fold {
                shape = shape.fold().unwrap();
            }
            if outer {
                shape = shape.within(&vec![side * 3; k]).unwrap();
            }
            let mut scheduler = Scheduler::new(shape.clone(), tour);
            let mut bins = policy::order::Bins::new(shape.clone());
            for (thread, hints) in hints.iter().enumerate() {
                scheduler.fork(hints, thread).unwrap();
                bins.bin(hints).unwrap();
            }
            let mut order = Vec::new();
            let report = scheduler.run(Keep::No, |&thread, _| order.push(thread)).unwrap();
            prop_assert_eq!(report.threads as usize, hints.len());
            prop_assert_eq!(report.bins as usize, bins.len());
            let mut expected = Vec::new();
            for bin in bins.tour(tour) {
                expected.extend((0..hints.len()).filter(|&thread| shape.block(&hints[thread]) == bins.block(bin)));
            }
            prop_assert_eq!(order, expected);
        }
    }

    /// Several workers: every thread once; threads of a bin in fork order, on one worker.
    #[test]
    fn several_workers_take_whole_bins((k, hints) in hints(), side in 1..30u64, workers in 1..5usize) {
        let shape = Shape::new(&vec![side; k]).unwrap();
        let mut scheduler = Scheduler::new(shape.clone(), Tour::Nearest);
        for (thread, hints) in hints.iter().enumerate() {
            scheduler.fork(hints, thread).unwrap();
        }
        let ran = Mutex::new(Vec::new());
        let report = scheduler
            .run_on(NonZeroUsize::new(workers).unwrap(), Keep::No, |&thread, inside| {
                ran.lock().unwrap().push((inside.worker(), thread));
            })
            .unwrap();
        let ran = ran.into_inner().unwrap();
        prop_assert_eq!(report.threads as usize, hints.len());
        prop_assert_eq!(ran.iter().map(|&(_, thread)| thread).collect::<HashSet<_>>().len(), hints.len());
        prop_assert_eq!(ran.len(), hints.len());
        let mut last = HashMap::new();
        for (worker, thread) in ran {
            if let Some((before, same)) = last.insert(shape.block(&hints[thread]), (thread, worker)) {
                prop_assert!(before < thread && same == worker);
            }
        }
    }
}
