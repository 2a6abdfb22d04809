//! One word of each page, again and again.

fn main() {
    let pages = 3000;
    let mut words = vec![0u64; pages * 512];
    let mut sum = 0u64;
    for again in 0..40 {
        let mut at = again % 8;
        while at < words.len() {
            words[at] += 1; // here
            sum = sum.wrapping_add(words[at]);
            at += 512;
        }
    }
    println!("{sum}");
}
