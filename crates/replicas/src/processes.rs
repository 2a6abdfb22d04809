//! Replicated data for several cooperating processes, at the same address in each of them.
//!
//! Everything is in one memfd: words by which the processes agree (`control`), the master, and a replica for each other
//! node. Each process has a window on one of the copies, that of its node while there are replicas. A write first makes
//! all processes switch their windows to the master, and waits until each has acknowledged it (Verghese96, section 8.1:
//! "collapse"). So a read through a pointer into the window always finds the master's bytes. A service thread in each
//! process switches its window.
//!
//! It is shared memory: a reader may see a part of another process's write, as with any shared mapping. The
//! processes trust each other.

mod control;
mod inside;
#[cfg(test)]
mod model;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::memory::PAGE;
use sys::shared_pages::{SharedPages, Window};
use sys::this_cpu::ThisCpu;

use crate::Error;
use crate::copies::Nodes;
use crate::state::{State, Way};
use crate::told;
use control::Control;
use inside::{Inside, Shown, UNKNOWN, Writer, locked, shared};

/// Bytes that several processes read at the same address and rarely write, with a copy on each node.
///
/// A child of fork does not have them: a read there raises SIGSEGV. It must attach itself, in its own program.
pub struct SharedReplicas {
    inside: Arc<Inside>,
    service: Option<JoinHandle<()>>,
}

/// How many were created by this process, for their names.
static CREATED: AtomicUsize = AtomicUsize::new(0);

impl SharedReplicas {
    /// Data with these contents, replicated on all nodes that have cpus and memory for it.
    ///
    /// Other processes receive [`SharedReplicas::descriptor`], as a child or by SCM_RIGHTS, and
    /// [`attach`](Self::attach).
    pub fn create(contents: &[u8]) -> Result<SharedReplicas, Error> {
        let nodes: Vec<u32> = match Nodes::of_this_machine() {
            Nodes::Several(places) => places.nodes().collect(),
            Nodes::One(_) => Vec::new(),
        };
        SharedReplicas::create_on(contents, &nodes)
    }

    /// The same with copies on these nodes: the master on the first, a replica on each other. Without nodes: one copy,
    /// anywhere.
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
        // If the master has no node, the kernel chooses its place.
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
        told::made(Way::Mappings);
        told::took(Way::Mappings, copy);
        made.replicate()?;
        Ok(made)
    }

    /// Attaches to the data that another process created.
    ///
    /// Errors: [`Error::Foreign`] if it is something else; [`Error::Occupied`] if this process has something else at
    /// the address, or is attached already; [`Error::Crowded`].
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
            writer: Writer::default(),
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

    /// The descriptor for other processes. It is closed on exec, unless the program changes that.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.inside.pages.descriptor()
    }

    /// The address of the bytes, the same in each process. They may be read until this is dropped; a write raises
    /// SIGSEGV. Another process may write them at any moment.
    pub fn start(&self) -> NonNull<u8> {
        self.inside.start
    }

    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.inside.length
    }

    /// Makes this process read the copy of the calling thread's node: for use after the thread was moved there.
    pub fn follow(&self) -> Result<(), Error> {
        self.inside.is_here()?;
        if let Nodes::Several(places) = &self.inside.nodes {
            self.inside.node.store(places.node_of(ThisCpu::find().number()), SeqCst);
        }
        self.inside.settle().map_err(shared("turning the window (mremap)"))
    }

    /// Writes bytes from `offset` on, for all processes. There are no replicas afterwards, until a process replicates.
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

    /// Changes the contents: `change` gets the last contents that any process wrote, and nobody writes meanwhile.
    /// Within `change`, writes to the same data and changes of its replicas are refused.
    ///
    /// Errors: as of [`SharedReplicas::write`], and [`Error::Writing`].
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

    /// Frees all replicas, once every process has switched to the master.
    pub fn collapse(&self) -> Result<(), Error> {
        self.alone(Inside::collapse)
    }

    /// Makes a replica on each node that should have one and has memory; the processes switch gradually to their nodes'
    /// replicas. If there are replicas already, nothing is done.
    pub fn replicate(&self) -> Result<(), Error> {
        self.alone(Inside::replicate)
    }

    /// The present state: the mode, the copies, their cost, and the reason why a node has none.
    ///
    /// Errors: [`Error::Forked`].
    pub fn state(&self) -> Result<State, Error> {
        self.inside.is_here()?;
        Ok(self.inside.state())
    }

    fn alone(&self, work: impl FnOnce(&Inside) -> Result<(), Error>) -> Result<(), Error> {
        self.inside.is_here()?;
        let _writer = self.inside.writer.begin().ok_or(Error::Writing)?;
        let _alone = self.inside.control.lock(self.inside.slot);
        work(&self.inside)
    }
}

impl Drop for SharedReplicas {
    fn drop(&mut self) {
        // A child of fork only has its parent's handle: at the window's address it may have something else.
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

/// A window where other processes will hardly have anything: far from the kernel's usual addresses.
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
