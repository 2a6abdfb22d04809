//! Chooses the colors: the second step of Ding11 section 3.2.

use super::ColorSet;

/// Colors as bits, one word for each 64.
pub(super) type Words = Vec<u64>;

/// The frames that a slot should use up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    /// Colors with the fewest frames: no other slot can use the frames that a private slot leaves over.
    Fewest,
    /// Colors with the most: more data sets will come to a shared color.
    Most,
}

/// Buffers that are reused, so that a choice allocates nothing but its answer.
#[derive(Debug, Default)]
pub(super) struct Choice {
    open: Words,
    /// Frames and color in one number, the best first.
    order: Vec<u64>,
    touching: Vec<u32>,
}

impl Choice {
    /// Adds `count` of the `eligible` colors to `chosen`. Each time it takes the color with the fewest (or most) frames
    /// among those that touch none chosen before; of equals, the lowest.
    ///
    /// Two colors touch if they follow one another, as do the last and the first: frames one after another in
    /// memory have such colors. A color is passed over if, with it, the rest could no longer be chosen
    /// without touching. If that cannot be had at all, the missing colors come from the touching
    /// colors with the fewest (or most) frames.
    ///
    /// `eligible` has at least `count` colors, none of them chosen already.
    pub(super) fn add(
        &mut self,
        chosen: &mut ColorSet,
        eligible: &[u64],
        colors: u32,
        count: u32,
        frames: &[u64],
        prefer: Prefer,
    ) {
        if count == 0 {
            return;
        }
        self.open.clear();
        self.open.extend_from_slice(eligible);
        for color in chosen.iter() {
            close(&mut self.open, colors, color);
        }
        let mut open = population(&self.open);
        let apart = can_be_apart(&self.open, open, colors, count);
        let mut missing = count;
        self.touching.clear();
        // A color that is chosen closes at most three. If this many are open, none of the best ones is passed over, and
        // no other one is looked at.
        let roomy = open >= 3 * count;
        let (of, most) = if roomy {
            (&self.open[..], 3 * count as usize)
        } else {
            (eligible, usize::MAX)
        };
        best(&mut self.order, of, frames, prefer, most);
        let mut order = self.order.iter().map(|key| (key & COLOR_MASK) as u32);
        while missing > 0
            && let Some(color) = order.next()
        {
            if !holds(&self.open, color) {
                self.touching.push(color);
                continue;
            }
            let closed = close(&mut self.open, colors, color);
            if apart && !can_be_apart(&self.open, open - closed.len, colors, missing - 1) {
                closed.reopen(&mut self.open);
                // It can still be chosen last of all, or not at all.
                self.touching.push(color);
                continue;
            }
            open -= closed.len;
            chosen.insert(color);
            missing -= 1;
        }
        for &color in self.touching.iter().take(missing as usize) {
            chosen.insert(color);
        }
    }
}

/// A color has 16 bits.
const COLOR_MASK: u64 = 0xffff;
/// More frames than any machine has.
const FRAMES_MAX: u64 = u64::MAX >> 16;

/// The best `most` of the eligible colors (all, if there are fewer), in order: keys whose lowest bits are the color.
fn best(order: &mut Vec<u64>, eligible: &[u64], frames: &[u64], prefer: Prefer, most: usize) {
    order.clear();
    if frames.is_empty() {
        order.extend(members(eligible).map(u64::from).take(most));
        return;
    }
    order.extend(members(eligible).map(|color| {
        let at_hand = frames_of(frames, color).min(FRAMES_MAX);
        let key = match prefer {
            Prefer::Fewest => at_hand,
            Prefer::Most => FRAMES_MAX - at_hand,
        };
        key << 16 | u64::from(color)
    }));
    if most < order.len() {
        order.select_nth_unstable(most);
        order.truncate(most);
    }
    order.sort_unstable();
}

/// The available frames of a color; for a color without an entry, any number.
pub(super) fn frames_of(frames: &[u64], color: u32) -> u64 {
    frames.get(color as usize).copied().unwrap_or(u64::MAX)
}

pub(super) fn holds(words: &[u64], color: u32) -> bool {
    words[color as usize / 64] >> (color % 64) & 1 == 1
}

pub(super) fn population(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

/// The colors, lowest first.
pub(super) fn members(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let color = members_from(words, from)?;
        from = color + 1;
        Some(color)
    })
}

/// The lowest color that is at least `from`.
fn members_from(words: &[u64], from: u32) -> Option<u32> {
    let first = from as usize / 64;
    let masked = words.get(first)? & (u64::MAX << (from % 64));
    if masked != 0 {
        return Some(first as u32 * 64 + masked.trailing_zeros());
    }
    let at = (first + 1..words.len()).find(|&at| words[at] != 0)?;
    Some(at as u32 * 64 + words[at].trailing_zeros())
}

