//! The run-time's own memory, for when there is no other.
//!
//! A program may limit its address space (`RLIMIT_AS`, `RLIMIT_DATA`), or use all of it. Rust ends a process whose
//! allocations fail, but the run-time must not end the program. So allocations come from a reserve if the next `malloc`
//! has nothing, and no work begins that the reserve could not finish: [`hold`] is called first, with the most that the
//! work may take. Memory in the run-time's own file ([`SMALL`]) serves small work; for larger work addresses are
//! mapped, and given back afterwards. If that is refused, the run-time steps aside.
//!
//! Sizes of blocks are powers of two, with a list of free blocks for each size: a block is found at once, and live
//! blocks take at most four times their bytes.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::PAGE_BYTES;

use crate::next::Own;

/// Bytes of the reserve that is always there.
const SMALL: usize = 1 << 20;
/// Bytes that are reserved for each byte that may be live.
const SPARE: usize = 4;
/// Stretches of memory: the permanent one, and those of larger works that still contain live blocks.
const STRETCHES: usize = 8;
/// The smallest block and the largest, as powers of two.
const LEAST: u32 = 5;
const MOST: u32 = 40;

#[repr(C, align(4096))]
struct Always(UnsafeCell<[u8; SMALL]>);

// SAFETY: its bytes are reached through blocks only, each of which has one owner.
unsafe impl Sync for Always {}

static ALWAYS: Always = Always(UnsafeCell::new([0; SMALL]));
/// The address of each stretch, so that one look shows a block's owner. 0: none.
static PLACES: [(AtomicUsize, AtomicUsize); STRETCHES] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; STRETCHES];
/// True if anything was ever taken from the reserve.
static USED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<[Stretch; STRETCHES]> = Mutex::new([const { Stretch::NONE }; STRETCHES]);

/// A stretch of memory from which blocks are cut.
struct Stretch {
    start: usize,
    bytes: usize,
    /// Bytes from the start on that were ever cut.
    cut: usize,
    /// Bytes of the blocks that live.
    live: usize,
    /// True if some work relies on it.
    held: bool,
    /// The first free block of each size; its first word is the address of the next.
    free: [usize; MOST as usize + 1],
}

impl Stretch {
    const NONE: Stretch = Stretch {
        start: 0,
        bytes: 0,
        cut: 0,
        live: 0,
        held: false,
        free: [0; MOST as usize + 1],
    };

    fn at(start: usize, bytes: usize) -> Stretch {
        Stretch {
            start,
            bytes,
            ..Stretch::NONE
        }
    }

    fn take(&mut self, size: u32) -> Option<usize> {
        let bytes = 1usize << size;
        let block = match self.free[size as usize] {
            0 => {
                let from = self.cut.next_multiple_of(bytes.min(PAGE_BYTES));
                let end = from.checked_add(bytes).filter(|end| *end <= self.bytes)?;
                self.cut = end;
                self.start + from
            }
            free => {
                // SAFETY: a free block of the reserve, whose first word `give` wrote.
                self.free[size as usize] = unsafe { std::ptr::with_exposed_provenance::<usize>(free).read() };
                free
            }
        };
        self.live += bytes;
        Some(block)
    }

    /// # Safety
    /// The block is one of this stretch and size, and has no owner any more.
    unsafe fn give(&mut self, block: usize, size: u32) {
        self.live -= 1 << size;
        if self.live == 0 {
            // Nothing is left that could obstruct large blocks.
            (self.cut, self.free) = (0, [0; MOST as usize + 1]);
            return;
        }
        // SAFETY: the caller's promise; the smallest block has room for an aligned word.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(block).write(self.free[size as usize]) };
        self.free[size as usize] = block;
    }
}

fn state() -> MutexGuard<'static, [Stretch; STRETCHES]> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state[0].bytes == 0 {
        let start = ALWAYS.0.get().expose_provenance();
        state[0] = Stretch::at(start, SMALL);
        PLACES[0].0.store(start, Ordering::Relaxed);
        PLACES[0].1.store(SMALL, Ordering::Relaxed);
    }
    state
}

/// The size of a layout's block, as a power of two.
fn size(layout: Layout) -> Option<u32> {
    let bytes = layout.size().max(layout.align()).max(1 << LEAST);
    let size = bytes.checked_next_power_of_two()?.trailing_zeros();
    (size <= MOST && layout.align() <= PAGE_BYTES).then_some(size)
}

/// The stretch that contains an address.
fn stretch(address: usize) -> Option<usize> {
    if !USED.load(Ordering::Relaxed) {
        return None;
    }
    PLACES
        .iter()
        .position(|(start, bytes)| address.wrapping_sub(start.load(Ordering::Relaxed)) < bytes.load(Ordering::Relaxed))
}

#[cold]
fn take(layout: Layout) -> *mut u8 {
    let Some(size) = size(layout) else { return null_mut() };
    let mut state = state();
    // Memory mapped for the current work first: the rest is for later.
    let block = state.iter_mut().rev().find_map(|stretch| stretch.take(size));
    USED.store(true, Ordering::Relaxed);
    block.map_or(null_mut(), std::ptr::with_exposed_provenance_mut)
}

/// The run-time's allocator: the next `malloc`, and the reserve if that has nothing.
pub struct Frugal;

