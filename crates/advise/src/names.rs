//! Policies that can make a difference, and names that differ in one part.

use machine::Machine;
use policy::{Entry, Kind, Name};
use results::Outcome;

/// The policies to simulate if the user names none.
pub struct Candidates {
    pub names: Vec<Name>,
    /// The one that represents today's behavior.
    pub baseline: Name,
}

/// All policies that can make a difference on the machine and place pages once: colors if there is more than one, homes
/// if there are several nodes, and all combinations of the two. Homes by summaries come only on request. If work is
/// marked, it is also ordered, on the baseline's placement. If slots are described, by the program or a plan, they are
/// included.
pub fn candidates(machine: &Machine, marked: bool, described: bool) -> Candidates {
    candidates_of(machine, marked, described, [true; 2])
}

/// The same, with colors and homes only if `matters` says so, in this order.
pub fn candidates_of(machine: &Machine, marked: bool, described: bool, matters: [bool; 2]) -> Candidates {
    // Policies that move pages while a program runs are no placements; `crate::homes` requests them.
    let of_kind = |kind: Kind| {
        let entries = policy::registry().iter().filter(move |entry| entry.kind == kind);
        let needs = |entry: &&Entry| entry.traits.summaries || (entry.traits.slots && !described);
        let entries = entries.filter(|entry| entry.traits.later.stays() && !needs(entry));
        entries.map(Name::from).collect::<Vec<_>>()
    };
    let of_kind_if = |kind, choice: bool| if choice { of_kind(kind) } else { Vec::new() };
    let (has_colors, has_homes) = (machine.color_count() > 1, machine.memory.all_nodes() > 1);
    // Linux places on first touch, and the order of its frames looks random to a cache.
    let linux = |kinds: &[Kind]| Name::first(kinds, |traits| traits.linux);
    let baseline = match (has_colors, has_homes) {
        (false, false) => Name::default_of(Kind::Color),
        (true, false) => linux(&[Kind::Color]),
        (false, true) => linux(&[Kind::Home]),
        (true, true) => linux(&[Kind::Home, Kind::Color]),
    };
    let [colors, homes] = matters;
    let colors = of_kind_if(Kind::Color, has_colors && colors);
    let homes = of_kind_if(Kind::Home, has_homes && homes);
    let mut names: Vec<Name> = match (colors.is_empty(), homes.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => colors.iter().map(|color| baseline.recolored(color)).collect(),
        (true, false) => homes.iter().map(|home| baseline.with(home)).collect(),
        (false, false) => {
            let pairs = homes
                .iter()
                .flat_map(|home| colors.iter().map(|color| home.with(color)));
            pairs.collect()
        }
    };
    if !names.contains(&baseline) {
        names.insert(0, baseline.clone());
    }
    if marked {
        names.push(baseline.with(&Name::first(&[Kind::Order], |_| true)));
    }
    Candidates { names, baseline }
}

/// The policies that differ on a machine. If the user names none, [`crate::advise()`] simulates those of them that
/// could gain something. `marked`: the trace has marked work items; `described`: the program or a plan describes cache
/// slots.
pub fn policies(machine: &Machine, marked: bool, described: bool) -> Vec<Name> {
    candidates(machine, marked, described).names
}

/// A policy's name without the part that orders work.
pub fn without_order(policy: &Name) -> Name {
    let placement = policy.without(Kind::Order);
    placement.unwrap_or_else(|| Name::default_of(Kind::Color))
}

/// The outcome under a policy.
pub fn outcome_of<'a>(outcomes: &'a [Outcome], policy: &Name) -> Option<&'a Outcome> {
    let policy = policy.to_string();
    outcomes.iter().find(|outcome| outcome.policy == policy)
}
