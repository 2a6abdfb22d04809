//! The accessed parts of elements: a sample of a place's accesses, by their offset.

use policy::Random;

/// Accesses of a place that are kept.
const KEPT: usize = 1 << 7;

/// One access: its place in its array or block, the size of that, and the number of bytes accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    pub offset: u64,
    pub block: u64,
    pub bytes: u32,
}

/// A sample in which each access has the same chance (Vitter's algorithm R, 1985).
pub struct Offsets {
    kept: Vec<Offset>,
    seen: u64,
    random: Random,
}

impl Offsets {
    pub fn new() -> Offsets {
        Offsets {
            kept: Vec::new(),
            seen: 0,
            random: Random::new(0x6f66_6673),
        }
    }

    pub fn add(&mut self, offset: Offset) {
        self.seen += 1;
        if self.kept.len() < KEPT {
            self.kept.push(offset);
            return;
        }
        let most = u32::try_from(self.seen).unwrap_or(u32::MAX);
        if let Some(place) = self.kept.get_mut(self.random.below(most) as usize) {
            *place = offset;
        }
    }

    /// The number of accesses that each kept one stands for.
    pub fn weight(&self) -> f64 {
        self.seen as f64 / self.kept.len().max(1) as f64
    }

    pub fn kept(&self) -> &[Offset] {
        &self.kept
    }
}
