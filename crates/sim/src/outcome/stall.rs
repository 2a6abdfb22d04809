//! The waits of cpus for caches and memory, by reason.

use results::StallByClass;

use crate::clock::{Spent, UNCLASSED, Units, whole_ns};
use crate::counts::{CacheCounts, Class};

const PARTS: usize = 9;

/// One cpu's, whose caches counted `counts`. `stall`: the reported total of all parts, in nanoseconds.
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
