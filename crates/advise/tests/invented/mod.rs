//! Results as a simulation could have left them, and an advice from them. The tests of `report` draw it, too.

use advise::advice_of;
use policy::Name;
use results::{Advice, Facts, Outcome};
use serde_json::{Value, json};

pub fn cache(name: &str, level: u8, accesses: u64, classes: [u64; 5], stall: f64) -> Value {
    let misses: u64 = classes.iter().sum();
    let part = |count: u64| {
        if misses == 0 {
            0.0
        } else {
            stall * count as f64 / misses as f64
        }
    };
    json!({
        "name": name, "level": level, "accesses": accesses, "hits": accesses - misses, "misses": misses, "writebacks": 7,
        "cold": classes[0], "capacity": classes[1], "conflict": classes[2],
        "true_sharing": classes[3], "false_sharing": classes[4], "upgrades": 3,
        "stall_ns": {"hit": 0.0, "miss": stall, "cold": part(classes[0]), "capacity": part(classes[1]),
                     "conflict": part(classes[2]), "true_sharing": part(classes[3]), "false_sharing": part(classes[4]),
                     "upgrade": 0.0},
    })
}

pub fn outcome(policy: &str, conflicts: u64, remote: f64) -> Outcome {
    let l1 = cache("L1D", 1, 4_000_000, [1_000, 90_000, 20_000, 0, 0], 1.11e6);
    let l2 = cache("L2", 2, 111_000, [1_000, 40_000, conflicts, 300, 1_200], 2.0e7 + remote);
    let (busy, imbalance) = (1.2e7, 2.0e6);
    let stall = 1.11e6 + 2.0e7 + remote;
    let value = json!({
        "policy": policy, "machine": "flash-cc-numa", "references": 4_000_000u64, "instructions": 9_500_000u64,
        "caches": [l1, l2],
        "tlb": {"accesses": 4_000_000u64, "misses": 120},
        "memory": {"local": 9_000, "remote": 3_000, "local_percent": 75.0, "pages": 600},
        "time_ns": {"busy": busy, "cache_stall": 1.11e6, "local_stall": 2.0e7, "remote_stall": remote,
                    "tlb_stall": 0.0, "policy_overhead": 0.0, "imbalance": imbalance,
                    "total": busy + imbalance + stall, "wall": (busy + imbalance + stall) / 8.0},
        "structures": [
            {"name": "heap: build_table (join.c:120)", "kind": "heap", "file": "/src/join.c", "line": 120,
             "bytes": 2_400_000u64, "blocks": 41u64, "stall_ns": 1.5e7,
             "caches": [cache("L1D", 1, 2_000_000, [600, 80_000, 15_000, 0, 0], 0.0),
                        cache("L2", 2, 95_600, [600, 35_000, conflicts, 0, 0], 0.0)]},
            {"name": "counters", "kind": "symbol", "file": "/src/join.c", "line": 7, "bytes": 64u64, "blocks": 0,
             "stall_ns": 3.0e6,
             "caches": [cache("L1D", 1, 90_000, [2, 0, 0, 300, 1_200], 0.0), cache("L2", 2, 1_502, [2, 0, 0, 300, 1_200], 0.0)]},
            {"name": "never missed", "kind": "symbol", "bytes": 8, "caches": [cache("L1D", 1, 5, [0; 5], 0.0)]},
        ],
        "false_sharing": [
            {"structure": "counters", "line": 0x404080, "misses": 1_200, "sides": [
                {"thread": "1", "field": "counters[0].hits", "write": true, "source": "join.c:88"},
                {"thread": "2", "field": "counters[1].hits", "write": true, "source": "join.c:88"},
            ]},
        ],
    });
    serde_json::from_value(value).unwrap()
}

pub fn facts() -> Facts {
    Facts {
        file: None,
        references: 4_000_000,
        instructions: Some(9_500_000),
        threads: 8,
        processes: 1,
        footprint_bytes: 600 * 4096,
        part: None,
    }
}

pub fn random() -> Name {
    "random".parse().unwrap()
}

pub fn machine(name: &str) -> machine::Machine {
    machine::load(name).unwrap()
}

pub fn advice() -> Advice {
    let outcomes = vec![
        outcome("first-touch+random", 9_000, 9.0e6),
        outcome("round-robin+random", 9_000, 1.7e7),
        outcome("first-touch+page-coloring", 500, 4.0e6),
    ];
    let notes = vec!["instruction fetches are not in the trace: misses of code are not counted".to_string()];
    let mut advice = advice_of(
        &machine("flash-cc-numa"),
        facts(),
        &"first-touch+random".parse().unwrap(),
        &[],
        outcomes,
        notes,
    );
    advice.program = "join".to_string();
    advice.arguments = vec!["<orders>.db".to_string(), "--threads=8".to_string()];
    advice
}

/// An advice on work in another order: L2 capacity misses and time of it, 40 000 capacity misses and 25 ms without.
pub fn ordered(work: Value, wall: f64, capacity: u64) -> Advice {
    let plain = outcome("random", 5_000, 0.0);
    let mut new = outcome("random+order", 5_000, 0.0);
    new.order = Some(serde_json::from_value(work).unwrap());
    new.time_ns.wall = (wall * plain.time_ns.wall as f64).round() as u64;
    let l2 = new.caches.last_mut().unwrap();
    l2.misses = l2.misses - l2.capacity.unwrap() + capacity;
    l2.capacity = Some(capacity);
    let machine = machine::presets()
        .iter()
        .find(|preset| preset.name == "simos-r4400")
        .unwrap();
    let machine = machine::from_toml(machine.text, machine.name).unwrap();
    let names = [random(), "random+order".parse().unwrap()];
    advice_of(&machine, facts(), &names[0], &names, vec![new, plain], Vec::new())
}

/// What policy `order` found and did.
pub fn work(moved: u64, runs: u64, bins: u64, fixed: u64) -> Value {
    json!({"items": 1000, "moved": moved, "fixed": fixed, "runs": runs, "bins": bins, "hints": 2, "block": 4096,
           "reason": "because", "tour": "first-fork", "workers": 1})
}
