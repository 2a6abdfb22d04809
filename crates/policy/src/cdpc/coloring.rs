//! A coloring of the pages of cpus that fit, in which no cpu has a color twice, grown page by page.
//!
//! Pages keep the color of their turn if they can, those of most cpus first, which are hardest to please. The others
//! take a color that none of their cpus has; if there is none, two colors are exchanged along an alternating path to
//! make one free.

const NONE: u32 = u32::MAX;

/// Changes that are tried in vain. If pages are of at most two cpus, in even rings, none is; otherwise the search has
/// to end.
const TRIALS: u32 = 1 << 14;

/// Colors that are looked at in all: for some 16000 pages that cannot keep theirs, with 4096 colors. The pages that are left
/// then stay in conflict.
const LOOKS: usize = 1 << 26;

/// A page that some cpu touches that fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Its place in the row.
    pub(super) at: usize,
    /// Those of its cpus that fit.
    pub(super) cpus: u128,
    pub(super) color: u32,
}

/// The number of pages of a row that get each color when colors go in turn.
pub(super) fn places(pages: usize, colors: u32) -> Vec<usize> {
    let (all, more) = (pages / colors as usize, pages % colors as usize);
    (0..colors as usize)
        .map(|color| all + usize::from(color < more))
        .collect()
}

/// Calls for each cpu of a set.
pub(super) fn each(mut cpus: u128, mut call: impl FnMut(usize)) {
    while cpus != 0 {
        call(cpus.trailing_zeros() as usize);
        cpus &= cpus - 1;
    }
}

pub(super) struct Coloring<'a> {
    pages: &'a [Bound],
    colors: usize,
    /// For each page, [`NONE`] as long as it has none.
    color: Vec<u32>,
    /// The page of each cpu and color, or [`NONE`]; rows of `colors`.
    holder: Vec<u32>,
    /// Cpus that have each color.
    having: Vec<u128>,
    /// Pages that have each color, and how many may.
    held: Vec<usize>,
    most: Vec<usize>,
    waiting: Vec<usize>,
    trials: u32,
    looks: usize,
}

