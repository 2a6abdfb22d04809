//! Threads forked from inside running ones, panics, and both together.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use threads::{Closure, Closures, Error, Keep, Scheduler, Shape, Tour};

fn two() -> NonZeroUsize {
    NonZeroUsize::new(2).unwrap()
}

/// A bin that has not been passed takes the new thread along; one that has gets another turn at the end of the tour.
#[test]
fn inside_forks_go_to_bins_not_passed_or_to_another_turn() {
    let mut scheduler = Scheduler::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    for hint in [0, 10, 20] {
        scheduler.fork(&[hint], hint).unwrap();
    }
    let mut order = Vec::new();
    let report = scheduler
        .run(Keep::No, |&thread, inside| {
            order.push(thread);
            if thread == 10 {
                for hint in [1, 11, 21, 31, 2] {
                    inside.fork(&[hint], hint).unwrap();
                }
            }
        })
        .unwrap();
    assert_eq!(order, [0, 10, 11, 20, 21, 1, 2, 31]);
    assert_eq!((report.threads, report.bins, report.turns), (8, 3, 2));
    assert!(scheduler.is_empty());
}

#[test]
fn a_chain_of_forks_in_one_bin_stays_in_its_turn() {
    let mut scheduler = Scheduler::new(Shape::new(&[1000]).unwrap(), Tour::FirstFork);
    scheduler.fork(&[0], 0u64).unwrap();
    scheduler.fork(&[1000], 1000).unwrap();
    let mut order = Vec::new();
    let report = scheduler
        .run(Keep::No, |&thread, inside| {
            order.push(thread);
            if thread < 500 {
                inside.fork(&[thread + 1], thread + 1).unwrap();
            }
        })
        .unwrap();
    assert_eq!(order, (0..=500).chain([1000]).collect::<Vec<_>>());
    assert_eq!(report.turns, 0);
}

/// The tree of forks of a thread with n below it, on one to three workers: every one runs once, in every repetition.
#[test]
fn trees_of_forks_run_once_on_any_number_of_workers() {
    for workers in 1..=3 {
        let mut scheduler = Scheduler::new(Shape::new(&[8]).unwrap(), Tour::FirstFork);
        for round in 0..if cfg!(miri) { 4 } else { 20 } {
            const NODES: usize = if cfg!(miri) { 40 } else { 5000 };
            let ran: Vec<AtomicU64> = (0..NODES).map(|_| AtomicU64::new(0)).collect();
            scheduler.fork(&[round], 0usize).unwrap();
            let keep = if round % 4 == 0 { Keep::Yes } else { Keep::No };
            let report = scheduler
                .run_on(NonZeroUsize::new(workers).unwrap(), keep, |&thread, inside| {
                    ran[thread].fetch_add(1, Relaxed);
                    for child in [thread * 3 + 1, thread * 3 + 2, thread * 3 + 3] {
                        if child < NODES {
                            inside.fork(&[(child * 31 % 257) as u64], child).unwrap();
                        }
                    }
                })
                .unwrap();
            // A root that was kept by the round before runs again, and forks its tree again.
            let times = if round % 4 == 1 { 2 } else { 1 };
            assert!(
                ran.iter().all(|ran| ran.load(Relaxed) == times),
                "round {round}, {workers} workers"
            );
            assert_eq!(report.threads, times * NODES as u64);
            assert_eq!(scheduler.len(), usize::from(keep == Keep::Yes));
        }
    }
}

