//! The paper's tour: bins in the order in which their first thread was forked (Philbin96, section 3.2).
//!
//! Bins are numbered in that order, and the ready list of the paper is traversed in order of allocation. It costs
//! nothing, and it is a good tour wherever the program's own loops walk through memory in order.

/// The first of `bins` bins to the last.
pub fn tour(bins: usize) -> Vec<u32> {
    (0..bins as u32).collect()
}
