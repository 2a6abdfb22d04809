//! Memory for containers, whole pages for each. A keeper is notified before they are used and before they are
//! unmapped.
//!
//! For the trait that hashbrown's and allocator-api2's containers take; the standard library's own is not stable yet.

use std::alloc::Layout;
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::memory::{PAGE, Span};

/// A listener that is told of the pages. The trait is unsafe because an implementation could answer for memory that it
/// does not have.
///
/// ```compile_fail,E0200
/// use sys::{containers::Keeper, memory::Span};
///
/// struct Careless;
///
/// impl Keeper for Careless {
///     fn keep(&self, _: Span) -> bool {
///         true
///     }
///     fn leave(&self, _: Span) {}
/// }
/// ```
///
/// # Safety
/// From [`keep`](Keeper::keep) on the pages are a container's. An implementor leaves them mapped, readable, writable,
/// and with their content: zeros at first, later the container's writes. Only in [`leave`](Keeper::leave) may the
/// content go.
pub unsafe trait Keeper: Send + Sync {
    /// These pages were just mapped and are full of zeros. False refuses them: the allocation fails.
    fn keep(&self, pages: Span) -> bool;

    /// The content of these pages is no longer needed; they are about to be unmapped.
    fn leave(&self, pages: Span);
}

/// An allocator that maps whole pages for each container; clones are the same one.
pub struct Containers<K: ?Sized>(Arc<K>);

impl<K> Containers<K> {
    pub fn new(keeper: K) -> Containers<K> {
        Containers(Arc::new(keeper))
    }

    pub fn keeper(&self) -> &K {
        &self.0
    }
}

impl<K: ?Sized> Clone for Containers<K> {
    fn clone(&self) -> Self {
        Containers(Arc::clone(&self.0))
    }
}

impl<K: ?Sized> fmt::Debug for Containers<K> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Containers")
    }
}

/// Bytes of the pages for a layout; `None` if it cannot be had.
fn bytes_for(layout: Layout) -> Option<usize> {
    (layout.align() <= PAGE).then_some(())?;
    layout.size().checked_next_multiple_of(PAGE)
}

/// A block at `start`, all of its pages.
fn block(start: NonNull<u8>, bytes: usize) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(start, bytes)
}

// SAFETY: a block is a mapping of its own, which stays where it is until it is deallocated, whatever becomes of the
// allocator and its clones; a keeper promises to leave addresses and content as they are. `bytes_for` gives the same
// for all sizes that fit a block: they are more than its pages but the last, and at most all its pages.
unsafe impl<K: Keeper + ?Sized> Allocator for Containers<K> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.allocate_zeroed(layout)
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let bytes = bytes_for(layout).ok_or(AllocError)?;
        if bytes == 0 {
            // Pages are aligned enough for all; nothing is ever read or written there.
            let nowhere = NonNull::new(std::ptr::without_provenance_mut(PAGE)).ok_or(AllocError)?;
            return Ok(block(nowhere, 0));
        }
        let start = map(bytes).map_err(|_| AllocError)?;
        if !self.0.keep(Span::new(start.as_ptr() as usize, bytes)) {
            // SAFETY: mapped just now, and nobody knows of it any more.
            unsafe { unmap(start, bytes) };
            return Err(AllocError);
        }
        Ok(block(start, bytes))
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        let Some(bytes) = bytes_for(layout).filter(|&bytes| bytes > 0) else {
            return;
        };
        self.0.leave(Span::new(start.as_ptr() as usize, bytes));
        // SAFETY: the caller says that this block is of this allocator and used no more; it was mapped with so many bytes.
        unsafe { unmap(start, bytes) };
    }

    unsafe fn grow(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller says.
        unsafe { self.resize(start, old, new) }
    }

    unsafe fn grow_zeroed(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller says.
        let grown = unsafe { self.resize(start, old, new) }?;
        let grown_start = grown.cast::<u8>();
        // SAFETY: the block has at least `new.size()` bytes; those behind the old ones may have been used before, where
        // the pages are the same.
        unsafe { grown_start.add(old.size()).write_bytes(0, grown.len() - old.size()) };
        Ok(grown)
    }

    unsafe fn shrink(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller says.
        unsafe { self.resize(start, old, new) }
    }
}

