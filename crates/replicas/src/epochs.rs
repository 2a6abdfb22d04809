//! Contents that readers find without a lock and writers exchange: the readers of each, and when old ones may be freed.
//!
//! Each reader has a slot: 0 while it is outside, and another number for each region that it is in. It stores the
//! number, passes a barrier, and loads the pointer to the contents. A writer exchanges the pointer, passes a barrier,
//! and reads the slots. So either the reader finds the new contents, or the writer finds the reader inside, and waits
//! until its slot changes. Contents that a reader found stay until it has left.
//!
//! This is the step of Verghese96, figure 8.1, in which all processors drop their mappings of a page before it changes:
//! here readers drop theirs when they leave.

use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::{Arc, AtomicPtr, AtomicU64, Barriers, Mutex, MutexGuard, ThreadNumber, this_thread, wait};

/// The place at which writers find a reader. It has its own cache lines: sharing one would make each entry a miss.
#[repr(align(128))]
struct Slot {
    /// The current region of this reader, counted from 1, or [`OUTSIDE`].
    region: AtomicU64,
    thread: ThreadNumber,
}

const OUTSIDE: u64 = 0;

impl Slot {
    fn is_inside(&self) -> bool {
        self.region.load(Relaxed) != OUTSIDE
    }
}

/// Contents that can be exchanged while they are read.
pub(crate) struct Switch<V> {
    /// From a box; never null.
    current: AtomicPtr<V>,
    barriers: Barriers,
    /// The process that made it. A child of fork, which also has this, neither takes the locks, which threads of its
    /// parent may hold for ever, nor touches the data that they guard. Nobody writes there.
    process: u32,
    readers: ManuallyDrop<Mutex<Vec<Arc<Slot>>>>,
    /// One writer at a time. The old contents in it may still be read: the system failed during the wait for their readers.
    writer: ManuallyDrop<Mutex<Vec<Box<V>>>>,
    /// The thread that has the lock of writers: if it asked for the lock again, it would wait for itself. A thread
    /// compares this only with its own number, so it is no part of the model's search.
    writing: std::sync::Mutex<Option<ThreadNumber>>,
}

// SAFETY: contents go from the thread that made them to those that read them, and to the one that drops them.
unsafe impl<V: Send + Sync> Send for Switch<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Switch<V> {}

/// Why contents were not exchanged, or not certainly.
#[derive(Debug)]
pub(crate) enum Unchanged<E> {
    /// The writing thread is itself inside a region: it would wait for itself. Nothing was changed.
    Inside,
    /// The writing thread is writing already: it would wait for itself. This write changed nothing.
    Writing,
    /// There are no new contents. Nothing was changed.
    NotMade(E),
    /// The system refuses barriers. Nothing was changed.
    NoBarrier(io::Error),
    /// The new contents are in place, but some readers may still read the old ones, which therefore stay.
    Unconfirmed(io::Error),
}

impl<V> Switch<V> {
    pub fn new(first: V) -> Switch<V> {
        Switch {
            current: AtomicPtr::new(Box::into_raw(Box::new(first))),
            barriers: Barriers::of_this_system(),
            process: std::process::id(),
            readers: ManuallyDrop::new(Mutex::new(Vec::new())),
            writer: ManuallyDrop::new(Mutex::new(Vec::new())),
            writing: std::sync::Mutex::new(None),
        }
    }

    /// True if this is the process that made it, and not a child of fork.
    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// True if the calling thread has the lock of writers.
    fn is_writing(&self) -> bool {
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) == Some(this_thread())
    }

    /// The lock of writers, for a thread that does not have it.
    fn alone(&self) -> Alone<'_, V> {
        let held = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = Some(this_thread());
        Alone {
            held,
            writing: &self.writing,
        }
    }

    /// True if entering a region takes its own full barrier.
    pub fn readers_pay(&self) -> bool {
        self.barriers == Barriers::Everybody
    }

    /// Reads the contents, while nobody else writes. A thread that is making new ones sees the old ones, and one that
    /// is inside a region does not wait for writers, which may wait for it.
    pub fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        // In a child of fork nobody writes; the thread that writes is this one if it has the lock already.
        let waits = self.is_here() && !self.is_writing() && !self.is_inside();
        let _alone = waits.then(|| self.alone());
        // SAFETY: only writers free contents. Either the caller is the only writer (it has the lock, or is in `make` of
        // `replace`, before anything is freed); or there is none; or the writer waits, before it frees them, for the
        // region that the caller is inside.
        look(unsafe { &*self.current.load(Acquire) })
    }

    /// Makes new contents from the present ones, exchanges them, waits until nobody reads the old ones, and frees
    /// these.
    ///
    /// Pre: this is the process that made it.
    ///
    /// Post: a reader that enters a region after the return finds the new contents or later ones; earlier readers have
    /// left.
    pub fn replace<E>(&self, make: impl FnOnce(&V) -> Result<V, E>) -> Result<(), Unchanged<E>> {
        if self.is_writing() {
            return Err(Unchanged::Writing);
        }
        // Before the lock is taken: its holder may wait for this thread's region.
        if self.is_inside() {
            return Err(Unchanged::Inside);
        }
        let mut alone = self.alone();
        // If barriers have been forbidden since, nothing has been done yet.
        self.barriers.writer().map_err(Unchanged::NoBarrier)?;
        // SAFETY: as in `look`.
        let new = make(unsafe { &*self.current.load(Acquire) }).map_err(Unchanged::NotMade)?;
        // After `make`, the caller's function, which may have entered one.
        if self.is_inside() {
            return Err(Unchanged::Inside);
        }
        let old = self.current.swap(Box::into_raw(Box::new(new)), Release);
        // SAFETY: the pointer is from a box, and nobody can find it any more; the readers that found it are waited for
        // before the box is dropped.
        let old = unsafe { Box::from_raw(old) };
        if let Err(error) = self.barriers.writer() {
            alone.held.push(old);
            return Err(Unchanged::Unconfirmed(error));
        }
        self.wait_for_readers();
        drop(old);
        Ok(())
    }

    /// True if the calling thread is inside a region.
    fn is_inside(&self) -> bool {
        let me = this_thread();
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.iter().any(|slot| slot.thread == me && slot.is_inside())
    }

    /// Waits until each reader that is inside now has left.
    fn wait_for_readers(&self) {
        // Readers come and go meanwhile: new ones find the new contents.
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for slot in readers {
            let found = slot.region.load(Acquire);
            let mut turn = 0;
            while found != OUTSIDE && slot.region.load(Acquire) == found && wait(turn, slot.thread) {
                turn = turn.saturating_add(1);
            }
        }
    }
}

