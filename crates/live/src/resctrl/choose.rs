//! The choice of ways: neighbours, so that the ways left to the default group are neighbours too.

use policy::slots::Kind;

use super::Mask;

/// The owners of the ways of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masks {
    pub(super) all: Mask,
    /// Ways that devices may use too.
    pub(super) devices: Mask,
    /// Fewest ways that a group can have.
    pub(super) least: u32,
    pub(super) default: Mask,
    /// The ways of other groups.
    pub(super) taken: Mask,
}

/// Ways for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) ways: Mask,
    /// The part of them that was the default group's, and will be again.
    pub(super) from_default: Mask,
}

/// `ways` ways for a slot of this kind; `None` if there are not enough.
pub(super) fn choose(masks: &Masks, kind: Kind, ways: u32) -> Option<Wanted> {
    if ways < masks.least {
        return None;
    }
    match kind {
        Kind::Shared => {
            let shared = windows(ways).find(|window| window & !masks.default == 0)?;
            Some(Wanted {
                ways: shared,
                from_default: 0,
            })
        }
        Kind::Private => {
            let usable = masks.all & !masks.taken & !masks.devices;
            let fits = windows(ways).filter(|window| window & !usable == 0);
            let leaves_enough = |window: &Mask| {
                let rest = masks.default & !window;
                rest.count_ones() >= masks.least && is_one_run(rest)
            };
            // As few of the default group's ways as possible, and the highest: shared slots have the
            // lowest.
            fits.filter(leaves_enough)
                .min_by_key(|window| ((window & masks.default).count_ones(), std::cmp::Reverse(*window)))
                .map(|window| Wanted {
                    ways: window,
                    from_default: window & masks.default,
                })
        }
    }
}

/// A mask with those of `left` that extend its ways to one run.
pub(super) fn joined(mask: Mask, left: Mask) -> Mask {
    let mut joined = mask;
    loop {
        let near = (joined << 1 | joined >> 1) & left & !joined;
        if near == 0 {
            return joined;
        }
        joined |= near;
    }
}

pub(super) fn is_one_run(mask: Mask) -> bool {
    let run = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
    mask != 0 && run & run.wrapping_add(1) == 0
}

/// All runs of so many ways, the lowest first.
fn windows(ways: u32) -> impl Iterator<Item = Mask> {
    let run = Mask::MAX.checked_shr(Mask::BITS - ways.min(Mask::BITS)).unwrap_or(0);
    (0..=Mask::BITS.saturating_sub(ways))
        .map(move |shift| run.checked_shl(shift).unwrap_or(0))
        .filter(move |_| ways <= Mask::BITS)
}
