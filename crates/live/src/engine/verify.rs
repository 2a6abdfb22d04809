//! Looking again: which colors pages have now, and coloring anew those that the kernel moved.

use policy::slots::ColorSet;
use sys::frames::Entry;

use super::{Census, Engine, Others, Repaired, Wish};
use crate::{Error, Pages};

impl Engine {
    /// Looks which pages have a color of the set. Needs a page map that shows frames; without it
    /// the pages count as unknown.
    pub fn census(&self, range: Pages, set: &ColorSet) -> Result<Census, Error> {
        let survey = super::survey::survey(range)?;
        let mut census = Census {
            by_color: vec![0; self.config.colors.count() as usize],
            ..Census::default()
        };
        for piece in survey.pieces {
            for entry in self.entries(piece.pages)? {
                census.pages += 1;
                match entry.frame() {
                    _ if !entry.present() => census.absent += 1,
                    None => census.unknown += 1,
                    Some(frame) => {
                        let color = self.config.colors.of(frame);
                        census.by_color[color as usize] += 1;
                        if set.contains(color) {
                            census.right += 1;
                        } else {
                            census.wrong += 1;
                        }
                    }
                }
            }
        }
        Ok(census)
    }

    /// Finds the pages of a range whose frames have no color of the set (any more), and colors
    /// these alone; absent pages count as wrong.
    ///
    /// Errors: [`Error::Unavailable`] where frames are hidden, so that right pages cannot be told
    /// from wrong ones.
    pub fn repair(&mut self, range: Pages, set: &ColorSet, others: Others) -> Result<Repaired, Error> {
        if !self.visible {
            return Err(Error::Unavailable {
                what: "finding pages whose frames were moved".into(),
                why: "/proc/self/pagemap hides frame numbers from this user; give the process CAP_SYS_ADMIN, or color \
                      the range anew"
                    .into(),
            });
        }
        let census = self.census(range, set)?;
        let done = self.color(range, &Wish::Set(set.clone()), others)?;
        Ok(Repaired {
            wrong: census.wrong,
            done,
        })
    }

    /// What the page map tells of pages.
    pub(super) fn entries(&self, pages: Pages) -> Result<Vec<Entry>, Error> {
        let entries = self.pagemap.entries(pages.span());
        entries.map_err(Error::system("reading /proc/self/pagemap"))
    }
}
