//! The memory that the kernel writes for a thread's restartable sequences (`rseq(2)`), each time the thread resumes
//! after a preemption or a migration. If the kernel cannot write there, it ends the program.

use std::io;

use super::Traced;
use crate::memory::Span;

/// `struct ptrace_rseq_configuration` in words: the address; the size, and the signature.
const WORDS: usize = 3;

impl Traced {
    /// The memory that a stopped thread has registered. `None`: none yet, or the kernel does not say (before Linux 5.13).
    pub fn restartable(&self, task: u32) -> io::Result<Option<Span>> {
        let mut words = [0u64; WORDS];
        // SAFETY: the request writes no more bytes than its address argument says, and any words are some.
        let asked = unsafe {
            libc::ptrace(
                libc::PTRACE_GET_RSEQ_CONFIGURATION,
                task as libc::pid_t,
                size_of_val(&words),
                words.as_mut_ptr(),
            )
        };
        if asked < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EIO | libc::EINVAL) => Ok(None),
                _ => Err(error),
            };
        }
        let [start, size, _] = words;
        Ok((start != 0).then_some(Span::new(start as usize, size as u32 as usize)))
    }
}
