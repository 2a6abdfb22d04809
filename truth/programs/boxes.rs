//! A vector of boxed values whose boxes lie in random order, and a vector of the values.

unsafe extern "C" {
    fn work_begins();
    fn work_ends();
}

struct Value {
    price: u64,
    amount: u64,
    _rest: [u64; 4],
}

fn value(i: u64) -> Value {
    Value { price: i % 1000, amount: i % 7, _rest: [0; 4] }
}

fn total<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> u64 {
    // SAFETY: both are functions of timed.c without arguments.
    unsafe { work_begins() };
    let sum = (0..4).flat_map(|_| values.clone()).fold(0, |sum, value| sum + value.price * value.amount);
    // SAFETY: as above.
    unsafe { work_ends() };
    sum
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: u64 = arguments.get(2).map_or(2_000_000, |size| size.parse().expect("a size"));
    let sum = match arguments.get(1).map(String::as_str) {
        Some("boxed") => {
            let mut boxes: Vec<Box<Value>> = (0..count).map(|i| Box::new(value(i))).collect();
            let mut state = 5u64;
            for i in (1..boxes.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                boxes.swap(i, (state >> 33) as usize % (i + 1));
            }
            total(boxes.iter().map(|value| &**value))
        }
        Some("plain") => {
            let values: Vec<Value> = (0..count).map(value).collect();
            total(values.iter())
        }
        _ => panic!("usage: boxes boxed|plain [size]"),
    };
    println!("{sum}");
}
