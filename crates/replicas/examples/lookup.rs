//! What it costs to find the own node's copy: a word read through a plain pointer, with a region entered for each word, and
//! with one region for all words; in turns, as nanoseconds a word, median (least to most) of all rounds.
//!
//! `cargo run --release -p domicile-replicas --example lookup [ROUNDS]`

use std::hint::black_box;
use std::time::Instant;

use replicas::Replicated;

/// Words, which fit into a first-level cache: what is measured is the way to them.
const WORDS: usize = 1024;
const READS: usize = 4_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(31), |text| text.parse())?;
    let words: Vec<u64> = (0..WORDS as u64).collect();
    let data = Replicated::new(&words)?;
    let mut reader = data.reader();
    println!("{}", data.state());
    let mut times: [(&str, Vec<f64>); 4] = [
        ("plain pointer", Vec::new()),
        ("a region for each word", Vec::new()),
        ("a region for each word, without a guard", Vec::new()),
        ("one region for all words", Vec::new()),
    ];
    let plain: *const u64 = words.as_ptr();
    for _ in 0..rounds {
        times[0].1.push(each(|at| {
            // SAFETY: within the words, which live.
            unsafe { *black_box(plain).add(at) }
        }));
        times[1].1.push(each(|at| reader.enter()[at]));
        times[2].1.push(each(|at| {
            let copy = reader.enter_unguarded();
            // SAFETY: within the words, which stay until the region is left.
            let word = unsafe { *copy.as_ptr().add(at) };
            reader.leave();
            word
        }));
        let region = reader.enter();
        times[3].1.push(each(|at| {
            let copy: &[u64] = black_box(&region);
            copy[at]
        }));
    }
    for (name, times) in &mut times {
        times.sort_by(f64::total_cmp);
        let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        println!("{name}: {median:.2} ns ({least:.2} to {most:.2})");
    }
    Ok(())
}

/// Nanoseconds a read.
fn each(mut read: impl FnMut(usize) -> u64) -> f64 {
    let begin = Instant::now();
    let mut sum = 0u64;
    for at in 0..READS {
        sum = sum.wrapping_add(black_box(read(at % WORDS)));
    }
    black_box(sum);
    begin.elapsed().as_secs_f64() * 1e9 / READS as f64
}
