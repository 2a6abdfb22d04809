//! The outcome for a program whose thread follows its data.

use results::{LiveClosing, LiveFollowing, Regions, RegionsVerdict, bytes, count, nanoseconds, percent};

use crate::table::Table;

/// Fact by fact; `verdict` is the policy's verdict in words.
pub fn live_following(report: &LiveFollowing, verdict: Option<String>) -> Table {
    let mut facts: Vec<(&str, String)> = vec![("experiment", outcome(report))];
    facts.extend(verdict.map(|verdict| ("regions", verdict)));
    if let Some(why) = &report.stepped_aside {
        facts.push(("left alone", format!("{why}; it went on as Linux has it")));
    }
    facts.push((
        "caches",
        format!(
            "{} of {} ({}){}",
            report.caches,
            bytes(report.cache_bytes),
            report.cache,
            match report.kept_awake {
                0 => "",
                _ => "; a cpu of each was kept from sleeping while pages were closed",
            }
        ),
    ));
    facts.push((
        "a move",
        format!(
            "{} by {}, measured before the program ran (the paper's systems: 15.9 us and 6.4 us)",
            nanoseconds(report.move_ns as f64),
            match report.closed_by {
                LiveClosing::Keys => "protection keys",
                LiveClosing::Mprotect => "mprotect",
            }
        ),
    ));
    facts.push((
        "stops",
        format!(
            "{} touches of closed pages, {} system calls while pages were closed",
            count(report.touches),
            count(report.calls)
        ),
    ));
    let of_a_cpu = |ns: u64| percent(ns as f64 / report.wall_ns.max(1) as f64);
    let awake = match report.awake_ns {
        0 => String::new(),
        ns => format!(", and {} in idle class to keep cpus from sleeping", of_a_cpu(ns)),
    };
    facts.push(("own time", format!("{} of a cpu{awake}", of_a_cpu(report.own_ns))));
    Table::of_facts("A thread that follows its data", facts)
}

/// The result, in one phrase.
fn outcome(report: &LiveFollowing) -> String {
    let pays = |regions: &Regions| {
        let mut processes = regions.processes.iter();
        processes.any(|process| process.verdict == RegionsVerdict::Pays)
    };
    match (report.moves, &report.regions) {
        (0, _) => "the thread was never moved".to_string(),
        (moves, Some(regions)) if pays(regions) => {
            format!("the thread was moved {} times to the cache of its data", count(moves))
        }
        (moves, _) => format!("the thread was moved {} times, and no longer at the end", count(moves)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_comes_first_and_the_reason_next() {
        let report = LiveFollowing {
            cache: "L2".into(),
            caches: 2,
            cache_bytes: 2 << 20,
            move_ns: 9_100,
            closed_by: LiveClosing::Mprotect,
            kept_awake: 2,
            wall_ns: 1000,
            own_ns: 20,
            awake_ns: 500,
            moves: 3,
            stepped_aside: Some("it began a second thread".into()),
            ..LiveFollowing::default()
        };
        let text = live_following(&report, Some("process 0: too few".into())).facts(11);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("moved 3 times, and no longer at the end"), "{text}");
        assert!(lines[1].contains("process 0: too few"), "{text}");
        assert!(
            lines[2].contains("it began a second thread; it went on as Linux has it"),
            "{text}"
        );
        assert!(
            text.contains("2 of 2.00 MB (L2); a cpu of each was kept from sleeping"),
            "{text}"
        );
        assert!(text.contains("9.10 us by mprotect"), "{text}");
        assert!(text.contains("2.0% of a cpu, and 50.0% in idle class"), "{text}");
    }
}
