//! A line that two cpus write in turns: how long it takes from the one to the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Effort, median, rounds};
use machine::HostReport;
use machine::{Kind, Machine};

/// A line handed from one cpu to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Linux's numbers of the two.
    pub cpus: [u32; 2],
    /// The innermost cache that both use; none where they share none.
    pub shares: Option<String>,
    /// Nanoseconds from a store on the one to the load on the other that sees it.
    pub ns: f64,
}

/// Hand-overs in one round.
const HANDED: u64 = 2_000;

/// A round takes so long at most: the other cpu may be busy with something else.
const PATIENCE: Duration = Duration::from_millis(100);

/// One pair for each kind of neighbour of the first cpu that this process may use. Pairs that never met are left out.
pub fn transfers(host: &HostReport, effort: Effort) -> Vec<Transfer> {
    let allowed = sys::affinity::allowed(None).unwrap_or_default();
    let usable: Vec<usize> = (0..host.cpu_numbers.len())
        .filter(|&cpu| allowed.contains(&host.cpu_numbers[cpu]))
        .collect();
    let Some((&first, others)) = usable.split_first() else {
        return Vec::new();
    };
    let mut kinds: Vec<Option<String>> = Vec::new();
    let mut transfers = Vec::new();
    for &other in others {
        let shares = shared(&host.machine, first as u32, other as u32);
        if kinds.contains(&shares) {
            continue;
        }
        kinds.push(shares.clone());
        let cpus = [host.cpu_numbers[first], host.cpu_numbers[other]];
        let seen: Vec<f64> = (0..rounds(effort)).filter_map(|_| round(cpus)).collect();
        if !seen.is_empty() {
            transfers.push(Transfer {
                cpus,
                shares,
                ns: median(seen),
            });
        }
    }
    transfers
}

/// The innermost cache for data that two cpus of the machine have in common.
fn shared(machine: &Machine, a: u32, b: u32) -> Option<String> {
    let data = machine.caches.iter().filter(|cache| cache.kind != Kind::Instruction);
    let mut common = data.filter(|cache| a / cache.cpus_per_instance == b / cache.cpus_per_instance);
    common.next().map(|cache| cache.name.clone())
}

/// A counter with a line of its own (and the next one, which some processors bring along).
#[repr(align(128))]
struct Line(AtomicU64);

/// Nanoseconds a hand-over; none where the two did not run at the same time.
fn round(cpus: [u32; 2]) -> Option<f64> {
    let line = Line(AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    // Each waits for its parity and hands the next number on.
    let side = |cpu: u32, parity: u64| {
        sys::affinity::Wanderer::new().ok()?.go(cpu as usize).ok()?;
        let begin = Instant::now();
        let mut first = None;
        let mut number = parity;
        let mut spins = 0u32;
        while number < HANDED {
            if line.0.load(Ordering::Acquire) != number {
                spins += 1;
                // The clock is looked at seldom: to read it takes as long as a hand-over.
                if spins.is_multiple_of(4096) && (begin.elapsed() > PATIENCE || ended.load(Ordering::Relaxed)) {
                    return None;
                }
                std::hint::spin_loop();
                continue;
            }
            // The first hand-over waits for the other thread to start.
            if number == parity + 2 {
                first = Some(Instant::now());
            }
            line.0.store(number + 1, Ordering::Release);
            number += 2;
        }
        Some(first?.elapsed().as_secs_f64() * 1e9 / (HANDED - 2) as f64)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| side(cpus[1], 1));
        let mine = scope.spawn(|| {
            let ns = side(cpus[0], 0);
            ended.store(ns.is_none(), Ordering::Relaxed);
            ns
        });
        let (mine, other) = (mine.join().ok()?, other.join().ok()?);
        mine.and(other)
    })
}
