//! The threads that belong under each cache, in words.

use results::{SharingAdvice, SharingGroup, percent};

use super::{GROUPED, IN_ORDER, SPREAD, matters};
use crate::words::{NOTHING, list, saved};

/// How many groups are named; the others are in the tables.
const NAMED: usize = 4;
/// How many data structures are named, and the least part of the misses for each.
const DATA: usize = 3;
const SEEN: f64 = 0.01;

pub fn of(advice: &SharingAdvice) -> String {
    let cache = &advice.cache;
    let Some(best) = advice.placements.first().filter(|_| matters(advice)) else {
        return format!("Under which {cache} the threads run makes no difference.");
    };
    let against = |name: &str| {
        let other = advice.placement(name)?;
        let gain = saved(other.wall_ns, best.wall_ns);
        let known = match name {
            IN_ORDER => "than on the cpus in their order",
            GROUPED => "than with those that share data together",
            _ => "than spread over all of them",
        };
        (gain >= NOTHING).then(|| (percent(gain), known))
    };
    // Ways with equal printed numbers are listed together.
    let mut gains: Vec<(String, Vec<&str>)> = Vec::new();
    for (gain, than) in [IN_ORDER, GROUPED, SPREAD].into_iter().filter_map(against) {
        match gains.iter_mut().find(|(known, _)| *known == gain) {
            Some((_, known)) => known.push(than),
            None => gains.push((gain, vec![than])),
        }
    }
    let gains: Vec<String> = gains
        .iter()
        .map(|(gain, than)| format!("{gain} less time {}", than.join(" and ")))
        .collect();
    let gains = list(&gains);
    let data = shared_data(advice);
    let is_usual = |name: &str| {
        let placement = advice.placement(name);
        placement.is_some_and(|usual| saved(usual.wall_ns, best.wall_ns) < NOTHING)
    };
    if is_usual(IN_ORDER) {
        return format!(
            "Keep the threads under as few {cache} caches as they fit, as the other predictions have them: {gains}.{data}"
        );
    }
    match best.name.as_str() {
        GROUPED => {
            let packed: Vec<&SharingGroup> = advice.groups.iter().filter(|group| group.threads.len() > 1).collect();
            let mut named: Vec<&SharingGroup> = packed.iter().take(NAMED).copied().collect();
            named.sort_by_key(|group| group.threads[0]);
            let named: Vec<String> = named.iter().map(|group| threads(&group.threads)).collect();
            let more = match packed.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more groups"),
            };
            match packed.len() {
                0 => format!("Spread the threads, each under an {cache} of its own: {gains}."),
                1 => {
                    let others = match advice.groups.len() {
                        1 => "",
                        _ => ", and spread all others",
                    };
                    format!("Pack threads {} under one {cache}{others}: {gains}.{data}", named[0])
                }
                _ => format!(
                    "Pack threads {}{more} each under one {cache}, and spread these groups: {gains}.{data}",
                    list(&named)
                ),
            }
        }
        SPREAD => format!("Spread the threads over all {cache} caches: {gains}."),
        _ => format!("Pack the threads under as few {cache} caches as they fit: {gains}.{data}"),
    }
}

/// `0-3 and 8`, as ranges.
pub fn threads(of: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &thread in of {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == thread => *last = thread,
            _ => ranges.push((thread, thread)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// The data with most sharing misses.
fn shared_data(advice: &SharingAdvice) -> String {
    let mut misses: Vec<(&str, u64)> = Vec::new();
    for structure in advice.graph.edges.iter().flat_map(|edge| &edge.structures) {
        match misses.iter_mut().find(|(name, _)| *name == structure.name) {
            Some((_, known)) => *known += structure.misses,
            None => misses.push((&structure.name, structure.misses)),
        }
    }
    let all: u64 = misses.iter().map(|(_, misses)| misses).sum();
    misses.retain(|(_, misses)| *misses > 0 && *misses as f64 >= SEEN * all as f64);
    misses.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let names: Vec<String> = misses.iter().take(DATA).map(|(name, _)| results::short(name)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" They share {}.", list(&names)),
    }
}

#[cfg(test)]
mod tests {
    use results::ThreadPlacement;

    use super::*;

    #[test]
    fn equal_gains_are_one() {
        let way = |name: &str, wall_ns| ThreadPlacement {
            name: name.to_string(),
            wall_ns,
            ..ThreadPlacement::default()
        };
        let advice = |spread| SharingAdvice {
            cache: "L2".to_string(),
            placements: vec![way(GROUPED, 872_000), way(IN_ORDER, 1_000_000), way(SPREAD, spread)],
            ..SharingAdvice::default()
        };
        let both = "12.8% less time than on the cpus in their order and than spread over all of them.";
        let verdict = of(&advice(1_000_000));
        assert!(verdict.ends_with(both), "{verdict}");
        let verdict = of(&advice(2_000_000));
        assert!(
            verdict.contains("12.8% less time than on the cpus in their order and 56.4% less time than spread"),
            "{verdict}"
        );
    }
}
