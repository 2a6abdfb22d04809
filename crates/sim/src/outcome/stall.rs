//! What cpus waited for in caches and memory, by why.

use serde::Serialize;

use crate::clock::{Spent, UNCLASSED, Units, whole_ns};
use crate::counts::{CacheCounts, Class};

/// Nanoseconds of `cache_stall`, `local_stall` and `remote_stall` together, by why. They add up to these exactly: what
/// rounding leaves is spread over the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StallByClass {
    /// For what a cache on the cpu's path held: what misses nearer to the cpu cost, or first-level hits that take time.
    pub on_chip: u64,
    /// For what none of them held, by the class of the outermost one's miss; `None` where classes are off.
    pub cold: Option<u64>,
    pub capacity: Option<u64>,
    pub conflict: Option<u64>,
    pub true_sharing: Option<u64>,
    pub false_sharing: Option<u64>,
    /// The same where there is no class: with classes off, and of pieces that no cache serves.
    pub unclassed: u64,
    /// For the right to write.
    pub upgrade: u64,
    /// For lines that the program had prefetched and that had not come yet.
    pub late_prefetch: u64,
}

const PARTS: usize = 9;

/// One cpu's, whose caches counted `counts`. `stall`: what is reported of all parts together, in nanoseconds.
pub fn by_class(spent: &Spent, counts: &[CacheCounts], classes: bool, stall: u64) -> StallByClass {
    let upgrade: Units = counts.iter().map(|counts| counts.upgrade_stall).sum();
    let late: Units = counts.iter().map(|counts| counts.late_stall).sum();
    let beyond: Units = spent.beyond.iter().sum();
    let on_chip = spent.stall() - beyond - upgrade - late;
    let class = |class: Class| spent.beyond[class as usize];
    let parts = [
        on_chip,
        class(Class::Cold),
        class(Class::Capacity),
        class(Class::Conflict),
        class(Class::TrueSharing),
        class(Class::FalseSharing),
        spent.beyond[UNCLASSED],
        upgrade,
        late,
    ];
    let [
        on_chip,
        cold,
        capacity,
        conflict,
        true_sharing,
        false_sharing,
        unclassed,
        upgrade,
        late_prefetch,
    ] = shares(parts, stall);
    let class = |ns: u64| classes.then_some(ns);
    StallByClass {
        on_chip,
        cold: class(cold),
        capacity: class(capacity),
        conflict: class(conflict),
        true_sharing: class(true_sharing),
        false_sharing: class(false_sharing),
        unclassed,
        upgrade,
        late_prefetch,
    }
}

/// The parts' shares of a whole: each running sum in proportion, rounded down, less the one before.
fn shares(parts: [Units; PARTS], whole: u64) -> [u64; PARTS] {
    let all: Units = parts.iter().sum();
    debug_assert!(whole <= whole_ns(all));
    let (mut so_far, mut given) = (0, 0);
    parts.map(|part| {
        so_far += part;
        // At most `whole`, because `so_far` is at most `all`.
        let upto = (u128::from(so_far) * u128::from(whole) / u128::from(all.max(1))) as u64;
        upto - std::mem::replace(&mut given, upto)
    })
}

impl StallByClass {
    pub fn plus(self, other: &StallByClass) -> StallByClass {
        let option = |a: Option<u64>, b: Option<u64>| a.or(b).map(|_| a.unwrap_or(0) + b.unwrap_or(0));
        StallByClass {
            on_chip: self.on_chip + other.on_chip,
            cold: option(self.cold, other.cold),
            capacity: option(self.capacity, other.capacity),
            conflict: option(self.conflict, other.conflict),
            true_sharing: option(self.true_sharing, other.true_sharing),
            false_sharing: option(self.false_sharing, other.false_sharing),
            unclassed: self.unclassed + other.unclassed,
            upgrade: self.upgrade + other.upgrade,
            late_prefetch: self.late_prefetch + other.late_prefetch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        let ns = |tenths: u64| tenths * (1 << 20) / 10;
        let parts = [9, 9, 9, 0, 0, 12, 0, 0, 25].map(ns);
        for whole in 0..=6 {
            assert_eq!(shares(parts, whole).iter().sum::<u64>(), whole);
        }
        assert_eq!(shares([0; PARTS], 0), [0; PARTS]);
        let whole = shares([1 << 30, 1 << 40, 0, 0, 0, 0, 0, 0, 1 << 21], 1 << 10 | 1 << 20 | 2);
        assert_eq!(whole, [1 << 10, 1 << 20, 0, 0, 0, 0, 0, 0, 2]);
    }
}