impl<K: Keeper + ?Sized> Containers<K> {
    /// Moves a block's content to one of another size, unless it has the same pages.
    ///
    /// # Safety
    ///
    /// `start` is a block of this allocator that `old` fits; it is used no more if this succeeds.
    unsafe fn resize(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if let (Some(before), Some(after)) = (bytes_for(old), bytes_for(new))
            && before == after
        {
            return Ok(block(start, after));
        }
        let other = self.allocate(new)?;
        let bytes = old.size().min(new.size());
        // SAFETY: both blocks have so many bytes, and a new mapping overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(start.as_ptr(), other.cast::<u8>().as_ptr(), bytes) };
        // SAFETY: the caller uses it no more.
        unsafe { self.deallocate(start, old) };
        Ok(other)
    }
}

/// Private anonymous memory, all zeros. A child of fork has a copy, as of all memory.
fn map(bytes: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))
}

/// # Safety
///
/// The pages were mapped by [`map`] with so many bytes, and nobody uses them any more.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use allocator_api2::vec::Vec as VecIn;

    use super::*;

    /// Remembers its blocks, and refuses more than so many bytes.
    #[derive(Default)]
    struct Book(Mutex<BTreeMap<usize, usize>>, usize);

    // SAFETY: it never touches the pages.
    unsafe impl Keeper for Book {
        fn keep(&self, pages: Span) -> bool {
            assert!(pages.start.is_multiple_of(PAGE) && pages.bytes.is_multiple_of(PAGE));
            let mut book = self.0.lock().unwrap();
            let fits = book.values().sum::<usize>() + pages.bytes <= self.1;
            if fits {
                assert_eq!(book.insert(pages.start, pages.bytes), None);
            }
            fits
        }

        fn leave(&self, pages: Span) {
            assert_eq!(self.0.lock().unwrap().remove(&pages.start), Some(pages.bytes));
        }
    }

    fn book(limit: usize) -> Containers<Book> {
        Containers::new(Book(Mutex::default(), limit))
    }

    #[test]
    fn containers_grow_and_shrink_and_leave_nothing_behind() {
        let memory = book(1 << 30);
        let mut grown: VecIn<u64, _> = VecIn::new_in(memory.clone());
        let pushed = if cfg!(miri) { 2_000 } else { 100_000 };
        for number in 0..pushed {
            grown.push(number);
        }
        grown.truncate(1000);
        grown.shrink_to_fit();
        assert!(grown.iter().copied().eq(0..1000));
        assert_eq!(memory.keeper().0.lock().unwrap().values().sum::<usize>(), 8192);
        let empty: VecIn<u64, _> = VecIn::with_capacity_in(0, memory.clone());
        let nothing: VecIn<(), _> = VecIn::with_capacity_in(10, memory.clone());
        drop((grown, empty, nothing));
        assert!(memory.keeper().0.lock().unwrap().is_empty());
    }

    #[test]
    fn what_is_refused_is_no_memory() {
        let memory = book(8192);
        let layout = |bytes, align| Layout::from_size_align(bytes, align).unwrap();
        let first = memory.allocate(layout(5000, 8)).unwrap();
        assert_eq!(first.len(), 8192);
        assert!(memory.allocate(layout(1, 1)).is_err());
        assert!(memory.allocate(layout(1, 8192)).is_err());
        // SAFETY: allocated above, and not used.
        unsafe { memory.deallocate(first.cast(), layout(6000, 8)) };
        assert!(memory.keeper().0.lock().unwrap().is_empty());
    }

    #[test]
    fn zeros_are_zeros_where_the_pages_are_the_same_too() {
        let memory = book(1 << 20);
        let layout = |bytes| Layout::from_size_align(bytes, 1).unwrap();
        let first = memory.allocate_zeroed(layout(100)).unwrap();
        // SAFETY: the block has a page; each step uses what the last one gave, with a layout that fits.
        unsafe {
            first.cast::<u8>().write_bytes(7, 4096);
            let grown = memory.grow_zeroed(first.cast(), layout(100), layout(3000)).unwrap();
            assert_eq!(grown.cast::<u8>(), first.cast());
            let bytes = grown.as_ref();
            assert!(bytes[..100].iter().all(|&byte| byte == 7) && bytes[100..].iter().all(|&byte| byte == 0));
            let more = memory.grow_zeroed(grown.cast(), layout(3000), layout(9000)).unwrap();
            let bytes = more.as_ref();
            assert!(bytes[..100].iter().all(|&byte| byte == 7) && bytes[100..].iter().all(|&byte| byte == 0));
            memory.deallocate(more.cast(), layout(9000));
        }
    }
}
