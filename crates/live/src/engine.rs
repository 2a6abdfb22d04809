//! The engine: gives the pages of a range frames of chosen colors, and loses nothing on the way.
//!
//! The README beside this crate says how pages are exchanged while the program runs, and what each error means
//! for them.

mod afford;
mod children;
mod exchange;
mod flight;
mod furnish;
mod hearing;
mod keeping;
#[cfg(test)]
mod model;
mod open;
mod outcome;
mod owed;
mod refill;
mod remap;
mod rescue;
mod rules;
mod survey;
mod tally;
mod verify;
mod wish;

pub use crate::means::{Config, Knowledge, Lock, Means, Placing};
pub use outcome::{Census, Done, Left, Repaired, Why};
pub use wish::Wish;

use std::collections::HashSet;

use sys::faults::{Faults, Scope};
use sys::frames::{Entry, Pagemap};
use sys::memory;

use crate::pool::{Expected, Pool};
use crate::{Error, PAGE_BYTES, Pages, Supply};
use survey::{Piece, Survey, survey};
use tally::Tally;
use wish::Target;

/// The threads that may touch the range meanwhile: the promise of a caller of an `unsafe fn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody, neither a thread nor the kernel: the caller promises it.
    Absent,
    /// Threads of the program, and the kernel on their behalf.
    Running,
}

/// See the module's documentation.
pub struct Engine {
    config: Config,
    means: Means,
    /// A child of fork reopens everything.
    process: u32,
    pagemap: Pagemap,
    /// True if the page map shows frame numbers.
    visible: bool,
    /// For [`Placing::Move`]: takes up old pages, and is the pattern of those for ranges.
    stage: Option<Faults>,
    /// `None` if the colors of our own frames are not known.
    pool: Option<Pool>,
    /// Ranges that we locked; they do not meet.
    locked: Vec<Pages>,
    /// True if locks have no limit for this user.
    may_lock: bool,
    /// Bytes that may be filled before the next check of free memory.
    allowance: u64,
    /// The supply's last error.
    trouble: Option<String>,
    /// The frames that it lacked in the last [`Engine::color`].
    lacked: Option<String>,
}

/// Pages that are worked on at a time; twice as much memory is needed besides.
const ROUND: usize = 8192;

/// The most passes over a range, until nothing is left to do.
const ATTEMPTS: usize = 4;

impl Engine {
    /// The means in use, and the reasons for them.
    pub fn means(&self) -> &Means {
        &self.means
    }

    /// Why the supply did not serve the last time, if it did not.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The frames that the supply lacked in the last [`Engine::color`], if any: these were collected here.
    pub fn shortage(&self) -> Option<&str> {
        self.lacked.as_deref()
    }

    /// How many frames of each color are at hand without collecting: the supply's, else the own
    /// pool's.
    pub fn by_color(&mut self) -> Result<Vec<u64>, Error> {
        self.renew()?;
        if let Some(supply) = self.config.supply.as_mut() {
            return supply.by_color();
        }
        match self.pool.as_mut() {
            Some(pool) => pool.by_color(),
            None => Ok(vec![0; self.config.colors.count() as usize]),
        }
    }

