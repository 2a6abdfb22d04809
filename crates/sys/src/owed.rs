//! The words in a process's memory that the kernel writes when one of its threads ends: words that name the thread.
//!
//! A thread of the C library has its number in its descriptor. The kernel clears it when the thread ends, and wakes the thread that
//! joins it. A robust mutex holds the number of the thread that has it locked. The kernel marks it as left by a dead
//! owner, and wakes a waiter. It waits for no page meanwhile: where it cannot reach the word it neither writes nor wakes,
//! for good.
//!
//! So code that takes pages out looks for such words in the taken pages ([`Layout::find`]). It makes up the kernel's
//! writes ([`Layout::settle`]) for the threads that have ended in between, and its wake-ups ([`wake`]).
//!
//! Nothing here takes a lock or touches the heap.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

use crate::descriptors::read;
use crate::memory::PAGE;
use crate::tasks;

/// A word that names a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    pub address: usize,
    /// 0 if the kernel has written it already, and may not have woken the waiters.
    pub thread: u32,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word of its descriptor: the kernel clears it.
    Descriptor,
    /// A word of a robust mutex that it has locked: the kernel marks it.
    Mutex,
}

/// The state of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// The kernel's writes are still to come.
    Runs,
    /// It is ending: the kernel has made its writes, or is about to.
    Ends,
    /// There is no thread of that number: the kernel makes no more writes.
    Ended,
}

/// Numbers of threads: no thread has one above these (`FUTEX_TID_MASK`).
const NUMBER: u32 = 0x3fff_ffff;
/// Somebody waits for the mutex.
const WAITERS: u32 = 0x8000_0000;
/// Its owner has ended.
const OWNER_ENDED: u32 = 0x4000_0000;
/// A line of the descriptor, which is aligned to it.
const LINE: usize = 64;

/// The offsets of the thread's number and of the head of its list of robust mutexes in the C library's
/// descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The distance from the number to the head; both lie in one line.
    head: usize,
    /// The number's place in that line.
    number: usize,
    /// The distance from the start of the descriptor.
    offset: usize,
    /// The distance from an entry of the list to its futex, as the head gives it.
    futex: u64,
}

impl Layout {
    /// The layout that this thread's own descriptor shows. `None` for a C library with other descriptors.
    pub fn of_this_library() -> Option<Layout> {
        // SAFETY: returns this thread's descriptor, as a number.
        let own = unsafe { libc::pthread_self() } as usize;
        let head = crate::descriptors::robust_list(0)?;
        let number = number_place().or_else(|| {
            // SAFETY: returns a number.
            let thread = unsafe { libc::gettid() }.cast_unsigned();
            let line = head / LINE * LINE;
            // SAFETY: the line is part of this thread's own descriptor, and any bits are a number.
            let is = |at: &usize| unsafe { (*at as *const u32).read_volatile() } == thread;
            (line..head).step_by(4).find(is)
        })?;
        let [_, futex] = read(head)?;
        let fits = number < head && number / LINE == (head + 8) / LINE && own.is_multiple_of(LINE) && number > own;
        fits.then_some(Layout {
            head: head - number,
            number: number % LINE,
            offset: number - own,
            futex: futex as u64,
        })
    }

    /// Finds the words of a page that name a thread: `word` has the page's words, 0 to 511, and `address` is where the
    /// program has the page.
    ///
    /// A robust mutex that lies in two pages is found only where the second has its list alone.
    pub fn find(&self, word: impl Fn(usize) -> u64, address: usize, mut found: impl FnMut(Word)) {
        let (futex, head) = ((self.number + self.head) / 8 + 1, (self.number + self.head) / 8);
        let number = |word: u64, at: usize| (word >> (at % 8 * 8)) as u32;
        for line in (0..PAGE / 8).step_by(LINE / 8) {
            // A list of robust mutexes begins with an address: its own where it is empty.
            if word(line + futex) == self.futex && word(line + head) != 0 {
                let thread = number(word(line + self.number / 8), self.number);
                if thread <= NUMBER {
                    found(Word {
                        address: address + line * 8 + self.number,
                        thread,
                        kind: Kind::Descriptor,
                    });
                }
            }
        }
        // `pthread_mutex_t` of glibc: lock and count, owner and users, kind and spins.
        const ROBUST: u32 = 0x10;
        const KINDS: u32 = 0x3ff;
        for at in 2..PAGE / 8 {
            let kind = word(at) as u32;
            if kind & ROBUST == 0 || kind & !KINDS != 0 {
                continue;
            }
            let (lock, owner) = (word(at - 2) as u32, word(at - 1) as u32);
            let thread = lock & NUMBER;
            let left = lock & !WAITERS == OWNER_ENDED;
            if left || thread != 0 && (owner == thread || owner == 0) {
                found(Word {
                    address: address + (at - 2) * 8,
                    thread,
                    kind: Kind::Mutex,
                });
            }
        }
    }

    /// Returns whether a word is where it was found and still names the thread. It asks the kernel.
    pub fn names(&self, word: &Word) -> bool {
        let Some(start) = word.address.checked_sub(self.offset) else {
            return false;
        };
        let descriptor = || read::<3>(start).is_some_and(|[first, _, third]| first == start && third == start);
        let now = number_at(word.address).is_some_and(|now| now & NUMBER == word.thread);
        now && (word.kind == Kind::Mutex || !cfg!(target_arch = "x86_64") || descriptor())
    }

