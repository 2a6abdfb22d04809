//! The program maps something else where a range is being colored, and writes there at once. Each test has a process of
//! its own: another thread may take a place that is unmapped for a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use live::{Engine, Error, Knowledge, Others, PAGE_BYTES, Pages, Supply, Why, Wish};

use crate::engine::memory::{ColorOwn, Memory, config, engine, open, set};

const MIB: usize = 1 << 20;
/// Words of a page.
const WORDS: usize = 512;

struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An engine that can color ranges that others use; reports if there is none.
fn running() -> Option<Engine> {
    engine().filter(can_run)
}

fn can_run(engine: &Engine) -> bool {
    if !engine.means().running {
        harness::not_in_this_kernel((6, 8), "ranges in use cannot be colored");
    }
    engine.means().running
}

/// Colors pages over and over until `over`. Any result is right as long as the content is.
fn recolor(engine: &mut Engine, pages: Pages, over: &AtomicBool) {
    let wishes = [set(&[0, 1]), set(&[2, 3]), set(&[4])].map(Wish::Set);
    recolor_as(engine, pages, over, &wishes);
}

fn recolor_as(engine: &mut Engine, pages: Pages, over: &AtomicBool, wishes: &[Wish]) {
    let _over = Finally(over);
    for wish in wishes.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        match engine.color_own(pages, wish, Others::Running) {
            Ok(done) => {
                let expected = |why| matches!(why, Why::Changed | Why::Pinned | Why::Miscolored);
                assert!(done.left.iter().all(|left| expected(left.why)), "{done:?}");
            }
            // There is a hole just now.
            Err(Error::Unfit { .. } | Error::System { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn map(at: usize, bytes: usize, flags: i32) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: the tests' own memory; with MAP_FIXED_NOREPLACE nothing is replaced at all.
    let got = unsafe { libc::mmap(at as *mut _, bytes, access, flags, -1, 0) };
    assert!(got as usize == at || got == libc::MAP_FAILED);
    got != libc::MAP_FAILED
}

fn unmap(at: usize, bytes: usize) {
    // SAFETY: the tests' own memory, which nobody uses until it is mapped anew.
    assert_eq!(unsafe { libc::munmap(at as *mut _, bytes) }, 0);
}

/// Writes numbers to words and looks at them for a while: they must stay.
fn stays(words: &[AtomicU64], first: u64, while_: Duration, what: &str) {
    let numbers = || words.iter().zip(first..);
    numbers().for_each(|(word, number)| word.store(number, Ordering::Relaxed));
    let start = Instant::now();
    while start.elapsed() < while_ {
        for (word, number) in numbers() {
            let found = word.load(Ordering::Relaxed);
            assert_eq!(found, number, "{what}: what was written afterwards is lost");
        }
    }
}

/// A supply that brings any frames, and waits for the program before it returns: between the engine's look at the
/// mappings and its registration.
struct Meanwhile {
    asked: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
    /// The program has ended.
    over: Arc<AtomicBool>,
}

impl Supply for Meanwhile {
    unsafe fn fill(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, Error> {
        sys::memory::populate(sys::memory::Span::new(into.start, into.bytes())).unwrap();
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        while self.answered.load(Ordering::SeqCst) < turn && !self.over.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(want.iter().map(|&want| Some(want)).collect())
    }

    unsafe fn give_back(&mut self, _: Pages) -> Result<(), Error> {
        Ok(())
    }

    fn by_color(&mut self) -> Result<Vec<u64>, Error> {
        Ok(vec![0; 16])
    }
}

/// The hole is there when the range is registered, and mapped when its pages are taken.
#[test]
fn unmapped_and_mapped_again_at_the_same_place() {
    if !harness::alone("anew::unmapped_and_mapped_again_at_the_same_place", &[]) {
        return;
    }
    let (asked, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let over = Arc::new(AtomicBool::new(false));
    let mut config = config(4);
    config.supply = Some(Box::new(Meanwhile {
        asked: asked.clone(),
        answered: answered.clone(),
        over: over.clone(),
    }));
    // So that the supply is believed.
    config.knowledge = Some(Knowledge::HugePages);
    // One page at a time: there is time to map something before the last one.
    config.batch = 1;
    let Some(mut engine) = open(config).filter(can_run) else {
        return;
    };
    let memory = Memory::far_below(8 * MIB);
    memory.number();
    std::thread::scope(|scope| {
        let (memory, over) = (&memory, &*over);
        let program = scope.spawn(move || {
            let _over = Finally(over);
            // The last page, which is taken last.
            let at = memory.start + memory.bytes - PAGE_BYTES;
            let words = &memory.words()[(at - memory.start) / 8..];
            let mut turn = 0;
            for round in 0..100u64 {
                while asked.load(Ordering::SeqCst) == turn {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::yield_now();
                }
                unmap(at, PAGE_BYTES);
                turn = asked.load(Ordering::SeqCst);
                answered.store(u64::MAX, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(round * 97 % 4000));
                assert!(
                    map(at, PAGE_BYTES, libc::MAP_FIXED_NOREPLACE),
                    "somebody else took the place"
                );
                answered.store(turn, Ordering::SeqCst);
                stays(words, round * 1_000_000 + 1, Duration::from_millis(12), "munmap, mmap");
            }
        });
        recolor(&mut engine, memory.pages(), over);
        program.join().unwrap();
    });
}

#[test]
fn another_mapping_moved_over_it() {
    if !harness::alone("anew::another_mapping_moved_over_it", &[]) {
        return;
    }
    let Some(mut engine) = running() else { return };
    let memory = Memory::alone(2 * MIB);
    memory.number();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (memory, over) = (&memory, &over);
        let program = scope.spawn(move || {
            let _over = Finally(over);
            for round in 0..1000usize {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let at = memory.start + (round * 29) % 400 * PAGE_BYTES;
                let source = Memory::new(32 * PAGE_BYTES);
                let number = (round * 100_000 + 1) as u64;
                for (word, number) in source.words().iter().zip(number..) {
                    word.store(number, Ordering::Relaxed);
                }
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let to = at as *mut libc::c_void;
                // SAFETY: both are the test's own; the source is not used any more.
                let got = unsafe { libc::mremap(source.start as *mut _, source.bytes, source.bytes, flags, to) };
                assert_eq!(got as usize, at, "{}", std::io::Error::last_os_error());
                let first = (at - memory.start) / 8;
                let words = &memory.words()[first..first + source.bytes / 8];
                std::mem::forget(source);
                for (word, number) in words.iter().zip(number..) {
                    assert_eq!(
                        word.load(Ordering::Relaxed),
                        number,
                        "round {round}: what was moved there"
                    );
                }
                stays(words, number + 1, Duration::from_micros(300), "mremap");
            }
        });
        recolor(&mut engine, memory.pages(), over);
        program.join().unwrap();
    });
}

/// While a thread remaps and waits for its event to be read, another writes there already. A page loses its content
/// once for each new mapping, and no more.
#[test]
fn mapped_anew_while_another_thread_writes_there() {
    if !harness::alone("anew::mapped_anew_while_another_thread_writes_there", &[]) {
        return;
    }
    let mut config = config(4);
    // Every second page, all at once: hundreds of system calls, any of which may meet the new mapping.
    config.batch = usize::MAX;
    let Some(mut engine) = open(config).filter(can_run) else {
        return;
    };
    let memory = Memory::alone(MIB);
    memory.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let (first, pages) = (64, 128);
    let over = AtomicBool::new(false);
    let [begun, ended, seen] = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        let (over, begun, ended, seen) = (&over, &begun, &ended, &seen);
        let part = &memory.words()[first * WORDS..(first + pages) * WORDS];
        let writer = scope.spawn(move || {
            let _over = Finally(over);
            let (mut last, mut lost) = (vec![0u64; pages], vec![0u64; pages]);
            let mut version = 0;
            while !over.load(Ordering::SeqCst) {
                version += 1;
                let mapped = ended.load(Ordering::SeqCst);
                for (page, word) in part.iter().step_by(WORDS).enumerate() {
                    let found = word.load(Ordering::SeqCst);
                    if found != last[page] {
                        assert_eq!(found, 0, "page {page}: neither what was written nor nothing");
                        lost[page] += 1;
                        let (lost, mapped) = (lost[page], begun.load(Ordering::SeqCst));
                        assert!(
                            lost <= mapped,
                            "page {page} lost its content {lost} times in {mapped} mappings"
                        );
                    }
                    word.store(version, Ordering::SeqCst);
                    last[page] = version;
                }
                seen.store(mapped, Ordering::SeqCst);
            }
        });
        let mapper = scope.spawn(move || {
            let _over = Finally(over);
            for round in 1..=1000u64 {
                begun.store(round, Ordering::SeqCst);
                assert!(map(part.as_ptr() as usize, pages * PAGE_BYTES, libc::MAP_FIXED));
                ended.store(round, Ordering::SeqCst);
                // Until the writer has met each page of the new mapping.
                while seen.load(Ordering::SeqCst) < round {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        let alternate = |color| Wish::Hints((0..256).step_by(2).map(|page| (page, color)).collect());
        recolor_as(&mut engine, memory.pages(), over, &[alternate(1), alternate(2)]);
        writer.join().unwrap();
        mapper.join().unwrap();
    });
}
