//! The input of policies and its outcome, in a line for people.

use results::{
    Cdpc, Pairing, Regions, RegionsProcess, RegionsSource, RegionsVerdict, Slots, bytes, count, nanoseconds,
};

/// A number of things: `1 page`, `3 pages`.
pub fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `a, b and c`.
pub fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The part of a time that another saves.
pub fn saved(before: u64, after: u64) -> f64 {
    match before {
        0 => 0.0,
        before => (before as f64 - after as f64) / before as f64,
    }
}

/// Below this difference, two predicted times are equal as far as the model can tell.
pub const NOTHING: f64 = 0.01;

/// The outcome for cache slots.
pub fn slots_in_words(slots: &Slots) -> String {
    let mut text = match slots.data_sets {
        0 => "slots: no data set was given colors".to_string(),
        sets => format!(
            "slots: {} given colors ({} in private slots), {} pages placed; a color is {} of {}",
            many(sets, "data set"),
            count(slots.private),
            count(slots.pages),
            bytes(slots.color_bytes),
            bytes(slots.color_bytes.saturating_mul(slots.colors.into())),
        ),
    };
    if slots.refusals > 0 {
        text += &format!("; {} refused: {}", count(slots.refusals), slots.refused.join("; "));
    }
    text
}

/// The source of the hints for page colors, and their outcome.
pub fn cdpc_in_words(cdpc: &Cdpc) -> String {
    let source = match cdpc.from.as_str() {
        "summaries" => format!("what the compiler said of {}", many(cdpc.loops, "parallel loop")),
        _ => "which cpus touch which pages".to_string(),
    };
    let mut text = match cdpc.pages {
        0 => format!("cdpc: no hints: no array of several pages is known from {source}"),
        pages => format!(
            "cdpc: hints for {} of {}, from {source} ({} in {}); {} of {} were honoured",
            many(pages, "page"),
            many(cdpc.arrays, "array"),
            many(cdpc.segments, "uniform access segment"),
            many(cdpc.sets, "set"),
            count(cdpc.honoured),
            count(cdpc.asked),
        ),
    };
    if cdpc.malformed_summaries > 0 {
        text += &format!(
            "; {} left out: {}",
            many(cdpc.malformed_summaries, "summary").replace("summarys", "summaries"),
            cdpc.malformed.join("; ")
        );
    }
    text
}

/// The caches of processes, and the reason.
pub fn pairing_in_words(pairing: &Pairing) -> String {
    if pairing.why.is_empty() && pairing.caches != 1 {
        return "pairing: the run was too short; three intervals pass before the first decision (`pairing.interval`)"
            .to_string();
    }
    if pairing.caches < 2 {
        return "pairing: the machine has one outermost cache for all its cpus; there is nothing to choose".to_string();
    }
    let processes = pairing.processes.iter().map(|process| {
        let place = match (process.domains.as_deref(), &process.why) {
            (Some([one]), _) => format!("cache {one}"),
            (Some(several), _) => format!("{} caches", several.len()),
            (None, Some(why)) => format!("no place: {why}"),
            (None, None) => "no place".to_string(),
        };
        let size = process.working_set_bytes.map_or("size not known".to_string(), bytes);
        format!("process {}: {size}, {place}", process.process)
    });
    let processes: Vec<String> = processes.collect();
    let fullest = match pairing.fullest_before_bytes.zip(pairing.fullest_after_bytes) {
        Some((before, after)) if after < before => format!(
            "; the fullest cache has {} to hold, instead of {} at worst",
            bytes(after),
            bytes(before)
        ),
        _ => String::new(),
    };
    format!(
        "pairing: {} of {} ({}); {} of a process: {}{fullest}. {}",
        many(pairing.caches.into(), "cache"),
        bytes(pairing.cache_bytes),
        pairing.cache,
        many(pairing.actions_count, "move"),
        pairing.why,
        processes.join("; ")
    )
}

/// The regions that were found, and their outcome.
pub fn regions_in_words(regions: &Regions) -> String {
    if regions.caches < 2 {
        return "regions: the machine has one outermost cache for all its cpus; there is nothing to choose".to_string();
    }
    let verdicts = regions.processes.iter().map(|process| {
        let known = regions
            .regions
            .iter()
            .filter(|region| region.process == process.process);
        let known: Vec<_> = known.filter(|region| region.kind != "global").collect();
        let stay = match process.stay_ns {
            Some(ns) => format!(", each used for {} at a time", nanoseconds(ns as f64)),
            None => String::new(),
        };
        format!(
            "process {}: {} ({} in use{stay}): {}",
            process.process,
            many(known.len() as u64, "region"),
            bytes(process.working_set_bytes),
            verdict(process, regions)
        )
    });
    let verdicts: Vec<String> = verdicts.collect();
    format!(
        "regions: {} of {} ({}); {}, {} of a thread to the cache of what it touched, {} instead. {}",
        many(regions.caches.into(), "cache"),
        bytes(regions.cache_bytes),
        regions.cache,
        many(regions.phases, "regioning phase"),
        many(regions.switches, "move"),
        match regions.opened {
            1 => "1 region opened".to_string(),
            opened => format!("{} regions opened", count(opened)),
        },
        verdicts.join("; ")
    )
}

