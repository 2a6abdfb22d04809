//! Every interleaving of small runs (loom): each thread runs exactly once, after those that it waits for, and the
//! workers come to an end.
//!
//! Groups hold two threads here, so that few threads are many groups.

use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Word;

use loom::sync::atomic::{AtomicU32 as Count, Ordering::Relaxed};
use policy::order::{Shape, Tour};

use crate::Inside;
use crate::dependencies::Dependencies;
use crate::groups::Place;
use crate::inside::Outbox;
use crate::queue::Queue;
use crate::store::Store;
use crate::sync::{AtomicBool, Condvar, Mutex};
use crate::turns::Turns;
use crate::waits::Waits;
use crate::worker::{Shared, work};

/// Tries every interleaving with this many forced switches; more has never found more in queues like these.
fn every_interleaving(switches: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(run);
}

/// One small run: bins by hint, this many workers, the whole tour given to the first of them.
#[derive(Clone, Copy)]
struct Small {
    hints: &'static [u64],
    /// The second waits for the first.
    edges: &'static [(usize, usize)],
    workers: usize,
    /// This thread forks one more for this hint.
    forks: Option<(u32, u64)>,
    panics: Option<u32>,
}

impl Small {
    /// Checks that every thread ran once, or, if one panics, at most once; a waiting thread sees the other's work.
    fn run(self) {
        let shape = Shape::new(&[1]).unwrap();
        // The workers' threads outlive this frame as far as the compiler knows.
        let store: &'static mut Store<u32> = Box::leak(Box::new(Store::new(shape.clone())));
        let places: Vec<Place> = self
            .hints
            .iter()
            .zip(0..)
            .map(|(&hint, thread)| store.push(&[hint], thread).ok().unwrap())
            .collect();
        let store: &'static Store<u32> = store;
        let graph: &'static mut Dependencies = Box::leak(Box::default());
        for &(earlier, later) in self.edges {
            graph.add(places[later], places[earlier]).unwrap();
        }
        let groups = store.groups.used();
        let graph: &'static Dependencies = graph;
        let waits = (!graph.is_empty()).then(|| Waits::new(graph, |_| false).unwrap());
        let tour: &'static [u32] = store.bins().tour(Tour::FirstFork).leak();
        let turns = Box::leak(Box::new(Turns::new(shape)));
        turns.begin(store, tour, self.workers, waits.as_ref()).unwrap();
        let mut queues = vec![Queue::new(0..tour.len() as u32)];
        queues.resize_with(self.workers, || Queue::new(0..0));
        let shared = Arc::new(Shared {
            store,
            gone: &[],
            done: (0..groups).map(|_| Word::new(0)).collect::<Vec<_>>().leak(),
            tour,
            queues,
            cache_of: Vec::new(),
            waits,
            turns: Mutex::new(turns),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let ran: Arc<Vec<Count>> = Arc::new((0..=self.hints.len()).map(|_| Count::new(0)).collect());
        let worker = move |worker: usize, shared: Arc<Shared<'static, u32>>, ran: Arc<Vec<Count>>| {
            let inside = Inside {
                worker,
                outbox: Outbox::new(1),
            };
            work(&shared, inside, &mut |&thread: &u32, inside: &mut Inside<u32>| {
                assert!(self.panics != Some(thread), "this thread panics");
                for &(earlier, later) in self.edges {
                    // Relaxed: only the scheduler orders the two.
                    assert!(later != thread as usize || ran[earlier].load(Relaxed) == 1);
                }
                ran[thread as usize].fetch_add(1, Relaxed);
                if let Some((_, hint)) = self.forks.filter(|&(forks, _)| forks == thread) {
                    inside.fork(&[hint], self.hints.len() as u32).unwrap();
                }
            })
        };
        let others: Vec<_> = (1..self.workers)
            .map(|other| {
                let (shared, ran) = (shared.clone(), ran.clone());
                loom::thread::spawn(move || worker(other, shared, ran))
            })
            .collect();
        let mut ended = vec![worker(0, shared, ran.clone())];
        ended.extend(others.into_iter().map(|other| other.join().unwrap()));
        assert_eq!(
            ended.iter().filter(|ended| ended.panic.is_some()).count(),
            usize::from(self.panics.is_some())
        );
        for (thread, ran) in ran.iter().enumerate() {
            let expected = u32::from(thread < self.hints.len() || self.forks.is_some());
            let ran = ran.load(Relaxed);
            assert!(
                ran == expected || self.panics.is_some() && ran < expected,
                "thread {thread} ran {ran} times"
            );
        }
    }
}

/// The owner and a thief, which is also an owner: all positions, each once.
#[test]
fn positions_are_taken_once() {
    every_interleaving(4, || {
        let queues = Arc::new([Queue::new(0..3), Queue::new(3..4)]);
        let taken: Arc<Vec<Count>> = Arc::new((0..4).map(|_| Count::new(0)).collect());
        let worker = |me: usize, queues: Arc<[Queue; 2]>, taken: Arc<Vec<Count>>| {
            loop {
                while let Some(position) = queues[me].take() {
                    taken[position as usize].fetch_add(1, Relaxed);
                }
                let Some(stolen) = queues[1 - me].steal() else { return };
                taken[stolen.start as usize].fetch_add(1, Relaxed);
                queues[me].refill(stolen.start + 1..stolen.end);
            }
        };
        let (other_queues, other_taken) = (queues.clone(), taken.clone());
        let other = loom::thread::spawn(move || worker(1, other_queues, other_taken));
        worker(0, queues, taken.clone());
        other.join().unwrap();
        assert!(taken.iter().all(|taken| taken.load(Relaxed) == 1));
    });
}

#[test]
fn threads_run_once() {
    let small = Small {
        hints: &[0, 1, 0, 0, 2],
        edges: &[],
        workers: 2,
        forks: None,
        panics: None,
    };
    every_interleaving(3, move || small.run());
}

#[test]
fn three_workers_come_to_an_end() {
    let small = Small {
        hints: &[0, 1],
        edges: &[],
        workers: 3,
        forks: None,
        panics: None,
    };
    every_interleaving(2, move || small.run());
}

/// Into a bin that may be passed, running, to come, or new.
#[test]
fn threads_forked_inside_run_once() {
    for hint in [0, 1, 2] {
        let small = Small {
            hints: &[0, 1],
            edges: &[],
            workers: 2,
            forks: Some((1, hint)),
            panics: None,
        };
        every_interleaving(3, move || small.run());
    }
}

/// Along the tour and against it.
#[test]
fn threads_run_after_those_that_they_wait_for() {
    for edges in [&[(0, 1)][..], &[(1, 0)], &[(2, 0), (1, 0)]] {
        let small = Small {
            hints: &[0, 1, 2],
            edges,
            workers: 2,
            forks: None,
            panics: None,
        };
        every_interleaving(2, move || small.run());
    }
}

#[test]
fn a_panic_ends_the_other_worker_too() {
    let small = Small {
        hints: &[0, 1, 2],
        edges: &[],
        workers: 2,
        forks: Some((0, 0)),
        panics: Some(1),
    };
    every_interleaving(2, move || small.run());
}
