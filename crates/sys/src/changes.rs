//! Calls that the kernel carries out mapping by mapping, and passes in which mappings are registered with a userfaultfd.
//!
//! A call such as `mremap` fails in the middle if one of the mappings is registered and its neighbour is not, and the
//! pages moved so far stay moved. So they take turns: a [`Pass`] lasts from before pages are registered until none is,
//! and a [`change`] waits until there is none. While a change waits, the pass soon ends, and the waiting changes come
//! first.
//!
//! It holds for the calls that come this way. A bare system call does not.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Within one page, whose address [`place`] returns.
#[repr(align(64))]
struct Counts {
    /// Passes that are under way.
    passes: AtomicU32,
    /// Passes that wait for changes: no new change begins.
    coming: AtomicU32,
    /// Changes that are under way.
    changes: AtomicU32,
    /// Changes that wait for a pass.
    waiting: AtomicU32,
}

static COUNTS: Counts = Counts {
    passes: AtomicU32::new(0),
    coming: AtomicU32::new(0),
    changes: AtomicU32::new(0),
    waiting: AtomicU32::new(0),
};

/// The address of the counts.
pub(crate) fn place() -> usize {
    &raw const COUNTS as usize
}

/// Lets others run: shortly at first, then longer.
fn pause(round: usize) {
    if round < 100 {
        rustix::thread::sched_yield();
    } else {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// While it lives no [`change`] is under way. Several may live at a time.
#[must_use]
pub struct Pass(());

impl Pass {
    /// A pass, once the changes that are under way or waiting are made. `None` if that takes some milliseconds: one of
    /// them may itself wait for another thread.
    ///
    /// Pre: this thread has nothing registered that a change could wait for. This takes no lock.
    pub fn begin() -> Option<Pass> {
        const ROUNDS: usize = 400;
        // Changes that waited for the last pass come first.
        for round in 0..ROUNDS {
            if COUNTS.waiting.load(Ordering::SeqCst) == 0 {
                break;
            }
            pause(round);
        }
        COUNTS.coming.fetch_add(1, Ordering::SeqCst);
        let mut begun = None;
        for round in 0..ROUNDS {
            COUNTS.passes.fetch_add(1, Ordering::SeqCst);
            let pass = Pass(());
            if COUNTS.changes.load(Ordering::SeqCst) == 0 {
                begun = Some(pass);
                break;
            }
            drop(pass);
            pause(round);
        }
        COUNTS.coming.fetch_sub(1, Ordering::SeqCst);
        begun
    }

    /// Returns whether a change waits for passes to end.
    pub fn awaited(&self) -> bool {
        COUNTS.waiting.load(Ordering::SeqCst) != 0
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        COUNTS.passes.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes a change while there is no [`Pass`].
///
/// Pre: this thread has no pass. This takes no lock and touches no heap, so that it may be called wherever the call
/// itself may be.
pub fn change<T>(call: impl FnOnce() -> T) -> T {
    // A pass that is coming goes first, but for a change that has waited for another one.
    let (mut waits, mut patient, mut round) = (false, false, 0);
    loop {
        if patient || COUNTS.coming.load(Ordering::SeqCst) == 0 {
            COUNTS.changes.fetch_add(1, Ordering::SeqCst);
            if COUNTS.passes.load(Ordering::SeqCst) == 0 {
                break;
            }
            COUNTS.changes.fetch_sub(1, Ordering::SeqCst);
            patient = true;
        }
        if !waits {
            COUNTS.waiting.fetch_add(1, Ordering::SeqCst);
            waits = true;
        }
        pause(round);
        round += 1;
    }
    if waits {
        COUNTS.waiting.fetch_sub(1, Ordering::SeqCst);
    }
    let made = call();
    COUNTS.changes.fetch_sub(1, Ordering::SeqCst);
    made
}

/// The child has one thread, which makes no change and has no pass.
pub(crate) fn in_child() {
    for count in [&COUNTS.passes, &COUNTS.coming, &COUNTS.changes, &COUNTS.waiting] {
        count.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    // One test: the counts are the process's.
    #[test]
    fn changes_and_passes_take_turns() {
        let ended = AtomicBool::new(false);
        let pass = Pass::begin().unwrap();
        assert!(!pass.awaited());
        std::thread::scope(|scope| {
            let change = scope.spawn(|| change(|| ended.load(Ordering::SeqCst)));
            while !pass.awaited() {
                std::thread::yield_now();
            }
            ended.store(true, Ordering::SeqCst);
            drop(pass);
            assert!(change.join().unwrap(), "a change was made while a pass was under way");
        });
        // No pass begins while a change is under way, and a change inside another one does not wait.
        assert!(change(Pass::begin).is_none());
        assert!(change(|| change(|| true)));
        // Neither starves if both go on without a break.
        let (stop, inside) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| {
                let mut made = 0;
                while !stop.load(Ordering::SeqCst) || made == 0 {
                    change(|| {
                        inside.store(true, Ordering::SeqCst);
                        made += 1;
                        inside.store(false, Ordering::SeqCst);
                    });
                }
                made
            });
            let mut passes = 0;
            while passes < 100 {
                if let Some(pass) = Pass::begin() {
                    assert!(!inside.load(Ordering::SeqCst), "a change is under way in a pass");
                    passes += 1;
                    while passes > 50 && !pass.awaited() {
                        std::thread::yield_now();
                    }
                }
            }
            stop.store(true, Ordering::SeqCst);
            assert!(changes.join().unwrap() > 0);
        });
    }
}
