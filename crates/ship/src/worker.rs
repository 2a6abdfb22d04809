//! The worker of a cache: it runs the jobs that it receives, polls for the next for a while, and then sleeps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;

use crate::job::slot::Slot;
use crate::job::{Errand, LOOKS, Waits, look_again};

/// The deepest nesting of jobs: beyond, work runs on the calling thread, without waiting.
const DEEPEST: u32 = 8;

/// The public side of a worker.
#[derive(Default)]
pub(crate) struct Worker {
    /// The next job. Its line is all that a hand-over moves between two caches.
    slot: CachePadded<Slot>,
    /// More jobs, if several callers arrive at once.
    queue: SegQueue<Errand>,
    asleep: CachePadded<AtomicBool>,
    ends: AtomicBool,
    /// The nesting depth of its jobs.
    depth: AtomicU32,
    thread: OnceLock<Thread>,
}

impl Worker {
    /// Hands over a job.
    pub fn hand(&self, errand: Errand) {
        if let Err(errand) = self.slot.put(errand) {
            self.queue.push(errand);
        }
        // Either the worker sees the job before it sleeps, or this thread sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The worker's loop. It polls for `spin` after each job before it sleeps.
    pub fn run(&self, spin: Duration) {
        // Nothing is handed over before the thread is known.
        let _ = self.thread.set(thread::current());
        let mut began: Option<Instant> = None;
        let mut looks = 0u32;
        while !self.ends.load(Ordering::Acquire) {
            // More than one job at a time is rare, and checking for more takes longer.
            let served = match looks.is_multiple_of(LOOKS) {
                true => self.serve(),
                false => self.slot.take().map(|errand| self.run_one(errand)).is_some(),
            };
            if served {
                (began, looks) = (None, 0);
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && began.get_or_insert_with(Instant::now).elapsed() > spin {
                self.sleep(&|| self.ends.load(Ordering::SeqCst));
                (began, looks) = (None, 0);
            } else {
                look_again(looks);
            }
        }
    }

    /// Returns true if its jobs are nested so deeply that it should not wait for one more.
    pub fn is_deep(&self) -> bool {
        self.depth.load(Ordering::Relaxed) >= DEEPEST
    }

    fn run_one(&self, errand: Errand) {
        self.depth.fetch_add(1, Ordering::Relaxed);
        errand.run();
        self.depth.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Returns true if it sleeps, and must be woken.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Returns true if its thread runs.
    pub fn is_known(&self) -> bool {
        self.thread.get().is_some()
    }
}

/// A worker that waits for another one serves its own callers: perhaps those of this very job.
impl Waits for Worker {
    fn serve(&self) -> bool {
        let errand = self.slot.take().or_else(|| self.queue.pop());
        errand.map(|errand| self.run_one(errand)).is_some()
    }

    fn sleep(&self, ready: &dyn Fn() -> bool) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.slot.is_empty() && self.queue.is_empty() && !ready() {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// Any other thread.
pub(crate) struct Outside;

impl Waits for Outside {
    fn serve(&self) -> bool {
        false
    }

    fn sleep(&self, ready: &dyn Fn() -> bool) {
        if !ready() {
            thread::park();
        }
    }
}
