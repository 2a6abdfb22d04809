//! The speed at which policies decide over a stream of misses, as JSON: misses a second of one core, by the time that
//! the thread had it, in each round; and the time of a sweep of many settings on all cores, by the clock and in
//! processor time.
//!
//! `cargo run --release -p domicile-sim --example misses [MISSES [PAGES [SETTINGS [ROUNDS]]]]`

use std::time::Instant;

use machine::Machine;
use policy::{MissLevel, Page};
use sim::misses::{FirstTouch, MissStream, replay};
use sim::{Config, PolicySpec};

/// Cpus of the machine.
const CPUS: u64 = 8;

/// Misses of which most are on few pages, half of them on pages that one cpu uses, a tenth writes.
fn stream(misses: u64, pages: u64) -> MissStream {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let page = |number: u64| Page { space: 0, number };
    let mut stream = MissStream::default();
    for number in 0..pages {
        stream.touch(FirstTouch {
            page: page(number),
            thread: 0,
            cpu: (next() % CPUS) as u32,
            write: true,
        });
    }
    for at in 0..misses {
        let hot = (next() % pages) * (next() % pages) / pages;
        let cpu = if hot.is_multiple_of(2) {
            hot / 2 % CPUS
        } else {
            next() % CPUS
        };
        let miss = policy::Miss {
            level: MissLevel::Cache,
            page: page(hot),
            index: hot as u32,
            thread: cpu as u32,
            cpu: cpu as u32,
            served_by: 0,
            write: hot.is_multiple_of(4) && next() % 5 == 0,
            fetch: false,
        };
        stream.miss(at * 100, &miss);
    }
    stream
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a whole number"));
    let misses = numbers.next().unwrap_or(20_000_000);
    let pages = numbers.next().unwrap_or(20_000);
    let settings = numbers.next().unwrap_or(20);
    let rounds = numbers.next().unwrap_or(3);
    let stream = stream(misses, pages);
    let machine = machine();
    let policies = ["first-touch", "migrate", "replicate", "migrate-replicate"];
    let mut rates = policies.map(|_| Vec::new());
    for _ in 0..rounds {
        for (policy, rates) in policies.into_iter().zip(&mut rates) {
            let config = Config {
                threads: Some(1),
                ..Config::new(
                    machine.clone(),
                    vec![PolicySpec::new(policy.parse().expect("a policy"))],
                )
            };
            let start = on_cpu_ns();
            let outcome = replay(&stream, &config).expect("it runs").remove(0);
            rates.push(misses as f64 * 1e9 / (on_cpu_ns() - start) as f64);
            let memory = &outcome.memory;
            eprintln!(
                "{policy}: {:.1} % local, {} moved, {} copied, {} collapsed",
                memory.local_percent, memory.migrations, memory.replications, memory.collapses
            );
        }
    }
    let swept = (1..=settings).map(|trigger| PolicySpec {
        sets: vec![format!("migrate-replicate.trigger={}", trigger * 4)],
        ..PolicySpec::new("migrate-replicate".parse().expect("a policy"))
    });
    let config = Config::new(machine, swept.collect());
    let (start, used) = (Instant::now(), processor_seconds());
    let runs = replay(&stream, &config).expect("it runs").len();
    let (seconds, used) = (start.elapsed().as_secs_f64(), processor_seconds() - used);
    let lines: Vec<String> = policies
        .iter()
        .zip(&rates)
        .map(|(policy, rates)| format!("\"{policy}\": {rates:?}"))
        .collect();
    println!(
        "{{\"misses\": {misses}, \"pages\": {pages}, \"policies\": {{{}}}, \"settings\": {runs}, \"sweep_seconds\": {seconds}, \
         \"sweep_processor_seconds\": {used}}}",
        lines.join(", ")
    );
}

/// Time that this thread was on a cpu, by the kernel: others may use the machine, too.
fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that says how long threads ran");
    let first = text.split_whitespace().next().expect("three numbers");
    first.parse().expect("a number")
}

/// Processor time of all threads.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("a kernel with /proc");
    // The name, which may have blanks, ends with the last parenthesis; then come the state and eleven others.
    let rest = text.rsplit(')').next().expect("a line");
    let times = rest.split_whitespace().skip(11).take(2);
    // In hundredths of a second, for any tick of the kernel.
    times.map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
}

fn machine() -> Machine {
    let text = "name = \"eight-nodes\"\nclock_mhz = 300\npage_bytes = 4096\ncpus = 8\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
                cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
                [memory]\nnodes = 8\nlocal_ns = 300.0\nremote_ns = 1200.0\ndirty_remote_ns = 1200.0\n";
    machine::from_toml(text, "eight-nodes.toml").expect("it is a machine")
}
