//! A program's memory, and looking at its frames.

use std::sync::atomic::AtomicU64;

use live::{
    Colors, Config, Done, Engine, Error, Knowledge, Lock, Others, PAGE_BYTES, Pages, Placing, Repaired, Source, Wish,
};
use policy::slots::ColorSet;
use sys::frames::Pagemap;
use sys::memory::Span;

/// Private anonymous memory.
pub struct Memory {
    pub start: usize,
    pub bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Memory {
        Memory::mapped(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// A mapping of its own: the pages beside it may not be touched.
    pub fn alone(bytes: usize) -> Memory {
        let memory = Memory::new(bytes + 2 * PAGE_BYTES);
        let inner = Memory {
            start: memory.start + PAGE_BYTES,
            bytes,
        };
        for guard in [memory.start, inner.start + bytes] {
            protect(guard, PAGE_BYTES, libc::PROT_NONE);
        }
        std::mem::forget(memory);
        inner
    }

    /// Its own mapping, whose parts stay free when they are unmapped: the kernel gives them to nobody.
    pub fn far_below(bytes: usize) -> Memory {
        let start = super::far_below::map(bytes);
        Memory { start, bytes }
    }

    pub fn mapped(bytes: usize, flags: i32, file: i32) -> Memory {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping overlaps nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Memory {
            start: at as usize,
            bytes,
        }
    }

    pub fn pages(&self) -> Pages {
        Pages {
            start: self.start,
            count: self.bytes / PAGE_BYTES,
        }
    }

    pub fn span(&self) -> Span {
        Span::new(self.start, self.bytes)
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped, readable and writable, as long as `self`; all use of it is atomic. Tests
        // that unmap or protect parts do not touch these.
        unsafe { std::slice::from_raw_parts(self.start as *const AtomicU64, self.bytes / 8) }
    }

    /// A different number in each word.
    pub fn number(&self) {
        for (at, word) in self.words().iter().enumerate() {
            word.store(at as u64 * 3 + 1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    pub fn assert_numbered(&self) {
        for (at, word) in self.words().iter().enumerate() {
            let number = word.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(number, at as u64 * 3 + 1, "word {at} of {:#x}", self.start);
        }
    }

    pub fn assert_zero(&self) {
        let zero = |word: &AtomicU64| word.load(std::sync::atomic::Ordering::Relaxed) == 0;
        assert!(self.words().iter().all(zero));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start as *mut _, self.bytes) };
    }
}

/// Coloring as tests do it.
pub trait ColorOwn {
    fn color_own(&mut self, range: Pages, wish: &Wish, others: Others) -> Result<Done, Error>;
    fn repair_own(&mut self, range: Pages, set: &ColorSet, others: Others) -> Result<Repaired, Error>;
}

impl ColorOwn for Engine {
    fn color_own(&mut self, range: Pages, wish: &Wish, others: Others) -> Result<Done, Error> {
        // SAFETY: tests color their own memory, or what is refused, and what they say of others is true.
        unsafe { self.color(range, wish, others) }
    }

    fn repair_own(&mut self, range: Pages, set: &ColorSet, others: Others) -> Result<Repaired, Error> {
        // SAFETY: as above.
        unsafe { self.repair(range, set, others) }
    }
}

pub fn protect(start: usize, bytes: usize, access: i32) {
    // SAFETY: tests protect their own memory and do not touch it then.
    assert_eq!(unsafe { libc::mprotect(start as *mut _, bytes, access) }, 0);
}

/// Colors that every machine has for the purpose: some bits from 12 on.
pub fn colors(bits: u32) -> Colors {
    Colors {
        first_bit: 12,
        bits,
        color_bytes: 64 << 10,
        cache: "forced".into(),
        source: Source::Forced,
    }
}

pub fn config(bits: u32) -> Config {
    let mut config = Config::new(colors(bits));
    config.lock = Lock::Never;
    config
}

pub fn engine() -> Option<Engine> {
    open(config(4))
}

/// `None` if nothing works for this user, which is reported.
pub fn open(config: Config) -> Option<Engine> {
    BEFORE.get_or_init(moved_by_kernel);
    let (moves, huge) = (
        config.placing == Some(Placing::Move),
        config.knowledge == Some(Knowledge::HugePages),
    );
    match Engine::open(config) {
        Ok(engine) => Some(engine),
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() > 40, "a refusal says what to do: {text}");
            match () {
                () if moves => harness::not_in_this_kernel(MOVES, text),
                () if huge && !huge_pages() => harness::not_here(text),
                () => harness::not_allowed(text),
            }
            None
        }
    }
}

/// The kernel that has `UFFDIO_MOVE`.
const MOVES: (u32, u32) = (6, 8);

/// Returns whether programs that ask get transparent huge pages.
fn huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|enabled| !enabled.contains("[never]"))
}

/// Returns whether ranges that others use may be colored here.
pub fn running(engine: &Engine) -> bool {
    let running = engine.means().running;
    if !running {
        harness::not_in_this_kernel(MOVES, engine.means().reasons.join("; "));
    }
    running
}

pub fn set(colors: &[u32]) -> ColorSet {
    colors.iter().copied().collect()
}

/// The numbers of the frames behind pages, as root sees them.
pub fn frames(pages: Pages) -> Option<Vec<u64>> {
    if !Pagemap::own_numbers_visible() {
        return None;
    }
    let span = Span::new(pages.start, pages.bytes());
    let entries = Pagemap::own().unwrap().entries(span).unwrap();
    Some(
        entries
            .into_iter()
            .map(|entry| entry.frame().expect("a page without a frame"))
            .collect(),
    )
}

/// Every page has a color of the set and a frame of its own; but for pages that the kernel has
/// moved since (it compacts memory when others ask for huge pages), of which there cannot be more
/// than it counts.
pub fn assert_colored(pages: Pages, bits: u32, set: &ColorSet) {
    let Some(frames) = frames(pages) else { return };
    let wrong = |frame: &&u64| !set.contains(colors(bits).of(**frame));
    let wrong = frames.iter().filter(wrong).count();
    let moved = moved_by_kernel() - BEFORE.get_or_init(moved_by_kernel);
    assert!(
        wrong == 0 || (wrong as u64 <= moved && wrong <= frames.len() / 20),
        "{wrong} of {} pages have no color of {set:?}; the kernel moved {moved}",
        frames.len()
    );
    let mut distinct = frames.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), frames.len(), "two pages have the same frame");
}

/// The number of pages that the kernel had moved at the first call.
static BEFORE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();

/// Pages that the kernel moved since it started.
fn moved_by_kernel() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("pgmigrate_success "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}
