//! The slots of the ring that are examined closely.

/// True if a slot is the chosen one of `one_in` in a row. The choice has no period that a program could share (it uses
/// the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
pub fn is_sample(slot: u64, one_in: u64) -> bool {
    let mut mixed = (slot / one_in).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    slot % one_in == mixed % one_in
}
