//! How much of each line is used between two fills, and how much of each page.

use super::sample::Sample;
use crate::structures::StructureId;

/// Bytes that a bit stands for: the largest lines have 64 words.
pub const WORD: u32 = 4;
/// Lines and pages that are watched at most.
const LINES: usize = 1 << 14;
const PAGES: usize = 1 << 12;

/// Things that were brought, and parts of them that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub brought: u64,
    pub parts: u64,
}

impl Used {
    pub fn add(&mut self, parts: u64) {
        if parts != 0 {
            self.brought += 1;
            self.parts += u64::from(parts.count_ones());
        }
    }

    pub fn plus(self, other: Used) -> Used {
        Used {
            brought: self.brought + other.brought,
            parts: self.parts + other.parts,
        }
    }

    /// Parts used of each; `None` where nothing was seen.
    pub fn mean(self) -> Option<f64> {
        (self.brought > 0).then(|| self.parts as f64 / self.brought as f64)
    }
}

/// A line that is watched. Bits are words.
struct Line {
    structure: StructureId,
    /// The place that brought it last to the nearest caches, and to the outermost.
    near_by: u32,
    far_by: u32,
    /// The line of the source that brought it last to the nearest.
    near_by_line: u32,
    /// The parts used since.
    near: u64,
    far: u64,
    /// The parts used since another line of the source brought it.
    own: u64,
    /// The parts used since its memory belongs to the structure, without those that the first place to bring it used:
    /// data is filled as a whole, which says nothing of its use.
    ever: u64,
    /// True if it was brought again.
    again: bool,
}

impl Line {
    #[inline(always)]
    fn uses(&mut self, words: u64) {
        self.near |= words;
        self.far |= words;
        self.own |= words;
        self.ever |= words;
    }
}

/// Reports a line's use at its end, and the place concerned.
pub enum Said {
    Near { place: u32, words: u64 },
    Far { place: u32, words: u64 },
    Own { place: u32, words: u64 },
    Ever { structure: StructureId, words: u64 },
}

/// A piece, as far as it matters here.
#[derive(Clone, Copy)]
pub struct Touch {
    /// The address space and the address.
    pub space: u32,
    pub address: u64,
    pub bytes: u32,
    pub place: u32,
    /// A number of its line of the source: a loop that the compiler unrolled has several places for one.
    pub source_line: u32,
    pub structure: StructureId,
    /// True if it missed in the nearest cache of its route, and in the outermost.
    pub near: bool,
    pub far: bool,
}

/// Lines, each as long as the machine's longest.
pub struct Lines {
    line_bits: u32,
    near_bits: u32,
    lines: Sample<Line>,
}

impl Lines {
    pub fn new(line_bits: u32, near_bits: u32, exact: bool) -> Lines {
        Lines {
            line_bits,
            near_bits,
            lines: if exact { Sample::of_all() } else { Sample::new(LINES) },
        }
    }

    #[inline(always)]
    fn number(&self, space: u32, address: u64) -> u64 {
        address >> self.line_bits ^ u64::from(space) << 44
    }

    /// Lines that are watched.
    pub fn watched(&self) -> usize {
        self.lines.len()
    }

    #[inline(always)]
    pub fn watches(&self, space: u32, address: u64) -> bool {
        self.lines.takes(self.number(space, address))
    }

    /// Records a use of words of a line that hit. Returns whether the line belongs to the sample.
    #[inline(always)]
    pub fn uses(&mut self, space: u32, address: u64, bytes: u32) -> bool {
        let number = self.number(space, address);
        let watched = self.lines.takes(number);
        if watched {
            let words = self.words(address, bytes);
            if let Some(line) = self.lines.get(number) {
                line.uses(words);
            }
        }
        watched
    }

    /// The words of a line that hold `bytes` bytes from an address on.
    fn words(&self, address: u64, bytes: u32) -> u64 {
        let from = (address & ((1 << self.line_bits) - 1)) as u32;
        let to = (from + bytes.max(1) - 1).min((1 << self.line_bits) - 1);
        let (from, to) = (from / WORD, to / WORD);
        (u64::MAX >> (63 - (to - from))) << from
    }

