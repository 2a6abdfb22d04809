//! Signals still pending for a stopped thread: its own faults, and SIGCONT.
//!
//! A thread that is asked to stop ([`Traced::interrupt`]) while the kernel handles its fault stops for that first, and the fault's
//! signal waits. Code of ours that the thread ran then would get it: Linux looks for a fault's signal by the queue's order alone
//! once the trap at the code's end has made one, even where the signal is blocked.

use std::io;

use super::Traced;

/// Signals of an instruction's faults.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGFPE,
    libc::SIGSYS,
];
/// Signals of one thread that are looked at; a fault's is queued however many others wait.
const MOST: usize = 64;
/// `siginfo_t` in words: the signal, and above zero at the code if no process sent it.
const WORDS: usize = size_of::<libc::siginfo_t>() / size_of::<i32>();
const SIGNAL: usize = 0;
const CODE: usize = 2;

impl Traced {
    /// Returns whether a fault of a stopped thread waits to be delivered.
    pub(super) fn has_faulted(&self, task: u32) -> io::Result<bool> {
        let is_fault = |info: &[i32; WORDS]| FAULTS.contains(&info[SIGNAL]) && info[CODE] > 0;
        Ok(pending(task, 0)?.iter().any(is_fault))
    }

    /// The signal with which a stopped thread is to go on: none, if it would stop the process and that has been continued since. Linux
    /// takes stops that wait back when `SIGCONT` is sent, and cannot know of one that is in our hands while code of ours runs.
    pub(super) fn unless_continued(&self, task: u32, signal: i32) -> io::Result<i32> {
        const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        if !STOPS.contains(&signal) {
            return Ok(signal);
        }
        let continues = |info: &[i32; WORDS]| info[SIGNAL] == libc::SIGCONT;
        let own = pending(task, 0)?.iter().any(continues);
        let continued = own || pending(task, libc::PTRACE_PEEKSIGINFO_SHARED)?.iter().any(continues);
        Ok(if continued { 0 } else { signal })
    }
}

/// The signals pending for a stopped thread, or for its process.
fn pending(task: u32, flags: u32) -> io::Result<Vec<[i32; WORDS]>> {
    let mut asked = libc::ptrace_peeksiginfo_args {
        off: 0,
        flags,
        nr: MOST as i32,
    };
    let mut found = [[0i32; WORDS]; MOST];
    // SAFETY: the request reads the arguments, and writes no more siginfo_t than they say, of which any words are some.
    let count = unsafe {
        libc::ptrace(
            libc::PTRACE_PEEKSIGINFO,
            task as libc::pid_t,
            &raw mut asked,
            found.as_mut_ptr(),
        )
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(found[..(count as usize).min(MOST)].to_vec())
}
