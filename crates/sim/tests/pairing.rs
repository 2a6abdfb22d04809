//! Policy `pairing`: large processes are paired with small ones, and no process is moved if that gains nothing.
#![forbid(unsafe_code)]

use results::{Outcome, Pairing};
use sim::{Config, PolicySpec, Streams};

use super::regions::machine;
use super::regions_together::processes;

/// Two caches of 128 pages, of two cpus each. Slices and intervals are cut as the runs are.
fn simulate(streams: &Streams, policy: &str, sets: &[&str]) -> Outcome {
    let spec = PolicySpec {
        sets: sets.iter().map(|set| (*set).to_string()).collect(),
        ..PolicySpec::new(policy.parse().unwrap())
    };
    let config = Config {
        slice_ns: 200_000,
        ..Config::new(machine(4), vec![spec])
    };
    let runs = sim::simulate_refs(streams, &config).expect("the run succeeds");
    runs.into_iter().next().expect("one policy").outcome
}

/// The outcome of processes with these numbers of pages, and the times without and with places.
fn paired(pages: &[u64], references: u64) -> (Pairing, [u64; 2]) {
    let streams = processes(pages, references);
    let ordinary = simulate(&streams, "first-touch", &[]);
    let outcome = simulate(&streams, "pairing", &["pairing.interval=2000"]);
    let walls = [&ordinary, &outcome].map(|outcome| outcome.time_ns.wall);
    (outcome.pairing.expect("it says what it did"), walls)
}

fn caches(report: &Pairing) -> Vec<Option<Vec<u32>>> {
    report.processes.iter().map(|process| process.domains.clone()).collect()
}

/// Two of 100 pages begin under one cache, two of 4 pages under the other.
#[test]
fn a_large_process_goes_beside_a_small_one() {
    let (report, [before, after]) = paired(&[100, 100, 4, 4], 2_000_000);
    let caches = caches(&report);
    assert!(
        caches
            .iter()
            .all(|cache| cache.as_ref().is_some_and(|cache| cache.len() == 1)),
        "{report:?}"
    );
    assert!(caches[0] != caches[1] && caches[2] != caches[3], "{report:?}");
    assert_eq!(report.actions_count, 4, "what is right stays");
    assert!(after * 2 < before, "{before} ns become {after}");
}

/// As many threads as cpus, and all fit: no place gains anything.
#[test]
fn processes_that_fit_stay_where_they_are() {
    let (report, [before, after]) = paired(&[4, 4, 4, 4], 4_000_000);
    assert_eq!((caches(&report), report.actions_count), (vec![None; 4], 0));
    for process in &report.processes {
        assert_eq!(process.working_set_bytes, Some(4 * 4096));
        let why = process.why.as_deref();
        assert_eq!(
            why,
            Some("a place of its own would gain nothing, or less than an eighth")
        );
    }
    assert_eq!(before, after);
}

/// Six on four cpus: cpus have equal shares of them.
#[test]
fn no_cpu_gets_more_than_its_share() {
    let (report, [before, after]) = paired(&[100, 100, 4, 4, 4, 4], 4_000_000);
    let caches = caches(&report);
    let with = |cache: u32| caches.iter().filter(|of| **of == Some(vec![cache])).count();
    assert!(caches[0] != caches[1], "{report:?}");
    assert!(with(0) <= 3 && with(1) <= 3, "{report:?}");
    assert!(after < before, "{before} ns become {after}");
}
