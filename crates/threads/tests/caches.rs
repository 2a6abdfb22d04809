//! Runs at caches: every thread runs once, at the cpus of its cache, and the caller's cpus are as before.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use threads::{CacheDomain, Caches, Keep, Scheduler, Shape, Tour};

/// Two caches on the cpus that there are; on one cpu both have it.
fn two() -> Caches {
    let cpus = sys::affinity::allowed(None).unwrap();
    let domain = |cpu: u32| CacheDomain {
        cpus: vec![cpu],
        level: None,
        bytes: None,
    };
    Caches::with(vec![domain(cpus[0]), domain(*cpus.last().unwrap())])
}

fn scheduler(threads: u64) -> Scheduler<u64> {
    let mut scheduler = Scheduler::new(Shape::new(&[8]).unwrap(), Tour::FirstFork);
    for thread in 0..threads {
        scheduler.fork(&[thread], thread).unwrap();
    }
    scheduler
}

#[test]
fn each_bin_runs_once_and_the_caller_has_its_cpus_again() {
    let before = sys::affinity::allowed(None).unwrap();
    let mut caches = two();
    caches.always(true);
    let mut scheduler = scheduler(1000);
    for workers in [2, 3, 5] {
        let ran: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
        let seen = Mutex::new(Vec::new());
        let report = scheduler
            .run_at(
                NonZeroUsize::new(workers).unwrap(),
                &mut caches,
                Keep::Yes,
                |&thread, inside| {
                    ran[thread as usize].fetch_add(1, Relaxed);
                    seen.lock()
                        .unwrap()
                        .push((inside.worker(), sys::affinity::allowed(None).unwrap()));
                },
            )
            .unwrap();
        assert!(report.at_caches && report.threads == 1000);
        assert!(ran.iter().all(|ran| ran.load(Relaxed) == 1));
        for (worker, cpus) in seen.into_inner().unwrap() {
            let of_cache = if worker % 2 == 0 {
                before[0]
            } else {
                *before.last().unwrap()
            };
            assert_eq!(cpus, [of_cache], "worker {worker}");
        }
    }
    assert_eq!(sys::affinity::allowed(None).unwrap(), before);
}

#[test]
fn a_panic_leaves_the_caller_its_cpus() {
    let before = sys::affinity::allowed(None).unwrap();
    let mut caches = two();
    caches.always(true);
    let mut scheduler = scheduler(64);
    let run = catch_unwind(AssertUnwindSafe(|| {
        scheduler.run_at(NonZeroUsize::new(2).unwrap(), &mut caches, Keep::No, |&thread, _| {
            assert!(thread != 17, "on purpose");
        })
    }));
    assert!(run.is_err());
    assert_eq!(sys::affinity::allowed(None).unwrap(), before);
}

#[test]
fn with_one_cache_or_one_worker_nothing_is_different() {
    let mut scheduler = scheduler(10);
    let two_workers = NonZeroUsize::new(2).unwrap();
    let mut none = Caches::with(Vec::new());
    assert!(!none.are_several() && none.workers() == NonZeroUsize::MIN);
    let report = scheduler.run_at(two_workers, &mut none, Keep::Yes, |_, _| ()).unwrap();
    assert!(!report.at_caches && report.threads == 10);
    let report = scheduler
        .run_at(NonZeroUsize::MIN, &mut two(), Keep::Yes, |_, _| ())
        .unwrap();
    assert!(!report.at_caches && report.threads == 10);
}
