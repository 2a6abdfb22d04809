//! Decides if it pays to spread a program's regions over several caches (Lee12, section 3.1, conditions 1 to 3).

pub use crate::domains::Bounds;

/// The known facts about a program when it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Regions that could be given caches.
    pub regions: usize,
    /// The mean time in a region; `None`: no change of region was seen.
    pub stay_ns: Option<u64>,
    /// For how long it was looked whether regions change.
    pub watched_ns: u64,
    pub working_set: u64,
    /// The bytes of it in these regions.
    pub found: u64,
    pub cache_bytes: u64,
    pub caches: u32,
}

pub use results::RegionsVerdict as Verdict;

/// A span of three mean stays without a change happens by chance in one of 20 cases only (`e^-3`).
const SURE: u64 = 3;

/// Decides if the regions of a program should be spread over caches, and if not, why.
pub fn judge(known: &Known, bounds: &Bounds) -> Verdict {
    if let Some(verdict) = by_size(known.working_set, known.cache_bytes, known.caches, bounds) {
        return verdict;
    }
    if known.regions < 2 {
        return Verdict::NoRegions;
    }
    if known.found * 2 < known.working_set {
        return Verdict::StillFound;
    }
    match known.stay_ns {
        None if known.watched_ns / SURE > bounds.stay_most_ns => Verdict::StaysTooLong,
        None => Verdict::StayUnknown,
        Some(stay) if stay < bounds.stay_least_ns => Verdict::StaysTooShort,
        Some(stay) if stay > bounds.stay_most_ns => Verdict::StaysTooLong,
        Some(_) => Verdict::Pays,
    }
}

/// Conditions 2 and 3, for which no region need be known: why nothing can be gained.
pub fn by_size(working_set: u64, cache_bytes: u64, caches: u32, bounds: &Bounds) -> Option<Verdict> {
    let per_mille = |of: u64, share: u64| u128::from(of) * u128::from(share) / 1000;
    let working_set = u128::from(working_set);
    if working_set <= per_mille(cache_bytes, bounds.one_cache) {
        Some(Verdict::FitsOneCache)
    } else if working_set > per_mille(cache_bytes, bounds.all_caches) * u128::from(caches) {
        Some(Verdict::FitsNoCaches)
    } else {
        None
    }
}
