//! Replicated data for the threads of one process, by handles.

use std::ops::{Deref, Range};
use std::ptr::NonNull;

use bytemuck::Pod;

use crate::Error;
use crate::copies::{Copies, Made, Nodes};
use crate::epochs::{Entered, Place, Switch, Unchanged};
use crate::state::{State, Way};
use crate::sync::Arc;
use crate::told;

/// Elements that are read on all nodes and rarely written, with a copy on each node.
///
/// Any thread may call at any time; writers wait for each other.
pub struct Replicated<T: Pod> {
    switch: Arc<Switch<Copies<T>>>,
    nodes: Nodes,
    length: usize,
    process: u32,
}

impl<T: Pod + Send + Sync> Replicated<T> {
    /// Data with these contents, with a copy on each node that has cpus and memory for it.
    ///
    /// A node that cannot have a copy has none: [`State::without`] says why. On a machine with one node there is one
    /// copy.
    ///
    /// Errors: [`Error::Empty`], [`Error::Memory`].
    pub fn new(contents: &[T]) -> Result<Replicated<T>, Error> {
        let nodes = Nodes::of_this_machine();
        let first = Copies::first(contents, &nodes)?;
        told::made(Way::Handles);
        Ok(Replicated {
            switch: Arc::new(Switch::new(first)),
            length: contents.len(),
            nodes,
            process: std::process::id(),
        })
    }

    /// How many elements there are; that never changes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// A reader for the calling thread only. Copies stay as long as there are readers.
    pub fn reader(&self) -> Reader<T> {
        Reader(Place::new(&self.switch))
    }

    /// The current copy of the calling thread's node, for as long as it is needed: for callers that cannot say when a
    /// region ends. Later writes do not change it.
    pub fn keep(&self) -> Kept<T> {
        let mut place = Place::new(&self.switch);
        let copies = place.enter();
        let (copy, at) = copies.own();
        Kept {
            at,
            length: copies.length(),
            _copy: copy,
        }
    }

    /// Replaces the contents.
    ///
    /// Post: nobody reads the old contents any more, on any node; nobody has seen parts of both.
    ///
    /// Errors: [`Error::Length`]; as [`Replicated::update`].
    pub fn publish(&self, contents: &[T]) -> Result<(), Error> {
        if contents.len() != self.length {
            let (given, length) = (contents.len(), self.length);
            return Err(Error::Length { given, length });
        }
        self.update(|old| old.copy_from_slice(contents))
    }

    /// Writes some of the elements, from element `first` on. Post and errors as for [`Replicated::publish`], and
    /// [`Error::Beyond`].
    pub fn write(&self, first: usize, elements: &[T]) -> Result<(), Error> {
        let range = self.part(first, elements.len())?;
        self.update(|old| old[range].copy_from_slice(elements))
    }

    /// Changes the contents: `change` gets the present ones and leaves the new ones. Writes of other writers come
    /// before or after, never between.
    ///
    /// It waits for all readers that are inside a region. Twice the memory is in use meanwhile. A write to the same data within
    /// `change` is refused. Two threads that each write to the other's data within `change` wait for each other for ever.
    ///
    /// Post: as of [`Replicated::publish`].
    ///
    /// Errors: [`Error::Inside`], [`Error::Writing`], [`Error::Forked`], [`Error::Memory`], [`Error::NoBarrier`]: nothing was changed.
    /// [`Error::Unconfirmed`].
    pub fn update(&self, change: impl FnOnce(&mut [T])) -> Result<(), Error> {
        self.replace(|old| old.changed(&self.nodes, change))
    }

    /// Frees all copies but that of the calling thread's node. It waits for readers, as a write does.
    ///
    /// Errors: as of [`Replicated::update`].
    pub fn collapse(&self) -> Result<(), Error> {
        self.replace(|old| Ok(old.collapsed(&self.nodes)))
    }

    /// Makes a copy on each node that has none, if the node has memory now. It waits for readers, as a write does.
    ///
    /// Errors: as of [`Replicated::update`].
    pub fn replicate(&self) -> Result<(), Error> {
        self.replace(|old| old.replicated(&self.nodes))
    }

