//! Words that name threads, in pages that were in flight: the kernel may have failed to write a thread's end there.
//!
//! The invariant: *a thread that waits for another's end is woken.* The kernel reports an end by a write into the
//! thread's descriptor, and into the robust mutexes that the thread held, and wakes the waiters on the word. It does
//! not wait for a page then. So
//!
//! 1. the content of taken pages is searched for such words: a word that was written before is found, and a thread that
//!    writes one later waits until the page is back. A thread begins to run only when its number is in its descriptor;
//! 2. a word whose thread runs once its page is back is left to the kernel;
//! 3. a word whose thread is ending is looked at again, until the thread has ended or the word has changed;
//! 4. the engine writes a word that still names a thread that has ended;
//! 5. the engine wakes the waiters on a word that the kernel had written before the page was taken: the kernel may have
//!    tried in vain.
//!
//! `owed/model.rs` searches all orders of the steps of an engine, two threads that use one stack one after the other, and the thread
//! that joins them. The rules of `flight` hold here too but for [`Owed::settle`]: no heap, no static variable.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use sys::arrays::Array;
use sys::listing;
use sys::memory::Span;
use sys::owed::{self, Kind, Layout, Life, Word};

#[cfg(test)]
mod model;

/// Words that are remembered at a time.
const WORDS: usize = 1 << 16;
/// Threads that are remembered at a time.
const THREADS: usize = 1 << 14;
/// No call to wake is made up for later than this.
const LONGEST: Duration = Duration::from_millis(10);

pub(super) struct Owed {
    /// `None` if the descriptors of this C library are not known.
    layout: Option<Layout>,
    /// Address, and number of the thread with a bit for a mutex.
    words: Array<[u64; 2]>,
    count: usize,
    /// Threads that were there before the pages were taken.
    threads: Array<u32>,
    known: usize,
    /// The time at which the first unsettled word was noted.
    since: Option<Instant>,
}

const MUTEX: u64 = 1 << 32;

/// The fate of a word that named a thread when its page was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The kernel has written it, or will.
    Nothing,
    /// It is not known yet if the kernel will write it.
    Later,
    /// It is written now.
    Now,
}

/// Pre: the page is back in its place. `names`: whether the word still names the thread.
pub(super) fn due(life: Life, names: impl Fn() -> bool) -> Due {
    match life {
        Life::Runs => Due::Nothing,
        Life::Ends | Life::Ended if !names() => Due::Nothing,
        Life::Ends => Due::Later,
        Life::Ended => Due::Now,
    }
}

impl Owed {
    pub fn new() -> io::Result<Owed> {
        Ok(Owed {
            layout: Layout::of_this_library(),
            words: Array::try_new(WORDS)?,
            count: 0,
            threads: Array::try_new(THREADS)?,
            known: 0,
            since: None,
        })
    }

    /// The memory that this touches while pages are registered.
    pub fn spans(&self) -> [Span; 2] {
        [
            Span::new(self.words.as_ptr() as usize, size_of_val(&*self.words)),
            Span::new(self.threads.as_ptr() as usize, size_of_val(&*self.threads)),
        ]
    }

    /// Before pages are taken: which threads there are. A word of a mutex counts only where its thread is, or was, one of
    /// this process: it may be an old copy of one.
    pub fn look(&mut self) {
        self.known = 0;
        let (threads, known) = (&mut self.threads, &mut self.known);
        // If they cannot be listed, those that still run are known all the same (`note`).
        let _ = listing::visit(Path::new("/proc/self/task"), |thread| {
            if *known < THREADS {
                threads[*known] = thread;
                *known += 1;
            }
        });
    }

