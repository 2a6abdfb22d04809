//! A set of colors.

/// Some of the colors 0, 1, 2 ... of a cache, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ColorSet {
    /// Bit `c % 64` of word `c / 64` is color `c`; the last word is never 0.
    words: Vec<u64>,
}

impl ColorSet {
    /// No color.
    pub fn new() -> ColorSet {
        ColorSet::default()
    }

    /// The colors below `count`.
    pub fn all(count: u32) -> ColorSet {
        (0..count).collect()
    }

    pub fn contains(&self, color: u32) -> bool {
        let word = self.words.get(color as usize / 64);
        word.is_some_and(|word| word >> (color % 64) & 1 == 1)
    }

    /// Adds a color. Returns whether it was new.
    pub fn insert(&mut self, color: u32) -> bool {
        let at = color as usize / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        let fresh = !self.contains(color);
        self.words[at] |= 1 << (color % 64);
        fresh
    }

    /// Takes a color out. Returns whether it was there.
    pub fn remove(&mut self, color: u32) -> bool {
        let there = self.contains(color);
        if there {
            self.words[color as usize / 64] &= !(1 << (color % 64));
            while self.words.last() == Some(&0) {
                self.words.pop();
            }
        }
        there
    }

    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The colors, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = |(at, &word): (usize, &u64)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at as u32 * 64 + bit)
            })
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    /// True if the two have a color in common.
    pub fn meets(&self, other: &ColorSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }
}

impl FromIterator<u32> for ColorSet {
    fn from_iter<I: IntoIterator<Item = u32>>(colors: I) -> ColorSet {
        let mut set = ColorSet::new();
        set.extend(colors);
        set
    }
}

impl Extend<u32> for ColorSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, colors: I) {
        for color in colors {
            self.insert(color);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in_and_forgets_what_was_taken_out() {
        let mut set: ColorSet = [3, 64, 200].into_iter().collect();
        assert!(!set.insert(64));
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200]);
        assert!(set.remove(200) && !set.remove(200));
        assert_eq!(set, [64, 3].into_iter().collect());
        assert_eq!(set.len(), 2);
        assert!(set.meets(&ColorSet::all(4)) && !set.meets(&ColorSet::all(3)));
    }
}
