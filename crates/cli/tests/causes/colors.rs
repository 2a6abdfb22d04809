//! One word of each line of every fourth page: pages with one color where virtual addresses color them.

use std::hint::black_box;

const PAGE: usize = 4096;
const APART: usize = 64;
const PAGES: usize = 24;

fn main() {
    let all = vec![1u8; PAGE * APART * PAGES];
    let mut sum = 0u64;
    for _ in 0..40 {
        for page in 0..PAGES {
            for line in (0..PAGE).step_by(64) {
                sum += u64::from(black_box(&all)[page * APART * PAGE + line]); // here
            }
        }
    }
    println!("{sum}");
}
