//! Slots for whole threads, kept apart by ways instead of colors, where the processor can and the kernel lets us:
//! resctrl (Intel's Cache Allocation Technology, AMD's Platform QoS, Arm's MPAM).
//!
//! A slot of ways is a group of resctrl: its threads bring lines into its ways only. Any thread may hit a line that is
//! in the cache already. So ways keep threads apart, where colors keep data apart; ways need no validated colors, move
//! no page and work for files and kernel memory as well.
//!
//! - A **private** slot's ways are taken out of the default group's mask, and out of those of our other groups, until it
//!   is freed. Ways that devices may use (`shareable_bits`) are never private.
//! - **Shared** slots have the lowest ways of the default group, all of them the same ones as far as they go.
//! - A slot has its ways in the caches of its threads' cpus only; elsewhere its threads have the default group's ways.
//! - Bytes are rounded down to whole ways, but at least to the processor's minimum (`min_cbm_bits`).
//! - Masks are always of neighbouring ways, which all processors can.
//!
//! Groups of others are left alone: their ways are nobody's to take. Groups of ours whose process died are removed when
//! the next slot is made. The state is read from the tree each time, under its lock, so that programs do not get into
//! each other's way.
//!
//! If there are no colors, ways of the outermost cache stand in for them ([`Instead`]): in `domicile run --slots`, and
//! in an [`Application`](crate::slots::Application).
//!
//! This has run on trees that were made after the kernel's documentation, and on no hardware.

mod choose;
mod error;
mod groups;
mod instead;
mod schemata;
mod slot;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::slots::Kind;
use sys::Root;
use sys::resctrl::Resctrl;

use choose::choose;
pub use error::{FreeWays, WaysError};
use groups::State;
pub use instead::Instead;
pub use slot::WaySlot;
use tree::{Directory, Tree};

/// Ways in one cache, as bits; bit 0 is the first.
pub type Mask = u64;

/// The caches of one level whose ways can be shared out.
#[derive(Clone)]
pub struct Ways(Arc<Mutex<State>>);

impl Ways {
    /// The caches of level `level` of the tree that is mounted on this machine.
    pub fn mounted(level: u32) -> Result<Ways, WaysError> {
        let system = Root::default();
        match sys::resctrl::resctrl(&system) {
            Resctrl::Mounted { at, .. } => Ways::open(&at, system, level),
            Resctrl::Absent | Resctrl::Unmounted => Err(WaysError::NotMounted),
        }
    }

    /// The same, of the tree at `directory`; `system` says which cpus share which cache.
    pub fn open(directory: &Path, system: Root, level: u32) -> Result<Ways, WaysError> {
        Ways::of(Box::new(Directory::new(directory)), system, level)
    }

    fn of(tree: Box<dyn Tree>, system: Root, level: u32) -> Result<Ways, WaysError> {
        let plain = format!("L{level}");
        let resources: Vec<String> = [plain.clone(), format!("{plain}CODE"), format!("{plain}DATA")]
            .into_iter()
            .filter(|resource| tree.read(&format!("info/{resource}/cbm_mask")).is_ok())
            .collect();
        let Some(first) = resources.first() else {
            return Err(WaysError::NoCache { level });
        };
        let number = |file: &str, radix: u32| {
            let path = format!("info/{first}/{file}");
            let text = tree.read(&path).map_err(|error| tree.cannot("read", &path, error))?;
            let digits = text.trim().trim_start_matches("0x");
            Mask::from_str_radix(digits, radix).map_err(|_| tree.malformed(&path, &text, "a number"))
        };
        let all = number("cbm_mask", 16)?;
        if all == 0 {
            return Err(tree.malformed(&format!("info/{first}/cbm_mask"), "0", "at least one way"));
        }
        // Older kernels do not report the ways that devices use, and Arm's have nothing to report.
        let devices = number("shareable_bits", 16).unwrap_or(0) & all;
        let least = number("min_cbm_bits", 10)?.clamp(1, u64::from(all.count_ones())) as u32;
        let mut state = State {
            tree,
            system,
            level,
            resources,
            all,
            devices,
            least,
            way_bytes: BTreeMap::new(),
            left: BTreeMap::new(),
            made: 0,
        };
        state.way_bytes = state.sizes()?;
        Ok(Ways(Arc::new(Mutex::new(state))))
    }

    /// The number of ways of each cache, and the bytes of one, in the cache with the fewest.
    pub fn shape(&self) -> (u32, u64) {
        let state = self.lock();
        let least = state.way_bytes.values().copied().min().unwrap_or(0);
        (state.all.count_ones(), least)
    }

    /// These cpus, those of each cache together.
    pub fn sharers(&self, cpus: &[u32]) -> Result<Vec<Vec<u32>>, WaysError> {
        let state = self.lock();
        let mut sharers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &cpu in cpus {
            sharers.entry(state.cache_of(cpu)?).or_default().push(cpu);
        }
        Ok(sharers.into_values().collect())
    }

    /// Bytes that a private slot on the caches of these cpus can have in each of them.
    pub fn available(&self, cpus: &[u32]) -> Result<u64, WaysError> {
        let state = self.lock();
        let _lock = state.tree.lock()?;
        let groups = state.groups()?;
        let mut least = u64::MAX;
        for cache in state.caches_of(cpus)? {
            let masks = state.masks(&groups, cache);
            let ways = (0..=state.all.count_ones()).rev();
            let most = ways
                .into_iter()
                .find(|&ways| choose(&masks, Kind::Private, ways).is_some());
            least = least.min(u64::from(most.unwrap_or(0)) * state.way_bytes_of(cache)?);
        }
        Ok(least)
    }

    /// Makes a slot of `bytes` in each cache of these cpus. It has no threads yet: see [`WaySlot::add`].
    pub fn slot(&self, bytes: u64, kind: Kind, cpus: &[u32]) -> Result<WaySlot, WaysError> {
        let mut state = self.lock();
        let _lock = state.tree.lock()?;
        state.remove_dead()?;
        let groups = state.groups()?;
        let mut wanted = Vec::new();
        let mut free = Vec::new();
        for cache in state.caches_of(cpus)? {
            let way_bytes = state.way_bytes_of(cache)?;
            let most = state.all.count_ones();
            let ways = u32::try_from(bytes / way_bytes).unwrap_or(u32::MAX).max(state.least);
            let masks = state.masks(&groups, cache);
            match choose(&masks, kind, ways) {
                Some(mut chosen) => {
                    let left = state.left.get(&cache).copied().unwrap_or(0);
                    chosen.from_default |= chosen.ways & left;
                    wanted.push((cache, chosen));
                }
                None => {
                    let fit = (0..=most.min(ways))
                        .rev()
                        .find(|&ways| choose(&masks, kind, ways).is_some());
                    free.push(FreeWays {
                        cache,
                        asked: ways,
                        free: fit.unwrap_or(0),
                        way_bytes,
                    });
                }
            }
        }
        if !free.is_empty() {
            return Err(WaysError::Full { kind, free });
        }
        let name = state.make(&groups, kind, &wanted)?;
        let bytes = wanted.iter().map(|(cache, wanted)| {
            u64::from(wanted.ways.count_ones()) * state.way_bytes.get(cache).copied().unwrap_or(0)
        });
        let bytes = bytes.min().unwrap_or(0);
        Ok(WaySlot::new(self.clone(), name, kind, bytes, wanted))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
