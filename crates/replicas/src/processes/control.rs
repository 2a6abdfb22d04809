//! The words by which the processes communicate, at the beginning of the shared pages.
//!
//! All accesses are sequentially consistent: an attaching process takes its slot and then reads the epoch, a writer
//! changes the epoch and then reads the slots, and one of them must see the other.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use sys::mappings::{self, Mapping};
use sys::memory::{PAGE, Span};
use sys::shared_pages::{SharedPages, SharedWords};
use sys::{Root, tasks};

use crate::Error;
use words::{
    ACKNOWLEDGED, ADDRESS, COUNT, EPOCH, FILLED, KIND, LENGTH, LOCK, NAMESPACE, NODE_OF, OWNER, Owner, WRITES, place,
};

mod words;

/// Bytes of control; the copies follow.
pub const BYTES: usize = 2 * PAGE;
/// The most copies, including the master.
pub const COPIES: usize = 64;
/// The most processes that can be attached at once.
pub const PROCESSES: usize = 256;

const MAGIC: u32 = 0x646d_7232;
/// The first epoch. Odd ones are replicated, and 0 is none.
const FIRST: u32 = 2;

/// A copy without a known or requested node.
const ANYWHERE: u32 = u32::MAX;
pub struct Control {
    words: SharedWords,
    /// The name of the memory in `/proc/PID/maps`.
    name: String,
}

impl Control {
    pub fn open(pages: &SharedPages, name: String) -> io::Result<Control> {
        let words = SharedWords::open(pages, BYTES)?;
        let name = format!("/memfd:{name} (deleted)");
        Ok(Control { words, name })
    }

    /// Writes the constant parts; nobody else knows the pages yet.
    pub fn found(&self, length: usize, address: usize, nodes: &[Option<u32>]) -> io::Result<()> {
        self.set_long(LENGTH, length as u64);
        self.set_long(ADDRESS, address as u64);
        self.set(NAMESPACE, namespace()?);
        self.set(COUNT, nodes.len() as u32);
        for (copy, node) in nodes.iter().enumerate() {
            self.set(NODE_OF + copy, node.unwrap_or(ANYWHERE));
        }
        self.set(FILLED, 1);
        self.set(EPOCH, FIRST);
        self.set(KIND, MAGIC);
        Ok(())
    }

    /// Checks that another process made this and that the pages can be shared with it.
    pub fn check(&self, bytes: usize) -> Result<(), Error> {
        let (length, copies) = (self.length(), self.get(COUNT) as usize);
        let room = length
            .checked_next_multiple_of(PAGE)
            .and_then(|copy| copy.checked_mul(copies));
        let fits = room.and_then(|room| room.checked_add(BYTES)) == Some(bytes);
        if self.get(KIND) != MAGIC || length == 0 || copies == 0 || copies > COPIES || !fits {
            return Err(Error::Foreign("it is no replicated data of this version"));
        }
        // The processes' existence is checked by their numbers.
        let namespace = namespace().map_err(|source| Error::Shared {
            doing: "/proc/self/ns/pid",
            source,
        })?;
        if namespace != self.get(NAMESPACE) {
            return Err(Error::Foreign(
                "it is of another PID namespace, where this process has another number",
            ));
        }
        Ok(())
    }

    pub fn length(&self) -> usize {
        self.long(LENGTH) as usize
    }

    pub fn address(&self) -> usize {
        self.long(ADDRESS) as usize
    }

    pub fn writes(&self) -> u64 {
        self.get(WRITES).into()
    }

    pub fn count_write(&self) {
        self.words.word(WRITES).fetch_add(1, SeqCst);
    }

    /// The node of each copy, the master's first.
    pub fn nodes(&self) -> Vec<Option<u32>> {
        let node = |copy| Some(self.get(NODE_OF + copy)).filter(|&node| node != ANYWHERE);
        (0..self.get(COUNT) as usize).map(node).collect()
    }

    /// The copies that have memory and equal the master while the epoch is odd.
    pub fn filled(&self) -> Vec<bool> {
        (0..self.get(COUNT) as usize)
            .map(|copy| self.get(FILLED + copy) != 0)
            .collect()
    }

    pub fn set_filled(&self, copy: usize, filled: bool) {
        self.set(FILLED + copy, filled.into());
    }

    pub fn epoch(&self) -> u32 {
        self.get(EPOCH)
    }

    pub fn is_replicated(epoch: u32) -> bool {
        !epoch.is_multiple_of(2)
    }

    /// The next epoch, for the holder of the lock. Post: all processes are told.
    pub fn advance(&self) -> u32 {
        let next = match self.epoch().wrapping_add(1) {
            0 => FIRST,
            next => next,
        };
        self.set(EPOCH, next);
        self.words.wake(EPOCH);
        next
    }

    /// Waits until the epoch changes, or for less.
    pub fn wait_for_epoch(&self, known: u32) {
        self.words.wait(EPOCH, known, Duration::from_secs(1));
    }

    /// Wakes the threads that wait for an epoch.
    pub fn wake(&self) {
        self.words.wake(EPOCH);
    }

    /// A slot for this process, which already maps the master.
    pub fn attach(&self) -> Result<usize, Error> {
        let me = std::process::id();
        // This process may have had one before an exec.
        for slot in 0..PROCESSES {
            let owner = self.owner(slot);
            if owner.pid() == me {
                self.clear(slot, owner);
            }
        }
        let free = |slot: &usize| {
            let owner = self.owner(*slot);
            let word = self.words.word(place(*slot, OWNER));
            owner.pid() == 0 && word.compare_exchange(owner.0, owner.next(me).0, SeqCst, SeqCst).is_ok()
        };
        let take = || (0..PROCESSES).find(free);
        let slot = take().or_else(|| {
            for slot in 0..PROCESSES {
                let owner = self.owner(slot);
                if self.is_gone(owner) {
                    self.clear(slot, owner);
                }
            }
            take()
        });
        let slot = slot.ok_or(Error::Crowded { most: PROCESSES })?;
        // The previous owner's acknowledgment, if it is of the present epoch, also holds for this process: it maps the
        // master, and if a writer waits, the epoch is even.
        self.set(place(slot, ACKNOWLEDGED), 0);
        Ok(slot)
    }

