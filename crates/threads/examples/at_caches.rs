//! Bins by stealing alone, and at the caches that have their blocks: sweeps of SOR, and steps of N-body.
//!
//! `at_caches [sor|nbody] [KIB] [RUNS] [ROUNDS]`: KiB of data, runs in a round, rounds. Prints, for each round, the nanoseconds of an element by
//! each way, interleaved: `stealing` (`run_on`), `caches` (`run_at`, always), `chosen` (`run_at`, which times both and keeps the faster).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use threads::{Caches, Keep, Scheduler, Shape, Tour};

/// Numbers that several workers change, none at the same time.
struct Numbers(Vec<AtomicU64>);

impl Numbers {
    fn new(count: usize) -> Numbers {
        Numbers((0..count).map(|at| AtomicU64::new((at as f64).to_bits())).collect())
    }

    fn get(&self, at: usize) -> f64 {
        f64::from_bits(self.0[at].load(Relaxed))
    }

    fn set(&self, at: usize, value: f64) {
        self.0[at].store(value.to_bits(), Relaxed);
    }
}

/// Rows of a square grid, relaxed in place: a thread for each row, hints by row.
fn sor(grid: &Numbers, side: usize, row: usize) {
    if row == 0 || row + 1 >= side {
        return;
    }
    for column in 1..side - 1 {
        let at = row * side + column;
        let around = grid.get(at - 1) + grid.get(at + 1) + grid.get(at - side) + grid.get(at + side);
        grid.set(at, grid.get(at) * 0.2 + around * 0.2);
    }
}

/// Bodies of one group meet those of the same group: positions are read, forces are summed.
fn nbody(bodies: &Numbers, group: usize, of_group: usize) {
    let first = group * of_group * 2;
    for body in 0..of_group {
        let mut force = 0.0;
        for other in 0..of_group {
            let distance = bodies.get(first + 2 * other) - bodies.get(first + 2 * body);
            force += distance / (1.0 + distance * distance);
        }
        bodies.set(first + 2 * body + 1, force);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let what = arguments.first().map_or("sor", String::as_str);
    let (kib, runs, rounds) = (number(1, 700)?, number(2, 200)?, number(3, 5)?);
    let numbers = Numbers::new(kib * 128);
    let side = (kib as f64 * 128.0).sqrt() as usize;
    // A group of bodies is 1 KiB: its threads do little work each, so that memory counts.
    let of_group = 64;
    let threads = if what == "sor" { side } else { kib };
    let one = |thread: usize| match what {
        "sor" => sor(&numbers, side, thread),
        _ => nbody(&numbers, thread, of_group),
    };
    let mut ways = [Caches::find()?, Caches::find()?];
    if !ways[0].are_several() {
        println!("one cache serves all cpus: nothing is to be gained");
        return Ok(());
    }
    ways[0].always(true);
    let workers = ways[0].workers().max(NonZeroUsize::MIN);
    let block = (threads / 16).max(1) as u64;
    let new = || Scheduler::new(Shape::new(&[block]).unwrap_or_else(|_| unreachable!()), Tour::FirstFork);
    for _ in 0..rounds {
        let mut ns = [0.0; 3];
        let mut chosen = 0;
        for (way, ns) in ns.iter_mut().enumerate() {
            let mut scheduler = new();
            for thread in 0..threads {
                scheduler.fork(&[thread as u64], thread)?;
            }
            let began = Instant::now();
            for _ in 0..runs {
                let body = |&thread: &usize, _: &mut threads::Inside<usize>| one(thread);
                match way {
                    0 => scheduler.run_on(workers, Keep::Yes, body)?,
                    _ => {
                        let report = scheduler.run_at(workers, &mut ways[way - 1], Keep::Yes, body)?;
                        chosen += usize::from(way == 2 && report.at_caches);
                        report
                    }
                };
            }
            *ns = began.elapsed().as_nanos() as f64 / (runs * numbers.0.len()) as f64;
        }
        println!(
            "{what}: stealing {:.3}, caches {:.3}, chosen {:.3} ns ({chosen} of {runs} runs at the caches)",
            ns[0], ns[1], ns[2]
        );
    }
    Ok(())
}
