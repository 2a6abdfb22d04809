//! Giving pages with content other frames without moving any: the content is saved, the pages are
//! emptied and refilled, and the content is written back. No other thread may look meanwhile.

use sys::memory::{self, Area, Size};

use super::wish::Target;
use super::{Done, Engine, Placing, Why, run};
use crate::pool::Expected;
use crate::{Error, PAGE_BYTES, Pages};

impl Engine {
    /// Works for private pages of files, too, which cannot be moved.
    ///
    /// # Safety
    /// Nobody else touches the pages meanwhile.
    pub(super) unsafe fn refill(&mut self, range: Pages, targets: &[Target], done: &mut Done) -> Result<(), Error> {
        let possible = self.visible || self.config.supply.is_some();
        if let Some(first) = targets.first().filter(|_| !possible) {
            return Err(Error::Unfit {
                address: range.start + first.page * PAGE_BYTES,
                why:
                    "it is a private copy of a file's page; such pages can only be filled anew, which needs a page map \
                      that shows frames (CAP_SYS_ADMIN) or the daemon"
                        .into(),
            });
        }
        let mut rest = targets;
        while let Some(first) = rest.first() {
            let count = run(rest, |_| true);
            // SAFETY: the caller's promise.
            unsafe { self.refill_run(range, range.part(first.page, count), &rest[..count], done) }?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// # Safety
    /// As for [`refill`](Engine::refill).
    unsafe fn refill_run(
        &mut self,
        range: Pages,
        pages: Pages,
        targets: &[Target],
        done: &mut Done,
    ) -> Result<(), Error> {
        let want: Vec<u16> = targets.iter().map(|target| target.color).collect();
        let saved = Area::map(pages.bytes(), Size::Small);
        let mut saved = saved.map_err(Error::system("mapping memory to save pages"))?;
        memory::read(pages.span(), &mut saved, 0).map_err(Error::system("saving the content of pages"))?;
        // If one mapping is refused, those before it have been emptied already: from here on, the function
        // must restore the content before it returns.
        let mut unlocked = Vec::new();
        // SAFETY: the content is saved and comes back below; nobody else touches the pages until then.
        let mut emptied = unsafe { memory::discard(pages.span()) };
        if emptied.is_err() {
            // Locked pages cannot be emptied.
            unlocked = self.unlock_program(pages);
            // SAFETY: as above.
            emptied = unsafe { memory::discard(pages.span()) };
        }
        let emptied = emptied.map_err(Error::system("emptying pages"));
        let furnished = emptied.and_then(|()| {
            // SAFETY: they have just been emptied, and nobody else touches them.
            unsafe { self.furnish(pages, &want, Expected::Zeros, Placing::Refill) }
        });
        // After an error too, the content is written back; absent pages get frames by that.
        // SAFETY: it is their own content, and nobody else touches them.
        let written = unsafe { memory::write(pages.span(), &saved, 0) };
        self.relock(&unlocked);
        written.map_err(Error::system("writing back the content of pages"))?;
        let furnished = furnished?;
        done.supplied += furnished.supplied;
        for (target, right) in targets.iter().zip(furnished.right) {
            if right {
                done.exchanged += 1;
            } else {
                done.leave(range, &[*target], Why::Miscolored);
            }
        }
        Ok(())
    }
}
