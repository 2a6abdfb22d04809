//! Giving an application exactly the colors that it had in another ledger.

use super::allocator::{Allocator, DataSet, Grant, Owner, SlotId};
use super::{ColorSet, Kind, Refused};

impl Allocator {
    /// A slot of exactly these colors, with a data set used on `cpus` in it: the holding of an application whose ledger
    /// is gone.
    ///
    /// Errors: as [`Allocator::allocate`], which leaves nothing behind; [`Refused::NoBytes`] for no colors.
    pub fn claim(
        &mut self,
        owner: Owner,
        kind: Kind,
        cpus: &[u32],
        colors: &ColorSet,
    ) -> Result<(SlotId, Grant), Refused> {
        // The allocator takes only colors that have frames: let it see frames of these alone.
        let mut frames = vec![0; self.caches().colors as usize];
        for color in colors.iter() {
            if let Some(frames) = frames.get_mut(color as usize) {
                *frames = u64::MAX;
            }
        }
        let count = u64::from(colors.len());
        let (bytes, page_bytes) = (count * self.caches().color_bytes, self.caches().page_bytes);
        let slot = self.slot(owner, bytes, kind)?;
        let data = DataSet {
            bytes: count * page_bytes,
            cpus,
            slot: Some(slot),
        };
        match self.allocate(owner, data, &frames) {
            Ok(grant) => Ok((slot, grant)),
            Err(refused) => {
                // It has no data set.
                let _ = self.free_slot(owner, slot);
                Err(refused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caches;
    use super::*;

    #[test]
    fn what_is_claimed_is_had_exactly_and_only_once() {
        let caches = Caches {
            colors: 8,
            color_bytes: 1 << 16,
            page_bytes: 4096,
            cpus: vec![vec![0, 1]],
        };
        let mut ledger = Allocator::new(caches).unwrap();
        let (one, other) = (ledger.join(), ledger.join());
        let colors: ColorSet = [1, 4, 6].into_iter().collect();
        let (slot, grant) = ledger.claim(one, Kind::Private, &[0], &colors).unwrap();
        assert_eq!(grant.colors, colors);
        assert!(ledger.claim(other, Kind::Private, &[1], &colors).is_err());
        // The slot is one like others.
        let data = DataSet {
            bytes: 1 << 20,
            cpus: &[0],
            slot: Some(slot),
        };
        assert_eq!(ledger.allocate(one, data, &[]).unwrap().colors, colors);
        let nothing = ColorSet::new();
        assert_eq!(
            ledger.claim(other, Kind::Shared, &[0], &nothing).unwrap_err(),
            Refused::NoBytes
        );
        ledger.leave(one).unwrap();
        assert_eq!(ledger.available(&[0]).unwrap().together, 8 << 16);
        assert!(ledger.claim(other, Kind::Private, &[1], &colors).is_ok());
    }
}