/// Keeps the colors for which `holds`.
pub(super) fn keep(words: &mut [u64], holds: impl Fn(u32) -> bool) {
    for (at, word) in words.iter_mut().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            if !holds(at as u32 * 64 + bit) {
                *word &= !(1 << bit);
            }
        }
    }
}

/// The colors that [`close`] took out: at most a color and its two neighbors.
struct Closed {
    colors: [u32; 3],
    len: u32,
}

impl Closed {
    fn reopen(self, words: &mut [u64]) {
        for &color in &self.colors[..self.len as usize] {
            words[color as usize / 64] |= 1 << (color % 64);
        }
    }
}

/// Takes a color and those that touch it out.
fn close(words: &mut [u64], colors: u32, color: u32) -> Closed {
    let before = if color == 0 { colors - 1 } else { color - 1 };
    let after = if color + 1 == colors { 0 } else { color + 1 };
    let mut closed = Closed { colors: [0; 3], len: 0 };
    for color in [before, color, after] {
        if holds(words, color) {
            words[color as usize / 64] &= !(1 << (color % 64));
            closed.colors[closed.len as usize] = color;
            closed.len += 1;
        }
    }
    closed
}

/// True if `count` of the colors can be chosen so that none touch; `population` is how many there are.
fn can_be_apart(words: &[u64], population: u32, colors: u32, count: u32) -> bool {
    // Each color that is chosen closes at most itself and two more.
    population.div_ceil(3) >= count || (population >= count && most_apart(words, colors) >= count)
}

/// The most colors that can be chosen so that none touch: of each run, every second one.
fn most_apart(words: &[u64], colors: u32) -> u32 {
    // Starts at a gap, so that the end cuts no run.
    let Some(gap) = (0..colors).find(|&color| !holds(words, color)) else {
        return (colors / 2).max(1);
    };
    let mut most = 0u32;
    let mut run = 0u32;
    for color in (gap..colors).chain(0..gap) {
        if holds(words, color) {
            run += 1;
        } else {
            most += run.div_ceil(2);
            run = 0;
        }
    }
    most + run.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(colors: u32, count: u32, frames: &[u64], prefer: Prefer) -> Vec<u32> {
        let mut words = vec![0u64; colors.div_ceil(64) as usize];
        for color in 0..colors {
            words[color as usize / 64] |= 1 << (color % 64);
        }
        let mut set = ColorSet::new();
        Choice::default().add(&mut set, &words, colors, count, frames, prefer);
        set.iter().collect()
    }

    #[test]
    fn colors_that_do_not_follow_one_another_with_the_fewest_frames() {
        // The paper's example: colors 0, 3, 7, 9 instead of 0, 1, 2, 3.
        let mut frames = [900u64; 16];
        for (color, at_hand) in [(0, 100), (1, 110), (3, 130), (2, 135), (7, 140), (9, 150)] {
            frames[color] = at_hand;
        }
        assert_eq!(chosen(16, 4, &frames, Prefer::Fewest), [0, 3, 7, 9]);
        assert_eq!(chosen(16, 4, &[], Prefer::Fewest), [0, 2, 4, 6]);
        assert_eq!(chosen(16, 2, &[1, 2, 9, 8, 7], Prefer::Most), [5, 7]);
    }

    #[test]
    fn the_first_choice_does_not_spoil_the_rest() {
        // Color 1 has the fewest frames, but with it there are no two apart among these three of four.
        assert_eq!(chosen(4, 2, &[5, 1, 6, 7], Prefer::Fewest), [1, 3]);
        assert_eq!(chosen(5, 2, &[5, 1, 6, 7, 8], Prefer::Fewest), [1, 3]);
        let mut set = ColorSet::new();
        // 0, 1, 2 of 8: only 0 and 2 are apart.
        Choice::default().add(&mut set, &[0b111], 8, 2, &[5, 1, 6], Prefer::Fewest);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2]);
        // Three of three: there is no other way.
        let mut set = ColorSet::new();
        Choice::default().add(&mut set, &[0b111], 8, 3, &[5, 1, 6], Prefer::Fewest);
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn the_last_color_touches_the_first() {
        assert_eq!(most_apart(&[0b1001], 4), 1);
        assert_eq!(most_apart(&[0b1111], 4), 2);
        assert_eq!(most_apart(&[0b11111], 5), 2);
        assert_eq!(most_apart(&[0b101_0111], 8), 4);
        assert_eq!(most_apart(&[1], 1), 1);
    }
}
