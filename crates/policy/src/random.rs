//! A small seeded generator (SplitMix64), so that a run can be repeated on any platform.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Random {
    state: u64,
}

impl Random {
    /// The same seed gives the same sequence.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit` (at least 1), by multiplication; its bias is below 2^-32.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.number() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn gives_the_published_sequence() {
        // First outputs for seed 1234567, from the reference implementation of SplitMix64.
        let mut random = Random::new(1234567);
        assert_eq!(random.number(), 6457827717110365317);
        assert_eq!(random.number(), 3203168211198807973);
        assert_eq!(random.number(), 9817491932198370423);
    }
}
