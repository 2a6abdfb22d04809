//! Parameters of policy `regions`, with their units and where their defaults are from.

use super::conditions::Bounds;
use crate::settings::{Param, Range, Settings};

/// A day in us.
const DAY: u64 = 86_400_000_000;

const fn param(name: &'static str, summary: &'static str, unit: &'static str, least: u64, default: u64) -> Param {
    within(name, summary, unit, Range { least, most: DAY }, default)
}

const fn within(name: &'static str, summary: &'static str, unit: &'static str, range: Range, default: u64) -> Param {
    Param {
        name,
        summary,
        unit,
        range,
        default,
        names: &[],
    }
}

/// Values of `partition`.
const PARTITION: &[&str] = &["no", "fair", "preferred"];

pub const PARAMS: &[Param] = &[
    param(
        "period",
        "so much time of a cpu from one regioning phase to the next (section 3.3: 1 s)",
        "us",
        1,
        1_000_000,
    ),
    within(
        "share",
        "per mille of that time that the phase takes (section 3.2: 1%)",
        "per mille",
        Range { least: 1, most: 1000 },
        10,
    ),
    param(
        "eager",
        "so many phases of a cpu follow in an eighth of that time while regions are being found (ours; the paper: 0)",
        "phases",
        0,
        16,
    ),
    param(
        "idle",
        "q: regions left for less belong together (section 3.2); 0: as `stay-least`",
        "us",
        0,
        0,
    ),
    param(
        "scan",
        "how often access bits are read (section 4: 100 ms)",
        "us",
        1,
        100_000,
    ),
    param(
        "stay-least",
        "condition 1: a region must be used for so long at a time; 0: four times `switch` (section 3.1 measures it; the \
         rule is ours)",
        "us",
        0,
        0,
    ),
    param(
        "stay-most",
        "condition 1: and not for longer; 0: a hundred times `stay-least` (section 3.1: there is then little to gain)",
        "us",
        0,
        0,
    ),
    param(
        "one-cache",
        "condition 2: per mille of one cache that the working set must exceed (section 3.1: 2 x 1.8 of 4 MB, 2 x 4 of 12 MB)",
        "per mille",
        0,
        900,
    ),
    param(
        "all-caches",
        "condition 3: per mille of all caches that it must not exceed (section 3.1)",
        "per mille",
        1,
        1000,
    ),
    param(
        "rate",
        "so many switches of a region in a second are too many, if one page causes most of them (section 3.3 gives no figure; section \
         5.3 sees gains at 2000)",
        "switches",
        1,
        2000,
    ),
    param(
        "fault",
        "what a touch of a closed page takes (ours: as for `kernel-balancing`)",
        "ns",
        0,
        1500,
    ),
    param(
        "switch",
        "what it takes in all to move a thread to the cache of what it touched (section 5.1: 15.86 us on Clovertown, 6.357 us on Westmere)",
        "ns",
        0,
        6357,
    ),
    Param {
        name: "partition",
        summary: "caches of their own for each process, or for one preferred process (section 5.5)",
        unit: "",
        range: Range { least: 0, most: 2 },
        default: 0,
        names: PARTITION,
    },
    param("preferred", "the preferred process, by its number", "", 0, 0),
];

/// How caches are divided among processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    None,
    Fair,
    Preferred(u32),
}

/// What the parameters say, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub period_ns: u64,
    pub phase_ns: u64,
    pub eager: u64,
    pub idle_ns: u64,
    pub scan_ns: u64,
    pub bounds: Bounds,
    pub rate: u64,
    pub division: Division,
    /// What a touch of a closed page takes, and what it takes in all to move the thread.
    pub fault_ns: u64,
    pub switch_ns: u64,
}

impl Rules {
    pub fn new(settings: &Settings) -> Rules {
        let ns = |name: &str| settings.integer(name).saturating_mul(1000);
        let or = |name: &str, otherwise: u64| match ns(name) {
            0 => otherwise,
            ns => ns,
        };
        let period_ns = ns("period");
        let share = u128::from(settings.integer("share"));
        let switch_ns = settings.integer("switch");
        let stay_least_ns = or("stay-least", switch_ns.saturating_mul(4));
        Rules {
            period_ns,
            phase_ns: ((u128::from(period_ns) * share / 1000) as u64).max(1),
            eager: settings.integer("eager"),
            idle_ns: or("idle", stay_least_ns),
            scan_ns: ns("scan"),
            bounds: Bounds {
                stay_least_ns,
                stay_most_ns: or("stay-most", stay_least_ns.saturating_mul(100)),
                one_cache: settings.integer("one-cache"),
                all_caches: settings.integer("all-caches"),
            },
            rate: settings.integer("rate"),
            division: match settings.integer("partition") {
                1 => Division::Fair,
                2 => Division::Preferred(settings.integer("preferred") as u32),
                _ => Division::None,
            },
            fault_ns: settings.integer("fault"),
            switch_ns,
        }
    }
}
