//! What a thread costs: forks and runs 1,048,576 null threads (Philbin96, section 4.1, table 1) and prints nanoseconds
//! per thread. Every figure is the median of interleaved rounds, in CPU time of the whole process and on the clock.
//! Warm rounds reuse a scheduler; a cold round is the first pass of a new process, which the kernel gives every page of.
//!
//! `cargo run --release -p domicile-threads --example null [rounds] [--json]`

use std::ffi::OsStr;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::Instant;

use threads::{Keep, Scheduler, Shape, Tour};

const THREADS: u64 = 1 << 20;
const BINS: u64 = 1024;
/// Threads that share a block, along one dimension of hints.
const SIDE: u64 = 1 << 10;

/// What the paper's interface keeps of a thread.
#[derive(Clone, Copy)]
struct Call {
    function: fn(usize, usize),
    first: usize,
    second: usize,
}

fn null(first: usize, second: usize) {
    black_box((first, second));
}

fn call(thread: &Call) {
    (thread.function)(thread.first, thread.second);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(9usize);

    if let Some(hints) = std::env::var_os(COLD) {
        return cold_pass(&hints);
    }
    let ordered: Vec<u64> = (0..THREADS).collect();
    let scattered = scatter();
    let mut table = Table::default();
    let mut warm = scheduler(&[SIDE]);
    let mut three = scheduler(&[SIDE, SIDE - 1, SIDE + 1]);
    fork_and_run(&mut warm, &ordered, 1);
    for _ in 0..rounds {
        table.measure("in order, fork", || fork(&mut warm, &ordered));
        table.measure("in order, run", || run(&mut warm, 1));
        table.measure("in order, all", || fork_and_run(&mut warm, &ordered, 1));
        table.measure("random, fork", || fork(&mut warm, &scattered));
        table.measure("random, run", || run(&mut warm, 1));
        table.measure("random, all", || fork_and_run(&mut warm, &scattered, 1));
        table.measure("in order, all, 2 workers", || fork_and_run(&mut warm, &ordered, 2));
        table.measure("random, all, 2 workers", || fork_and_run(&mut warm, &scattered, 2));
        table.measure("in order, 3 hints, odd sides", || {
            fork_with(&mut three, &ordered, |hint| [hint, 1, 1]);
            run(&mut three, 1);
        });
        table.measure("random, 3 hints, odd sides", || {
            fork_with(&mut three, &scattered, |hint| [hint, 1, 1]);
            run(&mut three, 1);
        });
        table.measure("forked inside, in order", || run_inside(&mut warm, &ordered));
        table.measure("each after the one before", || {
            fork_chain(&mut warm, &ordered);
            run(&mut warm, 1);
        });
        table.add("in order, all, cold", cold("in order"));
        table.add("random, all, cold", cold("random"));
        table.measure("rayon scope.spawn", rayon_spawn);
    }
    // What is held for a million threads that have never been more, nor in other bins.
    for (name, hints) in [("in order", &ordered), ("random", &scattered)] {
        let mut fresh = scheduler(&[SIDE]);
        fork(&mut fresh, hints);
        table.memory.push((name, fresh.memory_bytes() as f64 / THREADS as f64));
        run(&mut fresh, 1);
    }
    table.print(rounds, json);
}

fn scheduler(sides: &[u64]) -> Scheduler<Call> {
    match Shape::new(sides) {
        Ok(shape) => Scheduler::new(shape, Tour::FirstFork),
        Err(error) => fail(&error),
    }
}

fn fork(scheduler: &mut Scheduler<Call>, hints: &[u64]) {
    fork_with(scheduler, hints, |hint| [hint]);
}

fn fork_with<const K: usize>(scheduler: &mut Scheduler<Call>, hints: &[u64], point: impl Fn(u64) -> [u64; K]) {
    for (at, &hint) in hints.iter().enumerate() {
        let thread = Call {
            function: null,
            first: at,
            second: 0,
        };
        if let Err(error) = scheduler.fork(&point(hint), thread) {
            fail(&error);
        }
    }
}

/// One thread forks all others.
fn run_inside(scheduler: &mut Scheduler<Call>, hints: &[u64]) {
    let root = Call {
        function: null,
        first: usize::MAX,
        second: 0,
    };
    if let Err(error) = scheduler.fork(&[0], root) {
        fail(&error);
    }
    let ran = scheduler.run(Keep::No, |thread, inside| {
        if thread.first == usize::MAX {
            for (at, &hint) in hints.iter().enumerate() {
                let thread = Call {
                    function: null,
                    first: at,
                    second: 0,
                };
                if let Err(error) = inside.fork(&[hint], thread) {
                    fail(&error);
                }
            }
        }
        call(thread);
    });
    match ran {
        Ok(report) => assert_eq!(report.threads, THREADS + 1),
        Err(error) => fail(&error),
    }
}

/// As [`fork`], but every thread waits for the one forked before it.
fn fork_chain(scheduler: &mut Scheduler<Call>, hints: &[u64]) {
    let mut last = None;
    for (at, &hint) in hints.iter().enumerate() {
        let thread = Call {
            function: null,
            first: at,
            second: 0,
        };
        match scheduler.fork_after(&[hint], thread, last.as_slice()) {
            Ok(id) => last = Some(id),
            Err(error) => fail(&error),
        }
    }
}