    /// A piece of a line that is watched.
    pub fn touch(&mut self, touch: &Touch, mut say: impl FnMut(Said)) {
        let number = self.number(touch.space, touch.address);
        let words = self.words(touch.address, touch.bytes);
        // The words that come with it to the nearest cache.
        let near_line = touch.address & !((1 << self.near_bits) - 1);
        let with_it = self.words(near_line, 1 << self.near_bits);
        let Some(line) = self.lines.get(number) else {
            // It was brought before it was watched, and its use is not known.
            if touch.near {
                let line = Line {
                    structure: touch.structure,
                    near_by: touch.place,
                    far_by: touch.place,
                    near_by_line: touch.source_line,
                    near: words,
                    far: words,
                    own: words,
                    ever: words,
                    again: false,
                };
                self.lines.keep(number, line);
            }
            return;
        };
        if touch.near {
            say(Said::Near {
                place: line.near_by,
                words: line.near & with_it,
            });
            line.near &= !with_it;
            if line.near_by_line != touch.source_line {
                say(Said::Own {
                    place: line.near_by,
                    words: line.own,
                });
                (line.near_by_line, line.own) = (touch.source_line, 0);
            }
            line.near_by = touch.place;
        }
        if touch.far {
            say(Said::Far {
                place: line.far_by,
                words: line.far,
            });
            (line.far_by, line.far) = (touch.place, 0);
        }
        if touch.near && line.structure != touch.structure {
            say(Said::Ever {
                structure: line.structure,
                words: line.ever,
            });
            (line.structure, line.ever, line.again) = (touch.structure, 0, false);
        } else if touch.near && !line.again {
            (line.ever, line.again) = (0, true);
        }
        line.uses(words);
    }

    /// Counts begin here: earlier uses count for nothing.
    pub fn restart(&mut self) {
        for line in self.lines.values() {
            (line.near, line.far, line.own, line.ever) = (0, 0, 0, 0);
        }
    }

    /// Reports the lines that are still there at the end.
    pub fn end(&mut self, mut say: impl FnMut(Said)) {
        for (_, line) in self.lines.drain() {
            let (near, far) = (line.near_by, line.far_by);
            say(Said::Near {
                place: near,
                words: line.near,
            });
            say(Said::Far {
                place: far,
                words: line.far,
            });
            say(Said::Own {
                place: near,
                words: line.own,
            });
            say(Said::Ever {
                structure: line.structure,
                words: line.ever,
            });
        }
    }
}

/// Pages, in 64 parts each.
pub struct Pages {
    page_bits: u32,
    /// The place that brought its entry into a TLB, and the parts used since.
    pages: Sample<(u32, u64)>,
}

/// Parts of a page.
pub const PARTS: u32 = 64;

impl Pages {
    pub fn new(page_bits: u32, exact: bool) -> Pages {
        Pages {
            page_bits,
            pages: if exact { Sample::of_all() } else { Sample::new(PAGES) },
        }
    }

    #[inline(always)]
    fn number(&self, space: u32, address: u64) -> u64 {
        address >> self.page_bits ^ u64::from(space) << 40
    }

    #[inline(always)]
    pub fn watches(&self, space: u32, address: u64) -> bool {
        self.pages.takes(self.number(space, address))
    }

    /// Records a use of a part of a page whose entry was there. Returns whether the page belongs to the sample.
    #[inline(always)]
    pub fn uses(&mut self, space: u32, address: u64) -> bool {
        let number = self.number(space, address);
        let watched = self.pages.takes(number);
        if watched && let Some(page) = self.pages.get(number) {
            page.1 |= Self::part(self.page_bits, address);
        }
        watched
    }

    #[inline(always)]
    fn part(page_bits: u32, address: u64) -> u64 {
        1 << (address >> page_bits.saturating_sub(6) & 63)
    }

