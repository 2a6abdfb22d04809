//! Replicated data for several processes that cooperate, at the same address in each of them.
//!
//! All is in one memfd: words by which the processes agree (`control`), the master, and a replica for each other node. Each
//! process has a window on one of the copies, that of its node while there are replicas. A write makes all processes turn
//! their windows to the master first, and waits until each has said that it did (Verghese96, section 8.1: "collapse"). So a
//! pointer into the window reads what the master holds, always. A thread of ours in each process turns its window.
//!
//! It is shared memory: who reads while another process writes may see a part of the write, as with any shared mapping. The
//! processes trust each other.

mod control;
#[cfg(test)]
mod model;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::memory::PAGE;
use sys::shared_pages::{SharedPages, Window};
use sys::this_cpu::ThisCpu;

use crate::Error;
use crate::copies::Nodes;
use crate::state::{CopyOn, Mode, State, Way, Without};
use control::Control;

/// Bytes that several processes read at the same address and rarely write, with a copy on each node.
///
/// A child of fork does not have them: who reads there is ended by SIGSEGV. It attaches by itself, in a program of its own.
pub struct SharedReplicas {
    inside: Arc<Inside>,
    service: Option<JoinHandle<()>>,
}

struct Inside {
    /// None once detached.
    window: Mutex<Option<Shown>>,
    start: NonNull<u8>,
    length: usize,
    pages: SharedPages,
    control: Control,
    slot: usize,
    process: u32,
    nodes: Nodes,
    /// The node whose copy this process wants, if it is known.
    node: AtomicU32,
    ends: AtomicBool,
    /// One writer of this process at a time; the processes among each other have a lock in `control`.
    writer: Mutex<()>,
}

// SAFETY: the pointer is handed out and never followed here.
unsafe impl Send for Inside {}
// SAFETY: as above; the rest is behind locks or atomic.
unsafe impl Sync for Inside {}

struct Shown {
    window: Window,
    copy: usize,
}

const UNKNOWN: u32 = u32::MAX;

/// How many were created by this process, for their names.
static CREATED: AtomicUsize = AtomicUsize::new(0);

impl SharedReplicas {
    /// Data with these contents, replicated on all nodes that have cpus and memory for it.
    ///
    /// Other processes get [`SharedReplicas::descriptor`], as a child gets it or by SCM_RIGHTS, and [`attach`](Self::attach).
    pub fn create(contents: &[u8]) -> Result<SharedReplicas, Error> {
        let nodes: Vec<u32> = match Nodes::of_this_machine() {
            Nodes::Several(places) => places.nodes().collect(),
            Nodes::One(_) => Vec::new(),
        };
        SharedReplicas::create_on(contents, &nodes)
    }

    /// The same with copies on these nodes: the master on the first, a replica on each other. None: one copy, anywhere.
    pub fn create_on(contents: &[u8], nodes: &[u32]) -> Result<SharedReplicas, Error> {
        if contents.is_empty() {
            return Err(Error::Empty);
        }
        let mut nodes: Vec<Option<u32>> = nodes.iter().copied().map(Some).collect();
        nodes.truncate(control::COPIES);
        if nodes.is_empty() {
            nodes.push(None);
        }
        let made = CREATED.fetch_add(1, SeqCst);
        let name = format!("domicile-replicas-{}-{made}", std::process::id());
        let copy = contents.len().next_multiple_of(PAGE);
        let bytes = copy
            .checked_mul(nodes.len())
            .and_then(|all| all.checked_add(control::BYTES));
        let bytes = bytes
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or(Error::Memory {
                bytes: contents.len(),
                source: io::ErrorKind::OutOfMemory.into(),
            })?;
        let pages = SharedPages::create(&name, bytes).map_err(shared("memfd_create"))?;
        // Where the master is put on no node, it is where the kernel puts it.
        let there = pages.populate(control::BYTES, copy, nodes[0]);
        nodes[0] = nodes[0].filter(|node| there.is_ok_and(|pages| pages.iter().all(|page| page == &Ok(*node))));
        pages
            .write(control::BYTES, contents)
            .map_err(shared("writing the contents"))?;
        let control = Control::open(&pages, name).map_err(shared("mmap"))?;
        let window = free_place(&pages, copy)?;
        let address = window.start().addr().get();
        control
            .found(contents.len(), address, &nodes)
            .map_err(shared("/proc/self/ns/pid"))?;
        let made = SharedReplicas::begin(pages, control, window)?;
        made.replicate()?;
        Ok(made)
    }

