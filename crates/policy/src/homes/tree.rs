//! The decision tree of Verghese96, Figure 3.1, with the thresholds of Table 1.

/// Counts at which something happens, or no longer does (Verghese96, Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// So many misses of a cpu make a page hot.
    pub trigger: u32,
    /// A page is shared if another cpu that has a local copy missed on it more often than this.
    pub hold: u32,
    /// A page that was written more often than this is not replicated. `None`: no page is.
    pub writes: Option<u32>,
    /// A page that was moved so often is not moved again. `None`: no page is moved.
    pub moves: Option<u32>,
}

/// The known facts about a page when a cpu misses on it; all counts are since the last reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Misses of this cpu.
    pub misses: u32,
    /// True if a copy is on the cpu's node.
    pub local: bool,
    /// The most misses of any other cpu that has a copy on its node.
    pub by_holder: u32,
    pub writes: u32,
    pub moves: u32,
    /// True if the cpu's node is short of frames.
    pub pressure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Migrate,
    Replicate,
    Stay(Why),
}

/// Why a page stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Not hot (node 1 of the figure).
    Cold,
    /// A copy is near already.
    Local,
    /// Shared, and written too often (node 3).
    Written,
    /// Shared, and there is no memory for copies (node 3).
    Pressure,
    /// Not shared, and moved too often since the last reset (node 4).
    Frozen,
    /// The policy does not carry out the tree's decision.
    NotWanted,
}

/// Decides what to do with a page.
pub fn decide(thresholds: &Thresholds, seen: &Seen) -> Decision {
    if seen.local {
        return Decision::Stay(Why::Local);
    }
    if seen.misses < thresholds.trigger {
        return Decision::Stay(Why::Cold);
    }
    if seen.by_holder > thresholds.hold {
        return match thresholds.writes {
            None => Decision::Stay(Why::NotWanted),
            Some(writes) if seen.writes > writes => Decision::Stay(Why::Written),
            Some(_) if seen.pressure => Decision::Stay(Why::Pressure),
            Some(_) => Decision::Replicate,
        };
    }
    match thresholds.moves {
        None => Decision::Stay(Why::NotWanted),
        Some(moves) if seen.moves >= moves => Decision::Stay(Why::Frozen),
        Some(_) => Decision::Migrate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Thresholds = Thresholds {
        trigger: 128,
        hold: 32,
        writes: Some(1),
        moves: Some(1),
    };

    /// A page that just became hot, with everything else at rest.
    const HOT: Seen = Seen {
        misses: 128,
        local: false,
        by_holder: 0,
        writes: 0,
        moves: 0,
        pressure: false,
    };

    fn stays(thresholds: Thresholds, seen: Seen, why: Why) {
        assert_eq!(decide(&thresholds, &seen), Decision::Stay(why), "{seen:?}");
    }

    #[test]
    fn a_page_is_hot_when_a_cpus_misses_reach_the_trigger() {
        stays(BASE, Seen { misses: 127, ..HOT }, Why::Cold);
        assert_eq!(decide(&BASE, &HOT), Decision::Migrate);
    }

    #[test]
    fn a_page_that_is_near_stays() {
        stays(BASE, Seen { local: true, ..HOT }, Why::Local);
    }

    #[test]
    fn a_page_is_shared_when_another_cpu_with_a_copy_is_above_the_hold() {
        assert_eq!(decide(&BASE, &Seen { by_holder: 32, ..HOT }), Decision::Migrate);
        assert_eq!(decide(&BASE, &Seen { by_holder: 33, ..HOT }), Decision::Replicate);
    }

    #[test]
    fn a_shared_page_that_was_written_more_than_once_is_left_alone() {
        let shared = Seen { by_holder: 33, ..HOT };
        assert_eq!(decide(&BASE, &Seen { writes: 1, ..shared }), Decision::Replicate);
        stays(BASE, Seen { writes: 2, ..shared }, Why::Written);
        // Writes do not keep a page from moving: only one cpu uses it.
        assert_eq!(decide(&BASE, &Seen { writes: 99, ..HOT }), Decision::Migrate);
    }

    #[test]
    fn under_memory_pressure_pages_move_and_are_not_replicated() {
        let pressed = Seen { pressure: true, ..HOT };
        let shared = Seen {
            by_holder: 33,
            ..pressed
        };
        stays(BASE, shared, Why::Pressure);
        assert_eq!(decide(&BASE, &pressed), Decision::Migrate);
    }

    #[test]
    fn a_page_that_was_moved_is_frozen_and_may_still_be_replicated() {
        stays(BASE, Seen { moves: 1, ..HOT }, Why::Frozen);
        let shared = Seen {
            moves: 1,
            by_holder: 33,
            ..HOT
        };
        assert_eq!(decide(&BASE, &shared), Decision::Replicate);
    }

    #[test]
    fn a_policy_that_does_one_thing_does_not_do_the_other_instead() {
        let shared = Seen { by_holder: 33, ..HOT };
        let moves_only = Thresholds { writes: None, ..BASE };
        stays(moves_only, shared, Why::NotWanted);
        assert_eq!(decide(&moves_only, &HOT), Decision::Migrate);
        let copies_only = Thresholds { moves: None, ..BASE };
        stays(copies_only, HOT, Why::NotWanted);
        assert_eq!(decide(&copies_only, &shared), Decision::Replicate);
    }
}
