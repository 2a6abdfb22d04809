//! Exchanging the frames of pages that have content, by UFFDIO_MOVE.

use sys::changes::Pass;
use sys::faults::{Faults, Void};
use sys::memory::{Area, Size};

use super::flight::{Exchange, VOID};
use super::rules::State;
use super::{Done, Engine, Others, Placing, Why, Wish};
use crate::engine::wish::Target;
use crate::pool::Expected;
use crate::{Error, PAGE_BYTES, Pages};

/// The most tries for pages that the kernel was busy with, or that are shared since a fork.
const ROUNDS: usize = 4;
/// The most waits for a change of the program's mappings that is under way, some milliseconds each.
const REFUSALS: usize = 50;
/// Pages in flight at a time while nobody waits for them.
const QUIET_BATCH: usize = 2048;

impl Engine {
    /// Gives pages that are there other frames.
    ///
    /// The whole piece is registered meanwhile. So a mapping that is colored as a whole is not
    /// split, and the program's `mremap` of it works.
    ///
    /// # Safety
    /// As for [`color`](Engine::color).
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn exchange(
        &mut self,
        range: Pages,
        piece: Pages,
        targets: &[Target],
        others: Others,
        done: &mut Done,
        wish: &Wish,
    ) -> Result<(), Error> {
        if targets.is_empty() {
            return Ok(());
        }
        let before = (piece.start - range.start) / PAGE_BYTES;
        let want: Vec<u16> = targets.iter().map(|target| target.color).collect();
        let refusal = || Error::system("mapping memory to exchange pages");
        let map = |pages: usize| Area::map(pages * PAGE_BYTES, Size::Small).map_err(refusal());
        let (old, fresh, void) = (map(targets.len())?, map(targets.len())?, Void::map(VOID));
        let void = void.map_err(refusal())?;
        let new = Pages {
            start: fresh.start(),
            count: targets.len(),
        };
        // SAFETY: an area of our own, which nobody else knows; a page of it goes into place with its new content.
        let furnished = unsafe { self.furnish(new, &want, Expected::Any, Placing::Move) }?;
        let pages = targets
            .iter()
            .zip(&furnished.right)
            .map(|(target, &right)| (target.page - before, right));
        // SAFETY: the caller's promise; the piece is registered before each pass.
        let exchange = unsafe { Exchange::new(piece.span(), pages, old, fresh, void) };
        let mut exchange = exchange.map_err(refusal())?;
        let batch = match others {
            Others::Absent => QUIET_BATCH,
            Others::Running => self.config.batch,
        };
        let pool = self.pool.as_ref().is_some_and(|pool| pool.meets(piece.span()));
        if pool || exchange.meets(piece.span()) {
            return Err(Error::Unfit {
                address: piece.start,
                why: "the program unmapped it, or pages behind it, meanwhile".into(),
            });
        }
        let mut unlocked = Vec::new();
        let (mut round, mut refusals, mut begun) = (0, 0, false);
        while round < ROUNDS {
            let Some(turn) = Pass::begin() else {
                // A change of mappings that does not end may wait for something that takes as long as it likes.
                refusals += 1;
                if refusals < REFUSALS { continue } else { break }
            };
            let faults = match self.another() {
                Ok(faults) => faults,
                // Some pages are done, and unlocked ranges must be locked again.
                Err(_) if begun => break,
                Err(error) => return Err(error),
            };
            if let Err(error) = exchange.register(faults) {
                if begun {
                    // The range was remapped meanwhile: its new content is the program's business.
                    break;
                }
                return Err(refused(piece, error));
            }
            begun = true;
            exchange.pass(batch, &turn);
            drop(turn);
            if exchange.interrupted() {
                continue;
            }
            if round + 1 == ROUNDS || !exchange.unfinished() {
                break;
            }
            if (0..exchange.len()).any(|at| exchange.state(at) == State::Unfit) {
                unlocked.extend(self.unlock_program(piece));
            }
            // Breaks the sharing with a child; faults emptied pages in. If the program changed
            // something meanwhile, this fails, and so will the next pass, page by page.
            let _ = sys::memory::populate(piece.span());
            exchange.retry();
            round += 1;
        }
        self.relock(&unlocked);
        let seen = self.colors_of(piece)?;
        for (at, target) in targets.iter().enumerate() {
            let why = match exchange.state(at) {
                State::Done => {
                    let color = seen.as_ref().map(|seen| seen[target.page - before]);
                    match color {
                        Some(Some(color)) if !wish.allows(color, target.color) => Some(Why::Miscolored),
                        _ => None,
                    }
                }
                State::Unserved => Some(Why::Miscolored),
                State::Busy => Some(Why::Pinned),
                State::Failed(error) => Some(Why::Kernel(error)),
                State::Todo
                | State::Taken
                | State::Again
                | State::Unfit
                | State::Gone
                | State::Cut
                | State::Elsewhere => Some(Why::Changed),
            };
            match why {
                None => done.exchanged += 1,
                Some(why) => done.leave(range, &[*target], why),
            }
        }
        done.supplied += furnished.supplied;
        done.longest = done.longest.max(exchange.longest());
        // With a supply behind us the old frames are better left to the kernel.
        let keeps = self.config.supply.is_none();
        if let Some(pool) = self.pool.as_mut().filter(|_| keeps) {
            pool.adopt_used(exchange.old);
            pool.adopt(exchange.fresh);
        }
        Ok(())
    }

    fn another(&self) -> Result<Faults, Error> {
        let Some(stage) = self.stage.as_ref() else {
            return Err(Error::Unavailable {
                what: "exchanging pages".into(),
                why: "it needs UFFDIO_MOVE".into(),
            });
        };
        stage.another(true).map_err(Error::system("opening a userfaultfd"))
    }
}

fn refused(pages: Pages, error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::ResourceBusy {
        return Error::Unfit {
            address: pages.start,
            why: format!(
                "it, or one of the {} pages behind it, is registered with another userfaultfd",
                pages.count
            ),
        };
    }
    Error::System {
        doing: "registering the range with a userfaultfd",
        error,
    }
}

impl Done {
    pub(super) fn leave(&mut self, range: Pages, targets: &[Target], why: Why) {
        self.left.extend(targets.iter().map(|target| super::Left {
            address: range.start + target.page * PAGE_BYTES,
            why,
        }));
    }
}
