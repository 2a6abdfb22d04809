//! The rights of a stopped thread to pages with protection keys: its register PKRU, within the state that the kernel saves.

use std::arch::x86_64::__cpuid_count;
use std::io;
use std::sync::OnceLock;

use super::{Traced, ask_with};

/// `NT_X86_XSTATE`: the extended state of a thread, as `xsave` lays it out.
const EXTENDED_STATE: usize = 0x202;
/// The offset of the header's bitmap of parts in use, and the bit of PKRU in it.
const HEADER: usize = 512;
const PKRU: u32 = 9;
/// Larger than any processor's.
const MOST: usize = 1 << 14;

/// A thread's denied accesses: two bits for each key, the lower one for any access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u32);

impl Rights {
    pub fn is_closed(self, key: u32) -> bool {
        self.0 >> (2 * key) & 1 == 1
    }

    /// The same, with a key closed or opened.
    #[must_use]
    pub fn with(self, key: u32, closed: bool) -> Rights {
        let bits = 0b11 << (2 * key);
        Rights(self.0 & !bits | if closed { 1 << (2 * key) } else { 0 })
    }
}

/// The offset of PKRU in the extended state. `None`: the processor has no protection keys.
///
/// The processor is asked once: in a virtual machine the hypervisor answers, which takes longer than all else of a change of rights.
fn offset() -> Option<usize> {
    /// The leaf of the parts of the extended state.
    const STATE: u32 = 0xd;
    static OFFSET: OnceLock<Option<usize>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        let found = (__cpuid_count(0, 0).eax >= STATE).then(|| __cpuid_count(STATE, PKRU))?;
        (found.eax >= 4 && found.ebx > 0).then_some(found.ebx as usize)
    })
}

impl Traced {
    /// Reads the rights of a stopped thread, and changes them as `change` says.
    pub fn change_rights(&self, task: u32, change: impl FnOnce(Rights) -> Rights) -> io::Result<()> {
        let at = offset().ok_or(io::ErrorKind::Unsupported)?;
        let mut state = [0u8; MOST];
        let mut vector = libc::iovec {
            iov_base: state.as_mut_ptr().cast(),
            iov_len: state.len(),
        };
        // SAFETY: the request writes no more than the vector's length to its bytes, and then its length.
        unsafe { ask_with(libc::PTRACE_GETREGSET, task, EXTENDED_STATE, &mut vector)? };
        if vector.iov_len < at + 4 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The kernel fills it in whether or not the header has its bit.
        let before = Rights(u32::from_ne_bytes([
            state[at],
            state[at + 1],
            state[at + 2],
            state[at + 3],
        ]));
        let after = change(before);
        if after == before {
            return Ok(());
        }
        state[HEADER + 1] |= 1 << (PKRU - 8);
        state[at..at + 4].copy_from_slice(&after.0.to_ne_bytes());
        // SAFETY: the request reads as many bytes as were written above.
        unsafe { ask_with(libc::PTRACE_SETREGSET, task, EXTENDED_STATE, &mut vector) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_closed_and_opened_alone() {
        let rights = Rights(0x5555_5554);
        let opened = rights.with(3, false);
        assert_eq!(opened, Rights(0x5555_5514));
        assert!(!opened.is_closed(3) && opened.is_closed(2) && !opened.is_closed(0));
        assert_eq!(opened.with(3, true), rights);
        // A key that could be read and not written is closed all the same, and then open.
        assert_eq!(Rights(0b1000).with(1, true).with(1, false), Rights(0));
    }
}
