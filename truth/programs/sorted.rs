//! A table's entries are added up, in the order in which they were asked for, or in that of the table.

unsafe extern "C" {
    fn work_begins();
    fn work_ends();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: usize = arguments.get(2).map_or(8_000_000, |size| size.parse().expect("a size"));
    let table: Vec<u64> = (0..2 * count as u64).collect();
    let mut state = 3u64;
    let mut asked: Vec<u32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % table.len() as u64) as u32
        })
        .collect();
    match arguments.get(1).map(String::as_str) {
        Some("asked") => {}
        Some("sorted") => asked.sort_unstable(),
        _ => panic!("usage: sorted asked|sorted [size]"),
    }
    // SAFETY: both are functions of timed.c without arguments.
    unsafe { work_begins() };
    let sum = asked.iter().fold(0u64, |sum, &place| sum.wrapping_add(table[place as usize]));
    // SAFETY: as above.
    unsafe { work_ends() };
    println!("{sum}");
}
