//! Pages get their frames.

use std::collections::BTreeMap;

use super::{Coloring, Fresh, Moment, fit};
use crate::{Others, PAGE_BYTES};

impl Coloring {
    /// # Safety
    /// As for [`Engine::color`](crate::Engine::color).
    pub(super) unsafe fn place(&mut self, wanted: &[(u64, u16)], fresh: &Fresh, others: Others, moment: &mut Moment) {
        let fit = match fit::runs(wanted) {
            Ok(fit) => fit,
            Err(error) => return self.note(format!("nothing was colored: /proc/self/maps: {error}")),
        };
        moment.pages += wanted.len() as u64;
        let unfit: BTreeMap<u64, &str> = fit.left.into_iter().collect();
        // Colors that pages have already, for those that keep them.
        let mut before = BTreeMap::new();
        for &(page, color) in wanted {
            let had = self.preferred.get(&page).copied().filter(|_| !fresh.contains(page));
            match (unfit.get(&page), had) {
                (None, had) => {
                    self.preferred.insert(page, color);
                    if self.left.remove(&page).is_none()
                        && let Some(had) = had
                    {
                        before.insert(page, had);
                    }
                }
                // A page that has a color already and cannot change it any more (constants) keeps
                // that.
                (Some(_), Some(_)) => moment.pages -= 1,
                (Some(why), None) => {
                    self.preferred.insert(page, color);
                    self.left.insert(page, why.to_string());
                }
            }
        }
        for run in fit.runs {
            let first = (run.pages.start / PAGE_BYTES) as u64;
            // SAFETY: the caller's promise; `fit` left out what is not mapped for the program to write.
            match unsafe { self.engine.color(run.pages, &run.wish, others) } {
                Ok(done) => {
                    moment.kept += done.kept as u64;
                    moment.colored += (done.filled + done.exchanged) as u64;
                    moment.supplied += done.supplied as u64;
                    for left in done.left {
                        self.left
                            .insert((left.address / PAGE_BYTES) as u64, left.why.to_string());
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    for page in first..first + run.pages.count as u64 {
                        match before.get(&page) {
                            Some(&was) => {
                                self.preferred.insert(page, was);
                                moment.pages -= 1;
                            }
                            None => {
                                self.left.insert(page, why.clone());
                            }
                        }
                    }
                }
            }
        }
    }
}