    /// Joins those who share what another process created.
    ///
    /// Errors: [`Error::Foreign`] where it is something else; [`Error::Occupied`] where this process has something
    /// else at the address, or is attached already; [`Error::Crowded`].
    pub fn attach(descriptor: OwnedFd) -> Result<SharedReplicas, Error> {
        let foreign = |_| Error::Foreign("it is no memory of sealed size");
        let pages = SharedPages::given(descriptor).map_err(foreign)?;
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pages.descriptor()));
        let name = std::fs::read_link(&link).map_err(shared("/proc/self/fd"))?;
        let name = name.to_string_lossy();
        let name = name
            .trim_start_matches("/memfd:")
            .trim_end_matches(" (deleted)")
            .to_owned();
        let control = Control::open(&pages, name).map_err(|_| Error::Foreign("it is too small"))?;
        control.check(pages.bytes())?;
        let (copy, address) = (control.length().next_multiple_of(PAGE), control.address());
        let window = Window::open(&pages, control::BYTES, copy, Some(address)).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Occupied { address },
            _ => shared("mmap")(error),
        })?;
        SharedReplicas::begin(pages, control, window)
    }

    /// Pre: the window shows the master.
    fn begin(pages: SharedPages, control: Control, window: Window) -> Result<SharedReplicas, Error> {
        let inside = Arc::new(Inside {
            start: window.start(),
            length: control.length(),
            slot: control.attach()?,
            window: Mutex::new(Some(Shown { window, copy: 0 })),
            pages,
            control,
            process: std::process::id(),
            nodes: Nodes::of_this_machine(),
            node: AtomicU32::new(UNKNOWN),
            ends: AtomicBool::new(false),
            writer: Mutex::new(()),
        });
        let mut made = SharedReplicas { inside, service: None };
        made.follow()?;
        let served = Arc::clone(&made.inside);
        // The program's handlers run on its own threads.
        let _held = sys::signals::Held::begin();
        let service = std::thread::Builder::new()
            .name("replicas".to_owned())
            .spawn(move || served.serve());
        made.service = Some(service.map_err(shared("a thread that turns the window"))?);
        Ok(made)
    }

    /// What other processes attach to. It is closed on exec, unless the program says otherwise.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.inside.pages.descriptor()
    }

    /// Where the bytes are, in each of the processes. They may be read until this is dropped; who writes is ended by SIGSEGV.
    /// Another process may write them at any moment.
    pub fn start(&self) -> NonNull<u8> {
        self.inside.start
    }

    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.inside.length
    }

    /// Has this process read the copy of the node that the calling thread is on: after it was moved there.
    pub fn follow(&self) -> Result<(), Error> {
        self.inside.is_here()?;
        if let Nodes::Several(places) = &self.inside.nodes {
            self.inside.node.store(places.node_of(ThisCpu::find().number()), SeqCst);
        }
        self.inside.settle().map_err(shared("turning the window (mremap)"))
    }

    /// Writes bytes from place `offset` on, for all processes. There are no replicas afterwards, until somebody replicates.
    ///
    /// Post: every process reads them. Nobody reads older ones, on any node.
    ///
    /// Errors: [`Error::Beyond`], [`Error::Forked`]: nothing was changed. [`Error::Shared`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let (end, length) = (offset.saturating_add(bytes.len()), self.len());
        if end > length {
            let first = offset;
            return Err(Error::Beyond { first, end, length });
        }
        self.alone(|inside| {
            inside.collapse()?;
            let written = inside.pages.write(control::BYTES + offset, bytes);
            inside.control.count_write();
            written.map_err(shared("writing the contents"))
        })
    }

    /// Changes the contents: `change` is given what all processes wrote before, and nobody writes meanwhile.
    pub fn update(&self, change: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        self.alone(|inside| {
            inside.collapse()?;
            let mut bytes = vec![0; inside.length];
            inside
                .pages
                .read(control::BYTES, &mut bytes)
                .map_err(shared("reading the contents"))?;
            change(&mut bytes);
            let written = inside.pages.write(control::BYTES, &bytes);
            inside.control.count_write();
            written.map_err(shared("writing the contents"))
        })
    }

    /// Frees all replicas, once every process has turned to the master.
    pub fn collapse(&self) -> Result<(), Error> {
        self.alone(Inside::collapse)
    }

    /// Makes a replica on each node that is to have one, as far as it has memory; every process turns to its node's by and by.
    /// Where there are replicas already nothing is done.
    pub fn replicate(&self) -> Result<(), Error> {
        self.alone(Inside::replicate)
    }

    /// How it stands: which mode, which copies, what they cost, and why a node has none.
    ///
    /// Errors: [`Error::Forked`].
    pub fn state(&self) -> Result<State, Error> {
        self.inside.is_here()?;
        Ok(self.inside.state())
    }

    fn alone(&self, work: impl FnOnce(&Inside) -> Result<(), Error>) -> Result<(), Error> {
        self.inside.is_here()?;
        let _writer = locked(&self.inside.writer);
        let _alone = self.inside.control.lock(self.inside.slot);
        work(&self.inside)
    }
}

