//! The detail of a run adds up to its totals, and asking for it changes nothing else.

use machine::{Kind, Machine};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::Value;
use sim::Detail;

use crate::oracle::both::Setup;
use crate::oracle::conservation::cases;
use crate::oracle::engine;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::Program;

const PARTS: [&str; 7] = [
    "threads",
    "structures",
    "pages",
    "source_lines",
    "false_sharing",
    "timeline",
    "profile",
];
const COUNTS: [&str; 6] = [
    "misses",
    "cold",
    "capacity",
    "conflict",
    "true_sharing",
    "false_sharing",
];

/// Everything there is to report.
pub const ALL: Detail = Detail {
    placements: true,
    threads: true,
    structures: true,
    pages: usize::MAX,
    source_lines: usize::MAX,
    false_sharing: usize::MAX,
    per_cpu: true,
    curves: true,
    causes: true,
    remote: true,
    sharing: true,
    timeline: true,
    profile: true,
    exact: true,
};

fn sum(parts: &[Value], of: impl Fn(&Value) -> &Value) -> u64 {
    parts.iter().filter_map(|part| of(part).as_u64()).sum()
}

/// The parts that detail adds are taken out and looked at; the rest is the plain outcome.
fn check(machine: &Machine, program: &Program, setup: &Setup, policies: &[&str]) -> TestCaseResult {
    let plain = engine::simulate(machine, program, policies, setup);
    let close = engine::simulate_closely(machine, program, policies, setup, ALL, None);
    let (Ok(plain), Ok(close)) = (plain, close) else {
        return Err(TestCaseError::reject("there are too few page frames"));
    };
    for (plain, close) in plain.iter().zip(close) {
        adds_up(machine, plain, close, true)?;
    }
    Ok(())
}

/// `settled`: threads stay on their cpus, so that no thread collides with itself.
pub fn adds_up(machine: &Machine, plain: &Value, mut close: Value, settled: bool) -> TestCaseResult {
    let outcome = close.as_object_mut().expect("an outcome is an object");
    let parts = PARTS.map(|part| outcome.remove(part));
    prop_assert_eq!(plain, &close, "detail changes the rest");
    let time = &plain["time_ns"];
    let stall = ["cache_stall", "local_stall", "remote_stall"].map(|part| time[part].as_u64().unwrap_or(0));
    let stall: u64 = stall.iter().sum();
    for (name, part) in PARTS.iter().zip(&parts).take(4) {
        let Some(Value::Array(rows)) = part else {
            return Err(TestCaseError::fail(format!("{name} are not there")));
        };
        for (number, cache) in plain["caches"].as_array().into_iter().flatten().enumerate() {
            for count in COUNTS {
                let sum = sum(rows, |row| &row["caches"][number][count]);
                prop_assert_eq!(
                    sum,
                    cache[count].as_u64().unwrap_or(0),
                    "{} of {} by {}",
                    count,
                    cache,
                    name
                );
            }
        }
        // Rounded down cpu by cpu and part by part here, row by row there.
        let sum = sum(rows, |row| &row["stall_ns"]);
        prop_assert!(
            sum <= stall + 3 * u64::from(machine.cpus),
            "{} ns by {}, {}",
            sum,
            name,
            time
        );
        prop_assert!(stall <= sum + rows.len() as u64, "{} ns by {}, {}", sum, name, time);
    }
    let references = parts[0].as_ref().and_then(Value::as_array).map_or(&[][..], |rows| rows);
    prop_assert_eq!(
        sum(references, |row| &row["references"]),
        plain["references"].as_u64().unwrap_or(0)
    );
    over_time(machine, parts[5].as_ref(), parts[1].as_ref(), plain)?;
    by_stack(machine, parts[6].as_ref(), parts[3].as_ref(), plain)?;
    collisions(machine, plain, parts[4].as_ref(), settled)
}

/// Over time each waits as long as in all, less the rounding in each interval, and misses are those of first caches.
fn over_time(machine: &Machine, timeline: Option<&Value>, structures: Option<&Value>, plain: &Value) -> TestCaseResult {
    let Some(timeline) = timeline else {
        return Err(TestCaseError::fail("the timeline is not there"));
    };
    let rows = |part: &str| timeline[part].as_array().cloned().unwrap_or_default();
    let in_all = |row: &Value, of: &str| sum(row[of].as_array().map_or(&[][..], |all| all), |value| value);
    let waited = sum(
        structures.and_then(Value::as_array).map_or(&[][..], |rows| rows),
        |row| &row["stall_ns"],
    );
    for part in ["structures", "threads", "blocks"] {
        let rows = rows(part);
        let sum: u64 = rows.iter().map(|row| in_all(row, "stall_ns")).sum();
        let lost = 128 * rows.len() as u64;
        prop_assert!(
            sum <= waited + lost && waited <= sum + lost,
            "{} of {} ns by {}",
            sum,
            waited,
            part
        );
    }
    // If frames have colors, each wait belongs to one.
    let colors = rows("colors");
    let sum_of_colors: u64 = colors.iter().map(|row| in_all(row, "stall_ns")).sum();
    let lost = 128 * colors.len() as u64;
    prop_assert!(
        colors.is_empty() || sum_of_colors <= waited + lost && waited <= sum_of_colors + lost,
        "{} of {} ns by color",
        sum_of_colors,
        waited
    );
    let blocks = rows("blocks");
    for block in &blocks {
        let (by_thread, by_time) = (in_all(block, "threads_stall_ns"), in_all(block, "stall_ns"));
        prop_assert!(by_thread.abs_diff(by_time) <= 128, "{}", block);
    }
    let misses: u64 = blocks.iter().map(|block| in_all(block, "misses")).sum();
    let first = plain["caches"].as_array().into_iter().flatten();
    let first: u64 = first
        .filter(|cache| cache["level"] == 1)
        .map(|cache| cache["misses"].as_u64().unwrap_or(0))
        .sum();
    prop_assert!(misses <= first, "{} of {} misses", misses, first);
    // If the first caches are for data alone, they have no misses of code.
    let of_level = |level: u8| {
        machine
            .caches
            .iter()
            .zip(plain["caches"].as_array().into_iter().flatten())
            .filter(move |(cache, _)| cache.level == level)
    };
    let data: u64 = of_level(1)
        .filter(|(cache, _)| cache.kind == Kind::Data)
        .map(|(_, of)| of["misses"].as_u64().unwrap_or(0))
        .sum();
    if of_level(1).any(|(cache, _)| cache.kind == Kind::Data) {
        prop_assert_eq!(misses, data, "misses of data");
    }
    Ok(())
}

