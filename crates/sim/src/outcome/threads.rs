//! Sets of threads, and data on the lines that several touch.

use results::SharingGraph;

const WORDS: usize = 4;

/// A set of the threads that are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadSet([u64; WORDS]);

impl ThreadSet {
    pub(crate) fn of_words(words: &[u64]) -> ThreadSet {
        let mut set = [0; WORDS];
        set[..words.len()].copy_from_slice(words);
        ThreadSet(set)
    }

    pub fn has(&self, thread: u32) -> bool {
        self.0
            .get(thread as usize / 64)
            .is_some_and(|word| word >> (thread % 64) & 1 != 0)
    }

    /// Adds a thread; one that is not told apart from others is in no set.
    pub fn add(&mut self, thread: u32) {
        if let Some(word) = self.0.get_mut(thread as usize / 64) {
            *word |= 1 << (thread % 64);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..64 * WORDS as u32).filter(|thread| self.has(*thread))
    }

    /// Returns whether some thread is in both.
    pub fn meets(&self, other: &ThreadSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

/// The threads that share each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub graph: SharingGraph,
    /// The bytes of the lines that exactly these threads touched.
    pub sets: Vec<(ThreadSet, u64)>,
}
