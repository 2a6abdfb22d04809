//! The memory of the replicated data of all processes of a run, reported to the command that started them (`domicile run`).
//!
//! The command makes a store ([`crate::TextCopies`]) and names it in the environment. Its first page consists of words,
//! in which every process counts its memory: bytes of copies now, and the most at one time. A process that ends without
//! dropping its data leaves it counted, so the reported maximum is at least the real one. If no store is named, nothing
//! is counted.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use sys::memory::PAGE;
use sys::shared_pages::{SharedPages, SharedWords};

use crate::state::Way;

/// Names the store.
pub const ENVIRONMENT: &str = "DOMICILE_REPLICAS";

/// Words of a way: how many data were made, pages of memory now, and the most of them.
const OF_WAY: usize = 4;
const MADE: usize = 0;
const NOW: usize = 1;
const MOST: usize = 2;

/// The memory that one way of replication took in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Replicated data that was made.
    pub data: u32,
    /// Bytes of memory of all copies, including the first one of each data: the most at one time.
    pub most_bytes: u64,
}

struct Told {
    words: SharedWords,
    process: u32,
}

/// Opened once.
static TOLD: OnceLock<Option<Told>> = OnceLock::new();

fn told() -> Option<&'static Told> {
    let open = || {
        let path = std::env::var_os(ENVIRONMENT)?;
        let pages = SharedPages::at(Path::new(&path)).ok()?;
        Some(Told {
            words: SharedWords::open(&pages, PAGE).ok()?,
            process: std::process::id(),
        })
    };
    // A child of fork does not have the words.
    let told = TOLD.get_or_init(open).as_ref();
    told.filter(|told| told.process == std::process::id())
}

fn place(way: Way, word: usize) -> usize {
    OF_WAY * way as usize + word
}

/// Data was made.
pub(crate) fn made(way: Way) {
    if let Some(told) = told() {
        told.words.word(place(way, MADE)).fetch_add(1, Relaxed);
    }
}

/// Copies got this many bytes.
pub(crate) fn took(way: Way, bytes: usize) {
    let Some(told) = told() else { return };
    let pages = bytes.div_ceil(PAGE) as u32;
    let now = told
        .words
        .word(place(way, NOW))
        .fetch_add(pages, Relaxed)
        .saturating_add(pages);
    told.words.word(place(way, MOST)).fetch_max(now, Relaxed);
}

/// Copies freed this many bytes.
pub(crate) fn gave(way: Way, bytes: usize) {
    if let Some(told) = told() {
        let pages = bytes.div_ceil(PAGE) as u32;
        told.words.word(place(way, NOW)).fetch_sub(pages, Relaxed);
    }
}

/// The counts in a store.
pub(crate) fn taken(pages: &SharedPages, way: Way) -> std::io::Result<Taken> {
    let words = SharedWords::open(pages, PAGE)?;
    let word = |word| words.word(place(way, word)).load(Relaxed);
    Ok(Taken {
        data: word(MADE),
        most_bytes: u64::from(word(MOST)) * PAGE as u64,
    })
}
