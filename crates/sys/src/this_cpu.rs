//! The number of the cpu that a thread is on, in one instruction: the kernel keeps it up to date in memory that each
//! thread has (rseq, Linux 4.18), and the C library gives its address (glibc 2.35). Elsewhere a call of the C library
//! gives the number, in some ns.

/// The source of the cpu's number.
#[derive(Clone, Copy, Debug)]
pub struct ThisCpu {
    /// The offset from the thread pointer, in bytes; it is the same for all threads.
    offset: Option<isize>,
}

impl ThisCpu {
    /// Finds out where it is, for all threads of this process.
    pub fn find() -> ThisCpu {
        ThisCpu { offset: offset() }
    }

    /// The cpu that the calling thread is on, at the moment.
    #[inline]
    pub fn number(self) -> usize {
        match self.offset {
            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            Some(offset) => {
                let cpu: u32;
                // SAFETY: the C library registered this memory of the calling thread with the kernel, and says that it is
                // there; its first four bytes are the number (`cpu_id_start` of `struct rseq`). They are read at once.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    std::arch::asm!(
                        "mov {cpu:e}, fs:[{offset}]",
                        cpu = out(reg) cpu,
                        offset = in(reg) offset,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                // SAFETY: as above.
                #[cfg(target_arch = "aarch64")]
                unsafe {
                    std::arch::asm!(
                        "mrs {at}, tpidr_el0",
                        "ldr {cpu:w}, [{at}, {offset}]",
                        at = out(reg) _,
                        cpu = out(reg) cpu,
                        offset = in(reg) offset,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                cpu as usize
            }
            _ => crate::affinity::here(),
        }
    }
}

/// `None` if the C library does not tell, or has nothing registered.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn offset() -> Option<isize> {
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: the name is a string; the call looks it up and changes nothing.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    };
    // SAFETY: glibc has this as an `unsigned int` that never changes once the program runs.
    let bytes = unsafe { symbol(c"__rseq_size")?.cast::<u32>().read() };
    // SAFETY: and this as a `ptrdiff_t`.
    let offset = unsafe { symbol(c"__rseq_offset")?.cast::<isize>().read() };
    (bytes > 0).then_some(offset)
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
fn offset() -> Option<isize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{Wanderer, allowed};

    #[test]
    fn the_number_is_that_of_the_cpu_that_the_thread_was_sent_to() {
        let found = ThisCpu::find();
        for this in [found, ThisCpu { offset: None }] {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut wanderer = Wanderer::new().unwrap();
                    for cpu in allowed(None).unwrap() {
                        wanderer.go(cpu as usize).unwrap();
                        assert_eq!(this.number(), cpu as usize, "{this:?}");
                    }
                });
            });
        }
    }
}
