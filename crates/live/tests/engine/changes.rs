//! The program changes the mapping of a range while its pages get other frames.

use std::sync::atomic::{AtomicBool, Ordering};

use live::{Engine, Error, Others, PAGE_BYTES, Pages, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, engine, protect, running, set};

const MIB: usize = 1 << 20;

struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Colors pages over and over while `change` runs. Pages may be left, since they changed, and the
/// range may be refused for its state at the moment.
fn against(engine: &mut Engine, pages: Pages, change: impl FnOnce() + Send) {
    if !running(engine) {
        return;
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _over = Finally(&over);
            change();
        });
        let sets = [set(&[0, 1]), set(&[2, 3]), set(&[4])];
        for chosen in sets.iter().cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            match engine.color_own(pages, &Wish::Set(chosen.clone()), Others::Running) {
                Ok(done) => {
                    let expected = |why| matches!(why, Why::Changed | Why::Pinned | Why::Miscolored);
                    assert!(done.left.iter().all(|left| expected(left.why)), "{done:?}");
                }
                // Unmapped or protected just now.
                Err(Error::Unfit { .. } | Error::System { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
}

#[test]
fn what_madvise_empties_is_empty_and_stays_so() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    against(&mut engine, memory.pages(), || {
        let words = memory.words();
        for round in 0..3000u64 {
            let first = (round as usize * 37) % 480;
            let part = &words[first * 512..(first + 32) * 512];
            for (at, word) in part.iter().enumerate() {
                word.store(round + at as u64 + 1, Ordering::Relaxed);
            }
            // SAFETY: the test empties its own numbers.
            let emptied = unsafe {
                sys::memory::discard(sys::memory::Span::new(
                    memory.start + first * PAGE_BYTES,
                    32 * PAGE_BYTES,
                ))
            };
            emptied.unwrap();
            for (at, word) in part.iter().enumerate() {
                assert_eq!(
                    word.load(Ordering::Relaxed),
                    0,
                    "round {round}, word {at}: content came back"
                );
            }
        }
    });
}

#[test]
fn unmapping_and_mapping_anew() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    against(&mut engine, memory.pages(), || {
        for round in 0..1500usize {
            let at = memory.start + (round * 29) % 400 * PAGE_BYTES;
            let bytes = 16 * PAGE_BYTES;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: pages of our own memory; no other test can map in the hole that MAP_FIXED
            // leaves none of.
            let new = unsafe { libc::mmap(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            assert_eq!(new as usize, at);
            let first = (at - memory.start) / 8;
            let part = &memory.words()[first..first + bytes / 8];
            for word in part {
                assert_eq!(
                    word.load(Ordering::Relaxed),
                    0,
                    "round {round}: content of what was unmapped"
                );
            }
            part.iter().for_each(|word| word.store(7, Ordering::Relaxed));
            assert!(part.iter().all(|word| word.load(Ordering::Relaxed) == 7));
        }
    });
}

#[test]
fn unmapping_for_good() {
    let Some(mut engine) = engine() else { return };
    for round in 0..20 {
        let memory = Memory::alone(2 * MIB);
        memory.number();
        against(&mut engine, memory.pages(), || {
            let at = memory.start + (100 + round) * PAGE_BYTES;
            // SAFETY: our own memory; kept from others by an inaccessible mapping in its place.
            let hole = unsafe {
                libc::mmap(
                    at as *mut _,
                    64 * PAGE_BYTES,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            assert_eq!(hole as usize, at);
        });
        for (at, word) in memory.words().iter().enumerate() {
            if !(100 + round..164 + round).contains(&(at / 512)) {
                assert_eq!(word.load(Ordering::Relaxed), at as u64 * 3 + 1);
            }
        }
    }
}

#[test]
fn protecting_and_allowing_again() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    against(&mut engine, memory.pages(), || {
        for round in 0..3000usize {
            let at = memory.start + (round * 31) % 480 * PAGE_BYTES;
            protect(at, 8 * PAGE_BYTES, libc::PROT_READ);
            let first = (at - memory.start) / 8;
            let part = &memory.words()[first..first + 4096];
            for (word, number) in part.iter().zip(first as u64..) {
                assert_eq!(word.load(Ordering::Relaxed), number * 3 + 1, "round {round}");
            }
            protect(at, 8 * PAGE_BYTES, libc::PROT_NONE);
            protect(at, 8 * PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        }
    });
    memory.assert_numbered();
}

#[test]
fn locking_and_unlocking() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    against(&mut engine, memory.pages(), || {
        for round in 0..1000usize {
            let part = sys::memory::Span::new(memory.start + (round * 31) % 480 * PAGE_BYTES, 8 * PAGE_BYTES);
            sys::memory::lock(part).unwrap();
            sys::memory::unlock(part).unwrap();
        }
    });
    memory.assert_numbered();
}

/// Calls that the kernel carries out page by page, upon pages that are on their way or about to be: none of them fails, and
/// no page is lost.
#[test]
fn calls_that_go_page_by_page_do_not_fail() {
    let Some(mut engine) = engine() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let rounds = harness::repetitions(300, 20_000);
    // A tenth of an ordinary user's limit of locked memory.
    const PAGES: usize = 16;
    let all = memory.bytes / PAGE_BYTES;
    against(&mut engine, memory.pages(), || {
        // SAFETY: a number of this process.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
        assert!(process >= 0, "{}", std::io::Error::last_os_error());
        for round in 0..rounds {
            let first = round * 37 % (all - PAGES);
            let start = memory.start + first * PAGE_BYTES;
            let at = start as *mut libc::c_void;
            let bytes = PAGES * PAGE_BYTES;
            let read_only = libc::PROT_READ;
            // SAFETY: the pages are the test's own and keep their content; they are written by nobody meanwhile.
            let answers = unsafe {
                [
                    ("mprotect", libc::mprotect(at, bytes, read_only).into()),
                    (
                        "mprotect back",
                        libc::mprotect(at, bytes, read_only | libc::PROT_WRITE).into(),
                    ),
                    ("mlock", libc::mlock(at, bytes).into()),
                    ("munlock", libc::munlock(at, bytes).into()),
                    ("madvise COLD", libc::madvise(at, bytes, libc::MADV_COLD).into()),
                    (
                        "madvise POPULATE_WRITE",
                        libc::madvise(at, bytes, libc::MADV_POPULATE_WRITE).into(),
                    ),
                    ("process_madvise", {
                        let part = libc::iovec {
                            iov_base: at,
                            iov_len: bytes,
                        };
                        let advised = libc::syscall(libc::SYS_process_madvise, process, &part, 1, libc::MADV_COLD, 0);
                        if advised == bytes as i64 {
                            0
                        } else {
                            advised - bytes as i64
                        }
                    }),
                    ("move_pages", sys::changes::change(|| asked_for(start, PAGES))),
                ]
            };
            for (call, answer) in answers {
                let error = std::io::Error::last_os_error();
                assert_eq!(answer, 0i64, "round {round}: {call}: {error}");
            }
        }
        // SAFETY: opened above.
        unsafe { libc::close(process as i32) };
    });
    memory.assert_numbered();
}

/// Asks for the nodes of pages; the first status that is none.
fn asked_for(start: usize, pages: usize) -> i64 {
    let places: Vec<usize> = (0..pages).map(|page| start + page * PAGE_BYTES).collect();
    let mut nodes = vec![i32::MIN; pages];
    // SAFETY: both arrays have as many entries as it says; without nodes to move to nothing is moved.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages,
            places.as_ptr(),
            0,
            nodes.as_mut_ptr(),
            0,
        )
    };
    nodes.into_iter().find(|&node| node < 0).map_or(asked, i64::from)
}

#[test]
fn parts_that_go_away_and_come_back_by_mremap_are_whole() {
    let Some(mut engine) = engine() else { return };
    let (memory, beside) = (Memory::alone(MIB), Memory::alone(MIB));
    memory.number();
    let all = MIB / PAGE_BYTES;
    let rounds = harness::repetitions(20_000, 200_000);
    against(&mut engine, memory.pages(), || {
        for round in 0..rounds {
            let (first, count) = (round * 37 % (all - 16), 1 + round % 16);
            let (from, to) = (memory.start + first * PAGE_BYTES, beside.start + first * PAGE_BYTES);
            for (from, to) in [(from, to), (to, from)] {
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
                let bytes = count * PAGE_BYTES;
                // SAFETY: both are the test's own memory, of which one has the content at a time.
                let moved = sys::changes::change(|| unsafe {
                    libc::mremap(from as *mut _, bytes, bytes, flags, to as *mut libc::c_void)
                });
                let error = std::io::Error::last_os_error();
                assert_eq!(moved as usize, to, "round {round}: {error}");
            }
        }
    });
    memory.assert_numbered();
}