    /// Gives the pages of a range frames of the colors wished for. Their content stays.
    ///
    /// The engine does not move pages that it needs itself (this thread's stack and variables), nor those that hold a
    /// thread's descriptor or a held robust mutex ([`Why::Own`]);
    /// these and all others that could not be colored are listed in [`Done::left`].
    ///
    /// Errors: whatever is returned, the content of the range is intact. [`Error::Unfit`], [`Error::Memory`] and
    /// [`Error::Wish`] before anything was done; after others some pages may be colored.
    /// [`Error::Unavailable`] for [`Others::Running`] where threads or system calls could meet a
    /// page on its way and fail.
    ///
    /// ```compile_fail,E0133
    /// use live::{Engine, Others, Pages, Wish};
    ///
    /// fn careless(engine: &mut Engine, names: Vec<String>) {
    ///     let start = (names.as_ptr() as usize).next_multiple_of(4096);
    ///     let _ = engine.color(Pages { start, count: 1 }, &Wish::Hints(vec![(0, 0)]), Others::Absent);
    /// }
    /// ```
    ///
    /// # Safety
    /// The range is memory of the caller, or of an owner who agreed; nobody else maps anything at its addresses
    /// meanwhile. Further:
    ///
    /// - with [`Others::Absent`] nobody else touches the range until this returns, neither a thread of this process nor
    ///   the kernel for one, nor does anybody change its mappings;
    /// - with [`Others::Running`], and only where [`Means::forks`] is false, no process is made from this one meanwhile by
    ///   anything that the C library's handlers of `fork` do not see: a bare `clone` system call, `_Fork`. (Its child
    ///   would find zeros in pages that were on their way. `vfork` and `posix_spawn` are harmless.)
    /// - with [`Others::Running`] no thread ends meanwhile that was made by a bare `clone` and whose number the kernel
    ///   clears in the range: a thread that waits for that would wait for ever;
    /// - with [`Others::Running`] `mremap` of pages of the range goes through [`sys::changes::change`]. One that does not may
    ///   fail (EFAULT), with some of its pages moved;
    /// - a signal that arrives on an alternate signal stack of another thread (`sigaltstack`) waits for its page like any
    ///   system call: where those stacks are the kernel tells nobody else, so they are moved like other data;
    /// - nobody closes foreign descriptors meanwhile (`closefrom`, `close_range`). If that happens, the call ends and
    ///   brings back the pages in flight, but a thread that touched such a page just then has found zeros. If it wrote
    ///   something there, that stays and the rest of the page is lost ([`Why::Kernel`] with EBADF).
    pub unsafe fn color(&mut self, range: Pages, wish: &Wish, others: Others) -> Result<Done, Error> {
        self.renew()?;
        self.trouble = None;
        self.lacked = None;
        let survey = survey(range)?;
        if self.pool.as_ref().is_some_and(|pool| pool.meets(range.span())) {
            return Err(Error::Unfit {
                address: range.start,
                why: "it, or a page behind it, belongs to the engine's own pool (was the range unmapped?)".into(),
            });
        }
        self.afford(range)?;
        // Wishes are checked before anything is done.
        wish.targets(range.count, &self.config.colors, None)?;
        let others = self.allowed(&survey, others)?;
        self.unlock(range);
        self.keep_small(range, &survey)?;
        let mut done = Done::default();
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.color_pieces(range, &survey, wish, others, &mut done) };
        if let Some(pool) = self.pool.as_mut() {
            pool.settle();
        }
        done.locked = self.lock(range, &survey);
        outcome.map(|()| done)
    }

    /// Determines which other threads there really are, and if they can be handled.
    fn allowed(&self, survey: &Survey, others: Others) -> Result<Others, Error> {
        let refuse = |why: &str| {
            Err(Error::Unavailable {
                what: "coloring pages that others may touch".into(),
                why: format!("{why}; stop the others and say so, or color before they start"),
            })
        };
        // A lone thread needs no interruption: signals wait.
        if others == Others::Absent || sys::forks::alone() {
            return Ok(Others::Absent);
        }
        if survey.pieces.iter().any(|piece| piece.of_file) {
            return refuse("part of the range is a private copy of a file, which cannot be moved");
        }
        let Some(stage) = self.stage.as_ref().filter(|stage| stage.features().events()) else {
            return refuse("it needs UFFDIO_MOVE (Linux 6.8) and userfaultfd");
        };
        if stage.scope() != Scope::Kernel {
            return refuse(
                "without CAP_SYS_PTRACE (or vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd) a system \
                 call that meets a page on its way would fail",
            );
        }
        Ok(Others::Running)
    }

    /// # Safety
    /// As for [`color`](Engine::color).
    unsafe fn color_pieces(
        &mut self,
        range: Pages,
        survey: &Survey,
        wish: &Wish,
        others: Others,
        done: &mut Done,
    ) -> Result<(), Error> {
        let mut entries = self.entries(range)?;
        let mut tally = Tally::new(wish, &entries);
        for attempt in 0..ATTEMPTS {
            // Absent pages stay absent for the supply to fill, unless another thread may touch them.
            // Without a supply it is cheaper to take the kernel's frames and exchange wrong ones, if
            // frames can be seen.
            if attempt > 0 {
                entries = self.entries(range)?;
            }
            let fills = others == Others::Absent
                && (self.config.supply.is_some() || !self.visible)
                && entries.iter().any(|entry| !entry.present());
            // A populate call that finds nothing to do costs as much as a tenth of an exchange.
            if entries.iter().any(|entry| !entry.present() || !entry.exclusive()) {
                for piece in &survey.pieces {
                    if fills && !piece.of_file {
                        self.populate_present(piece.pages)?;
                    } else {
                        self.populate(piece.pages)?;
                    }
                }
                entries = self.entries(range)?;
            }
            let now: Option<Vec<Option<u16>>> = self.visible.then(|| {
                let color = |entry: &Entry| entry.frame().map(|frame| self.config.colors.of(frame) as u16);
                entries.iter().map(color).collect()
            });
            let (mut targets, kept) = wish.targets(range.count, &self.config.colors, now.as_deref())?;
            if attempt == 0 {
                done.pages = targets.len() + kept;
                let own = |target: &mut Target| survey.is_own(range.start + target.page * PAGE_BYTES);
                let own: Vec<Target> = targets.extract_if(.., own).collect();
                tally.exchange(&own);
                done.leave(range, &own, Why::Own);
            } else {
                // Frames that the kernel has just moved are worth another try, others are not.
                done.left.retain(|left| left.why != Why::Miscolored);
                let left: HashSet<usize> = done.left.iter().map(|left| left.address).collect();
                targets.retain(|target| !left.contains(&(range.start + target.page * PAGE_BYTES)));
            }
            tally.exchange(&targets);
            for piece in &survey.pieces {
                let first = (piece.pages.start - range.start) / PAGE_BYTES;
                let before = |page: usize| targets.partition_point(|target| target.page < page);
                let part = &targets[before(first)..before(first + piece.pages.count)];
                for round in part.chunks(ROUND) {
                    // SAFETY: the caller's promise.
                    unsafe { self.color_round(range, *piece, round, &entries, others, done, wish) }?;
                }
            }
            // When a huge page is divided, parts of it full of zeros lose their frames, and these may
            // have been right ones. So the range is checked again if frames can be seen.
            if targets.is_empty() || !self.visible {
                break;
            }
        }
        tally.report(range, done);
        Ok(())
    }

    /// Some pages of one piece.
    ///
    /// # Safety
    /// As for [`color`](Engine::color).
    #[allow(clippy::too_many_arguments)]
    unsafe fn color_round(
        &mut self,
        range: Pages,
        piece: Piece,
        targets: &[Target],
        entries: &[Entry],
        others: Others,
        done: &mut Done,
        wish: &Wish,
    ) -> Result<(), Error> {
        let remaps = self.means.placing == Some(Placing::Remap) && self.config.supply.is_none();
        if remaps {
            // SAFETY: the caller's promise; where only this works `Others::Running` was refused, or nobody else runs.
            return unsafe { self.remap(range, targets, done) };
        }
        let absent = |target: &Target| {
            let entry = entries[target.page];
            others == Others::Absent && !piece.of_file && !entry.present() && !entry.swapped()
        };
        let mut rest = targets;
        while let Some(first) = rest.first() {
            // A run of absent pages is filled in place; all present pages up to the next such run
            // are exchanged. Short runs are not worth their system calls.
            let fill = run(rest, absent);
            if fill > 0 {
                let pages = range.part(first.page, fill);
                // SAFETY: the pages are absent, and with `Others::Absent` nobody touches them.
                unsafe { self.fill(range, pages, &rest[..fill], done) }?;
                rest = &rest[fill..];
                continue;
            }
            let count = rest.iter().take_while(|target| !absent(target)).count();
            let part = &rest[..count];
            let moves = self.means.placing == Some(Placing::Move) && !piece.of_file;
            if moves {
                // SAFETY: the caller's promise.
                unsafe { self.exchange(range, piece.pages, part, others, done, wish) }?;
            } else {
                // SAFETY: nobody else touches them: `Others::Running` was refused for such pages, or nobody else runs.
                unsafe { self.refill(range, part, done) }?;
            }
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Fills absent pages where they are.
    ///
    /// # Safety
    /// The pages are absent, and nobody else touches them meanwhile.
    unsafe fn fill(&mut self, range: Pages, pages: Pages, targets: &[Target], done: &mut Done) -> Result<(), Error> {
        let want: Vec<u16> = targets.iter().map(|target| target.color).collect();
        let way = match self.means.placing {
            Some(Placing::Move) => Placing::Move,
            _ => Placing::Refill,
        };
        // SAFETY: the caller's promise.
        let mut furnished = unsafe { self.furnish(pages, &want, Expected::Zeros, way) };
        if matches!(furnished, Err(Error::Unfit { .. })) {
            // Pages are not moved into ranges that the program has locked (MLOCK_ONFAULT: else none would be
            // absent).
            let unlocked = self.unlock_program(pages);
            // SAFETY: the caller's promise; what was filled is full of zeros, and furnished anew.
            furnished = unsafe { memory::discard(pages.span()) }
                .map_err(Error::system("giving back frames"))
                // SAFETY: as above.
                .and_then(|()| unsafe { self.furnish(pages, &want, Expected::Zeros, way) });
            self.relock(&unlocked);
        }
        let furnished = furnished?;
        done.supplied += furnished.supplied;
        for (target, right) in targets.iter().zip(furnished.right) {
            if !right {
                done.leave(range, &[*target], Why::Miscolored);
            }
        }
        Ok(())
    }

    /// Gives every page a frame of its own.
    fn populate(&self, pages: Pages) -> Result<(), Error> {
        memory::populate(pages.span()).map_err(Error::system("populating the range"))
    }

    /// Makes pages that are there, or swapped, the process's own; absent ones stay so.
    fn populate_present(&self, pages: Pages) -> Result<(), Error> {
        let entries = self.entries(pages)?;
        let there = |entry: &Entry| entry.present() || entry.swapped();
        let mut at = 0;
        while at < entries.len() {
            let count = entries[at..].iter().take_while(|entry| there(entry)).count();
            if count > 0 {
                self.populate(pages.part(at, count))?;
            }
            at += count + 1;
        }
        Ok(())
    }

    /// Gives up the range's colors: our locks are undone. The pages keep their frames.
    pub fn release(&mut self, range: Pages) -> Result<(), Error> {
        self.renew()?;
        self.unlock(range);
        Ok(())
    }

    /// Empties a range whose content is no longer needed: its frames go back to their origin, and its pages become
    /// absent, full of zeros.
    ///
    /// # Safety
    /// The range is memory of the caller, or of an owner who agreed; it holds plain data, for which zeros are a value,
    /// or nothing that is ever used again. Nobody else touches it meanwhile.
    pub unsafe fn empty(&mut self, range: Pages) -> Result<(), Error> {
        self.renew()?;
        survey(range)?;
        self.unlock(range);
        match self.config.supply.as_mut() {
            // SAFETY: the caller's promise.
            Some(supply) => unsafe { supply.give_back(range) },
            // SAFETY: the caller's promise.
            None => unsafe { memory::discard(range.span()) }.map_err(Error::system("giving back frames")),
        }
    }
}

/// The number of targets from the first on that are on neighbouring pages and pass the test.
fn run(targets: &[Target], such: impl Fn(&Target) -> bool) -> usize {
    let first = targets.first().map_or(0, |first| first.page);
    let next = |(at, target): &(usize, &Target)| target.page == first + at && such(target);
    targets.iter().enumerate().take_while(next).count()
}
