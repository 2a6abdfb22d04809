//! Real programs: the same references through cachegrind and through the engine.
//!
//! Lackey prints the references that cachegrind simulates: both instrument the same way, and with fixed addresses two
//! runs of one program make the same references. So cachegrind's figures can be had a second time from lackey's output
//! with cachegrind's rules, which [`Rule::Once`] writes down. If cachegrind and the contract differ by design, the
//! second set of figures is computed by the contract's rule ([`Rule::Pieces`]) with nothing else changed: it must be
//! the engine's, to the last miss.
//!
//! The one difference: an access that straddles two lines is one access and at most one miss for
//! cachegrind, which after a miss looks both lines up in the last level. The contract cuts it
//! into two pieces, each with its own lookups. (A modify is one access in both; cachegrind counts it as a read.)

use std::fs;
use std::path::Path;

use machine::Machine;
use serde_json::Value;
use trace::import::Format;

use crate::oracle::engine;
use crate::oracle::peers;

const LINE: u64 = 64;

/// Bytes and ways of the first-level instruction cache, first-level data cache and last level.
struct Geometry {
    i1: (u64, u64),
    d1: (u64, u64),
    ll: (u64, u64),
}

impl Geometry {
    fn options(&self) -> Vec<String> {
        let caches = [("I1", self.i1), ("D1", self.d1), ("LL", self.ll)];
        let option = |(name, (bytes, ways))| format!("--{name}={bytes},{ways},{LINE}");
        caches.map(option).to_vec()
    }

    /// Cachegrind indexes all levels by virtual address.
    fn machine(&self) -> Machine {
        let cache = |name: &str, level: u8, kind: &str, (bytes, ways): (u64, u64)| {
            format!(
                "[[cache]]\nname = \"{name}\"\nlevel = {level}\nkind = \"{kind}\"\nbytes = {bytes}\nways = {ways}\n\
                 line_bytes = {LINE}\ncpus_per_instance = 1\nindex = \"virtual\"\nhit_ns = 1.0\nwrite = \"back\"\n\
                 allocate_on_write = true\n"
            )
        };
        let text = [
            "name = \"cachegrind\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 1\n".to_string(),
            cache("I1", 1, "instruction", self.i1),
            cache("D1", 1, "data", self.d1),
            cache("LL", 2, "unified", self.ll),
            "[memory]\nnodes = 1\nlocal_ns = 100.0\nremote_ns = 100.0\ndirty_remote_ns = 100.0\nbandwidth_gbps = 0.0\n"
                .to_string(),
        ];
        machine::from_toml(&text.join("\n"), "cachegrind.toml").expect("the machine is valid")
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Cachegrind: an access is one access, whether it straddles two lines or not.
    Once,
    /// The contract: each line that is touched is an access.
    Pieces,
}

/// Lines of each set, the most recent first.
struct Lru {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Lru {
    fn new((bytes, ways): (u64, u64)) -> Lru {
        let sets = (bytes / ways / LINE) as usize;
        Lru {
            sets: vec![Vec::new(); sets],
            ways: ways as usize,
        }
    }

    fn misses(&mut self, line: u64) -> bool {
        let number = line as usize % self.sets.len();
        let set = &mut self.sets[number];
        let held = set.iter().position(|other| *other == line);
        if let Some(at) = held {
            set.remove(at);
        }
        set.insert(0, line);
        set.truncate(self.ways);
        held.is_none()
    }

