//! The order in which threads that run in step reach new pages: bin hopping follows it, as far as summaries describe
//! it.

use super::{Loop, Malformed, pages};

/// The pages that loops would touch and that are new, in the order in which they first would: loop after loop as they
/// are given, the threads of each in step. `is_new` is asked once for each page that a thread reaches, and must
/// remember it.
pub fn first_touches(
    loops: &[Loop],
    page_bytes: u64,
    mut is_new: impl FnMut(u64) -> bool,
) -> Result<Vec<u64>, Malformed> {
    let mut order = Vec::new();
    for described in loops {
        described.check()?;
        let mut threads: Vec<_> = Vec::new();
        for thread in 0..described.threads {
            let mut ranges = Vec::new();
            for summary in &described.summaries {
                ranges.extend(pages(described, summary, thread, page_bytes)?);
            }
            threads.push(ranges.into_iter().flatten());
        }
        in_step(&mut threads, &mut is_new, |page| order.push(page));
    }
    Ok(order)
}

/// Calls `take` for the next new thing of each thread, then for the one after that of each, until no thread reaches
/// anything new. `is_new` is asked once for each thing that a thread reaches, and must remember it.
///
/// The order that a kernel would see depends on the program's earlier touches, and on which thread comes first.
pub fn in_step<T: Copy>(
    threads: &mut [impl Iterator<Item = T>],
    mut is_new: impl FnMut(T) -> bool,
    mut take: impl FnMut(T),
) {
    let mut any = true;
    while any {
        any = false;
        for thread in &mut *threads {
            if let Some(new) = thread.find(|&next| is_new(next)) {
                any = true;
                take(new);
            }
        }
    }
}