    /// Gives up a slot. Pre: the process maps none of the copies any more.
    pub fn detach(&self, slot: usize) {
        self.clear(slot, self.owner(slot));
    }

    /// Announces that this process maps the copy for the epoch.
    pub fn acknowledge(&self, slot: usize, epoch: u32) {
        self.set(place(slot, ACKNOWLEDGED), epoch);
        self.words.wake(place(slot, ACKNOWLEDGED));
    }

    /// Waits for another process's word to change, but only until it is time to check whether that process is alive.
    fn wait_for_another(&self, word: usize, known: u32) {
        self.words.wait(word, known, Duration::from_millis(10));
    }

    /// Waits until every process that is attached and alive has acknowledged the epoch.
    pub fn wait_for_all(&self, epoch: u32) {
        for slot in 0..PROCESSES {
            let mut waited = false;
            loop {
                let (owner, known) = (self.owner(slot), self.get(place(slot, ACKNOWLEDGED)));
                if owner.pid() == 0 || known == epoch {
                    break;
                }
                if waited && self.is_gone(owner) {
                    self.clear(slot, owner);
                    continue;
                }
                self.wait_for_another(place(slot, ACKNOWLEDGED), known);
                waited = true;
            }
        }
    }

    /// The lock of writers, for the process of this slot. A process that died with it has lost it.
    ///
    /// Pre: no other thread of this process has it or waits for it.
    pub fn lock(&self, slot: usize) -> Locked<'_> {
        let mine = self.key(slot);
        let lock = self.words.word(LOCK);
        loop {
            let Err(holder) = lock.compare_exchange(0, mine, SeqCst, SeqCst) else {
                return Locked(self, mine);
            };
            self.wait_for_another(LOCK, holder);
            let of = (holder & 0x3ff) as usize;
            let gone = of >= PROCESSES || self.key(of) != holder || self.is_gone(self.owner(of));
            if gone && lock.compare_exchange(holder, mine, SeqCst, SeqCst).is_ok() {
                return Locked(self, mine);
            }
        }
    }

    /// Distinguishes a slot's process from all later owners of the slot.
    fn key(&self, slot: usize) -> u32 {
        // Never 0: the highest bit is set.
        1 << 31 | self.owner(slot).generation() << 10 | slot as u32
    }

    fn owner(&self, slot: usize) -> Owner {
        Owner(self.get(place(slot, OWNER)))
    }

    /// True if no thread of a slot's process has our pages mapped at their address: it ended, or executed another
    /// program. If that cannot be determined, the process counts as alive.
    fn is_gone(&self, owner: Owner) -> bool {
        let pid = owner.pid();
        if pid == std::process::id() {
            return false;
        }
        if pid == 0 || !tasks::is_there(pid) {
            return true;
        }
        // A process that its parent has not waited for yet has a thread, which has ended. The first thread may end
        // before the others.
        match tasks::living(&Root::default(), pid) {
            Ok(threads) => !threads.into_iter().any(|thread| self.is_mapped(thread)),
            // It is hidden from this user, or from this root directory.
            Err(_) => !tasks::is_there(pid),
        }
    }

    /// True if a thread of another process has our pages mapped at their address.
    fn is_mapped(&self, thread: u32) -> bool {
        let window = Span::new(self.address(), self.length().next_multiple_of(PAGE));
        let listed = mappings::all(Some(thread)).unwrap_or_default();
        let meeting = || listed.iter().filter(|mapping| mapping.span.meets(window));
        let ours = |mapping: &Mapping| matches!(&mapping.kind, mappings::Kind::File(name) if *name == self.name);
        // Since Linux 6.17 the list can lack a window that is being switched. The exact query cannot miss it, but
        // misses one that the program has split (mlock of a part).
        meeting().any(ours)
            || match mappings::is_mapped(thread, window) {
                Ok(there) => there && meeting().count() == 0,
                Err(_) => true,
            }
    }

    /// Pre: the owner is gone, or gives the slot up.
    fn clear(&self, slot: usize, owner: Owner) {
        // Only that word: the slot may have another owner a moment later.
        let _ = self
            .words
            .word(place(slot, OWNER))
            .compare_exchange(owner.0, owner.freed().0, SeqCst, SeqCst);
        self.words.wake(place(slot, ACKNOWLEDGED));
    }

    fn get(&self, at: usize) -> u32 {
        self.words.word(at).load(SeqCst)
    }

    fn set(&self, at: usize, value: u32) {
        self.words.word(at).store(value, SeqCst);
    }

    fn long(&self, at: usize) -> u64 {
        u64::from(self.get(at)) | u64::from(self.get(at + 1)) << 32
    }

    fn set_long(&self, at: usize, value: u64) {
        self.set(at, value as u32);
        self.set(at + 1, (value >> 32) as u32);
    }
}

/// The PID namespace of this process, as a number.
fn namespace() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self/ns/pid")?.ino() as u32)
}

/// The held lock.
pub struct Locked<'a>(&'a Control, u32);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = self.0.words.word(LOCK).compare_exchange(self.1, 0, SeqCst, SeqCst);
        self.0.words.wake(LOCK);
    }
}
