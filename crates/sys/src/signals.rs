//! Signals as messages: Ctrl-C and its like arrive on a descriptor and do not end the process.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub number: i32,
    /// Whether the terminal sent it (Ctrl-C), and so to the whole foreground group.
    pub from_terminal: bool,
}

/// The signals that ask a process to end. While this lives they are told, not obeyed; dropping it
/// gives them back their old effect.
pub struct Caught {
    pipe: File,
    _write_end: OwnedFd,
    old: Vec<(i32, libc::sigaction)>,
}

/// Where the handler writes; -1 for nowhere.
static PIPE: AtomicI32 = AtomicI32::new(-1);

const CAUGHT: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn on_signal(number: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let pipe = PIPE.load(Ordering::Relaxed);
    if pipe < 0 {
        return;
    }
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo_t.
    let code = unsafe { (*info).si_code };
    let message = [number as u8, (code == libc::SI_KERNEL) as u8];
    // SAFETY: write(2) is async-signal-safe and the buffer lives on this stack; errno, which it
    // may change, is put back so that the interrupted code does not notice.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(pipe, message.as_ptr().cast(), message.len());
        *libc::__errno_location() = errno;
    }
}

impl Caught {
    /// Pre: no other `Caught` lives in this process. Signals that are ignored stay so (`nohup`).
    /// Processes started from now on have the signals' usual effect: handlers do not outlive exec.
    pub fn begin() -> io::Result<Caught> {
        let (read, write) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
        if PIPE
            .compare_exchange(-1, write.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            return Err(io::Error::other("signals are already being caught"));
        }
        let mut caught = Caught {
            pipe: File::from(read),
            _write_end: write,
            old: Vec::new(),
        };
        for number in CAUGHT {
            let mut old = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: a null new action only asks; `old` has room for the answer.
            let asked = unsafe { libc::sigaction(number, std::ptr::null(), old.as_mut_ptr()) };
            if asked != 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: sigaction succeeded and filled it.
            let old = unsafe { old.assume_init() };
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            // SAFETY: all-zero is a valid sigaction (empty mask, no flags).
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = on_signal as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: `new` is initialised and its handler is async-signal-safe.
            if unsafe { libc::sigaction(number, &new, std::ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            caught.old.push((number, old));
        }
        Ok(caught)
    }

    /// The next signal that came, if any. Does not wait.
    pub fn take(&mut self) -> Option<Arrived> {
        let mut message = [0; 2];
        match self.pipe.read(&mut message) {
            Ok(2) => Some(Arrived {
                number: i32::from(message[0]),
                from_terminal: message[1] != 0,
            }),
            _ => None,
        }
    }
}

impl AsFd for Caught {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (number, old) in &self.old {
            // SAFETY: `old` is what sigaction gave us for this signal.
            unsafe { libc::sigaction(*number, old, std::ptr::null_mut()) };
        }
        PIPE.store(-1, Ordering::SeqCst);
    }
}

/// Sends a signal to a process. Pre: `process` is positive. A process that is gone is no error.
pub fn send(process: u32, number: i32) -> io::Result<()> {
    let process = i32::try_from(process).ok().filter(|p| *p > 0);
    let Some(process) = process else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process"));
    };
    // SAFETY: kill(2) touches no memory of ours.
    if unsafe { libc::kill(process, number) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ESRCH) {
            return Err(error);
        }
    }
    Ok(())
}

/// While it lives no handler runs on this thread: signals wait.
#[must_use]
pub struct Held {
    old: libc::sigset_t,
    /// The mask is the thread's own.
    _here: std::marker::PhantomData<*const ()>,
}

impl Held {
    pub fn begin() -> Held {
        let (mut all, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets have room, `all` is filled before it is read; with valid arguments the
        // call cannot fail, and it fills `old`.
        let old = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
            old.assume_init()
        };
        Held {
            old,
            _here: std::marker::PhantomData,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a mask that the thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.old, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caught_signal_arrives_as_a_message() {
        let mut caught = Caught::begin().unwrap();
        assert!(Caught::begin().is_err());
        assert_eq!(caught.take(), None);
        send(std::process::id(), libc::SIGTERM).unwrap();
        let came = crate::packet::wait(&[caught.as_fd()], 2000).unwrap();
        // The signal itself may have ended the wait.
        let _ = came;
        let mut arrived = None;
        for _ in 0..200 {
            arrived = caught.take();
            if arrived.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(
            arrived,
            Some(Arrived {
                number: libc::SIGTERM,
                from_terminal: false
            })
        );
        assert!(send(0, libc::SIGTERM).is_err());
    }
}
