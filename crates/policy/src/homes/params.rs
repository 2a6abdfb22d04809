//! Parameters of the policies that count misses, with their units and where their defaults are from.

use crate::settings::{Param, Range};

/// Values of `count`.
const COUNT: &[&str] = &["cache-misses", "tlb-misses"];
pub const TLB_MISSES: u64 = 1;

/// Values of `start`.
const START: &[&str] = &["first-touch", "round-robin"];
pub const ROUND_ROBIN: u64 = 1;

/// Counts fit 32 bits.
const COUNTS: Range = Range {
    least: 0,
    most: u32::MAX as u64,
};

const AT_LEAST_ONE: Range = Range { least: 1, ..COUNTS };

const fn param(name: &'static str, summary: &'static str, unit: &'static str, range: Range, default: u64) -> Param {
    Param {
        name,
        summary,
        unit,
        range,
        default,
        names: &[],
    }
}

const TRIGGER: Param = param(
    "trigger",
    "so many misses of a cpu since the last reset make a page hot (section 6.1: 128)",
    "misses",
    AT_LEAST_ONE,
    128,
);
const HOLD: Param = param(
    "hold",
    "a hot page is shared if another cpu with a local copy missed on it more often; 0: a quarter of `trigger` (section 6.1: 32)",
    "misses",
    COUNTS,
    0,
);
const WRITES: Param = param(
    "writes",
    "a page that was written more often since the last reset is not replicated (section 6.1: 1)",
    "writes",
    COUNTS,
    1,
);
const MOVES: Param = param(
    "moves",
    "a page that moved so often since the last reset is frozen until the next (section 6.1: 1)",
    "moves",
    COUNTS,
    1,
);
const RESET: Param = param(
    "reset",
    "after so long all counts begin anew (section 6.1: 32 million cycles, about 100 ms)",
    "us",
    AT_LEAST_ONE,
    100_000,
);
const BATCH: Param = param(
    "batch",
    "so many hot pages are collected before their cpu is interrupted; 1: at once (section 8.1: 5)",
    "pages",
    AT_LEAST_ONE,
    5,
);
const WAIT: Param = param(
    "wait",
    "the longest time that a hot page waits for others (section 8.1: 500 us)",
    "us",
    AT_LEAST_ONE,
    500,
);
const SAMPLE: Param = param(
    "sample",
    "one in so many misses is counted, and `trigger` and `hold` are divided by it (section 7.2: 1 or 10)",
    "misses",
    AT_LEAST_ONE,
    1,
);
const RESERVE: Param = param(
    "reserve",
    "a node with fewer free frames gets no copies, and gives up those it has not used lately (the paper gives no figure)",
    "frames",
    COUNTS,
    16,
);
const GAIN: Param = param(
    "gain",
    "what a page's misses since the last reset would have saved on the node must be so much of what the action costs; 0: not asked \
     (section 3 has the aim; the rule is ours)",
    "percent",
    COUNTS,
    0,
);
const ADAPT: Param = param(
    "adapt",
    "the trigger rises and falls so that actions take about so much of the cpus' time; 0: it stays \
     (section 8.2 proposes it; the rule is ours)",
    "percent",
    Range { least: 0, most: 100 },
    0,
);
const COUNTED: Param = Param {
    name: "count",
    summary: "what is counted (section 7.1)",
    unit: "",
    range: Range { least: 0, most: 1 },
    default: 0,
    names: COUNT,
};
const STARTS: Param = Param {
    name: "start",
    summary: "where a page is before it is hot (the paper does not say for its traces; its kernel's is first touch, section 8.3)",
    unit: "",
    range: Range { least: 0, most: 1 },
    default: 0,
    names: START,
};

pub const MIGRATE_REPLICATE: &[Param] = &[
    TRIGGER, HOLD, WRITES, MOVES, RESET, BATCH, WAIT, COUNTED, SAMPLE, RESERVE, STARTS, GAIN, ADAPT,
];
pub const MIGRATE: &[Param] = &[
    TRIGGER, HOLD, MOVES, RESET, BATCH, WAIT, COUNTED, SAMPLE, STARTS, GAIN, ADAPT,
];
pub const REPLICATE: &[Param] = &[
    TRIGGER, HOLD, WRITES, RESET, BATCH, WAIT, COUNTED, SAMPLE, RESERVE, STARTS, GAIN, ADAPT,
];
