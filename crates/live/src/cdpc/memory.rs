//! The most memory that coloring takes, for callers that have to know in advance.
//!
//! The memory in use at one time: the hints and the data behind them, the record of each page, and the engine's needs
//! for placing. The bounds are generous; a test counts the memory that is really taken.

use policy::cdpc::Loop;

use super::Coloring;
use crate::PAGE_BYTES;

/// Memory for any description: visits that are weighed, a list of all mappings.
const ALWAYS: u64 = 12 << 20;
/// For each page of all arrays.
const PAGE: u64 = 1 << 10;
/// For each summary of all loops, and for each thread of a loop.
const SUMMARY: u64 = 1 << 10;
const THREAD: u64 = 1 << 10;

impl Coloring {
    /// Bytes that may be needed, beside live data, to describe a loop, to color all known loops together, or to look at
    /// all pages.
    pub fn memory(&self, described: Option<&Loop>) -> usize {
        let page = PAGE_BYTES as u64;
        let arrays = self.program.extents().map(|bytes| bytes.end - bytes.start);
        let new = described.filter(|described| !self.knows(described));
        let more = new.iter().flat_map(|new| &new.summaries).map(|summary| summary.bytes);
        let pages = arrays
            .chain(more)
            .fold(0, |pages: u64, bytes| pages.saturating_add(bytes / page + 2));
        let loops = self.program.loops().iter().chain(described);
        let (mut parts, mut threads) = (0, 1);
        for known in loops {
            parts += known.summaries.len() as u64 * SUMMARY + u64::from(known.threads) * THREAD;
            threads = threads.max(u64::from(known.threads));
        }
        // The caches of all threads, as they are gone through to weigh: 16 blocks for each place of a page.
        let caches = threads * u64::from(self.colors.count()) * u64::from(self.colors.ways()) * 16 * 8;
        let bytes = pages
            .saturating_mul(PAGE)
            .saturating_add(ALWAYS + parts + caches.min(128 << 20));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}
