//! Parameters of policy `regions`, with their units and where their defaults are from.

use results::RegionsSource;

use crate::domains::{Bounds, Following};
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
        "cost",
        "per mille of a cpu's time so far that phases and looks may take, so that little is lost where nothing is found (ours); 0: any",
        "per mille",
        0,
        25,
    ),
    param(
        "alone",
        "a page that came without others of its region so often in eight phases is used from everywhere (ours)",
        "times",
        1,
        2,
    ),
    within(
        "steady",
        "the rest between phases is doubled up to this many times while threads follow regions and phases find them unchanged (ours; the \
         paper: 0)",
        "times",
        Range { least: 0, most: 16 },
        0,
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
        "condition 1: a region must be used for so long at a time; 0: as calibrated (section 3.1)",
        "us",
        0,
        0,
    ),
    param(
        "stay-most",
        "condition 1: and not for longer, since there is then little to gain; 0: as calibrated (section 3.1)",
        "us",
        0,
        0,
    ),
    param(
        "one-cache",
        "condition 2: per mille of one cache that the working set must exceed; 0: as calibrated (section 3.1)",
        "per mille",
        0,
        0,
    ),
    param(
        "all-caches",
        "condition 3: per mille of all caches that it must not exceed; 0: as calibrated (section 3.1)",
        "per mille",
        0,
        0,
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
        "what it takes in all to move a thread to the cache of what it touched; 0: as the machine has it, else 6357 (section 5.1: 15.86 us \
         on Clovertown, 6.357 us on Westmere)",
        "ns",
        0,
        0,
    ),
    param(
        "flush",
        "what a phase's beginning or end takes, where another page table comes in (section 5.1: close to a TLB flush; the figure is ours)",
        "ns",
        0,
        500,
    ),
    param(
        "entry",
        "what it takes to change a page's entry in one table (ours: a store and `invlpg`)",
        "ns",
        0,
        20,
    ),
    param(
        "read",
        "what it takes to read a page's access bit and clear it (ours)",
        "ns",
        0,
        10,
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

/// The values of the parameters and of the machine, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub period_ns: u64,
    pub phase_ns: u64,
    pub eager: u64,
    pub alone: u64,
    pub steady: u64,
    /// Per mille; `None`: the time of phases is not limited.
    pub cost: Option<u64>,
    pub idle_ns: u64,
    pub scan_ns: u64,
    pub bounds: Bounds,
    pub from: RegionsSource,
    pub rate: u64,
    pub division: Division,
    /// The time of a touch of a closed page, and the whole time to move the thread.
    pub fault_ns: u64,
    pub switch_ns: u64,
    /// Another page table, an entry that changes, an access bit that is read.
    pub flush_ns: u64,
    pub entry_ns: u64,
    pub read_ns: u64,
}

/// The time of a move if nothing else gives it: the paper's newer machine (section 5.1).
const SWITCH_NS: u64 = 6357;

/// True if some bound takes its measured value.
pub fn wants_bounds(settings: &Settings) -> bool {
    ["stay-least", "stay-most", "one-cache", "all-caches"]
        .iter()
        .any(|name| settings.integer(name) == 0)
}

impl Rules {
    /// Values that are set take precedence over those of the machine.
    pub fn new(settings: &Settings, machine: &Following) -> Rules {
        let set = |name: &str| Some(settings.integer(name)).filter(|&value| value > 0);
        let ns = |name: &str| settings.integer(name).saturating_mul(1000);
        let set_ns = |name: &str| set(name).map(|us| us.saturating_mul(1000));
        let period_ns = ns("period");
        let share = u128::from(settings.integer("share"));
        let switch_ns = set("switch").or(machine.switch_ns).unwrap_or(SWITCH_NS);
        let known = machine.bounds.unwrap_or_else(|| Bounds::by_rule(switch_ns));
        let bounds = Bounds {
            stay_least_ns: set_ns("stay-least").unwrap_or(known.stay_least_ns),
            stay_most_ns: set_ns("stay-most").unwrap_or(known.stay_most_ns),
            one_cache: set("one-cache").unwrap_or(known.one_cache),
            all_caches: set("all-caches").unwrap_or(known.all_caches),
        };
        Rules {
            period_ns,
            phase_ns: ((u128::from(period_ns) * share / 1000) as u64).max(1),
            eager: settings.integer("eager"),
            alone: settings.integer("alone"),
            steady: settings.integer("steady"),
            cost: set("cost"),
            idle_ns: set_ns("idle").unwrap_or(bounds.stay_least_ns.max(machine.idle_least_ns)),
            scan_ns: ns("scan"),
            bounds,
            from: match machine.bounds {
                _ if !wants_bounds(settings) => RegionsSource::Set,
                Some(_) if machine.just_measured => RegionsSource::Calibrated,
                Some(_) => RegionsSource::Machine,
                None => RegionsSource::Rule,
            },
            rate: settings.integer("rate"),
            division: match settings.integer("partition") {
                1 => Division::Fair,
                2 => Division::Preferred(settings.integer("preferred") as u32),
                _ => Division::None,
            },
            fault_ns: settings.integer("fault"),
            switch_ns,
            flush_ns: settings.integer("flush"),
            entry_ns: settings.integer("entry"),
            read_ns: settings.integer("read"),
        }
    }
}
