//! Large arrays that are used all over: of huge pages if the system gives them on request
//! (`madvise` or `always` in `/sys/kernel/mm/transparent_hugepage/enabled`), and fetched ahead.
//!
//! A table of some hundred megabytes that is read at random costs, with pages of 4 KiB, a miss of
//! the host's TLB for nearly each access, in a virtual machine two walks of page tables.

use std::alloc::{Layout, handle_alloc_error};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MremapFlags};

use crate::memory::map_unlocked;

/// A huge page of most systems; where it is another size, the arrays are only aligned to this.
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;
/// Bytes of the largest array: twice as many, and a huge page, are still a size.
const MOST: usize = isize::MAX as usize / 4;

mod sealed {
    pub trait Number: Copy {}
    impl Number for u32 {}
    impl Number for u64 {}
    impl Number for [u64; 2] {}
}

/// An array of numbers that grows, and whose new elements are 0. Memory that was never written
/// takes no room, except for the rest of the last huge page.
pub struct Array<T: sealed::Number> {
    at: NonNull<T>,
    len: usize,
    /// Bytes that are mapped; 0: none.
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, its elements are plain numbers, and `munmap`
// may be called from any thread.
unsafe impl<T: sealed::Number> Send for Array<T> {}
// SAFETY: `&Array` only gives `&[T]` of plain numbers.
unsafe impl<T: sealed::Number> Sync for Array<T> {}

impl<T: sealed::Number> Array<T> {
    const EMPTY: Self = Array {
        at: NonNull::dangling(),
        len: 0,
        bytes: 0,
    };

    /// An array of `len` zeroes. Running out of memory ends the process, as it does with a `Vec`.
    pub fn new(len: usize) -> Self {
        let mut array = Self::EMPTY;
        array.grow(len);
        array
    }

    /// An array of `len` zeroes, for callers that can go on without it.
    ///
    /// # Errors
    /// The system has no memory, or no addresses, for it.
    pub fn try_new(len: usize) -> io::Result<Self> {
        let mut array = Self::EMPTY;
        if len > 0 {
            let needed = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= MOST);
            let needed = needed.ok_or(io::ErrorKind::OutOfMemory)?;
            array.replace(needed.next_multiple_of(PAGE))?;
        }
        array.len = len;
        Ok(array)
    }

    /// Makes it `len` long, if it is shorter.
    #[inline]
    pub fn grow(&mut self, len: usize) {
        if len <= self.len {
            return;
        }
        if len > self.bytes / size_of::<T>() {
            self.make_room(len);
        }
        self.len = len;
    }

    #[cold]
    fn make_room(&mut self, len: usize) {
        let Some(needed) = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= MOST) else {
            handle_alloc_error(Layout::new::<T>());
        };
        let bytes = needed.max(2 * self.bytes).max(PAGE).next_multiple_of(PAGE);
        if self.replace(bytes).is_err() {
            handle_alloc_error(Layout::from_size_align(bytes, PAGE).unwrap_or(Layout::new::<u64>()))
        }
    }

    /// Moves the elements to a new mapping of at least `bytes`, whole pages that they fit in.
    fn replace(&mut self, bytes: usize) -> io::Result<()> {
        let (at, bytes) = map(bytes)?;
        if self.bytes >= HUGE {
            // SAFETY: the old mapping is ours, of `self.bytes`, and was made by one call; the addresses from `at` on are ours, too, and
            // nobody has used them. Nothing borrowed is left.
            let moved = unsafe {
                rustix::mm::mremap_fixed(
                    self.at.as_ptr().cast(),
                    self.bytes,
                    bytes,
                    MremapFlags::MAYMOVE,
                    at.as_ptr().cast(),
                )
            };
            // Page tables move, and no element is copied: that takes a second for some gigabytes.
            if moved.is_ok() {
                (self.at, self.bytes) = (at.cast(), bytes);
                return Ok(());
            }
            // The addresses from `at` on may be gone, and are left alone.
            return self.copy_to(map(bytes)?);
        }
        self.copy_to((at, bytes))
    }

    fn copy_to(&mut self, (at, bytes): (NonNull<u8>, usize)) -> io::Result<()> {
        let at = at.cast::<T>();
        // SAFETY: both are mapped, the new memory is at least as large as the `len` elements of
        // the old, aligned to a page, and overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(self.at.as_ptr(), at.as_ptr(), self.len) };
        self.unmap();
        (self.at, self.bytes) = (at, bytes);
        Ok(())
    }

    fn unmap(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping is ours and nothing borrowed from it is left.
            let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.bytes) };
        }
    }
}

