//! Coloring takes no more memory than it announces: without that memory it does nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use live::cdpc::{Coloring, policies};
use live::{Colors, Config, Engine, Others, PAGE_BYTES, Source};
use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use sys::memory::{Area, Size};

/// Bytes that live, and the most that ever did.
struct Counting;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The peak of live memory while something is done.
fn taken(act: impl FnOnce()) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    act();
    MOST.load(Ordering::Relaxed).saturating_sub(before)
}

/// A loop that sweeps arrays by columns or by rows, so that each thread touches pages here and there, or in one piece.
fn sweep(place: &str, arrays: &[(usize, usize)], threads: u32, columns: bool) -> Loop {
    let page = PAGE_BYTES as u64;
    let summaries = arrays.iter().map(|&(start, pages)| Summary {
        name: format!("{start:#x}"),
        start: start as u64,
        bytes: pages as u64 * page,
        offset: 0,
        unit: if columns { 64 } else { page as i64 },
        span: 64,
        inner: match columns {
            true => vec![policy::cdpc::Inner {
                stride: page as i64,
                count: pages as u64,
            }],
            false => Vec::new(),
        },
        communication: Communication::None,
        access: Access::ReadWrite,
    });
    Loop {
        place: place.to_string(),
        threads,
        iterations: if columns { 64 } else { arrays[0].1 as u64 },
        schedule: Schedule::Chunked(1),
        direction: Direction::Forward,
        summaries: summaries.collect(),
    }
}

#[test]
fn no_more_is_taken_than_was_said_before() {
    for policy in policies().map(|entry| entry.name) {
        for (pages, threads) in [(4, 1), (512, 4), (6_000, 16), (30_000, 4)] {
            let colors = Colors {
                first_bit: 12,
                bits: 4,
                color_bytes: 65536,
                cache: "L2".into(),
                source: Source::Forced,
            };
            let engine = Engine::open(Config::new(colors.clone())).unwrap();
            let mut coloring = Coloring::with(&policy.parse().unwrap(), colors, engine).unwrap();
            let memory = Area::map(2 * pages * PAGE_BYTES, Size::Small).unwrap();
            let arrays = [(memory.start(), pages), (memory.start() + pages * PAGE_BYTES, pages)];
            let check = |what: &str, said: usize, taken: usize| {
                assert!(
                    taken <= said,
                    "{policy}, {pages} pages, {what}: {taken} bytes, and {said} were said"
                );
                println!("{policy}, {pages} pages, {what}: {taken} of {said} bytes");
            };
            // One array is known at the start, the other one comes later, and then all of it goes away.
            let first = sweep("first", &arrays[..1], threads, false);
            // SAFETY: the test's own memory, here and below.
            unsafe { coloring.hear(first) };
            let said = coloring.memory(None);
            // SAFETY: as above; nobody else uses it.
            check("start", said, taken(|| unsafe { coloring.start(Others::Absent) }));
            for columns in [false, true] {
                let later = sweep("later", &arrays, threads, columns);
                let said = coloring.memory(Some(&later));
                // SAFETY: as above.
                check("later", said, taken(|| unsafe { coloring.hear(later) }));
            }
            let said = coloring.memory(None);
            check("look", said, taken(|| drop(coloring.outcome(true))));
            drop(memory);
            let other = sweep("gone", &arrays, threads, false);
            let said = coloring.memory(Some(&other));
            // SAFETY: nothing is mapped there, which is found out.
            check("gone", said, taken(|| unsafe { coloring.hear(other) }));
        }
    }
}