    /// Notes the words of a page that name threads. `word` has the page as it was when it was taken, `place` is where it is
    /// now.
    pub fn note(&mut self, word: impl Fn(usize) -> u64, place: usize) {
        let Some(layout) = self.layout else { return };
        layout.find(word, place, |found| {
            let known = || self.threads[..self.known].contains(&found.thread);
            let names = found.kind == Kind::Mutex && found.thread != 0;
            if names && !known() && owed::life(found.thread) == Life::Ended {
                return;
            }
            self.since.get_or_insert_with(Instant::now);
            if self.count < WORDS {
                let kind = if found.kind == Kind::Mutex { MUTEX } else { 0 };
                self.words[self.count] = [found.address as u64, u64::from(found.thread) | kind];
                self.count += 1;
            }
        });
    }

    /// Returns whether the pass must end for owed words. Words left to the kernel are forgotten.
    ///
    /// Pre: no page is in flight.
    pub fn due(&mut self) -> bool {
        // A word whose page may be missing cannot be checked for changes.
        let stays = |word: Word| word.thread == 0 || due(owed::life(word.thread), || true) != Due::Nothing;
        self.keep(|_, word| stays(word));
        let named = (0..self.count).any(|at| self.words[at][1] as u32 != 0);
        // Descriptors of threads that ended long ago are no reason to end.
        named || self.count > 0 && self.since.is_some_and(|since| since.elapsed() > LONGEST)
    }

    /// Makes up the writes that the kernel has missed, and wakes the waiters. Waits for threads
    /// that are ending.
    ///
    /// Pre: nothing is registered that this thread serves. Post: nothing is owed.
    pub fn settle(&mut self) {
        self.since = None;
        while self.count > 0 {
            self.keep(|layout, word| {
                if word.thread == 0 {
                    owed::wake(word.address);
                    return false;
                }
                let due = due(owed::life(word.thread), || layout.names(&word));
                if due == Due::Now {
                    // SAFETY: it was found in the range, whose owner expects the kernel to write it; the thread has ended,
                    // the word names it, and nothing is registered.
                    unsafe { layout.settle(&word) };
                }
                due == Due::Later
            });
            if self.count > 0 {
                std::thread::yield_now();
            }
        }
    }

    fn keep(&mut self, stays: impl Fn(Layout, Word) -> bool) {
        let Some(layout) = self.layout else { return };
        let mut kept = 0;
        for at in 0..self.count {
            let [address, thread] = self.words[at];
            let word = Word {
                address: address as usize,
                thread: thread as u32,
                kind: if thread & MUTEX == 0 {
                    Kind::Descriptor
                } else {
                    Kind::Mutex
                },
            };
            if stays(layout, word) {
                self.words[kept] = [address, thread];
                kept += 1;
            }
        }
        self.count = kept;
    }
}

#[cfg(test)]
mod tests {
    use std::arch::asm;
    use std::sync::atomic::{AtomicU32, Ordering};

    use sys::faults::{Faults, Void};
    use sys::memory::{self, Area, PAGE, Size};

    use super::super::flight::Exchange;
    use super::*;

    const PAGES: usize = 64;

    /// 0: the thread is not ready yet; 1: it waits; 2: it may end.
    static MAY_END: AtomicU32 = AtomicU32::new(0);

    /// Locks the mutex, waits, and ends, both in the kernel: it touches neither its stack nor its descriptor meanwhile.
    extern "C" fn body(mutex: *mut libc::c_void) -> *mut libc::c_void {
        const UNREGISTER: usize = 1;
        const SIGNATURE: usize = 0x5305_3053;
        // SAFETY: the mutex is initialised; what is unregistered is this thread's own, as the C library registered it.
        unsafe {
            assert_eq!(libc::pthread_mutex_lock(mutex.cast()), 0);
            let offset = *libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
            let pointer: usize;
            asm!("mov {}, fs:0", out(reg) pointer);
            libc::syscall(
                libc::SYS_rseq,
                pointer.wrapping_add_signed(offset),
                32,
                UNREGISTER,
                SIGNATURE,
            );
        }
        MAY_END.store(1, Ordering::SeqCst);
        // SAFETY: futex(2) as long as the word is 1, then exit(2); the word is a static.
        unsafe {
            asm!(
                "2:",
                "mov eax, 202",
                "syscall",
                "cmp dword ptr [rdi], 1",
                "je 2b",
                "mov eax, 60",
                "xor edi, edi",
                "syscall",
                in("rdi") MAY_END.as_ptr(),
                in("rsi") libc::FUTEX_WAIT,
                in("rdx") 1,
                in("r10") 0,
                options(noreturn),
            )
        }
    }