/// By call stack each waits as long as by line, less the rounding, and misses are those of the first caches for data.
fn by_stack(machine: &Machine, profile: Option<&Value>, lines: Option<&Value>, plain: &Value) -> TestCaseResult {
    let rows = |part: &Value| part.as_array().cloned().unwrap_or_default();
    let (Some(profile), Some(lines)) = (profile, lines) else {
        return Err(TestCaseError::fail("the profile is not there"));
    };
    let (frames, stacks) = (rows(&profile["frames"]), rows(&profile["stacks"]));
    for line in rows(lines) {
        let of_line: Vec<Value> = stacks
            .iter()
            .filter(|stack| {
                let leaf = &frames[stack["frames"][0].as_u64().unwrap_or(0) as usize];
                ["function", "file", "line"].iter().all(|part| leaf[part] == line[part])
            })
            .cloned()
            .collect();
        let sum = sum(&of_line, |stack| &stack["stall_ns"]);
        let whole = line["stall_ns"].as_u64().unwrap_or(0);
        prop_assert!(
            sum <= whole && whole <= sum + of_line.len() as u64,
            "{} of {}",
            sum,
            line
        );
    }
    let first = machine
        .caches
        .iter()
        .position(|cache| cache.level == 1 && cache.kind != Kind::Instruction);
    if let Some(first) = first {
        let misses = sum(&stacks, |stack| &stack["misses"]);
        prop_assert_eq!(misses, plain["caches"][first]["misses"].as_u64().unwrap_or(0));
    }
    Ok(())
}

fn collisions(machine: &Machine, plain: &Value, part: Option<&Value>, settled: bool) -> TestCaseResult {
    let Some(Value::Array(collisions)) = part else {
        return Err(TestCaseError::fail("false sharing is not there"));
    };
    let most = plain["caches"].as_array().into_iter().flatten();
    let all: Vec<u64> = most.map(|cache| cache["false_sharing"].as_u64().unwrap_or(0)).collect();
    let reported = sum(collisions, |collision| &collision["misses"]);
    prop_assert!(
        all.iter().max() <= Some(&reported),
        "{} reported of {:?}",
        reported,
        all
    );
    prop_assert!(reported <= all.iter().sum(), "{} reported of {:?}", reported, all);
    let largest = machine
        .caches
        .iter()
        .map(|cache| u64::from(cache.line_bytes))
        .max()
        .unwrap_or(1);
    for collision in collisions {
        prop_assert_eq!(collision["line"].as_u64().map(|line| line % largest), Some(0));
        let sides = collision["sides"].as_array().map_or(&[][..], |sides| sides);
        prop_assert_eq!(sides.len(), 2);
        prop_assert!(!settled || sides[0]["thread"] != sides[1]["thread"], "{}", collision);
        prop_assert_eq!(&sides[1]["write"], true);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn one_cpu_adds_up(machine in machines(vec![1]), program in programs(3, 400), classes: bool, recorded: bool, slice_ns in 1..2000u64) {
        let setup = Setup { classes, recorded, slice_ns, ..Setup::default() };
        check(&machine, &program, &setup, &["page-coloring", "random"])?;
    }

    #[test]
    fn several_cpus_add_up(machine in machines(vec![2, 3, 4]), program in programs(6, 400), classes in prop::bool::weighted(0.8), slice_ns in 1..2000u64) {
        let setup = Setup { classes, slice_ns, ..Setup::default() };
        check(&machine, &program, &setup, &["first-touch+random"])?;
    }

    #[test]
    fn detail_for_one_policy_is_the_same(machine in machines(vec![1, 2]), program in programs(2, 300), one in 0..3usize) {
        let policies = ["page-coloring", "bin-hopping", "random"];
        let setup = Setup::default();
        let plain = engine::simulate(&machine, &program, &policies, &setup);
        let all = engine::simulate_closely(&machine, &program, &policies, &setup, ALL, None);
        let some = engine::simulate_closely(&machine, &program, &policies, &setup, ALL, Some(one));
        let (Ok(plain), Ok(all), Ok(some)) = (plain, all, some) else {
            return Err(TestCaseError::reject("there are too few page frames"));
        };
        for number in 0..policies.len() {
            prop_assert_eq!(&some[number], if number == one { &all[number] } else { &plain[number] });
        }
    }
}
