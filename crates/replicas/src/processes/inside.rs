//! One process's part: its window on one of the copies, which it switches by the epoch, and its work as the writer.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::memory::PAGE;
use sys::shared_pages::{SharedPages, Window};

use super::control::{self, Control};
use crate::Error;
use crate::copies::Nodes;
use crate::state::{CopyOn, Mode, State, Way, Without};
use crate::told;

pub struct Inside {
    /// None once detached.
    pub window: Mutex<Option<Shown>>,
    pub start: NonNull<u8>,
    pub length: usize,
    pub pages: SharedPages,
    pub control: Control,
    pub slot: usize,
    pub process: u32,
    pub nodes: Nodes,
    /// The node whose copy this process prefers, if known.
    pub node: AtomicU32,
    pub ends: AtomicBool,
    /// One writer of this process at a time; between processes there is a lock in `control`.
    pub writer: Writer,
}

// SAFETY: the pointer is passed out and never followed here.
unsafe impl Send for Inside {}
// SAFETY: as above; the rest is behind locks or atomic.
unsafe impl Sync for Inside {}

pub struct Shown {
    pub window: Window,
    pub copy: usize,
}

/// The lock of the writers of this process. A thread that already has it does not get it again, so that none waits for
/// itself.
#[derive(Default)]
pub struct Writer {
    lock: Mutex<()>,
    /// The number of the thread that has it; 0: none. A thread compares it only with its own number, which it stored
    /// itself.
    thread: AtomicU32,
}

/// The held lock.
pub struct Writing<'a>(
    &'a AtomicU32,
    #[expect(dead_code, reason = "held until this goes")] MutexGuard<'a, ()>,
);

impl Writer {
    /// The lock; `None` if the calling thread has it already.
    pub fn begin(&self) -> Option<Writing<'_>> {
        let me = sys::affinity::this_thread();
        if self.thread.load(SeqCst) == me {
            return None;
        }
        let held = locked(&self.lock);
        self.thread.store(me, SeqCst);
        Some(Writing(&self.thread, held))
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

pub const UNKNOWN: u32 = u32::MAX;

impl Inside {
    pub fn is_here(&self) -> Result<(), Error> {
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

    /// Switches the window with each epoch, until the end.
    pub fn serve(&self) {
        while !self.ends.load(SeqCst) {
            let epoch = self.control.epoch();
            if self.settle().is_err() {
                // There is no memory for a mapping. Nothing was acknowledged: writers wait.
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            self.control.wait_for_epoch(epoch);
        }
    }

    /// Shows the copy for the epoch, and acknowledges it.
    pub fn settle(&self) -> io::Result<()> {
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
        // The last of several on one node.
        let there: Vec<usize> = (0..nodes.len()).rev().filter(|&copy| filled[copy]).collect();
        let on: Vec<Option<u32>> = there.iter().map(|&copy| nodes[copy]).collect();
        match &self.nodes {
            Nodes::Several(places) if !there.is_empty() => there[places.copy_of(self.node.load(SeqCst), &on)],
            _ => there.first().copied().unwrap_or(0),
        }
    }

    /// Pre: the caller has the lock. Post: every process shows the master, and there are no replicas.
    pub fn collapse(&self) -> Result<(), Error> {
        let mut epoch = self.control.epoch();
        if Control::is_replicated(epoch) {
            epoch = self.control.advance();
        }
        self.settle().map_err(shared("turning the window (mremap)"))?;
        // The epoch may be from a process that died before all had acknowledged it.
        self.control.wait_for_all(epoch);
        for (copy, filled) in self.control.filled().into_iter().enumerate().skip(1) {
            if filled {
                self.control.set_filled(copy, false);
                let freed = self.pages.free(self.place(copy), self.copy_bytes());
                freed.map_err(shared("giving back a replica"))?;
                told::gave(Way::Mappings, self.copy_bytes());
            }
        }
        Ok(())
    }

    /// Pre: the caller has the lock.
    pub fn replicate(&self) -> Result<(), Error> {
        if Control::is_replicated(self.control.epoch()) {
            return Ok(());
        }
        // A process that died while it collapsed may have left readers on the replicas, and one of these may be freed
        // below.
        if self.control.filled()[1..].contains(&true) {
            self.collapse()?;
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
                told::took(Way::Mappings, self.copy_bytes());
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

    pub fn state(&self) -> State {
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

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn shared(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Shared { doing, source }
}
