//! When pages that have a color may get another one.
//!
//! Loops seen together have other hints than loops seen one by one, and each new loop may change the color of every
//! page. A program that shows its loops one after another in its first step would pay for all of that. So:
//!
//! - exchanges are few: at most [`CHANGES`] for each page that has a color, on the whole;
//! - hints of all loops are computed at most [`COMPUTED`] times over;
//! - beyond both, once whenever the number of loops has doubled.
//!
//! A program that comes back to a known loop has shown its repeated loops: then the missing hints are worth more, and
//! the bounds are doubled.

/// Exchanges for each page with a color.
const CHANGES: usize = 4;
/// Pages that hints were computed for, for each page with a color.
const COMPUTED: usize = 16;

#[derive(Debug, Default)]
pub struct Budget {
    changes: usize,
    computed: usize,
    /// Loops when all pages last got the colors of all hints together.
    loops_then: usize,
    loops: usize,
    steady: bool,
}

impl Budget {
    /// There are so many loops now; `again`: one that was known was described.
    pub fn heard(&mut self, loops: usize, again: bool) {
        self.loops = loops;
        self.steady = again;
    }

    /// Returns whether the hints of all loops may be computed, if so many pages have a color.
    pub fn may_compute(&self, pages: usize) -> bool {
        self.doubled() || self.computed < self.factor() * COMPUTED * pages
    }

    /// Returns whether so many pages of `pages` may change their colors.
    pub fn may_change(&self, changed: usize, pages: usize) -> bool {
        self.doubled() || self.changes + changed <= self.factor() * CHANGES * pages
    }

    pub fn computed(&mut self, pages: usize) {
        self.computed += pages;
    }

    pub fn changed(&mut self, pages: usize, loops: usize) {
        self.changes += pages;
        self.loops_then = loops;
    }

    fn doubled(&self) -> bool {
        self.loops >= 2 * self.loops_then
    }

    fn factor(&self) -> usize {
        1 + usize::from(self.steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_exchanges_together_are_bounded() {
        // The worst program: each loop changes the color of each page.
        let (pages, mut changes, mut computed) = (100, 0, 0);
        let mut budget = Budget::default();
        for loops in 1..=1000 {
            budget.heard(loops, false);
            if budget.may_compute(pages) {
                budget.computed(pages);
                computed += pages;
                if budget.may_change(pages, pages) {
                    budget.changed(pages, loops);
                    changes += pages;
                }
            }
        }
        // Four times each by right, and up to ten times since 1000 is less than ten doublings.
        assert!(
            (CHANGES * pages..=(CHANGES + 10) * pages).contains(&changes),
            "{changes}"
        );
        assert!(computed <= (COMPUTED + 10) * pages, "{computed}");
    }

    #[test]
    fn who_comes_back_may_do_more() {
        let mut budget = Budget::default();
        budget.changed(400, 10);
        budget.heard(11, false);
        assert!(!budget.may_change(1, 100));
        budget.heard(11, true);
        assert!(budget.may_change(1, 100));
        budget.heard(20, false);
        assert!(budget.may_change(100, 100));
    }
}