impl<V> Drop for Switch<V> {
    fn drop(&mut self) {
        // Every reader holds a reference to the switch: there are none any more.
        // SAFETY: the pointer is from a box, and nothing else has it.
        drop(unsafe { Box::from_raw(self.current.load(Acquire)) });
        // In a child of fork, the data that the locks guard may be half changed, so it is leaked.
        if self.is_here() {
            // SAFETY: neither is used after this.
            unsafe {
                ManuallyDrop::drop(&mut self.readers);
                ManuallyDrop::drop(&mut self.writer);
            }
        }
    }
}

/// The held lock of writers.
struct Alone<'a, V> {
    held: MutexGuard<'a, Vec<Box<V>>>,
    writing: &'a std::sync::Mutex<Option<ThreadNumber>>,
}

impl<V> Drop for Alone<'_, V> {
    fn drop(&mut self) {
        // Before the lock is free: the next holder writes its own number.
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One thread's place among the readers. It stays on its thread, so that a writer can detect that it would wait for
/// itself.
pub(crate) struct Place<V> {
    slot: Arc<Slot>,
    /// Entered so far.
    regions: u64,
    switch: Arc<Switch<V>>,
    _here: PhantomData<*const ()>,
}

impl<V> Place<V> {
    /// A place for the calling thread.
    pub fn new(switch: &Arc<Switch<V>>) -> Place<V> {
        let slot = Arc::new(Slot {
            region: AtomicU64::new(OUTSIDE),
            thread: this_thread(),
        });
        if switch.is_here() {
            let mut readers = switch.readers.lock().unwrap_or_else(PoisonError::into_inner);
            readers.push(slot.clone());
        }
        Place {
            slot,
            regions: 0,
            switch: switch.clone(),
            _here: PhantomData,
        }
    }

    pub fn is_inside(&self) -> bool {
        self.slot.is_inside()
    }

    /// Enters a region: the contents stay until the returned guard is dropped.
    #[inline]
    pub fn enter(&mut self) -> Entered<'_, V> {
        let contents = self.begin();
        Entered { contents, place: self }
    }

    /// Enters a region without a guard. Ends the region that this reader is in.
    ///
    /// Post: the contents at the pointer stay until [`Place::end`] or the next `begin`.
    #[inline]
    pub fn begin(&mut self) -> *const V {
        self.regions += 1;
        // Release: a region whose guard was forgotten ends here, after what was read in it.
        self.slot.region.store(self.regions, Release);
        self.switch.barriers.reader();
        self.switch.current.load(Acquire)
    }

    /// Leaves the region, if there is one.
    #[inline]
    pub fn end(&mut self) {
        self.leave();
    }

    #[inline]
    fn leave(&self) {
        self.slot.region.store(OUTSIDE, Release);
    }
}

impl<V> Drop for Place<V> {
    fn drop(&mut self) {
        self.leave();
        if !self.switch.is_here() {
            return;
        }
        let mut readers = self.switch.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

/// A reader inside a region.
pub(crate) struct Entered<'a, V> {
    /// No reference: the contents may end while the guard is being dropped, as soon as the region is left.
    contents: *const V,
    place: &'a Place<V>,
}

impl<V> Deref for Entered<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        // SAFETY: contents found in the region stay until it is left. That is when this guard is dropped: it borrows
        // the place, so no other region begins there meanwhile.
        unsafe { &*self.contents }
    }
}

impl<V> Drop for Entered<'_, V> {
    #[inline]
    fn drop(&mut self) {
        self.place.leave();
    }
}
