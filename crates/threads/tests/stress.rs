//! Millions of threads on several workers: every fork runs exactly once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use threads::{Keep, Scheduler, Shape, ThreadId, Tour};

/// Few under Miri, which is slow.
const THREADS: usize = if cfg!(miri) { 1 << 8 } else { 1 << 20 };

fn counters(count: usize) -> Vec<AtomicU8> {
    (0..count).map(|_| AtomicU8::new(0)).collect()
}

/// Independent threads, bins of very unequal size, more workers than processors.
#[test]
fn every_fork_runs_once() {
    let mut scheduler = Scheduler::new(Shape::new(&[1 << 10, 1 << 12]).unwrap(), Tour::Hilbert);
    for (round, workers) in [2, 3, 8].into_iter().enumerate() {
        let ran = counters(THREADS);
        for thread in 0..THREADS as u64 {
            let scattered = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
            scheduler
                .fork(&[(scattered * scattered) >> 24, thread >> round], thread as usize)
                .unwrap();
        }
        let report = scheduler
            .run_on(NonZeroUsize::new(workers).unwrap(), Keep::No, |&thread, _| {
                ran[thread].fetch_add(1, Relaxed);
            })
            .unwrap();
        assert_eq!(report.threads as usize, THREADS);
        assert!(ran.iter().all(|ran| ran.load(Relaxed) == 1), "{workers} workers");
    }
}

/// Tiny bins, so that workers steal and wait all the time; a third of the threads fork, a third wait.
#[test]
fn every_fork_runs_once_with_forks_inside_and_dependencies() {
    for workers in [2, 5] {
        let count = THREADS / 4;
        let ran = counters(2 * count);
        let mut scheduler = Scheduler::new(Shape::new(&[4]).unwrap(), Tour::FirstFork);
        let mut ids: Vec<ThreadId> = Vec::with_capacity(count);
        for thread in 0..count {
            let hint = [(thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48];
            ids.push(match thread % 3 {
                2 => scheduler
                    .fork_after(&hint, thread, &[ids[thread / 2], ids[thread - 1]])
                    .unwrap(),
                _ => scheduler.fork(&hint, thread).unwrap(),
            });
        }
        let report = scheduler
            .run_on(NonZeroUsize::new(workers).unwrap(), Keep::No, |&thread, inside| {
                if thread % 3 == 2 && thread < count {
                    assert!(ran[thread / 2].load(Relaxed) == 1 && ran[thread - 1].load(Relaxed) == 1);
                }
                ran[thread].fetch_add(1, Relaxed);
                if thread < count && thread % 3 == 0 {
                    inside.fork(&[thread as u64 * 5 % 70_000], thread + count).unwrap();
                }
            })
            .unwrap();
        assert_eq!(report.threads as usize, count + count.div_ceil(3));
        for (thread, ran) in ran.iter().enumerate() {
            let expected = u8::from(thread < count || (thread - count).is_multiple_of(3));
            assert_eq!(ran.load(Relaxed), expected, "thread {thread}, {workers} workers");
        }
    }
}
