//! The sums that must add up, whatever the machine and the program.

use machine::Machine;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::Value;

use crate::oracle::both::Setup;
use crate::oracle::engine;
use crate::oracle::machines::{machines, overlapping_machines};
use crate::oracle::programs::programs;
use crate::reference::Program;

const CLASSES: [&str; 5] = ["cold", "capacity", "conflict", "true_sharing", "false_sharing"];
const PARTS: [&str; 10] = [
    "busy",
    "cache_stall",
    "local_stall",
    "remote_stall",
    "tlb_stall",
    "policy_overhead",
    "imbalance",
    "sequential",
    "synchronization",
    "prefetch_stall",
];

fn number(object: &Value, field: &str) -> f64 {
    object[field]
        .as_f64()
        .unwrap_or_else(|| panic!("`{field}` is missing in {object}"))
}

pub fn cases(full: u32) -> ProptestConfig {
    ProptestConfig {
        cases: harness::cases(full),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One object: of the whole machine or of a cpu.
fn adds_up(object: &Value, classes: bool) -> TestCaseResult {
    let time = &object["time_ns"];
    // Present only if there are any.
    let faults = time["page_faults"].as_f64().unwrap_or(0.0);
    let parts: f64 = faults + PARTS.iter().map(|part| number(time, part)).sum::<f64>();
    prop_assert_eq!(parts, number(time, "total"), "the parts of the time in {}", time);
    for cache in object["caches"].as_array().expect("caches are a list") {
        let (hits, misses) = (number(cache, "hits"), number(cache, "misses"));
        prop_assert_eq!(hits + misses, number(cache, "accesses"), "hits and misses in {}", cache);
        if classes {
            let classed: f64 = CLASSES.iter().map(|class| number(cache, class)).sum();
            prop_assert_eq!(classed, misses, "the classes in {}", cache);
        }
    }
    // By reason: exactly the reported waits for caches and memory.
    let by_class = time["stall_by_class"].as_object().expect("stall is reported by class");
    let sum: f64 = by_class.values().filter_map(Value::as_f64).sum();
    let stalls: f64 = PARTS[1..4].iter().map(|part| number(time, part)).sum();
    prop_assert_eq!(sum, stalls, "the stall by class in {}", time);
    prop_assert_eq!(by_class["conflict"].is_null(), !classes);
    // Each figure is rounded down; a wait that no cache answers for is of a kind that none serves.
    let by_cache: f64 = object["caches"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cache| ["hit", "miss", "upgrade"].map(|part| number(&cache["stall_ns"], part)))
        .flat_map(|parts| parts.into_iter())
        .sum();
    prop_assert!(
        by_cache <= stalls + 24.0,
        "{} ns by cache, {} ns in {}",
        by_cache,
        stalls,
        time
    );
    let tlb = &object["tlb"];
    if !tlb["accesses"].is_null() {
        prop_assert!(number(tlb, "misses") <= number(tlb, "accesses"));
    }
    Ok(())
}

/// Every number of the whole is the sum over the cpus.
fn splits(whole: &Value, parts: &[Value], at: &str) -> TestCaseResult {
    match whole {
        Value::Object(fields) => {
            for (name, value) in fields {
                let derived = ["wall", "local_percent", "pages", "pages_max", "level"].contains(&name.as_str());
                if derived || name == "per_cpu" {
                    continue;
                }
                let parts: Vec<Value> = parts.iter().map(|part| part[name].clone()).collect();
                splits(value, &parts, &format!("{at}.{name}"))?;
            }
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                let parts: Vec<Value> = parts.iter().map(|part| part[number].clone()).collect();
                splits(value, &parts, &format!("{at}[{number}]"))?;
            }
        }
        Value::Number(_) if parts.iter().all(Value::is_number) => {
            let sum: f64 = parts.iter().filter_map(Value::as_f64).sum();
            prop_assert_eq!(
                sum,
                whole.as_f64().unwrap_or(f64::NAN),
                "the sum over the cpus of {}",
                at
            );
        }
        _ => {}
    }
    Ok(())
}

pub fn check(machine: &Machine, program: &Program, outcome: &Value, classes: bool) -> TestCaseResult {
    adds_up(outcome, classes)?;
    let per_cpu = outcome["per_cpu"].as_array().cloned().unwrap_or_default();
    prop_assert!(machine.cpus == 1 || per_cpu.len() == machine.cpus as usize);
    for cpu in &per_cpu {
        adds_up(cpu, classes)?;
    }
    if machine.cpus > 1 {
        let mut fields = vec!["caches", "tlb", "memory", "time_ns"];
        if machine.prefetch.is_some() {
            fields.push("prefetch");
        }
        for field in fields {
            let parts: Vec<Value> = per_cpu.iter().map(|cpu| cpu[field].clone()).collect();
            splits(&outcome[field], &parts, field)?;
        }
    }
    prop_assert_eq!(number(outcome, "references"), program.references() as f64);

    // Memory serves all misses of the outermost level, unless a cache between two cpus does.
    let outermost = machine.caches.iter().map(|cache| cache.level).max();
    let caches = outcome["caches"].as_array().expect("caches are a list");
    let unserved = caches
        .iter()
        .filter(|cache| cache["level"].as_u64() == outermost.map(u64::from));
    let misses: f64 = unserved.map(|cache| number(cache, "misses")).sum();
    let served = number(&outcome["memory"], "local") + number(&outcome["memory"], "remote");
    let all_kinds = machine
        .caches
        .iter()
        .any(|cache| Some(cache.level) == outermost && cache.kind == machine::Kind::Unified);
    let meet = machine.caches.iter().any(|cache| cache.cpus_per_instance > 1);
    if all_kinds && !meet {
        prop_assert_eq!(served, misses, "memory serves what the last level misses");
    } else if all_kinds {
        prop_assert!(served <= misses);
    }
    Ok(())
}

/// Every cpu that ran is accounted for from the start to the end; each of its ten parts is rounded down.
fn time_is_accounted_for(machine: &Machine, program: &Program, outcome: &Value) -> TestCaseResult {
    let ran = program.spaces.len().min(machine.cpus as usize) as f64;
    let missing = ran * (number(&outcome["time_ns"], "wall") + 1.0) - number(&outcome["time_ns"], "total");
    prop_assert!(
        (0.0..=ran * 11.0).contains(&missing),
        "{} cpus, {} ns unaccounted for in {}",
        ran,
        missing,
        outcome["time_ns"]
    );
    Ok(())
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn everything_adds_up(machine in machines(vec![1, 2, 4, 8]), program in programs(9, 4000), classes: bool, recorded: bool) {
        let setup = Setup { classes, recorded, ..Setup::default() };
        for policy in ["page-coloring", "round-robin+random"] {
            let Ok(outcomes) = engine::simulate(&machine, &program, &[policy], &setup) else { continue };
            check(&machine, &program, &outcomes[0], classes)?;
            time_is_accounted_for(&machine, &program, &outcomes[0])?;
        }
    }

    /// Parts of the waiting, whatever overlaps: [`engine::simulate_closely`] adds up the waits of each line.
    #[test]
    fn lines_wait_for_no_more_than_the_run_does(
        machine in prop_oneof![machines(vec![1, 2, 4]), overlapping_machines(vec![1, 2, 4])],
        program in programs(6, 3000),
    ) {
        let causes = sim::Detail { causes: true, ..sim::Detail::default() };
        let policies = ["first-touch+random", "migrate", "interleave+page-coloring"];
        for policy in policies {
            let Ok(outcomes) = engine::simulate_closely(&machine, &program, &[policy], &Setup::default(), causes, None) else {
                continue;
            };
            prop_assert_eq!(outcomes.len(), 1);
        }
    }

    /// A second run gives the same bytes, and many policies at once give the results of each alone.
    #[test]
    fn the_same_again_and_together(machine in machines(vec![1, 1, 2, 4]), program in programs(6, 2000), seed: u64, classes: bool) {
        let setup = Setup { seed, classes, ..Setup::default() };
        let policies = ["page-coloring", "bin-hopping", "random", "round-robin"];
        let together = engine::simulate(&machine, &program, &policies, &setup);
        let again = engine::simulate(&machine, &program, &policies, &setup);
        prop_assert_eq!(format!("{together:?}"), format!("{again:?}"));
        let Ok(together) = together else { return Ok(()) };
        for (policy, outcome) in policies.iter().zip(together) {
            let alone = engine::simulate(&machine, &program, &[policy], &setup);
            let alone = alone.map_err(TestCaseError::fail)?;
            prop_assert_eq!(outcome.to_string(), alone[0].to_string(), "{} alone and among others", policy);
        }
    }

    /// Classes are an addition: they change no count and no time.
    #[test]
    fn classes_change_nothing(machine in machines(vec![1, 2, 4]), program in programs(6, 2000)) {
        let policy = ["first-touch+bin-hopping"];
        let with = engine::simulate(&machine, &program, &policy, &Setup::default());
        let without = engine::simulate(&machine, &program, &policy, &Setup { classes: false, ..Setup::default() });
        let (Ok(with), Ok(without)) = (with, without) else { return Ok(()) };
        for field in ["tlb", "memory", "bus"] {
            prop_assert_eq!(&with[0][field], &without[0][field]);
        }
        for part in PARTS.iter().chain(&["total", "wall"]) {
            prop_assert_eq!(&with[0]["time_ns"][part], &without[0]["time_ns"][part]);
        }
        let caches = with[0]["caches"].as_array().into_iter().flatten();
        for (a, b) in caches.zip(without[0]["caches"].as_array().into_iter().flatten()) {
            for field in ["accesses", "hits", "misses", "writebacks", "upgrades"] {
                prop_assert_eq!(&a[field], &b[field]);
            }
        }
    }
}
