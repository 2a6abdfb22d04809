//! The used colors of a cache.

use super::choose::{Words, holds};
use super::{ColorSet, Kind, Status};

/// The colors of a cache that slots have.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) private: Words,
    pub(super) shared: Words,
    /// By color: how many slots (and data sets without one) share it.
    sharers: Vec<u32>,
}

impl Used {
    pub(super) fn none(colors: u32) -> Used {
        let words = colors.div_ceil(64) as usize;
        Used {
            private: vec![0; words],
            shared: vec![0; words],
            sharers: vec![0; colors as usize],
        }
    }

    pub(super) fn status(&self, color: u32) -> Status {
        match (holds(&self.private, color), holds(&self.shared, color)) {
            (true, _) => Status::Private,
            (_, true) => Status::Shared,
            _ => Status::Unspecified,
        }
    }

    pub(super) fn take(&mut self, colors: &ColorSet, kind: Kind) {
        for color in colors.iter() {
            let (at, bit) = (color as usize / 64, 1 << (color % 64));
            match kind {
                Kind::Private => self.private[at] |= bit,
                Kind::Shared => {
                    self.shared[at] |= bit;
                    self.sharers[color as usize] += 1;
                }
            }
        }
    }

    pub(super) fn give_back(&mut self, colors: &ColorSet, kind: Kind) {
        for color in colors.iter() {
            let (at, bit) = (color as usize / 64, 1 << (color % 64));
            match kind {
                Kind::Private => self.private[at] &= !bit,
                Kind::Shared => {
                    let sharers = &mut self.sharers[color as usize];
                    *sharers -= 1;
                    if *sharers == 0 {
                        self.shared[at] &= !bit;
                    }
                }
            }
        }
    }
}
