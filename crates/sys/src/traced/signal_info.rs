//! The kernel's report of a signal that is about to be delivered to a stopped thread.

use std::io;

use super::{Traced, ask_with};

/// `si_code`: traps, faults without further details, and the kernel's own signals.
const SI_KERNEL: i32 = 0x80;

/// `siginfo_t`, byte for byte.
#[derive(Clone, Copy)]
pub struct SignalInfo([u8; size_of::<libc::siginfo_t>()]);

impl SignalInfo {
    /// The offsets in `siginfo_t` of its code, the address of a fault, and the key that closed the page
    /// (`_addr_pkey._pkey`).
    const CODE: usize = 8;
    const ADDRESS: usize = 16;
    const KEY: usize = 32;

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    pub(super) fn code(&self) -> i32 {
        self.word(SignalInfo::CODE) as i32
    }

    pub(super) fn address(&self) -> usize {
        self.word(SignalInfo::ADDRESS) as usize | (self.word(SignalInfo::ADDRESS + 4) as usize) << 32
    }

    pub(super) fn key(&self) -> u32 {
        self.word(SignalInfo::KEY)
    }

    fn signal(&self) -> i32 {
        self.word(0) as i32
    }

    /// Returns whether an instruction that did not complete raised it: if the thread resumes without a
    /// signal, the instruction faults again.
    pub fn comes_again(&self) -> bool {
        const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        /// `BUS_MCEERR_AO`: memory that nobody has touched yet is damaged.
        const DAMAGED: i32 = 5;
        let is_fault = FAULTS.contains(&self.signal()) && self.code() > 0 && self.code() != SI_KERNEL;
        is_fault && (self.signal(), self.code()) != (libc::SIGBUS, DAMAGED)
    }

    /// Returns whether it is the trap of an instruction `int3`.
    pub(super) fn is_trap(&self) -> bool {
        (self.signal(), self.code()) == (libc::SIGTRAP, SI_KERNEL)
    }
}

/// A signal that came while a thread ran code of ours.
pub(super) struct Held {
    task: u32,
    signal: i32,
    info: SignalInfo,
}

impl Traced {
    /// Pre: the thread is stopped for a signal.
    pub fn signal_info(&self, task: u32) -> io::Result<SignalInfo> {
        let mut info = SignalInfo([0; _]);
        // SAFETY: the request writes a siginfo_t, of which any bytes are some.
        unsafe { ask_with(libc::PTRACE_GETSIGINFO, task, 0, &mut info.0)? };
        Ok(info)
    }

    /// Keeps the signal that a thread is stopped for until code of ours has run.
    pub(super) fn hold(&self, task: u32, signal: i32) -> io::Result<()> {
        let info = self.signal_info(task)?;
        self.held.borrow_mut().push(Held { task, signal, info });
        Ok(())
    }

    /// The next signal that was kept for a thread, which is then stopped for it.
    ///
    /// Pre: the thread is stopped for the trap at the end of code of ours, or for another signal.
    pub(super) fn held(&self, task: u32) -> io::Result<Option<i32>> {
        let at = self.held.borrow().iter().position(|held| held.task == task);
        let Some(at) = at else { return Ok(None) };
        let held = self.held.borrow_mut().remove(at);
        self.set_signal_info(task, &held.info)?;
        Ok(Some(held.signal))
    }

    /// The signal that a thread is stopped for is this one from here on: code of ours that ran meanwhile ended with another.
    ///
    /// Pre: the thread is stopped for a signal.
    pub fn set_signal_info(&self, task: u32, info: &SignalInfo) -> io::Result<()> {
        let mut info = info.0;
        // SAFETY: the request reads a siginfo_t.
        unsafe { ask_with(libc::PTRACE_SETSIGINFO, task, 0, &mut info) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(signal: i32, code: i32, address: u64) -> SignalInfo {
        let mut bytes = [0; size_of::<libc::siginfo_t>()];
        bytes[..4].copy_from_slice(&signal.to_ne_bytes());
        bytes[8..12].copy_from_slice(&code.to_ne_bytes());
        bytes[16..24].copy_from_slice(&address.to_ne_bytes());
        SignalInfo(bytes)
    }

    #[test]
    fn faults_come_again_and_signals_that_were_sent_do_not() {
        let fault = info(libc::SIGSEGV, 2, 0x7fff_1234_5678);
        assert!(fault.comes_again());
        assert_eq!(fault.address(), 0x7fff_1234_5678);
        // By kill(2); a timer; a breakpoint, which is behind the thread.
        assert!(!info(libc::SIGSEGV, 0, 0).comes_again());
        assert!(!info(libc::SIGALRM, 2, 0).comes_again());
        let trap = info(libc::SIGTRAP, 0x80, 0);
        assert!(trap.is_trap() && !trap.comes_again());
        assert!(!info(libc::SIGTRAP, 0, 0).is_trap());
        // Damaged memory: where it is touched, and where it was found.
        assert!(info(libc::SIGBUS, 4, 0).comes_again() && !info(libc::SIGBUS, 5, 0).comes_again());
    }
}