    /// An access of one or two lines; both are always looked up.
    fn any_misses(&mut self, lines: &[u64]) -> bool {
        lines.iter().fold(false, |missed, line| self.misses(*line) | missed)
    }
}

/// References, first-level misses, last-level misses: of instructions, reads, writes. In the order of cachegrind's summary.
type Figures = [u64; 9];

/// Lackey's output, simulated by plain lists. `straddling` counts the accesses of two lines.
fn simulate(log: &str, geometry: &Geometry, rule: Rule, straddling: &mut u64) -> Figures {
    let (mut i1, mut d1, mut ll) = (Lru::new(geometry.i1), Lru::new(geometry.d1), Lru::new(geometry.ll));
    let mut figures = Figures::default();
    for text in log.lines() {
        let Some((kind, place)) = text.get(..3).zip(text.get(3..)) else {
            continue;
        };
        let (first, of) = match kind {
            "I  " => (&mut i1, 0),
            " L " | " M " => (&mut d1, 3),
            " S " => (&mut d1, 6),
            _ => continue,
        };
        let (address, size) = place.split_once(',').expect("an address and a size");
        let address = u64::from_str_radix(address, 16).expect("an address");
        let size: u64 = size.trim().parse().expect("a size");
        // Cachegrind treats an access longer than a line (a saved floating-point state) as a line long.
        let size = match (rule, of) {
            (Rule::Once, 3..) => size.min(LINE),
            _ => size,
        };
        let lines: Vec<u64> = (address / LINE..=(address + size - 1) / LINE).collect();
        *straddling += u64::from(lines.len() > 1);
        let accesses: Vec<&[u64]> = match rule {
            Rule::Once => vec![&lines],
            Rule::Pieces => lines.chunks(1).collect(),
        };
        for access in accesses {
            figures[of] += 1;
            if first.any_misses(access) {
                figures[of + 1] += 1;
                figures[of + 2] += u64::from(ll.any_misses(access));
            }
        }
    }
    figures
}

/// The `summary` of cachegrind's output file: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw.
fn summary(output: &str) -> Figures {
    let events = output.lines().find_map(|line| line.strip_prefix("events: "));
    assert_eq!(events.map(str::trim), Some("Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw"));
    let summary = output.lines().find_map(|line| line.strip_prefix("summary: "));
    let numbers = summary.expect("cachegrind sums up").split_whitespace();
    let numbers: Vec<u64> = numbers.map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("nine numbers")
}

fn count(outcome: &Value, cache: &str, field: &str) -> u64 {
    let caches = outcome["caches"].as_array().expect("caches are a list");
    let cache = caches.iter().find(|object| object["name"] == cache);
    cache.expect("the cache is reported")[field].as_u64().expect("a number")
}

fn compare(name: &str, program: &[&str], geometry: &Geometry) {
    if !harness::tool("valgrind") {
        return;
    }
    if !Path::new(program[0]).exists() {
        return harness::not_installed(format_args!("{name}: {} is not installed", program[0]));
    }
    let folder = tempfile::tempdir().expect("a folder for the run");
    fs::write(folder.path().join("input"), input()).expect("the input is written");

    let options = geometry.options();
    let mut arguments = vec![
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--log-file=log",
        "--cachegrind-out-file=cachegrind",
    ];
    arguments.extend(options.iter().map(String::as_str));
    peers::valgrind(folder.path(), &arguments, program).expect("cachegrind runs");
    peers::valgrind(
        folder.path(),
        &["--tool=lackey", "--trace-mem=yes", "--log-file=log"],
        program,
    )
    .expect("lackey runs");
    let read = |file| fs::read_to_string(folder.path().join(file)).expect("what Valgrind wrote can be read");
    let (log, theirs) = (read("log"), summary(&read("cachegrind")));

    let mut straddling = 0;
    let once = simulate(&log, geometry, Rule::Once, &mut straddling);
    assert_eq!(
        once, theirs,
        "lackey's references under cachegrind's rules: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw"
    );

    let pieces = simulate(&log, geometry, Rule::Pieces, &mut 0);
    let trace = folder.path().join("trace");
    trace::import::file(Format::Lackey, folder.path().join("log"), &trace).expect("lackey's output is imported");
    let trace = trace::Trace::open(&trace).expect("the trace is read");
    let outcome = engine::simulate_trace(&geometry.machine(), &trace, "page-coloring").expect("the engine runs");
    let engine = [
        count(&outcome, "I1", "accesses"),
        count(&outcome, "I1", "misses"),
        count(&outcome, "D1", "accesses"),
        count(&outcome, "D1", "misses"),
        count(&outcome, "LL", "accesses"),
        count(&outcome, "LL", "misses"),
    ];
    let [ir, i1mr, ilmr, dr, d1mr, dlmr, dw, d1mw, dlmw] = pieces;
    let plain = [ir, i1mr, dr + dw, d1mr + d1mw, i1mr + d1mr + d1mw, ilmr + dlmr + dlmw];
    assert_eq!(
        engine, plain,
        "I1, D1 and LL accesses and misses by the contract's rule"
    );
    assert_eq!(outcome["references"].as_u64(), Some(theirs[0] + theirs[3] + theirs[6]));
    assert_eq!(outcome["instructions"].as_u64(), Some(theirs[0]));
    assert!(
        straddling > 0,
        "a program without an access across lines shows less than it should"
    );
    peers::note(&format!(
        "{name}: {} references, {straddling} across lines; misses I1 {}, D1 {}, LL {}: cachegrind {}, {}, {} (explained to the last one)",
        theirs[0] + theirs[3] + theirs[6],
        engine[1],
        engine[3],
        engine[5],
        theirs[1],
        theirs[4] + theirs[7],
        theirs[2] + theirs[5] + theirs[8],
    ));
}

/// 1500 lines of made-up text, always the same.
fn input() -> String {
    let mut state = 7u32;
    let mut line = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("{state:08x} {}\n", &"abcdefghij"[..(state >> 16) as usize % 10])
    };
    (0..1500).map(|_| line()).collect()
}

#[test]
fn gzip_misses_as_in_cachegrind() {
    let geometry = Geometry {
        i1: (8192, 2),
        d1: (8192, 4),
        ll: (65536, 8),
    };
    compare("gzip against cachegrind", &["/usr/bin/gzip", "-c", "input"], &geometry);
}

#[test]
fn sort_misses_as_in_cachegrind() {
    let geometry = Geometry {
        i1: (4096, 1),
        d1: (16384, 2),
        ll: (131072, 4),
    };
    compare(
        "sort against cachegrind",
        &["/usr/bin/sort", "--parallel=1", "input"],
        &geometry,
    );
}