    #[test]
    fn a_thread_that_ends_while_its_descriptor_is_in_flight_is_joined_and_its_mutex_left_by_a_dead_owner() {
        let faults = match Faults::open(true) {
            Ok(faults) if faults.features().moves() => faults,
            Ok(_) => return harness::not_in_this_kernel((6, 8), "this kernel has no UFFDIO_MOVE"),
            Err(error) => return harness::not_allowed(error),
        };
        let map = || Area::map(PAGES * PAGE, Size::Small).unwrap();
        let (place, old, fresh) = (map(), map(), map());
        memory::populate(place.span()).unwrap();
        memory::populate(fresh.span()).unwrap();
        let mutex = place.start() as *mut libc::pthread_mutex_t;
        let mut thread = 0;
        // SAFETY: the first page has the mutex, and the others are the thread's stack, until it is joined.
        unsafe {
            let mut kind = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut kind);
            libc::pthread_mutexattr_setrobust(&mut kind, libc::PTHREAD_MUTEX_ROBUST);
            assert_eq!(libc::pthread_mutex_init(mutex, &kind), 0);
            let mut attributes = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            let stack = place.part(1, PAGES - 1);
            assert_eq!(
                libc::pthread_attr_setstack(&mut attributes, stack.start as *mut _, stack.bytes),
                0
            );
            assert_eq!(libc::pthread_create(&mut thread, &attributes, body, mutex.cast()), 0);
        }
        while MAY_END.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // The loop ends when the thread waits in the kernel.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let pages = (0..PAGES).map(|page| (page, true));
        // SAFETY: the place is the test's own, and the thread touches nothing of it.
        let mut exchange = unsafe { Exchange::new(place.span(), pages, old, fresh, Void::map(64).unwrap()) }.unwrap();
        exchange.register(faults).unwrap();
        exchange.owed.look();
        assert_eq!(exchange.take(0, PAGES), PAGES);
        exchange.copy(0, PAGES);
        MAY_END.store(2, Ordering::SeqCst);
        // SAFETY: wakes who waits for the word.
        unsafe { libc::syscall(libc::SYS_futex, MAY_END.as_ptr(), libc::FUTEX_WAKE, 1) };
        let word = |at: usize| exchange.old.word(at / 512, at % 512);
        let layout = exchange.owed.layout.unwrap();
        let mut number = 0;
        for page in 0..PAGES {
            layout.find(
                |at| word(page * 512 + at),
                page * PAGE,
                |found| {
                    if found.kind == Kind::Descriptor {
                        number = found.thread;
                    }
                },
            );
        }
        assert_ne!(number, 0, "the thread's number was not found in its descriptor");
        while owed::life(number) != Life::Ended {
            std::thread::yield_now();
        }
        exchange.put(0, PAGES);
        (0..PAGES).for_each(|at| exchange.owe(at));
        assert!(exchange.owed.due());
        exchange.unregister();
        let lock = place.word(0, 0) as u32;
        assert_eq!(lock, number, "the kernel did not miss the end of the mutex's owner");
        exchange.owed.settle();
        // SAFETY: the mutex and the thread of above.
        unsafe {
            assert_eq!(libc::pthread_mutex_trylock(mutex), libc::EOWNERDEAD);
            assert_eq!(libc::pthread_mutex_consistent(mutex), 0);
            assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
            assert_eq!(libc::pthread_tryjoin_np(thread, std::ptr::null_mut()), 0);
        }
    }
}