    /// Makes up the kernel's missing writes for a thread that has ended: the word, and the mutexes behind it in the
    /// thread's list, which the kernel did not reach either.
    ///
    /// # Safety
    /// The word is one that [`find`](Layout::find) found in the memory of this process, it
    /// [names](Layout::names) its thread, and that has [ended](Life::Ended). Nothing of the memory is registered with a
    /// userfaultfd that this thread serves.
    pub unsafe fn settle(&self, word: &Word) {
        let entry = match word.kind {
            // SAFETY: as our caller promises; the head is in the same line.
            Kind::Descriptor => word.address + self.head,
            Kind::Mutex => (word.address as u64).wrapping_sub(self.futex) as usize,
        };
        if word.kind == Kind::Mutex {
            // SAFETY: as our caller promises.
            unsafe { mark(word.address, word.thread) };
        } else if let Some([_, _, pending]) = read(entry)
            && pending & !1 != 0
        {
            // SAFETY: what the thread was locking or unlocking as it ended.
            unsafe { self.mark_entry(pending, word.thread) };
        }
        let mut at = entry;
        // The kernel goes on as long (`ROBUST_LIST_LIMIT`).
        for _ in 0..2048 {
            let Some([next]) = read(at & !1) else { break };
            if next & !1 == entry || next & !1 == 0 {
                break;
            }
            // SAFETY: an entry of the list, as far as the word is the thread's.
            if !unsafe { self.mark_entry(next, word.thread) } {
                break;
            }
            at = next;
        }
        if word.kind == Kind::Descriptor {
            // SAFETY: as our caller promises: nobody but the kernel would write it.
            unsafe { write(word.address, 0) };
            wake(word.address);
        }
    }

    /// # Safety
    /// As of [`mark`], for the futex of an entry.
    unsafe fn mark_entry(&self, entry: usize, thread: u32) -> bool {
        let futex = ((entry & !1) as u64).wrapping_add(self.futex) as usize;
        // SAFETY: as our caller promises.
        unsafe { mark(futex, thread) }
    }
}

/// Marks a mutex whose owner has ended, and wakes the waiters; whether it was that thread's.
///
/// # Safety
/// It is a robust mutex if it names that thread, and the thread has ended.
unsafe fn mark(futex: usize, thread: u32) -> bool {
    let Some(now) = number_at(futex).filter(|now| now & NUMBER == thread) else {
        return false;
    };
    // Its owner alone could unlock it. A thread that begins to wait just now sets a bit, which may be lost: so all are woken, and look
    // again.
    // SAFETY: as our caller promises.
    unsafe { write(futex, now & WAITERS | OWNER_ENDED) };
    wake(futex);
    true
}

/// Wakes the waiters of a futex, as the kernel does when a thread ends. A waiter for something else looks again.
///
/// Pre: the page is there, or nothing is registered with a userfaultfd that this thread serves.
pub fn wake(futex: usize) {
    // A futex of one process has a queue of its own.
    for private in [0, libc::FUTEX_PRIVATE_FLAG] {
        // SAFETY: the kernel takes the address for the name of a queue.
        unsafe { libc::syscall(libc::SYS_futex, futex, libc::FUTEX_WAKE | private, i32::MAX) };
    }
}

/// A word of this process by way of the kernel: nothing where it is gone.
fn number_at(address: usize) -> Option<u32> {
    let [both] = read(address & !7)?;
    Some((both >> (address % 8 * 8)) as u32)
}

/// # Safety
/// The word may be changed.
unsafe fn write(address: usize, number: u32) {
    let vector = |at: usize| libc::iovec {
        iov_base: at as *mut _,
        iov_len: 4,
    };
    let (ours, theirs) = (vector(&raw const number as usize), vector(address));
    // SAFETY: as our caller promises; the kernel checks the address.
    unsafe { libc::process_vm_writev(libc::getpid(), &ours, 1, &theirs, 1, 0) };
}

/// The word that the kernel clears when this thread ends, if the kernel reports it.
fn number_place() -> Option<usize> {
    const PR_GET_TID_ADDRESS: libc::c_int = 40;
    let mut place = 0usize;
    // SAFETY: the kernel writes an address into `place`.
    let asked = unsafe { libc::prctl(PR_GET_TID_ADDRESS, &raw mut place) };
    (asked == 0 && place != 0).then_some(place)
}

/// The state of life of a thread of this process.
pub fn life(thread: u32) -> Life {
    if tasks::is_gone(thread) {
        return Life::Ended;
    }
    // If it cannot be read, the thread has just ended, or nobody may look; the caller asks again.
    let mut line = [0; 512];
    let bytes = stat(thread, &mut line).unwrap_or(0);
    life_in(&line[..bytes]).unwrap_or(Life::Ends)
}

fn stat(thread: u32, line: &mut [u8]) -> io::Result<usize> {
    let mut path = [0; 64];
    let mut rest = &mut path[..];
    write!(rest, "/proc/self/task/{thread}/stat")?;
    let bytes = 64 - rest.len();
    let file = File::open(OsStr::from_bytes(&path[..bytes]))?;
    (&file).read(line)
}

/// From a line of `/proc/self/task/*/stat`.
fn life_in(stat: &[u8]) -> Option<Life> {
    const FLAGS: usize = 9;
    const ENDING: u64 = 0x4;
    // The name, which may hold any bytes, ends with the last parenthesis.
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_ends..]).ok()?;
    if tasks::rest(fields)?.starts_with(['Z', 'X']) {
        return Some(Life::Ended);
    }
    let ends = tasks::field(fields, FLAGS)? & ENDING != 0;
    Some(if ends { Life::Ends } else { Life::Runs })
}
