//! Memory that is made for somebody else: mapped here, used wherever its address goes.

use std::ffi::c_void;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::memory::PAGE;

/// Whole pages of anonymous, private memory that nobody has touched, all zeros; unmapped when it is dropped.
///
/// It is never read or written here.
#[derive(Debug)]
pub struct Block {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: it owns its mapping and never follows the pointer; a mapping is no thread's own.
unsafe impl Send for Block {}

impl Block {
    /// Pre: `bytes` is more than 0. Post: at least so many.
    ///
    /// Errors: ENOMEM if there is too little memory, or too few mappings.
    pub fn map(bytes: usize) -> io::Result<Block> {
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: no address is asked for, so the kernel chooses one where nothing is.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Block { start, bytes })
    }

    pub fn start(&self) -> *mut c_void {
        self.start
    }

    /// Whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and whoever has its address knows that it ends here. There is nothing to
        // be done where the kernel refuses.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_whole_pages_that_nobody_has_touched() {
        let block = Block::map(PAGE + 1).unwrap();
        assert_eq!(block.bytes(), 2 * PAGE);
        assert_eq!(block.start().addr() % PAGE, 0);
        let pagemap = crate::frames::Pagemap::own().unwrap();
        let span = crate::memory::Span::new(block.start().addr(), block.bytes());
        assert!(pagemap.entries(span).unwrap().iter().all(|entry| !entry.present()));
        assert!(Block::map(usize::MAX).is_err() && Block::map(usize::MAX / 2).is_err());
    }
}
