//! Bringing frames of the wanted colors to absent pages: from the supply, then from the own pool,
//! and checked afterwards.

use sys::memory;

use super::{Engine, Placing};
use crate::pool::Expected;
use crate::{Error, PAGE_BYTES, Pages};

/// The most tries for a page whose frame came out wrong.
const ROUNDS: usize = 8;

/// The result.
#[derive(Clone, Debug, Default)]
pub(super) struct Furnished {
    /// True for each page that has a frame of the wanted color.
    pub right: Vec<bool>,
    /// The number of frames that came from the first supply.
    pub supplied: usize,
}

impl Engine {
    /// Gives absent pages frames of the wanted colors.
    ///
    /// `way`: how the own pool brings them there, [`Placing::Move`] or [`Placing::Refill`].
    ///
    /// Errors: where frames run out; some pages may have frames then, all of them still full of zeros.
    ///
    /// # Safety
    /// Nobody touches the pages, which hold only zeros. With [`Expected::Any`] the caller writes them over as
    /// a whole before anybody else sees them.
    pub(super) unsafe fn furnish(
        &mut self,
        into: Pages,
        want: &[u16],
        expected: Expected,
        way: Placing,
    ) -> Result<Furnished, Error> {
        let mut done = Furnished {
            right: vec![false; into.count],
            supplied: 0,
        };
        let asked = self.config.supply.is_some();
        if let Some(supply) = self.config.supply.as_mut() {
            // SAFETY: the caller's promise.
            match unsafe { supply.fill(into, want) } {
                Ok(reported) => {
                    self.lacked = lacking(supply.lacking(), into.count, self.pool.is_some()).or(self.lacked.take());
                    self.look(into, want, &reported, &mut done.right)?;
                    done.supplied = done.right.iter().filter(|&&right| right).count();
                }
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    // SAFETY: they held zeros, and nobody touches them.
                    unsafe { empty(into) }?;
                }
            }
        }
        for round in 0..ROUNDS {
            if !done.right.contains(&false) {
                break;
            }
            if self.pool.is_none() {
                break;
            }
            for part in wrong_parts(&done.right) {
                let (pages, want) = (into.part(part.start, part.len()), &want[part.clone()]);
                if asked || round > 0 {
                    // SAFETY: as above; with other content than zeros nobody has read it.
                    unsafe { empty(pages) }?;
                }
                let Some(pool) = self.pool.as_mut() else { break };
                // SAFETY: the caller's promise; the pages were absent, or have just been emptied.
                let reported = unsafe { pool.fill_with(pages, want, expected, way) }?;
                let mut right = vec![false; part.len()];
                self.look(pages, want, &reported, &mut right)?;
                done.right[part].copy_from_slice(&right);
            }
        }
        Ok(done)
    }

    /// The pages that have the wanted color: by the page map if it shows frames, else as the supply or the pool
    /// reported.
    fn look(&self, pages: Pages, want: &[u16], reported: &[Option<u16>], right: &mut [bool]) -> Result<(), Error> {
        let seen = self.colors_of(pages)?;
        for (at, right) in right.iter_mut().enumerate() {
            let color = match &seen {
                Some(seen) => seen[at],
                None => reported.get(at).copied().flatten(),
            };
            *right = color == Some(want[at]);
        }
        Ok(())
    }

    /// The colors of pages, where the page map shows them.
    pub(super) fn colors_of(&self, pages: Pages) -> Result<Option<Vec<Option<u16>>>, Error> {
        if !self.visible {
            return Ok(None);
        }
        let entries = self.entries(pages)?;
        let color = |frame| self.config.colors.of(frame) as u16;
        Ok(Some(
            entries.into_iter().map(|entry| entry.frame().map(color)).collect(),
        ))
    }
}

/// The message about a supply that had too few frames.
fn lacking(frames: usize, of: usize, collects: bool) -> Option<String> {
    let instead = match collects {
        true => "this process collected them for itself, more slowly",
        false => "this process cannot collect frames for itself, and these pages have others",
    };
    (frames > 0).then(|| {
        format!(
            "the daemon's stock had no frames of the right colors for {frames} of {of} pages: {instead}; a larger stock has \
             them at hand (`domicile daemon --stock`)"
        )
    })
}

/// Frees the frames of pages that hold zeros.
///
/// # Safety
/// Nobody needs their content, which are zeros.
unsafe fn empty(pages: Pages) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { memory::discard(pages.span()) }.map_err(Error::system("freeing frames of the wrong color"))
}

/// The parts without a right page.
fn wrong_parts(right: &[bool]) -> Vec<std::ops::Range<usize>> {
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..right.len()).filter(|&at| !right[at]) {
        match parts.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => parts.push(at..at + 1),
        }
    }
    parts
}

const _: () = assert!(PAGE_BYTES == sys::memory::PAGE);