impl Drop for SharedReplicas {
    fn drop(&mut self) {
        // What a child of fork has is its parent's: at the window's address it may have something else.
        if self.inside.is_here().is_err() {
            std::mem::forget(Arc::clone(&self.inside));
            return;
        }
        self.inside.ends.store(true, SeqCst);
        if let Some(service) = self.service.take() {
            while !service.is_finished() {
                self.inside.control.wake();
                std::thread::sleep(Duration::from_micros(100));
            }
            let _ = service.join();
        }
        // First the window, then the slot: until then writers wait for this process.
        drop(locked(&self.inside.window).take());
        self.inside.control.detach(self.inside.slot);
    }
}

impl Inside {
    fn is_here(&self) -> Result<(), Error> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::Forked)
    }

    fn copy_bytes(&self) -> usize {
        self.length.next_multiple_of(PAGE)
    }

    fn place(&self, copy: usize) -> usize {
        control::BYTES + copy * self.copy_bytes()
    }

    /// Turns the window with each epoch, until the end.
    fn serve(&self) {
        while !self.ends.load(SeqCst) {
            let epoch = self.control.epoch();
            if self.settle().is_err() {
                // Out of memory for a mapping. Nothing was acknowledged: writers wait.
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            self.control.wait_for_epoch(epoch);
        }
    }

    /// Shows what goes with the epoch, and acknowledges it.
    fn settle(&self) -> io::Result<()> {
        let mut window = locked(&self.window);
        let Some(shown) = window.as_mut() else { return Ok(()) };
        loop {
            let epoch = self.control.epoch();
            let copy = match Control::is_replicated(epoch) {
                true => self.nearest(),
                false => 0,
            };
            if copy != shown.copy {
                shown.window.show(&self.pages, self.place(copy))?;
                shown.copy = copy;
            }
            self.control.acknowledge(self.slot, epoch);
            if self.control.epoch() == epoch {
                return Ok(());
            }
        }
    }

    /// The copy that this process should read while there are replicas.
    fn nearest(&self) -> usize {
        let nodes = self.control.nodes();
        let filled = self.control.filled();
        // Of several on one node the last.
        let there: Vec<usize> = (0..nodes.len()).rev().filter(|&copy| filled[copy]).collect();
        let on: Vec<Option<u32>> = there.iter().map(|&copy| nodes[copy]).collect();
        match &self.nodes {
            Nodes::Several(places) if !there.is_empty() => there[places.copy_of(self.node.load(SeqCst), &on)],
            _ => there.first().copied().unwrap_or(0),
        }
    }

    /// Pre: the caller has the lock. Post: every process shows the master, and there are no replicas.
    fn collapse(&self) -> Result<(), Error> {
        let mut epoch = self.control.epoch();
        if Control::is_replicated(epoch) {
            epoch = self.control.advance();
        }
        self.settle().map_err(shared("turning the window (mremap)"))?;
        // The epoch may be another's who died before all had acknowledged it.
        self.control.wait_for_all(epoch);
        for (copy, filled) in self.control.filled().into_iter().enumerate().skip(1) {
            if filled {
                self.control.set_filled(copy, false);
                let freed = self.pages.free(self.place(copy), self.copy_bytes());
                freed.map_err(shared("giving back a replica"))?;
            }
        }
        Ok(())
    }

    /// Pre: the caller has the lock.
    fn replicate(&self) -> Result<(), Error> {
        if Control::is_replicated(self.control.epoch()) {
            return Ok(());
        }
        let nodes = self.control.nodes();
        let mut bytes = vec![0; self.length];
        self.pages
            .read(control::BYTES, &mut bytes)
            .map_err(shared("reading the contents"))?;
        let mut any = false;
        for (copy, node) in nodes.iter().enumerate().skip(1) {
            let place = self.place(copy);
            let populated = self.pages.populate(place, self.copy_bytes(), *node);
            let there = populated.is_ok_and(|pages| pages.iter().all(|page| page.ok() == *node));
            if there {
                self.pages.write(place, &bytes).map_err(shared("writing a replica"))?;
                any = true;
            } else {
                // The part that was populated elsewhere.
                let _ = self.pages.free(place, self.copy_bytes());
            }
            self.control.set_filled(copy, there);
        }
        if any {
            self.control.advance();
            self.settle().map_err(shared("turning the window (mremap)"))?;
        }
        Ok(())
    }

    fn state(&self) -> State {
        let (nodes, filled) = (self.control.nodes(), self.control.filled());
        let replicated = Control::is_replicated(self.control.epoch());
        let there = |&copy: &usize| filled[copy] && (copy == 0 || replicated);
        let copies: Vec<usize> = (0..nodes.len()).filter(there).collect();
        let bytes = self.copy_bytes() as u64;
        let without = |&copy: &usize| {
            nodes[copy].map(|node| Without {
                node,
                why: "it had no memory for it, or memory may not be put on nodes here (mbind, move_pages)".to_owned(),
                reads: None,
            })
        };
        State {
            way: Way::Mappings,
            mode: match copies.len() {
                1 => Mode::OneCopy,
                _ => Mode::CopyOnEachNode,
            },
            bytes: self.length as u64,
            copies: copies
                .iter()
                .map(|&copy| CopyOn {
                    node: nodes[copy],
                    bytes,
                })
                .collect(),
            without: match replicated {
                true => (1..nodes.len())
                    .filter(|&copy| !filled[copy])
                    .filter_map(|copy| without(&copy))
                    .collect(),
                false => Vec::new(),
            },
            why_one: match (copies.len(), nodes.len(), &self.nodes) {
                (2.., ..) => None,
                (_, 1, Nodes::One(why)) => Some(why.clone()),
                (_, 1, _) => Some("no replicas were asked for".to_owned()),
                _ => Some("the replicas were collapsed, or none could be made".to_owned()),
            },
            writes: self.control.writes(),
            readers_pay: false,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shared(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Shared { doing, source }
}

/// A window where other processes will hardly have anything: far from where the kernel puts what it maps.
fn free_place(pages: &SharedPages, bytes: usize) -> Result<Window, Error> {
    const LOW: usize = 0x2000_0000_0000;
    const STEP: usize = 1 << 32;
    let first = std::process::id() as usize % 1024;
    let tries = (0..16).map(|turn| LOW + (first + 61 * turn) % 4096 * STEP);
    let found = tries
        .map(Some)
        .chain([None])
        .find_map(|address| Window::open(pages, control::BYTES, bytes, address).ok());
    found.ok_or(Error::Memory {
        bytes,
        source: io::ErrorKind::OutOfMemory.into(),
    })
}

impl AsFd for SharedReplicas {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}