    /// A piece in a page that is watched; `missed`: its entry was brought.
    pub fn touch(&mut self, touch: &Touch, missed: bool, say: impl FnOnce(u32, u64)) {
        let number = self.number(touch.space, touch.address);
        let part = Self::part(self.page_bits, touch.address);
        match self.pages.get(number) {
            Some(page) => {
                if missed {
                    say(page.0, page.1);
                    *page = (touch.place, 0);
                }
                page.1 |= part;
            }
            None if missed => self.pages.keep(number, (touch.place, part)),
            None => {}
        }
    }

    pub fn restart(&mut self) {
        self.pages.values().for_each(|(_, parts)| *parts = 0);
    }

    pub fn end(&mut self, mut say: impl FnMut(u32, u64)) {
        for (_, (place, parts)) in self.pages.drain() {
            say(place, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(address: u64, place: u32, missed: bool) -> Touch {
        Touch {
            space: 0,
            address,
            bytes: 8,
            place,
            source_line: place,
            structure: 1,
            near: missed,
            far: missed,
        }
    }

    /// Words used each time that a line is brought, of one place in one time, and of all.
    fn used(touches: impl Iterator<Item = Touch>) -> [Option<f64>; 3] {
        let mut lines = Lines::new(6, 6, false);
        let mut sums = [Used::default(); 3];
        let mut say = |said: Said| match said {
            Said::Near { words, .. } => sums[0].add(words),
            Said::Own { words, .. } => sums[1].add(words),
            Said::Ever { words, .. } => sums[2].add(words),
            Said::Far { .. } => {}
        };
        for touch in touches {
            if lines.watches(0, touch.address) {
                lines.touch(&touch, &mut say);
            }
        }
        lines.end(&mut say);
        sums.map(Used::mean)
    }

    #[test]
    fn a_walk_along_uses_all_of_each_line() {
        let along = (0..8192u64).map(|at| touch(at * 8, 1, at % 8 == 0));
        assert_eq!(used(along), [Some(16.0); 3]);
    }

    #[test]
    fn a_walk_across_uses_one_element_at_a_time_and_all_in_the_end() {
        let across = (0..8u64).flat_map(|column| (0..1024u64).map(move |row| touch(row * 64 + column * 8, 1, true)));
        // All but the first column, which may be how it was filled.
        assert_eq!(used(across), [Some(2.0), Some(16.0), Some(14.0)]);
    }

    #[test]
    fn instructions_of_one_line_of_the_source_use_a_line_together() {
        // Two columns at a time, each by an instruction of its own.
        let across = (0..8u64).flat_map(|column| {
            (0..1024u64).map(move |row| Touch {
                source_line: 7,
                ..touch(row * 64 + column * 8, column as u32 % 2, true)
            })
        });
        assert_eq!(used(across), [Some(2.0), Some(16.0), Some(14.0)]);
    }

    #[test]
    fn to_fill_data_is_no_use_of_it() {
        let filled = (0..8192u64).map(|at| touch(at * 8, 1, at % 8 == 0));
        let read = (0..1024u64).map(|at| touch(at * 64, 2, true));
        assert_eq!(used(filled.chain(read))[2], Some(2.0));
    }

    #[test]
    fn fields_that_different_places_use_are_not_one_places_own() {
        let places = (0..4u64)
            .flat_map(|field| (0..1024u64).map(move |element| touch(element * 64 + field * 8, field as u32, true)));
        assert_eq!(used(places), [Some(2.0), Some(2.0), Some(6.0)]);
    }

    #[test]
    fn pages_are_seen_from_miss_to_miss() {
        let mut pages = Pages::new(12, false);
        let mut used = Used::default();
        for round in 0..3u64 {
            for page in 0..64u64 {
                for word in 0..2 {
                    let touch = touch(page * 4096 + round * 8 + word * 1024, 1, false);
                    if pages.watches(0, touch.address) {
                        pages.touch(&touch, word == 0, |_, parts| used.add(parts));
                    }
                }
            }
        }
        assert!(used.brought > 0);
        assert_eq!(used.mean(), Some(2.0));
    }
}
