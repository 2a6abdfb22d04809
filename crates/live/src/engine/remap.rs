//! Giving pages other frames by `mremap`, if nothing better works: the content is copied to pages
//! of the pool, and these take the place of the old ones. Each run of neighbouring frames becomes a
//! mapping of its own, so the runs are counted first.

use sys::mappings;
use sys::memory;

use super::wish::Target;
use super::{Done, Engine};
use crate::pool::runs;
use crate::{Error, PAGE_BYTES, Pages};

/// Mappings that are left to the program.
const SPARE: usize = 64;

impl Engine {
    /// # Safety
    /// The range is private anonymous memory, and nobody else touches it meanwhile.
    pub(super) unsafe fn remap(&mut self, range: Pages, targets: &[Target], done: &mut Done) -> Result<(), Error> {
        let want: Vec<u16> = targets.iter().map(|target| target.color).collect();
        let budget = self.config.mappings.min(mappings::limit().saturating_sub(SPARE));
        let now = mappings::count().map_err(Error::system("reading /proc/self/maps"))?;
        let Some(pool) = self.pool.as_mut() else {
            return Err(Error::Unavailable {
                what: "remapping pages".into(),
                why: "the colors of the process's own frames are unknown".into(),
            });
        };
        let frames = pool.take(&want)?;
        // A run of frames that lie next to each other may be wanted on pages that do not.
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        for (first, count) in runs(&frames) {
            let mut at = first;
            while at < first + count {
                let next = super::run(&targets[at..first + count], |_| true);
                pieces.push((at, next));
                at += next;
            }
        }
        let wanted = pieces.len() + 2;
        if now + wanted > budget {
            pool.put_back(&want, &frames);
            return Err(Error::Mappings { wanted, now, budget });
        }
        for (done_pieces, &(first, count)) in pieces.iter().enumerate() {
            let (frame, to) = (frames[first], range.part(targets[first].page, count));
            let page = frame.page as usize;
            let area = pool.area(frame);
            let placed = memory::read(to.span(), area, page).and_then(|()| {
                // SAFETY: the area's pages hold the very content of the place, which nobody else touches.
                unsafe { memory::remap(area, page, to.span()) }
            });
            if let Err(error) = placed {
                // This page and those behind it are as they were.
                let first = pieces[done_pieces].0;
                let rest: Vec<_> = frames[first..]
                    .iter()
                    .map(|&frame| crate::pool::Frame {
                        contents: crate::pool::Contents::Anything,
                        ..frame
                    })
                    .collect();
                pool.put_back(&want[first..], &rest);
                return Err(Error::System {
                    doing: "remapping a page",
                    error,
                });
            }
            done.exchanged += count;
        }
        debug_assert!(targets.iter().all(|target| target.page * PAGE_BYTES < range.bytes()));
        Ok(())
    }
}