// SAFETY: each block is the next `malloc`'s, or one of the reserve with no other owner; both have the requested size
// and alignment, and return to their origin. Nothing here panics or unwinds.
unsafe impl GlobalAlloc for Frugal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        match unsafe { Own.alloc(layout) } {
            block if block.is_null() => take(layout),
            block => block,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { Own.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = take(layout);
        if !block.is_null() {
            // SAFETY: a block of that size without an owner yet.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (stretch(block.addr()), size(layout)) {
            // SAFETY: the block was cut here, for this layout.
            (Some(at), Some(size)) => unsafe {
                let mut state = state();
                state[at].give(block.expose_provenance(), size);
                release(&mut state, at);
            },
            // SAFETY: the caller's promise.
            _ => unsafe { Own.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if stretch(block.addr()).is_none() {
            // SAFETY: the caller's promise.
            let grown = unsafe { Own.realloc(block, layout, bytes) };
            if !grown.is_null() {
                return grown;
            }
        }
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else {
            return null_mut();
        };
        // SAFETY: the size is more than 0, as the caller promises.
        let other = unsafe { self.alloc(wanted) };
        if !other.is_null() {
            // SAFETY: both have that many bytes; the old one is the caller's, which gives it up.
            unsafe {
                other.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
        }
        other
    }
}

/// Room for some work, until it is dropped.
pub struct Held(Option<usize>);

/// Promises that `bytes` can be live at once, whatever happens to the program's address space; `None` if that is
/// impossible.
pub fn hold(bytes: usize) -> Option<Held> {
    let bytes = bytes.checked_mul(SPARE)?;
    let mut state = state();
    if bytes <= SMALL - state[0].live.min(SMALL / SPARE) * SPARE {
        return Some(Held(None));
    }
    let at = (1..STRETCHES).find(|&at| state[at].bytes == 0)?;
    let bytes = bytes.checked_next_multiple_of(PAGE_BYTES)?;
    let far = sys::memory::far_away(bytes);
    // SAFETY: a new mapping, at addresses that the kernel chooses: the given one is a hint. (By number, because the
    // program's own `mmap` is ours.)
    let start = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            far,
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == -1 {
        return None;
    }
    state[at] = Stretch {
        held: true,
        ..Stretch::at(start as usize, bytes)
    };
    PLACES[at].0.store(start as usize, Ordering::Relaxed);
    PLACES[at].1.store(bytes, Ordering::Relaxed);
    Some(Held(Some(at)))
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(at) = self.0 else { return };
        let mut state = state();
        state[at].held = false;
        release(&mut state, at);
    }
}

/// Gives back the mapping of finished work. Live blocks stay, and with them the stretch.
fn release(state: &mut [Stretch; STRETCHES], at: usize) {
    if at == 0 || state[at].held || state[at].live > 0 {
        return;
    }
    PLACES[at].1.store(0, Ordering::Relaxed);
    let Stretch { start, bytes, .. } = std::mem::replace(&mut state[at], Stretch::NONE);
    // SAFETY: it was mapped by `hold`, and no block of it lives.
    unsafe { libc::syscall(libc::SYS_munmap, start, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_used_again() {
        let mut stretch = Stretch::at(ALWAYS.0.get().expose_provenance(), 1 << 16);
        let sizes = [5, 12, 6, 5, 9, 5];
        let mut blocks: Vec<(usize, u32)> = sizes.iter().map(|&size| (stretch.take(size).unwrap(), size)).collect();
        blocks.sort_unstable();
        for pair in blocks.windows(2) {
            assert!(pair[0].0 + (1 << pair[0].1) <= pair[1].0, "{pair:?}");
        }
        assert!(blocks.iter().all(|(block, size)| block % (1 << size) == 0));
        assert_eq!(stretch.live, sizes.iter().map(|size| 1usize << size).sum::<usize>());
        let (block, size) = blocks.pop().unwrap();
        // SAFETY: blocks of this stretch, each given once.
        unsafe {
            stretch.give(block, size);
            assert_eq!(stretch.take(size), Some(block));
            stretch.give(block, size);
            blocks.drain(..).for_each(|(block, size)| stretch.give(block, size));
        }
        assert_eq!((stretch.live, stretch.cut), (0, 0));
        assert_eq!(stretch.take(17), None, "larger than all of it");
        assert!(stretch.take(16).is_some());
    }

    #[test]
    fn layouts_have_blocks_that_hold_them() {
        for (bytes, align, expected) in [(1, 1, 5), (33, 8, 6), (8, 4096, 12), (4097, 1, 13)] {
            let layout = Layout::from_size_align(bytes, align).unwrap();
            assert_eq!(size(layout), Some(expected));
        }
        assert_eq!(size(Layout::from_size_align(1, 8192).unwrap()), None);
    }

    #[test]
    fn large_work_has_addresses_of_its_own_and_gives_them_back() {
        let small = hold(1 << 10).unwrap();
        assert_eq!(small.0, None);
        let large = hold(8 << 20).unwrap();
        let at = large.0.unwrap();
        let bytes = || PLACES[at].1.load(Ordering::Relaxed);
        assert_eq!(bytes(), SPARE * (8 << 20));
        drop(large);
        assert_eq!(bytes(), 0);
        assert!(hold(usize::MAX).is_none() && hold(1 << 50).is_none());
    }
}
