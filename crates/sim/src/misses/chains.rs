//! Read chains (Verghese96, figure 6.2): how long pages are read before somebody writes to them.

use std::collections::BTreeMap;

use super::stream::MissStream;

/// Misses on data by the length of the chains that they are part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadChains {
    /// All misses on data that reached memory, those that write included.
    misses: u64,
    /// Length of a chain, and the misses in chains of that length.
    in_chains: BTreeMap<u64, u64>,
}

impl ReadChains {
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// The percentage of the misses that are part of chains of `length` reads or more.
    pub fn percent_from(&self, length: u64) -> f64 {
        let within: u64 = self.in_chains.range(length..).map(|(_, misses)| misses).sum();
        match self.misses {
            0 => 0.0,
            all => 100.0 * within as f64 / all as f64,
        }
    }
}

/// A chain is the read misses of one cpu on a page up to the next write miss of any cpu on that page, or the end of the run.
/// Fetches are no part of it. A write that hits is not in the stream, and ends no chain.
pub fn read_chains(stream: &MissStream) -> ReadChains {
    let cpus = stream
        .cache_misses()
        .map(|miss| miss.cpu() as usize + 1)
        .max()
        .unwrap_or(0);
    let mut reads = vec![0u64; stream.pages.len() * cpus];
    let mut chains = ReadChains::default();
    for miss in stream.cache_misses().filter(|miss| !miss.is_fetch()) {
        chains.misses += 1;
        let first = miss.page() as usize * cpus;
        if miss.is_write() {
            reads[first..first + cpus]
                .iter_mut()
                .for_each(|reads| end(&mut chains, reads));
        } else {
            reads[first + miss.cpu() as usize] += 1;
        }
    }
    reads.iter_mut().for_each(|reads| end(&mut chains, reads));
    chains
}

fn end(chains: &mut ReadChains, reads: &mut u64) {
    let length = std::mem::take(reads);
    if length > 0 {
        *chains.in_chains.entry(length).or_default() += length;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::tests::{FETCH, READ, TLB, WRITE, stream};
    use super::*;

    #[test]
    fn a_write_of_any_cpu_ends_all_chains_of_its_page() {
        // Page 0: cpu 0 reads three times, cpu 1 once, then cpu 1 writes; cpu 0 reads twice to the end. Page 1: cpu 0
        // reads four times, and nothing ends that chain. Fetches and TLB misses do not count.
        let misses = [
            (0, 0, READ),
            (0, 1, READ),
            (1, 0, READ),
            (0, 0, READ),
            (1, 0, READ),
            (0, 0, READ),
            (0, 0, FETCH),
            (0, 0, TLB),
            (0, 1, WRITE),
            (1, 0, READ),
            (0, 0, READ),
            (1, 0, READ),
            (0, 0, READ),
        ];
        let chains = read_chains(&stream(2, &misses));
        // 3 + 1 + 2 + 4 reads and a write.
        assert_eq!(chains.misses(), 11);
        let percent = |misses: f64| 100.0 * misses / 11.0;
        let found = [1, 2, 3, 4, 5].map(|length| chains.percent_from(length));
        assert_eq!(
            found,
            [percent(10.0), percent(9.0), percent(7.0), percent(4.0), percent(0.0)]
        );
    }

    #[test]
    fn a_run_without_misses_has_no_chains() {
        assert_eq!(read_chains(&stream(1, &[])).percent_from(1), 0.0);
    }
}
