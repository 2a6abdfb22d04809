//! Prints what is measured here: `cargo run --release -p domicile-machine --example measure [quick]`.

use machine::measured::{Effort, measure};

fn main() {
    let effort = match std::env::args().nth(1).as_deref() {
        Some("quick") => Effort::Quick,
        _ => Effort::Careful,
    };
    let start = std::time::Instant::now();
    let measured = measure(effort);
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
        "cache {} KiB at {:.1} ns, memory {:.1} ns, TLB reach {:?}, refill {:?}; measured in {:.1} s",
        measured.cache_bytes >> 10,
        measured.cache_ns,
        measured.memory_ns,
        measured.tlb_reach_bytes,
        measured.refill_ns,
        start.elapsed().as_secs_f64()
    );
}
