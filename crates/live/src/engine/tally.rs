//! The pages that were there before, and those of them that were left in peace: several passes may
//! meet the same page, and it counts once.

use sys::frames::Entry;

use super::wish::Target;
use super::{Done, Wish};
use crate::{PAGE_BYTES, Pages};

/// The state of the pages of a range, a flag each.
pub(super) struct Tally {
    /// Pages that are to have a color, and were absent before.
    untouched: Vec<bool>,
    /// Pages that are to have a color, and that never had to get another frame.
    kept: Vec<bool>,
}

impl Tally {
    /// `entries`: of all pages of the range, before anything was done; those that are wished for count.
    pub fn new(wish: &Wish, entries: &[Entry]) -> Tally {
        let wished = wish.pages(entries.len());
        let absent = |entry: &Entry| !entry.present() && !entry.swapped();
        let untouched = wished
            .iter()
            .zip(entries)
            .map(|(&wished, entry)| wished && absent(entry));
        Tally {
            untouched: untouched.collect(),
            kept: wished,
        }
    }

    /// These are to get other frames.
    pub fn exchange(&mut self, targets: &[Target]) {
        for target in targets {
            self.kept[target.page] = false;
        }
    }

    /// The numbers for the final report.
    pub fn report(&self, range: Pages, done: &mut Done) {
        let mut untouched = self.untouched.clone();
        for left in &done.left {
            untouched[(left.address - range.start) / PAGE_BYTES] = false;
        }
        done.filled = untouched.iter().filter(|&&untouched| untouched).count();
        let kept = self.kept.iter().zip(&self.untouched);
        done.kept = kept.filter(|&(&kept, &untouched)| kept && !untouched).count();
        // A page that was exchanged twice counts once.
        let colored = done.pages.saturating_sub(done.kept + done.filled + done.left.len());
        done.exchanged = done.exchanged.min(colored);
    }
}
