//! The same in Rust.

#[unsafe(no_mangle)]
static mut DATA: [i64; 100] = [0; 100];

fn main() {
    let mut sum = 0;
    for i in 0..100 {
        // SAFETY: there is one thread.
        sum += unsafe { std::ptr::read_volatile(&raw const DATA[i]) };
    }
    std::process::exit((sum != 0).into());
}
