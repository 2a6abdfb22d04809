//! Loads through pycachesim, a published simulator: accesses, hits and misses of each level are the same.
//!
//! Loads only: a store that hits does not make its line the most recent in pycachesim, which is not LRU.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use machine::Machine;

use crate::oracle::both::Setup;
use crate::oracle::engine;
use crate::oracle::peers;
use crate::reference::Program;
use crate::reference::random::SplitMix64;

/// Sets, ways and line of each level.
type Levels = &'static [(u64, u32, u32)];

fn machine(levels: Levels) -> Machine {
    let mut text = String::from("name = \"pycachesim\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 1\n");
    for (number, (sets, ways, line)) in levels.iter().enumerate() {
        let level = number + 1;
        let bytes = sets * u64::from(ways * line);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[[cache]]\nname = \"L{level}\"\nlevel = {level}\nkind = \"unified\"\nbytes = {bytes}\nways = {ways}\n\
             line_bytes = {line}\ncpus_per_instance = 1\nindex = \"virtual\"\nhit_ns = 1.0\n"
        );
    }
    text += "[memory]\nnodes = 1\nlocal_ns = 100.0\nremote_ns = 100.0\ndirty_remote_ns = 100.0\n";
    machine::from_toml(&text, "pycachesim.toml").expect("the machine is valid")
}

/// A walk, returns to a few hot lines, and strays: every level has something to do.
fn loads(seed: u64, count: u64, bytes: u64) -> Program {
    let mut random = SplitMix64(seed);
    let mut program = Program::new(1);
    for i in 0..count {
        let place = match random.below(10) {
            0..4 => i * 24 % bytes,
            4..8 => u64::from(random.below(4096)),
            _ => random.next() % bytes,
        };
        // Aligned: pycachesim counts a load across lines in its own way.
        program.push(0, trace::Op::Read, 0x10_0000 + (place & !7), 8);
    }
    program
}

fn compare(levels: Levels, program: &Program) {
    let test = format!("pycachesim on {levels:?}");
    let Some(python) = peers::python_with_pycachesim() else {
        return harness::not_installed(format_args!(
            "{test}: pycachesim is not installed (crates/sim/tests/oracles/pycachesim.sh installs it)"
        ));
    };
    let folder = tempfile::tempdir().expect("a folder for the loads");
    let file = folder.path().join("loads");
    fs::write(&file, program.loads()).expect("the loads are written");
    let triples: Vec<_> = levels
        .iter()
        .map(|(sets, ways, line)| [*sets, u64::from(*ways), u64::from(*line)])
        .collect();
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracles/pycachesim.py"))
        .arg(serde_json::to_string(&triples).expect("numbers are JSON"))
        .arg(&file)
        .output()
        .expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Vec<[u64; 3]> = serde_json::from_slice(&output.stdout).expect("counts of each level");

    let outcomes = engine::simulate(&machine(levels), program, &["page-coloring"], &Setup::default());
    let outcome = &outcomes.expect("the engine runs")[0];
    let caches = outcome["caches"].as_array().expect("caches are a list");
    let ours: Vec<_> = caches
        .iter()
        .map(|cache| ["accesses", "hits", "misses"].map(|field| cache[field].as_u64().expect("a number")))
        .collect();
    assert_eq!(ours, theirs, "{test}: accesses, hits, misses of each level");
}

#[test]
fn one_level_of_each_shape_agrees_with_pycachesim() {
    const SHAPES: [Levels; 5] = [
        &[(64, 1, 64)],
        &[(64, 8, 64)],
        &[(1, 64, 64)],
        &[(128, 4, 32)],
        &[(16, 3, 128)],
    ];
    let program = loads(1, 20_000, 1 << 16);
    for levels in SHAPES {
        compare(levels, &program);
    }
}

#[test]
fn two_and_three_levels_agree_with_pycachesim() {
    compare(&[(32, 4, 64), (256, 8, 64)], &loads(2, 50_000, 1 << 18));
    compare(
        &[(64, 8, 64), (256, 4, 64), (1024, 16, 64)],
        &loads(3, 100_000, 1 << 21),
    );
}
