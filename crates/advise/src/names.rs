//! Policies by name: those that can make a difference, and names that differ in one part.

use machine::Machine;
use policy::{FORETOLD, Kind, Name};

/// The policy that runs marked work in another order, and that of cache slots.
pub const ORDER: &str = "order";
pub const SLOTS: &str = "slots";
/// Policies that move pages between nodes while a program runs. They are no placements, and `crate::homes` asks for them.
const MOVING: [&str; 4] = ["kernel-balancing", "migrate", "replicate", "migrate-replicate"];

/// What is simulated where nobody names policies.
pub struct Candidates {
    pub names: Vec<String>,
    /// The one that stands for what happens today.
    pub baseline: &'static str,
}

/// All policies that can make a difference on the machine and place pages once: colors where there is more than one, homes where there are
/// several nodes, and each of the ones with each of the others. Where work is marked, it is put in order on the baseline's
/// placement too. Where slots are described, by the program or a plan, they are given.
pub fn candidates(machine: &Machine, marked: bool, described: bool) -> Candidates {
    let of_kind = |kind: Kind| {
        let entries = policy::registry().iter().filter(move |entry| entry.kind == kind);
        let names = entries.map(|entry| entry.name);
        let names = names.filter(|name| !MOVING.contains(name) && *name != FORETOLD);
        names.filter(|name| described || *name != SLOTS).collect::<Vec<_>>()
    };
    let of_kind_if = |kind, choice: bool| if choice { of_kind(kind) } else { Vec::new() };
    let colors = of_kind_if(Kind::Color, machine.color_count() > 1);
    let homes = of_kind_if(Kind::Home, machine.memory.all_nodes() > 1);
    // Linux places on first touch, and its frames come in an order that looks random to a cache.
    let (mut names, baseline): (Vec<String>, _) = match (colors.is_empty(), homes.is_empty()) {
        (true, true) => (vec!["page-coloring".to_string()], "page-coloring"),
        (false, true) => (colors.into_iter().map(String::from).collect(), "random"),
        (true, false) => (homes.into_iter().map(String::from).collect(), "first-touch"),
        (false, false) => {
            let pairs = homes
                .iter()
                .flat_map(|home| colors.iter().map(move |color| format!("{home}+{color}")));
            (pairs.collect(), "first-touch+random")
        }
    };
    if marked {
        names.push(format!("{baseline}+{ORDER}"));
    }
    Candidates { names, baseline }
}

/// The policies that [`crate::advise()`] simulates where nobody names any: `marked` where the trace has marked work items,
/// `described` where cache slots are described, by the program or a plan.
pub fn policies(machine: &Machine, marked: bool, described: bool) -> Vec<String> {
    candidates(machine, marked, described).names
}

/// Whether a policy, or a part of it, is this one.
pub fn has_part(name: &str, part: &str) -> bool {
    name.parse::<Name>().is_ok_and(|name| name.has(part))
}

/// A policy's name with another part for colors.
pub fn with_colors(policy: &str, color: &str) -> String {
    let recolored = policy.parse::<Name>().and_then(|name| name.recolored(color));
    recolored.map_or_else(|_| color.to_string(), |name| name.to_string())
}

/// The part of a policy's name that chooses homes.
pub fn home_of(policy: &str) -> Option<String> {
    let homes: Vec<&str> = policy::registry()
        .iter()
        .filter(|entry| entry.kind == Kind::Home)
        .map(|entry| entry.name)
        .collect();
    let mut parts = policy.split('+');
    parts.find(|part| homes.contains(part)).map(String::from)
}

/// A policy's name with another part for homes.
pub fn with_home(policy: &str, home: &str) -> String {
    match home_of(policy) {
        Some(before) => {
            let parts: Vec<&str> = policy
                .split('+')
                .map(|part| if part == before { home } else { part })
                .collect();
            parts.join("+")
        }
        None => format!("{home}+{policy}"),
    }
}

/// A policy's name without the part that orders work; placement alone is `page-coloring`.
pub fn without_order(policy: &str) -> String {
    match policy.parse::<Name>().map(|name| name.without(Kind::Order)) {
        Ok(Some(placement)) => placement.to_string(),
        Ok(None) => "page-coloring".to_string(),
        Err(_) => policy.to_string(),
    }
}
