//! Looks at other address spaces, on threads that serve nobody.
//!
//! To show a page map the kernel takes the lock of that address space, behind all earlier waiters: a process whose
//! threads change large mappings can keep a look waiting for minutes. Only the end of the whole process ends such a
//! wait. So a thread of its own makes each look; the requester waits for [`MOST`] and goes on without it, and late
//! results are thrown away. A user can block only its own threads: at most [`OF_USER`] look on behalf of a user at a
//! time, and further looks of the same user wait for one of these, no longer than for [`MOST`] either.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use sys::affinity::Home;
use sys::frames::{Entry, Pagemap};
use sys::peer::Identity;
use sys::ready::Bell;

use super::whereabouts::{self, Whereabouts};
use super::wire::Run;

/// The longest that a requester waits for a look.
pub const MOST: Duration = Duration::from_secs(2);
/// Looks on behalf of one user at a time.
pub const OF_USER: usize = 8;
/// Threads in all.
const THREADS: usize = 256;
/// Threads that are kept for the next look.
const IDLE: usize = 2;
/// The threads only call the kernel.
const STACK: usize = 128 << 10;

/// A look to take.
pub enum Task {
    /// The page map of a process that has just connected.
    Open(Arc<Identity>),
    /// Some pages, into a buffer that comes back.
    Pages(Arc<Pagemap>, Run, Vec<Entry>),
    /// The frames, of these in order, that a process of this user still has.
    Whereabouts(u32, Vec<u64>),
    #[cfg(test)]
    Held(std::os::unix::net::UnixStream),
}

/// The result of a look.
pub enum Sight {
    Opened(io::Result<Pagemap>),
    Pages(io::Result<Vec<Entry>>),
    Whereabouts(Whereabouts),
}

/// A look that is over.
pub struct Seen {
    /// The number that [`Looks::begin`] gave.
    pub look: u64,
    pub sight: Sight,
    /// The processor time that it took.
    pub work: Duration,
}

struct Look {
    number: u64,
    user: u32,
    task: Task,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Look>,
    /// Looks under way, by user.
    under_way: HashMap<u32, usize>,
    seen: Vec<Seen>,
    threads: usize,
    /// Threads without work that were not called, and calls that no thread has answered yet.
    idle: usize,
    calls: usize,
    over: bool,
}

struct Shared {
    state: Mutex<State>,
    more: Condvar,
    bell: Bell,
    /// The cpus of the threads: independent of the cpu on which the serving thread starts them.
    home: Home,
}

/// The threads that look, and the looks that wait for them.
pub struct Looks {
    shared: Arc<Shared>,
    next: u64,
}

impl Looks {
    pub fn new() -> io::Result<Looks> {
        Ok(Looks {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                more: Condvar::new(),
                bell: Bell::new()?,
                home: Home::here()?,
            }),
            next: 1,
        })
    }

    /// Begins a look on behalf of a user; its number. Does not wait.
    pub fn begin(&mut self, user: u32, task: Task) -> u64 {
        let number = self.next;
        self.next += 1;
        let mut state = self.shared.state();
        state.waiting.push_back(Look { number, user, task });
        if state.idle > 0 {
            state.idle -= 1;
            state.calls += 1;
            self.shared.more.notify_one();
        } else if state.threads < THREADS && state.may_begin(user) {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("look".into()).stack_size(STACK);
            // If no thread can be started, the look waits for an existing one, or is given up.
            state.threads += usize::from(thread.spawn(move || shared.work()).is_ok());
        }
        number
    }

    /// Gives up a look that nobody waits for any more. Returns true if it had not begun, and so is
    /// over.
    pub fn give_up(&mut self, number: u64) -> bool {
        let mut state = self.shared.state();
        let before = state.waiting.len();
        state.waiting.retain(|look| look.number != number);
        state.waiting.len() < before
    }

    /// The results since the last call.
    pub fn take(&mut self) -> Vec<Seen> {
        // The bell is silenced first: later results ring it again.
        self.shared.bell.silence();
        std::mem::take(&mut self.shared.state().seen)
    }
}

/// Readable once a look has ended.
impl AsFd for Looks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // A stuck thread ends once its look does, or with the process.
        self.shared.state().over = true;
        self.shared.more.notify_all();
    }
}

impl State {
    fn may_begin(&self, user: u32) -> bool {
        self.under_way.get(&user).is_none_or(|count| *count < OF_USER)
    }

    /// The first look that may begin.
    fn next(&mut self) -> Option<Look> {
        let at = self.waiting.iter().position(|look| self.may_begin(look.user))?;
        let look = self.waiting.remove(at)?;
        *self.under_way.entry(look.user).or_default() += 1;
        Some(look)
    }

    fn end(&mut self, user: u32) {
        if let Some(count) = self.under_way.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&user);
            }
        }
    }
}