fn verdict(process: &RegionsProcess, regions: &Regions) -> String {
    let ns = |ns: u64| nanoseconds(ns as f64);
    let bounds = &regions.bounds;
    let from = match bounds.from {
        RegionsSource::Set => " (set)",
        RegionsSource::Machine => " (the machine's description)",
        RegionsSource::Calibrated => " (measured on the simulated machine)",
        RegionsSource::Rule => " (a rule: nobody measured it)",
    };
    match (process.verdict, process.cache) {
        (RegionsVerdict::Pays, _) => "spread over the caches".to_string(),
        (verdict, cache) => {
            let why = match verdict {
                RegionsVerdict::Pays | RegionsVerdict::NotYet => format!(
                    "the run was too short for a regioning phase (`regions.period` is {})",
                    ns(regions.period_ns)
                ),
                RegionsVerdict::WindowsTooShort => format!(
                    "all windows of the trace are shorter than a regioning phase ({}): record longer ones",
                    ns(regions.phase_ns)
                ),
                RegionsVerdict::NoRegions => "no two regions that take turns".to_string(),
                RegionsVerdict::StillFound => {
                    "most of what it uses is in no region yet: phases take little of a short run (`regions.cost`)"
                        .to_string()
                }
                RegionsVerdict::StayUnknown => format!(
                    "no change from one to another was seen in {}: stays are unknown",
                    ns(process.watched_ns)
                ),
                RegionsVerdict::NoGain => match (process.followed_ns, process.stay_ns) {
                    (Some(followed), Some(stay)) => {
                        format!(
                            "a thread that followed them took {} for what took {}",
                            ns(followed),
                            ns(stay)
                        )
                    }
                    _ => "a thread that followed them gained nothing".to_string(),
                },
                RegionsVerdict::StaysTooShort => format!(
                    "they change too often for a thread to follow, which gains from {} on{from}; a move takes {}",
                    ns(bounds.stay_least_ns),
                    ns(bounds.switch_ns)
                ),
                RegionsVerdict::StaysTooLong => format!(
                    "they change too seldom to matter, which they do up to {}{from}",
                    ns(bounds.stay_most_ns)
                ),
                RegionsVerdict::FitsOneCache => format!(
                    "all of it fits into one cache; regions gain beyond {}{from}",
                    bytes(regions.cache_bytes * bounds.one_cache / 1000)
                ),
                RegionsVerdict::FitsNoCaches => format!(
                    "all caches together are too small for it; regions gain up to {}{from}",
                    bytes(regions.cache_bytes * u64::from(regions.caches) * bounds.all_caches / 1000)
                ),
            };
            match cache {
                Some(cache) if regions.processes.len() > 1 => format!("{why}; all of it was given cache {cache}"),
                _ => format!("{why}; ordinary scheduling"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use results::PairedProcess;

    use super::*;

    #[test]
    fn pairing_says_what_became_of_each_process() {
        let mut pairing = Pairing::default();
        assert!(pairing_in_words(&pairing).contains("the run was too short"));
        pairing.caches = 1;
        assert!(pairing_in_words(&pairing).contains("there is nothing to choose"));
        let process = |number, domains, why: Option<&str>| PairedProcess {
            process: number,
            working_set_bytes: Some(1 << 20),
            domains,
            why: why.map(String::from),
            ..PairedProcess::default()
        };
        pairing = Pairing {
            cache: "L2".to_string(),
            caches: 2,
            cache_bytes: 2 << 20,
            processes: vec![process(0, Some(vec![1]), None), process(1, None, Some("it is idle"))],
            fullest_before_bytes: Some(2 << 20),
            fullest_after_bytes: Some(1 << 20),
            why: "a reason".to_string(),
            actions_count: 1,
            ..Pairing::default()
        };
        assert_eq!(
            pairing_in_words(&pairing),
            "pairing: 2 caches of 2.00 MB (L2); 1 move of a process: a reason; the fullest cache has 1.00 MB to hold, instead of \
             2.00 MB at worst. process 0: 1.00 MB, cache 1; process 1: 1.00 MB, no place: it is idle"
        );
    }
}
