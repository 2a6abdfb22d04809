//! Two threads that count with one word.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

static COUNTED: AtomicU64 = AtomicU64::new(0);

fn count() {
    for _ in 0..200_000 {
        COUNTED.fetch_add(1, Ordering::Relaxed); // here
    }
}

fn main() {
    let other = thread::spawn(count);
    count();
    other.join().expect("the other one counts to the end");
    println!("{}", COUNTED.load(Ordering::Relaxed));
}
