//! Checks of the pages' current colors, and repair of pages that the kernel moved.

use policy::slots::ColorSet;
use sys::frames::Entry;

use super::{Census, Engine, Others, Repaired, Wish};
use crate::{Error, Pages};

impl Engine {
    /// Counts the pages that have a color of the set: by the page map if it shows frames, else by the
    /// supply. If neither knows (the daemon knows only its own frames), pages count as unknown.
    ///
    /// A supply that does not answer knows nothing; [`Engine::trouble`] says why.
    pub fn census(&mut self, range: Pages, set: &ColorSet) -> Result<Census, Error> {
        super::survey::survey(range)?;
        self.census_of(range, &Wish::Set(set.clone()))
    }

    /// The same of the pages that a wish is for: which of them have a color that it allows. Memory that the program has
    /// protected since is looked at too; where nothing is mapped pages count as absent.
    pub fn census_of(&mut self, range: Pages, wish: &Wish) -> Result<Census, Error> {
        self.renew()?;
        self.trouble = None;
        let wished = wish.colors_wished(range.count, &self.config.colors)?;
        let entries = self.entries(range)?;
        let known = self.known(range).unwrap_or_else(|error| {
            self.trouble = Some(error.to_string());
            vec![None; range.count]
        });
        let mut census = Census {
            by_color: vec![0; self.config.colors.count() as usize],
            ..Census::default()
        };
        for ((entry, color), wanted) in entries.into_iter().zip(known).zip(wished) {
            let Some(wanted) = wanted else { continue };
            census.pages += 1;
            match color {
                _ if !entry.present() => census.absent += 1,
                None => census.unknown += 1,
                Some(color) => {
                    if let Some(pages) = census.by_color.get_mut(usize::from(color)) {
                        *pages += 1;
                    }
                    if wish.allows(color, wanted) {
                        census.right += 1;
                    } else {
                        census.wrong += 1;
                    }
                }
            }
        }
        Ok(census)
    }

    /// Finds the pages of a range whose frames have no color of the set (any more), and colors these;
    /// absent pages count as wrong, and so do pages unknown to the supply: a frame that the kernel chose is
    /// not the supply's. If a move by the kernel gives a color of the set more than its even share, the
    /// excess pages get other colors as well.
    ///
    /// Errors: [`Error::Unavailable`] if frames are hidden and there is no supply to ask, so that wrong
    /// pages cannot be told from right ones; the supply's own if it does not answer.
    ///
    /// # Safety
    /// As for [`color`](Engine::color).
    pub unsafe fn repair(&mut self, range: Pages, set: &ColorSet, others: Others) -> Result<Repaired, Error> {
        self.renew()?;
        if !self.visible && self.config.supply.is_none() {
            return Err(Error::Unavailable {
                what: "finding pages whose frames were moved".into(),
                why: "/proc/self/pagemap hides frame numbers from this user and there is no daemon to ask; give the \
                      process CAP_SYS_ADMIN, run the daemon, or color the range anew"
                    .into(),
            });
        }
        super::survey::survey(range)?;
        let known = self.known(range)?;
        let entries = self.entries(range)?;
        let right = |color: &Option<u16>| color.is_some_and(|color| set.contains(u32::from(color)));
        let wrong = entries.iter().zip(&known);
        let wrong = wrong.filter(|(entry, color)| entry.present() && !right(color)).count();
        let wish = Wish::Set(set.clone());
        if self.visible {
            // SAFETY: the caller's promise.
            let done = unsafe { self.color(range, &wish, others) }?;
            return Ok(Repaired { wrong, done });
        }
        let (targets, kept) = wish.targets(range.count, &self.config.colors, Some(&known))?;
        let hints = targets.iter().map(|target| (target.page, target.color)).collect();
        // SAFETY: the caller's promise.
        let mut done = unsafe { self.color(range, &Wish::Hints(hints), others) }?;
        (done.pages, done.kept) = (done.pages + kept, done.kept + kept);
        Ok(Repaired { wrong, done })
    }

    /// The color of each page where anybody knows it.
    fn known(&mut self, pages: Pages) -> Result<Vec<Option<u16>>, Error> {
        if let Some(seen) = self.colors_of(pages)? {
            return Ok(seen);
        }
        let known = match self.config.supply.as_mut() {
            Some(supply) => supply.look(pages)?,
            None => Vec::new(),
        };
        // One color for each page, whatever the supply returned.
        Ok((0..pages.count)
            .map(|page| known.get(page).copied().flatten())
            .collect())
    }

    /// The page map's entries of pages.
    pub(super) fn entries(&self, pages: Pages) -> Result<Vec<Entry>, Error> {
        let entries = self.pagemap.entries(pages.span());
        entries.map_err(Error::system("reading /proc/self/pagemap"))
    }
}
