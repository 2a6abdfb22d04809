//! Memory shared with another process: a sealed memfd, mapped here, handed over by descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// A block of memory that another process may write while we read it.
pub struct SharedMemory {
    file: OwnedFd,
    at: NonNull<u64>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone in our process, is only ever read through
// `&self` by copying, and `munmap` may be called from any thread.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Makes `bytes` bytes of zeroes under a name that shows in `/proc`.
    ///
    /// Pre: `bytes` is a positive multiple of 4096. Post: the size can never change again, whatever
    /// another holder of the descriptor does, so reads cannot fault.
    pub fn create(name: &str, bytes: usize) -> io::Result<SharedMemory> {
        if bytes == 0 || !bytes.is_multiple_of(4096) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "shared memory comes in whole pages",
            ));
        }
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0)? };
        let at = NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mmap returned a null address"))?;
        Ok(SharedMemory { file, at, bytes })
    }

    /// The descriptor to hand over.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Size in 64-bit words.
    pub fn words(&self) -> usize {
        self.bytes / 8
    }

    /// Replaces what `out` holds by the words `[at, at + count)`.
    ///
    /// Pre: the range lies within the memory; words beyond it are left out. If the other process
    /// writes meanwhile, against the rules of the shared memory, words may be torn, no more.
    pub fn copy_words(&self, at: usize, count: usize, out: &mut Vec<u64>) {
        out.clear();
        let at = at.min(self.words());
        let count = count.min(self.words() - at);
        out.reserve(count);
        // SAFETY: `[at, at + count)` lies within the mapping, which the seals keep at its size;
        // `out` has room for `count` words and cannot overlap a mapping that only we know; any bit
        // pattern is a valid u64.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.as_ptr().add(at), out.as_mut_ptr(), count);
            out.set_len(count);
        }
    }

    /// The word at `at`, read at once; 0 beyond the end.
    pub fn word(&self, at: usize) -> u64 {
        if at >= self.words() {
            return 0;
        }
        // SAFETY: `at` lies within the mapping and is aligned; volatile, since another process
        // writes it.
        unsafe { self.at.as_ptr().add(at).read_volatile() }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrowed from it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let memory = SharedMemory::create("domicile-test", 8192).unwrap();
        let other = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
        other.write_all_at(&7u64.to_ne_bytes(), 4096).unwrap();
        assert_eq!(memory.word(512), 7);
        let mut words = vec![1, 2, 3];
        memory.copy_words(511, 3, &mut words);
        assert_eq!(words, [0, 7, 0]);
    }

    #[test]
    fn the_size_is_sealed_and_ranges_are_cut() {
        let memory = SharedMemory::create("domicile-test", 4096).unwrap();
        let mut other = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
        assert!(other.set_len(0).is_err());
        assert!(other.set_len(8192).is_err());
        other.write_all(&[1]).unwrap();
        let mut words = Vec::new();
        memory.copy_words(510, 100, &mut words);
        assert_eq!(words.len(), 2);
        memory.copy_words(9999, 1, &mut words);
        assert!(words.is_empty());
        assert_eq!(memory.word(512), 0);
    }

    #[test]
    fn only_whole_pages() {
        assert!(SharedMemory::create("domicile-test", 100).is_err());
        assert!(SharedMemory::create("domicile-test", 0).is_err());
    }
}
