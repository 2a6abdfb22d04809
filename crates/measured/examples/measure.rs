//! Prints what is measured here: `cargo run --release -p domicile-machine --example measure [quick] [--json]`.

use measured::{Effort, measure};

fn main() {
    let asked = |word: &str| std::env::args().any(|argument| argument == word);
    let effort = if asked("quick") { Effort::Quick } else { Effort::Careful };
    let start = std::time::Instant::now();
    let measured = measure(effort);
    if asked("--json") {
        println!(
            r#"{{"cache_bytes":{},"cache_ns":{},"memory_ns":{}}}"#,
            measured.cache_bytes, measured.cache_ns, measured.memory_ns
        );
        return;
    }
    for point in &measured.curve {
        println!("{:>10} KiB {:7.2} ns", point.bytes >> 10, point.ns);
    }
    for point in &measured.tlb_curve {
        println!(
            "{:>10} KiB of pages: the TLB adds {:6.2} ns",
            point.bytes >> 10,
            point.ns
        );
    }
    println!(
        "cache {} KiB at {:.1} ns, memory {:.1} ns, TLB reach {:?}, refill {:?}, walkers {:?}; measured in {:.1} s",
        measured.cache_bytes >> 10,
        measured.cache_ns,
        measured.memory_ns,
        measured.tlb_reach_bytes,
        measured.refill_ns,
        measured.walkers,
        start.elapsed().as_secs_f64()
    );
}