/// Fresh zeroes; returns how many bytes there are, at least as many as asked for.
fn map(bytes: usize) -> io::Result<(NonNull<u8>, usize)> {
    let huge = bytes >= HUGE;
    let bytes = if huge { bytes.next_multiple_of(HUGE) } else { bytes };
    let spare = if huge { HUGE } else { 0 };
    let start = NonNull::new(map_unlocked(bytes + spare)?.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    if !huge {
        return Ok((start, bytes));
    }
    let before = start.as_ptr().align_offset(HUGE).min(spare);
    // SAFETY: `before` bytes at the start and `spare - before` at the end lie within the mapping
    // of `bytes + spare`, which nobody has used; what is advised is what remains.
    unsafe {
        let at = start.add(before);
        if before > 0 {
            let _ = rustix::mm::munmap(start.as_ptr().cast(), before);
        }
        if before < spare {
            let _ = rustix::mm::munmap(at.add(bytes).as_ptr().cast(), spare - before);
        }
        // Without huge pages it goes on with small ones.
        let _ = rustix::mm::madvise(at.as_ptr().cast(), bytes, Advice::LinuxHugepage);
        Ok((at, bytes))
    }
}

impl<T: sealed::Number> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements are mapped, and any bits are a number.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: sealed::Number> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `&mut self` is the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl<T: sealed::Number> Drop for Array<T> {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Has the host fetch an element into its caches, without waiting for it. Nothing happens beyond
/// the end, nor on hosts without a known instruction for it.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < slice.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of an element; the instruction changes nothing and is part
        // of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_has_and_adds_zeroes() {
        // Below the size of a huge page Miri can follow: it unmaps only whole mappings.
        let enough = if cfg!(miri) { 6_000 } else { 3_000_000 };
        let mut array = Array::<u32>::new(3);
        array[2] = 7;
        let mut len = 3;
        while len < enough {
            let more = len * 3 / 2 + 1;
            array.grow(more);
            assert_eq!(array.len(), more);
            assert!(array[len..].iter().all(|&number| number == 0));
            array[more - 1] = more as u32;
            assert_eq!(array[len - 1], if len == 3 { 7 } else { len as u32 });
            len = more;
        }
        array.grow(5);
        assert_eq!(array.len(), len);
        assert_eq!(array[2], 7);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no bound of addresses")]
    fn those_for_which_there_are_no_addresses_are_errors() {
        assert!(Array::<u64>::try_new(0).unwrap().is_empty());
        assert!(Array::<u64>::try_new(3).unwrap().iter().eq(&[0; 3]));
        for len in [1 << 50, usize::MAX / 8, usize::MAX] {
            assert!(Array::<u64>::try_new(len).is_err(), "{len}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri unmaps only whole mappings")]
    fn large_ones_are_aligned_to_huge_pages() {
        let array = Array::<u64>::new(HUGE / 8 * 3 + 1);
        assert_eq!(array.as_ptr() as usize % HUGE, 0);
        assert!(array.iter().all(|&number| number == 0));
    }

    #[test]
    fn an_empty_one_is_an_empty_slice() {
        let mut array = Array::<[u64; 2]>::new(0);
        assert!(array.is_empty());
        array.grow(0);
        assert!(array.is_empty());
        prefetch(&array, 0);
        prefetch(&[1], 0);
    }
}
