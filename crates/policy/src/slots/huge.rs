//! Huge pages against slots: a page that has a color of its own is a small one.
//!
//! Linux gives data transparent huge pages (Documentation/admin-guide/mm/transhuge.rst), and each of them has one entry of the
//! TLB and one first page fault. Colors are of small pages, so colored ranges are kept out of huge ones (`MADV_NOHUGEPAGE`), and
//! walks and faults come back. This is the rule by which that is weighed, over times that somebody else has found.

/// Bytes of data that huge pages hold where the system gives them: the whole ones that fit. `huge`: bytes of one.
pub fn on_huge_pages(bytes: u64, huge: u64) -> u64 {
    bytes - bytes % huge.max(1)
}

/// The time of a run in four ways, in nanoseconds. Colored pages are small in both of `colored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// No data is on huge pages.
    pub small: Pair,
    /// The data that the system puts on huge pages is there.
    pub huge: Pair,
}

/// The same run without colors, and with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub plain: u64,
    pub colored: u64,
}

/// The savings and the costs of colors, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// Saved by fewer misses of the caches: if no page is huge, translation is the same with colors and without.
    pub gain: i64,
    /// The saving of huge pages that a run without colors has and a run with them has not: walks and page faults of the colored data.
    pub loss: i64,
}

impl Weighed {
    pub fn of(times: Times) -> Weighed {
        let saved = |before: u64, after: u64| before as i64 - after as i64;
        let Times { small, huge } = times;
        Weighed {
            gain: saved(small.plain, small.colored),
            loss: saved(small.plain, huge.plain) - saved(small.colored, huge.colored),
        }
    }

    /// True if the colors cost more than they save. Otherwise they save `gain - loss` on huge pages.
    pub fn is_refused(&self) -> bool {
        self.loss > 0 && self.loss > self.gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_huge_pages_count() {
        let mib = 1 << 20;
        let of = |bytes| on_huge_pages(bytes, 2 * mib);
        assert_eq!([0, 2 * mib - 1, 2 * mib, 5 * mib].map(of), [0, 0, 2 * mib, 4 * mib]);
        assert_eq!(on_huge_pages(7, 0), 7, "no size of page divides by nothing");
    }

    fn weighed(small: (u64, u64), huge: (u64, u64)) -> Weighed {
        let pair = |(plain, colored)| Pair { plain, colored };
        Weighed::of(Times {
            small: pair(small),
            huge: pair(huge),
        })
    }

    /// For any times, the gain less the loss is the saving of the colors for the run on huge pages.
    #[test]
    fn gain_and_loss_come_to_what_is_saved_on_huge_pages() {
        for (small, huge) in [((100, 80), (70, 75)), ((100, 80), (90, 72)), ((100, 120), (90, 120))] {
            let weighed = weighed(small, huge);
            assert_eq!(weighed.gain - weighed.loss, huge.0 as i64 - huge.1 as i64);
        }
    }

    #[test]
    fn a_slot_is_refused_where_the_loss_exceeds_the_gain() {
        // 20 saved by fewer misses; huge pages save 30 without colors, 5 with them.
        let lost = weighed((100, 80), (70, 75));
        assert_eq!(lost, Weighed { gain: 20, loss: 25 });
        assert!(lost.is_refused());
        // They save as much with colors as without: nothing is lost.
        let kept = weighed((100, 80), (90, 70));
        assert_eq!(kept, Weighed { gain: 20, loss: 0 });
        assert!(!kept.is_refused());
        assert!(!weighed((100, 80), (80, 80)).is_refused(), "as much is lost as gained");
        // Colors that gain nothing are no matter of huge pages.
        assert!(!weighed((100, 120), (90, 110)).is_refused());
    }
}
