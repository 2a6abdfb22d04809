//! Memory that is put on one node when it is made (`mbind(2)`), filled, and then only read.
//!
//! The node is preferred and not bound: if a bound node has no memory left, the kernel kills a process.
//! [`NearMemory::nodes`] tells where the pages came to lie.

use std::io;
use std::ptr::NonNull;

use crate::mbind::wish;
use crate::memory::{PAGE, Span, map_unlocked, populate};
use crate::move_pages::{Pages, nodes_of};
use crate::numa_maps::Wish;

/// Whole pages of this process's own, each with a frame, zeros at first. A child of fork has them with their content.
#[derive(Debug)]
pub struct NearMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; it is written through `&mut self` only.
unsafe impl Send for NearMemory {}
// SAFETY: as above; `&self` only reads.
unsafe impl Sync for NearMemory {}

impl NearMemory {
    /// Maps at least `bytes` bytes and populates them, on that node as far as it has memory; `None`: where the calling thread's
    /// policy puts them.
    ///
    /// Pre: `bytes` is positive.
    ///
    /// Errors: ENOMEM; EINVAL if the node is none that this process may use (cpusets) or that there is; EPERM, ENOSYS
    /// where a container or the kernel has no `mbind`.
    pub fn map(bytes: usize, node: Option<u32>) -> io::Result<NearMemory> {
        let whole = bytes.checked_next_multiple_of(PAGE).filter(|&whole| whole > 0);
        let Some(bytes) = whole.filter(|&whole| isize::try_from(whole).is_ok()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a size to map"));
        };
        let start = NonNull::new(map_unlocked(bytes)?.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address 0"))?;
        let memory = NearMemory { start, bytes };
        if let Some(node) = node {
            wish(memory.span(), &Wish::Prefer(vec![node]))?;
        }
        match populate(memory.span()) {
            // Before Linux 5.14.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => memory.touch(),
            populated => populated?,
        }
        Ok(memory)
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn span(&self) -> Span {
        Span::new(self.start.addr().get(), self.bytes)
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is as long as that, readable, and any bits are bytes; nobody writes while `&self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable until it is sealed, which takes the value; `&mut self` keeps others away.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Takes away the right to write: a write through a pointer then ends the process by SIGSEGV.
    pub fn seal(self) -> io::Result<Sealed> {
        // SAFETY: the whole of our own mapping; nothing borrowed from it is left, so that nobody finds a right missing.
        match unsafe { libc::mprotect(self.start.as_ptr().cast(), self.bytes, libc::PROT_READ) } {
            0 => Ok(Sealed(self)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The node of each page.
    ///
    /// Errors: ENOSYS without NUMA in the kernel; EPERM if a container forbids the question.
    pub fn nodes(&self) -> io::Result<Pages> {
        let span = self.span();
        let pages: Vec<usize> = (span.start..span.end()).step_by(PAGE).collect();
        nodes_of(None, &pages)
    }

    fn touch(&self) {
        for page in (0..self.bytes).step_by(PAGE) {
            // SAFETY: within the mapping, writable, and nobody else knows of it yet.
            unsafe { self.start.add(page).write_volatile(0) };
        }
    }
}

impl Drop for NearMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Memory that nobody can write to any more.
#[derive(Debug)]
pub struct Sealed(NearMemory);

impl Sealed {
    pub fn start(&self) -> NonNull<u8> {
        self.0.start
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub fn span(&self) -> Span {
        self.0.span()
    }

    pub fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_from_the_start_and_keeps_what_is_written() {
        let mut memory = NearMemory::map(PAGE + 1, None).unwrap();
        assert_eq!((memory.bytes(), memory.as_slice()[PAGE]), (2 * PAGE, 0));
        memory.as_mut_slice()[PAGE] = 7;
        match memory.nodes() {
            Ok(nodes) => assert!(nodes.len() == 2 && nodes.iter().all(Result::is_ok), "{nodes:?}"),
            Err(error) => harness::not_here(format_args!("where a page lies may not be asked: {error}")),
        }
        let sealed = memory.seal().unwrap();
        assert_eq!(sealed.as_slice()[PAGE], 7);
        assert!(NearMemory::map(0, None).is_err() && NearMemory::map(usize::MAX, None).is_err());
    }

    #[test]
    fn on_the_node_that_was_asked_for() {
        let Ok(nodes) = crate::nodes::nodes(&crate::Root::default()) else {
            return harness::not_here("the kernel shows no nodes");
        };
        let node = nodes[0].number;
        let memory = match NearMemory::map(3 * PAGE, Some(node)) {
            Ok(memory) => memory,
            Err(error) => return harness::not_here(format_args!("no node may be asked for: {error}")),
        };
        match memory.nodes() {
            Ok(nodes) => assert!(nodes.iter().all(|&on| on == Ok(node)), "{nodes:?}"),
            Err(error) => harness::not_here(format_args!("where a page lies may not be asked: {error}")),
        }
        let nowhere = NearMemory::map(PAGE, Some(1000)).unwrap_err();
        assert_eq!(nowhere.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn who_writes_to_what_is_sealed_is_ended() {
        let sealed = NearMemory::map(PAGE, None).unwrap().seal().unwrap();
        let at = sealed.start().as_ptr();
        // SAFETY: the child calls nothing but the write and `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: this is the fault that is tested; the child has nothing to lose.
            unsafe {
                at.write_volatile(1);
                libc::_exit(0)
            }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status lives.
        assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status}"
        );
    }
}