    /// The present state: the mode, the copies, their costs, and the reason why a node has none. It waits for writers,
    /// but not inside a region; within [`Replicated::update`] it reports the state before.
    pub fn state(&self) -> State {
        let pay = self.switch.readers_pay();
        self.switch.look(|copies| copies.state(&self.nodes, pay))
    }

    fn replace(&self, make: impl FnOnce(&Copies<T>) -> Result<Copies<T>, Error>) -> Result<(), Error> {
        // The readers of the parent's other threads never move here: some of them stay inside for ever.
        if self.process != std::process::id() {
            return Err(Error::Forked);
        }
        self.switch.replace(make).map_err(|why| match why {
            Unchanged::Inside => Error::Inside,
            Unchanged::Writing => Error::Writing,
            Unchanged::NotMade(error) => error,
            Unchanged::NoBarrier(error) => Error::NoBarrier(error),
            Unchanged::Unconfirmed(error) => Error::Unconfirmed(error),
        })
    }

    fn part(&self, first: usize, count: usize) -> Result<Range<usize>, Error> {
        let (end, length) = (first.saturating_add(count), self.length);
        if end > length {
            return Err(Error::Beyond { first, end, length });
        }
        Ok(first..end)
    }
}

/// One thread's access to replicated data.
///
/// ```compile_fail,E0499
/// let data = replicas::Replicated::new(&[1u8])?;
/// let mut reader = data.reader();
/// let (one, another) = (reader.enter(), reader.enter());
/// assert_eq!(one[0], another[0]);
/// # Ok::<(), replicas::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// let data = replicas::Replicated::new(&[1u8])?;
/// let mut reader = data.reader();
/// std::thread::spawn(move || reader.enter()[0]);
/// # Ok::<(), replicas::Error>(())
/// ```
pub struct Reader<T>(Place<Copies<T>>);

impl<T: Pod> Reader<T> {
    /// Enters a region: selects the copy of the thread's node. Writers wait until the region is dropped, so a region
    /// should be short, and none should wait for a writer.
    #[inline]
    pub fn enter(&mut self) -> Region<'_, T> {
        let copies = self.0.enter();
        Region {
            at: copies.pointer(),
            length: copies.length(),
            _copies: copies,
        }
    }

    /// Enters a region for a caller that cannot hold a guard, such as C. Ends the region that this reader is in.
    ///
    /// Post: until [`Reader::leave`], or until the reader enters again or is dropped, the pointer is valid for as many
    /// elements as the data has, which nobody writes.
    #[inline]
    pub fn enter_unguarded(&mut self) -> NonNull<T> {
        let copies = self.0.begin();
        // SAFETY: the contents found in the region stay until it is left, which takes `&mut self`.
        unsafe { &*copies }.pointer()
    }

    /// Leaves the region of [`Reader::enter_unguarded`], if there is one.
    #[inline]
    pub fn leave(&mut self) {
        self.0.end();
    }

    pub fn is_inside(&self) -> bool {
        self.0.is_inside()
    }
}

/// The elements while a thread is in a region: a plain slice, in the selected copy.
pub struct Region<'a, T> {
    at: NonNull<T>,
    length: usize,
    _copies: Entered<'a, Copies<T>>,
}

impl<T> Deref for Region<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: there are this many elements, and nothing is written or freed until the region is left: by `_copies`,
        // when this is dropped.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.length) }
    }
}

/// A copy that stays as it was when requested, even if the contents change, or the data is dropped. Its memory is in
/// use until this is dropped, by any thread. Writers do not wait for it.
///
/// ```
/// let data = replicas::Replicated::new(&[1u8, 2])?;
/// let before = data.keep();
/// data.write(0, &[7])?;
/// assert_eq!((&before[..], &data.keep()[..]), (&[1, 2][..], &[7, 2][..]));
/// # Ok::<(), replicas::Error>(())
/// ```
pub struct Kept<T> {
    at: NonNull<T>,
    length: usize,
    _copy: Made,
}

// SAFETY: it is a shared view of elements that nobody writes, and of the memory that they are in, which any thread may free.
unsafe impl<T: Send + Sync> Send for Kept<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Kept<T> {}

impl<T> Deref for Kept<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: this many elements are in `_copy`, whose memory nobody writes, and which lives as long as this.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.length) }
    }
}