impl Coloring<'_> {
    /// Starts without any color. `all` are the pages of the row, those that no fitting cpu touches too.
    pub(super) fn new(pages: &[Bound], colors: u32, all: usize) -> Coloring<'_> {
        let cpus = pages.iter().fold(0, |cpus, page| cpus | page.cpus);
        let rows = 128 - cpus.leading_zeros() as usize;
        Coloring {
            pages,
            colors: colors as usize,
            color: vec![NONE; pages.len()],
            holder: vec![NONE; rows * colors as usize],
            having: vec![0; colors as usize],
            held: vec![0; colors as usize],
            most: places(all, colors),
            waiting: Vec::new(),
            trials: TRIALS,
            looks: LOOKS,
        }
    }

    /// Pages keep the color that they come with, unless one of their cpus has it.
    pub(super) fn keep(&mut self) {
        let mut order: Vec<usize> = (0..self.pages.len()).collect();
        order.sort_by_key(|&page| std::cmp::Reverse(self.pages[page].cpus.count_ones()));
        for page in order {
            let Bound { cpus, color, .. } = self.pages[page];
            match self.having[color as usize] & cpus {
                0 => self.set(page, color as usize),
                _ => self.waiting.push(page),
            }
        }
    }

    /// The others take a color that is free at all their cpus, or is made free. Pages that find none keep waiting.
    pub(super) fn place(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for page in waiting {
            if !self.look() {
                self.waiting.push(page);
                continue;
            }
            let cpus = self.pages[page].cpus;
            let turn = self.pages[page].color as usize;
            let around = (turn..self.colors).chain(0..turn);
            let mut free = around.filter(|&color| self.having[color] & cpus == 0);
            let first = free.clone().next();
            let color = free.find(|&color| self.held[color] < self.most[color]).or(first);
            match color.or_else(|| self.make_free(cpus)) {
                Some(color) => self.set(page, color),
                None => self.waiting.push(page),
            }
        }
    }

    /// A color that no cpu of a set has, after others have changed it for another.
    ///
    /// Those of the cpus that have color `a` do not have `b`. If none of the other cpus has `b` in the component of `a`
    /// and `b` that begins there, the two colors are exchanged in it, and all of them are free of `a`.
    fn make_free(&mut self, cpus: u128) -> Option<usize> {
        // A color that few of the cpus have is freed most easily.
        let colors = self.colors;
        let levels = (1..=cpus.count_ones()).flat_map(|few| (0..colors).map(move |color| (few, color)));
        for (few, a) in levels {
            if a == 0 && !self.look() {
                return None;
            }
            let have = self.having[a] & cpus;
            if have.count_ones() != few {
                continue;
            }
            for b in 0..self.colors {
                if b == a || self.having[b] & have != 0 {
                    continue;
                }
                let mut part = Vec::new();
                let mut seen = 0;
                each(have, |cpu| self.reach(cpu, a, b, &mut seen, &mut part));
                if seen & cpus & !have == 0 {
                    self.change(&part, a, b);
                    return Some(a);
                }
                self.trials = self.trials.saturating_sub(1);
                if self.trials == 0 {
                    return None;
                }
            }
        }
        None
    }

    /// The pages of colors `a` and `b` that hang together by their cpus, from one of its cpus on; `seen` are the cpus
    /// that were passed.
    fn reach(&self, cpu: usize, a: usize, b: usize, seen: &mut u128, part: &mut Vec<usize>) {
        let mut cpus = vec![cpu];
        while let Some(cpu) = cpus.pop() {
            if *seen >> cpu & 1 == 1 {
                continue;
            }
            *seen |= 1 << cpu;
            for color in [a, b] {
                let page = self.holder[cpu * self.colors + color];
                if page != NONE {
                    part.push(page as usize);
                    each(self.pages[page as usize].cpus & !*seen, |cpu| cpus.push(cpu));
                }
            }
        }
        part.sort_unstable();
        part.dedup();
    }

    /// Pages of color `a` get `b` and the other way round.
    fn change(&mut self, part: &[usize], a: usize, b: usize) {
        let before: Vec<usize> = part.iter().map(|&page| self.color[page] as usize).collect();
        for &page in part {
            self.unset(page);
        }
        for (&page, color) in part.iter().zip(before) {
            self.set(page, if color == a { b } else { a });
        }
    }

    /// No color has more pages than it may have. If no change along a path helps, a page goes back to those that
    /// wait.
    pub(super) fn balance(&mut self) {
        for a in 0..self.colors {
            while self.held[a] > self.most[a] {
                if self.trials > 0 && self.look() && self.pass_on(a) {
                    continue;
                }
                let cpu = self.having[a].trailing_zeros() as usize;
                let page = self.holder[cpu * self.colors + a] as usize;
                self.unset(page);
                self.waiting.push(page);
            }
        }
    }

    /// One change that takes pages from color `a` and gives them to one that has less than it may.
    fn pass_on(&mut self, a: usize) -> bool {
        for b in 0..self.colors {
            let room = self.most[b].saturating_sub(self.held[b]);
            if room == 0 {
                continue;
            }
            let mut left = self.having[a];
            while left != 0 {
                let mut part = Vec::new();
                let mut seen = 0;
                self.reach(left.trailing_zeros() as usize, a, b, &mut seen, &mut part);
                left &= !seen;
                let of_a = part.iter().filter(|&&page| self.color[page] as usize == a).count();
                let gain = of_a.saturating_sub(part.len() - of_a);
                if (1..=room).contains(&gain) {
                    self.change(&part, a, b);
                    return true;
                }
                self.trials = self.trials.saturating_sub(1);
            }
        }
        false
    }

    /// The color of each page. Waiting pages get the colors that are left, choosing those that disturb the fewest cpus.
    pub(super) fn finished(mut self) -> Vec<u32> {
        // Below it no color has room.
        let mut room = 0;
        for page in std::mem::take(&mut self.waiting) {
            let cpus = self.pages[page].cpus;
            // There is as much room as there are pages.
            while room + 1 < self.colors && self.held[room] >= self.most[room] {
                room += 1;
            }
            let mut color = room;
            if self.look() {
                let left = (room..self.colors).filter(|&color| self.held[color] < self.most[color]);
                color = left
                    .min_by_key(|&color| (self.having[color] & cpus).count_ones())
                    .unwrap_or(room);
            }
            self.color[page] = color as u32;
            self.having[color] |= cpus;
            self.held[color] += 1;
        }
        self.color
    }

    /// Returns true if all colors may be looked at once more.
    fn look(&mut self) -> bool {
        let may = self.looks >= self.colors;
        self.looks -= if may { self.colors } else { 0 };
        may
    }

    fn set(&mut self, page: usize, color: usize) {
        self.color[page] = color as u32;
        self.having[color] |= self.pages[page].cpus;
        self.held[color] += 1;
        each(self.pages[page].cpus, |cpu| {
            self.holder[cpu * self.colors + color] = page as u32
        });
    }

    fn unset(&mut self, page: usize) {
        let color = self.color[page] as usize;
        self.color[page] = NONE;
        self.having[color] &= !self.pages[page].cpus;
        self.held[color] -= 1;
        each(self.pages[page].cpus, |cpu| {
            self.holder[cpu * self.colors + color] = NONE
        });
    }
}
