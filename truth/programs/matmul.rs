//! Two matrices of integers are multiplied: the inner loop down a column, or along the rows (loops interchanged).

unsafe extern "C" {
    fn work_begins();
    fn work_ends();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n: usize = arguments.get(2).map_or(448, |size| size.parse().expect("a size"));
    let a: Vec<u64> = (0..n * n).map(|i| i as u64 % 17).collect();
    let b: Vec<u64> = (0..n * n).map(|i| i as u64 % 19).collect();
    let mut c = vec![0u64; n * n];
    // SAFETY: both are functions of timed.c without arguments.
    unsafe { work_begins() };
    match arguments.get(1).map(String::as_str) {
        Some("columns") => {
            for i in 0..n {
                for j in 0..n {
                    let mut sum = 0;
                    for k in 0..n {
                        sum += a[i * n + k] * b[k * n + j];
                    }
                    c[i * n + j] = sum;
                }
            }
        }
        Some("rows") => {
            for i in 0..n {
                for k in 0..n {
                    let factor = a[i * n + k];
                    for j in 0..n {
                        c[i * n + j] += factor * b[k * n + j];
                    }
                }
            }
        }
        _ => panic!("usage: matmul columns|rows [size]"),
    }
    // SAFETY: as above.
    unsafe { work_ends() };
    println!("{}", c.iter().enumerate().map(|(i, c)| c.wrapping_mul(i as u64 % 103)).fold(0, u64::wrapping_add));
}