impl Shared {
    /// A thread completes its changes before another thread may see them.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        self.home.take();
        // A thread that waits for a look first waits for its turn on a cpu.
        let _brisk = sys::affinity::brisk();
        let mut state = self.state();
        loop {
            if let Some(look) = state.next() {
                drop(state);
                let before = sys::clock::thread_time();
                let sight = look.task.look();
                let seen = Seen {
                    look: look.number,
                    sight,
                    work: sys::clock::thread_time().saturating_sub(before),
                };
                state = self.state();
                state.end(look.user);
                state.seen.push(seen);
                self.bell.ring();
            } else if state.over || state.idle >= IDLE {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                while state.calls == 0 && !state.over {
                    state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                // The caller has counted one less.
                match state.calls {
                    0 => state.idle -= 1,
                    _ => state.calls -= 1,
                }
            }
        }
    }
}

impl Task {
    fn look(self) -> Sight {
        match self {
            Task::Open(who) => Sight::Opened(who.pagemap()),
            Task::Pages(map, run, mut entries) => {
                entries.clear();
                entries.resize(run.count as usize, Entry::default());
                let read = map.read(run.start as usize, &mut entries);
                Sight::Pages(read.map(|()| entries))
            }
            Task::Whereabouts(user, frames) => Sight::Whereabouts(whereabouts::find(user, frames)),
            #[cfg(test)]
            Task::Held(until) => tests::hold(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Looks that end when the test lets them.
    fn held(looks: &mut Looks, users: &[u32]) -> (Vec<u64>, Vec<UnixStream>) {
        users
            .iter()
            .map(|&user| {
                let (near, far) = UnixStream::pair().unwrap();
                (looks.begin(user, Task::Held(far)), near)
            })
            .unzip()
    }

    fn next(looks: &mut Looks) -> Vec<u64> {
        loop {
            sys::packet::wait(&[looks.as_fd()], 60_000).unwrap();
            let seen: Vec<u64> = looks.take().iter().map(|seen| seen.look).collect();
            if !seen.is_empty() {
                return seen;
            }
        }
    }

    #[test]
    fn who_is_stuck_leaves_others_their_turn() {
        let mut looks = Looks::new().unwrap();
        let (stuck, ends) = held(&mut looks, &[7; OF_USER]);
        // One more of the same user waits, one of another does not.
        let (waits, its_end) = held(&mut looks, &[7]);
        let (other, others_end) = held(&mut looks, &[8]);
        drop(others_end);
        assert_eq!(next(&mut looks), other);
        // Its turn is when one of the stuck ones is over, for which nobody waits any more.
        assert!(!looks.give_up(stuck[3]));
        drop(its_end);
        drop(ends);
        let mut seen = Vec::new();
        while seen.len() < OF_USER + 1 {
            seen.extend(next(&mut looks));
        }
        seen.sort_unstable();
        assert_eq!(seen, [stuck, waits].concat());
    }

    #[test]
    fn what_was_given_up_before_its_turn_is_never_begun() {
        let mut looks = Looks::new().unwrap();
        let (stuck, ends) = held(&mut looks, &[7; OF_USER]);
        let (waits, its_end) = held(&mut looks, &[7]);
        // Until all have begun, which is all that waiters still need.
        while !looks
            .shared
            .state()
            .waiting
            .iter()
            .map(|look| look.number)
            .eq(waits.iter().copied())
        {
            thread::yield_now();
        }
        assert!(looks.give_up(waits[0]) && !looks.give_up(waits[0]));
        drop((ends, its_end));
        let mut seen = Vec::new();
        while seen.len() < OF_USER {
            seen.extend(next(&mut looks));
        }
        seen.sort_unstable();
        assert_eq!(seen, stuck);
        assert!(looks.shared.state().under_way.is_empty());
    }

    #[test]
    fn pages_are_seen_and_the_buffer_comes_back() {
        let mut looks = Looks::new().unwrap();
        let page = [1u8; 1];
        let start = page.as_ptr() as u64 & !0xfff;
        let run = Run { start, count: 1 };
        let buffer = Vec::with_capacity(100);
        let look = looks.begin(1, Task::Pages(Arc::new(Pagemap::own().unwrap()), run, buffer));
        sys::packet::wait(&[looks.as_fd()], 60_000).unwrap();
        let seen = looks.take();
        assert_eq!(seen[0].look, look);
        let Sight::Pages(Ok(entries)) = &seen[0].sight else {
            panic!("it could not be seen");
        };
        assert!(entries.len() == 1 && entries.capacity() == 100 && entries[0].present());
    }

    pub(super) fn hold(mut until: UnixStream) -> Sight {
        let _ = until.read(&mut [0]);
        Sight::Pages(Ok(Vec::new()))
    }
}