/// A panic goes on to the caller; the next run runs exactly what has not run, whichever worker had it.
#[test]
fn after_a_panic_the_rest_is_still_pending() {
    const THREADS: usize = if cfg!(miri) { 70 } else { 3000 };
    for workers in 1..=3 {
        let all = [64, 0, 1, 63, THREADS / 2, THREADS - 1];
        for &bad in if cfg!(miri) { &all[..1] } else { &all[..] } {
            let mut scheduler = Scheduler::new(Shape::new(&[100]).unwrap(), Tour::FirstFork);
            let mut ids = Vec::new();
            for thread in 0..THREADS {
                ids.push(scheduler.fork(&[thread as u64 * 7 % 3000], thread).unwrap());
            }
            let ran: Vec<AtomicU64> = (0..2 * THREADS).map(|_| AtomicU64::new(0)).collect();
            let mut panics = 0;
            while !scheduler.is_empty() {
                let before = scheduler.len();
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    let workers = NonZeroUsize::new(workers).unwrap();
                    scheduler.run_on(workers, Keep::No, |&thread, inside| {
                        ran[thread].fetch_add(1, Relaxed);
                        if thread < THREADS {
                            inside.fork(&[thread as u64 * 13 % 5000], thread + THREADS).unwrap();
                        }
                        assert!(thread != bad && thread != bad + THREADS, "bad thread");
                    })
                }));
                match outcome {
                    Ok(report) => assert!(report.unwrap().threads as usize >= before),
                    Err(panic) => {
                        assert_eq!(panic.downcast_ref::<&str>(), Some(&"bad thread"));
                        panics += 1;
                        // The name of a thread that has run says so, whatever has become of the others.
                        let bad_ran = ran[bad].load(Relaxed) > 0;
                        let other = ids[(bad + 1) % THREADS];
                        assert_eq!(
                            scheduler.depend(ids[bad], other) == Err(Error::HasRun(ids[bad])),
                            bad_ran
                        );
                    }
                }
            }
            assert_eq!(panics, 2, "one from the thread, one from the thread that it forked");
            assert!(
                ran.iter().all(|ran| ran.load(Relaxed) == 1),
                "{workers} workers, thread {bad}"
            );
        }
    }
}

#[test]
fn after_a_panic_kept_threads_all_run_again() {
    let mut scheduler = Scheduler::new(Shape::new(&[4]).unwrap(), Tour::FirstFork);
    for thread in 0..20u64 {
        scheduler.fork(&[thread], thread).unwrap();
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        scheduler.run(Keep::Yes, |&thread, inside| {
            inside.fork(&[100], 100).unwrap();
            assert!(thread != 9);
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(scheduler.len(), 20);
    let mut order = Vec::new();
    scheduler.run(Keep::No, |&thread, _| order.push(thread)).unwrap();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

/// When the last thread panics nothing is left, and the next forks begin anew.
#[test]
fn after_a_panic_of_the_last_thread_the_scheduler_is_empty() {
    let mut scheduler = Scheduler::new(Shape::new(&[1]).unwrap(), Tour::FirstFork);
    scheduler.fork(&[1], 1).unwrap();
    scheduler.fork(&[2], 2).unwrap();
    let run = |scheduler: &mut Scheduler<u64>, order: &mut Vec<u64>, bad: u64| {
        catch_unwind(AssertUnwindSafe(|| {
            scheduler.run(Keep::No, |&thread, _| {
                order.push(thread);
                assert!(thread != bad);
            })
        }))
        .is_err()
    };
    let mut order = Vec::new();
    assert!(run(&mut scheduler, &mut order, 2));
    assert!(scheduler.is_empty() && scheduler.bins() == 0);
    scheduler.fork(&[2], 4).unwrap();
    scheduler.fork(&[1], 3).unwrap();
    assert!(!run(&mut scheduler, &mut order, 0));
    assert_eq!(order, [1, 2, 4, 3]);
}

#[test]
fn closures_run_once_fork_and_panic() {
    let order = Mutex::new(Vec::new());
    let mut threads = Closures::new(Shape::new(&[10]).unwrap(), Tour::FirstFork);
    let order_ref = &order;
    threads
        .fork(&[0], move |inside| {
            order_ref.lock().unwrap().push("first");
            let again = Closure::new(move |_| order_ref.lock().unwrap().push("forked inside"));
            inside.fork(&[5], again).unwrap();
        })
        .unwrap();
    threads.fork(&[20], |_| panic!("this one")).unwrap();
    let last = threads
        .fork(&[20], move |_| order_ref.lock().unwrap().push("last"))
        .unwrap();
    threads
        .fork_after(
            &[20],
            move |_| order_ref.lock().unwrap().push("after the last"),
            &[last],
        )
        .unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| threads.run())).is_err());
    assert_eq!(threads.len(), 2);
    assert_eq!(threads.run_on(two()).unwrap().threads, 2);
    assert!(threads.is_empty());
    assert_eq!(
        *order.lock().unwrap(),
        ["first", "forked inside", "last", "after the last"]
    );
}
