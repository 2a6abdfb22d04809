//! Counts by some number: of a thread, a structure, a page.

use crate::clock::Units;
use crate::counts::{CLASSES, Class};

/// Stall, and misses by kind of cache and class, for each number. Grows as numbers come up.
pub struct Rows {
    kinds: usize,
    /// Of each row the stall, and for each kind the misses and their classes.
    figures: Vec<u64>,
}

/// One number's figures.
#[derive(Clone, Copy)]
pub struct Row<'a>(&'a [u64]);

/// Figures of one kind: misses, and the classes.
const KIND: usize = 1 + CLASSES;

impl Rows {
    pub fn new(kinds: usize) -> Rows {
        Rows {
            kinds,
            figures: Vec::new(),
        }
    }

    /// Kinds of caches.
    pub fn kinds(&self) -> usize {
        self.kinds
    }

    pub fn restart(&mut self) {
        self.figures.fill(0);
    }

    fn width(&self) -> usize {
        1 + self.kinds * KIND
    }

    #[inline]
    fn row(&mut self, number: u32) -> &mut [u64] {
        let width = self.width();
        let from = number as usize * width;
        if self.figures.len() < from + width {
            self.figures.resize(from + width, 0);
        }
        &mut self.figures[from..from + width]
    }

    #[inline]
    pub fn stall(&mut self, number: u32, stall: Units) {
        self.row(number)[0] += stall;
    }

    #[inline]
    pub fn miss(&mut self, number: u32, kind: usize, class: Option<Class>) {
        let of_kind = &mut self.row(number)[1 + kind * KIND..][..KIND];
        of_kind[0] += 1;
        if let Some(class) = class {
            of_kind[1 + class as usize] += 1;
        }
    }

    /// Adds the figures of another row, of as many kinds.
    pub fn add(&mut self, number: u32, other: Row) {
        for (sum, figure) in self.row(number).iter_mut().zip(other.0) {
            *sum += figure;
        }
    }

    /// The figures of a number, all 0 if it never came up.
    pub fn get(&mut self, number: u32) -> Row<'_> {
        Row(self.row(number))
    }

    /// The figures of a number, if it came up.
    pub fn row_of(&self, number: u32) -> Option<Row<'_>> {
        let from = number as usize * self.width();
        self.figures.get(from..from + self.width()).map(Row)
    }

    /// The numbers that have a miss or a stall, the largest stall first.
    pub fn ranked(&self) -> Vec<(u32, Row<'_>)> {
        let rows = self.figures.chunks_exact(self.width()).map(Row).enumerate();
        let mut ranked: Vec<_> = rows
            .filter(|(_, row)| !row.is_empty())
            .map(|(number, row)| (number as u32, row))
            .collect();
        ranked.sort_by_key(|&(number, row)| (std::cmp::Reverse((row.stall(), row.misses())), number));
        ranked
    }
}

impl Row<'_> {
    pub fn stall(&self) -> Units {
        self.0[0]
    }

    /// Returns whether there is neither a miss nor a stall.
    pub fn is_empty(self) -> bool {
        self.0.iter().all(|&figure| figure == 0)
    }

    /// Misses in all kinds of caches.
    fn misses(&self) -> u64 {
        self.0[1..].iter().step_by(KIND).sum()
    }

    /// Misses in each kind of cache, with their classes.
    pub fn kinds(&self) -> impl Iterator<Item = (u64, [u64; CLASSES])> {
        self.0[1..].chunks_exact(KIND).map(|of_kind| {
            let mut classes = [0; CLASSES];
            classes.copy_from_slice(&of_kind[1..]);
            (of_kind[0], classes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_and_are_ranked_by_stall() {
        let mut rows = Rows::new(2);
        rows.stall(7, 5);
        rows.miss(7, 1, Some(Class::Conflict));
        rows.stall(2, 9);
        rows.miss(2, 0, None);
        rows.miss(4, 0, None);
        let ranked: Vec<_> = rows
            .ranked()
            .iter()
            .map(|&(number, row)| (number, row.stall()))
            .collect();
        assert_eq!(ranked, [(2, 9), (7, 5), (4, 0)]);
        let kinds: Vec<_> = rows.get(7).kinds().collect();
        assert_eq!(kinds, [(0, [0; CLASSES]), (1, [0, 0, 1, 0, 0])]);
        assert_eq!(rows.get(99).stall(), 0);
    }
}