fn run(scheduler: &mut Scheduler<Call>, workers: usize) {
    let ran = match NonZeroUsize::new(workers) {
        Some(workers) if workers.get() > 1 => scheduler.run_on(workers, Keep::No, |thread, _| call(thread)),
        _ => scheduler.run(Keep::No, |thread, _| call(thread)),
    };
    match ran {
        Ok(report) => assert_eq!((report.threads, report.bins), (THREADS, BINS)),
        Err(error) => fail(&error),
    }
}

fn fork_and_run(scheduler: &mut Scheduler<Call>, hints: &[u64], workers: usize) {
    fork(scheduler, hints);
    run(scheduler, workers);
}

/// Names the hints of a cold pass, in the environment of the process that makes it.
const COLD: &str = "DOMICILE_NULL_COLD";

/// Makes one pass in a new process.
fn cold(hints: &str) -> Cost {
    let output = std::env::current_exe().and_then(|itself| Command::new(itself).env(COLD, hints).output());
    let text = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => fail(&error),
    };
    let mut figures = text.split_whitespace().map(|word| word.parse().unwrap_or(f64::NAN));
    let mut next = || figures.next().unwrap_or(f64::NAN);
    Cost {
        cpu: next(),
        wall: next(),
    }
}

/// The pass of the new process: prints CPU and wall time.
fn cold_pass(hints: &OsStr) {
    let hints = if hints == "random" {
        scatter()
    } else {
        (0..THREADS).collect()
    };
    let mut table = Table::default();
    table.measure("cold", || fork_and_run(&mut scheduler(&[SIDE]), &hints, 1));
    for cost in table.rows.iter().flat_map(|(_, costs)| costs) {
        println!("{} {}", cost.cpu, cost.wall);
    }
}

/// The same deferred million with rayon, whose scope keeps a closure of the same 24 bytes for each. The spawner is one
/// of rayon's own workers, which is its fastest way; there is one of them, as there is one worker of ours.
fn rayon_spawn() {
    static POOL: std::sync::OnceLock<rayon::ThreadPool> = std::sync::OnceLock::new();
    let pool = POOL.get_or_init(|| match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool,
        Err(error) => fail(&error),
    });
    pool.scope(|scope| {
        for at in 0..THREADS as usize {
            let thread = black_box(Call {
                function: null,
                first: at,
                second: 0,
            });
            scope.spawn(move |_| call(&thread));
        }
    });
}

/// The hints in random order: every bin gets as many threads, but the next is anywhere.
fn scatter() -> Vec<u64> {
    let mut hints: Vec<u64> = (0..THREADS).collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for at in (1..hints.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        hints.swap(at, (state % (at as u64 + 1)) as usize);
    }
    hints
}

/// Measurements by name, in the order in which they were first made.
#[derive(Default)]
struct Table {
    rows: Vec<(&'static str, Vec<Cost>)>,
    memory: Vec<(&'static str, f64)>,
}

/// Nanoseconds per thread.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

impl Table {
    fn measure(&mut self, name: &'static str, work: impl FnOnce()) {
        let (cpu, wall) = (cpu_ns(), Instant::now());
        work();
        let cost = Cost {
            wall: wall.elapsed().as_nanos() as f64 / THREADS as f64,
            cpu: (cpu_ns() - cpu) / THREADS as f64,
        };
        self.add(name, cost);
    }

    fn add(&mut self, name: &'static str, cost: Cost) {
        match self.rows.iter_mut().find(|(row, _)| *row == name) {
            Some((_, costs)) => costs.push(cost),
            None => self.rows.push((name, vec![cost])),
        }
    }

    fn print(&self, rounds: usize, json: bool) {
        if !json {
            println!("{THREADS} null threads, {BINS} bins, median of {rounds} rounds, ns per thread");
            println!("{:28} {:>8} {:>8} {:>8}", "", "cpu", "cpu min", "clock");
        }
        for (name, costs) in &self.rows {
            let cpu = median(costs.iter().map(|cost| cost.cpu));
            let least = costs.iter().map(|cost| cost.cpu).fold(f64::INFINITY, f64::min);
            let wall = median(costs.iter().map(|cost| cost.wall));
            if json {
                println!(r#"{{"item":"{name}","cpu_ns":{cpu:.2},"cpu_ns_min":{least:.2},"wall_ns":{wall:.2}}}"#);
            } else {
                println!("{name:28} {cpu:8.2} {least:8.2} {wall:8.2}");
            }
        }
        for (name, bytes) in &self.memory {
            let beyond = (bytes / size_of::<Call>() as f64 - 1.0) * 100.0;
            if json {
                println!(r#"{{"item":"memory, {name}","bytes_per_thread":{bytes:.3},"beyond_percent":{beyond:.2}}}"#);
            } else {
                println!(
                    "memory, {name}: {bytes:.2} bytes per pending thread, {beyond:.1} % beyond {}",
                    size_of::<Call>()
                );
            }
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CPU time of this process, all its threads, in nanoseconds.
fn cpu_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn fail(error: &dyn std::error::Error) -> ! {
    eprintln!("null: {error}");
    std::process::exit(1)
}
