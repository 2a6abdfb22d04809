//! Signals as messages: Ctrl-C and its like arrive on a descriptor and do not end the process.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The number of the signal that a terminal sends as it closes.
pub const HANGUP: i32 = libc::SIGHUP;

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub number: i32,
    /// True if the terminal sent it (Ctrl-C), and so to the whole foreground group.
    pub from_terminal: bool,
    /// The process that sent it; 0 for the kernel.
    pub sender: u32,
    /// The value sent along (`sigqueue`).
    pub value: Option<usize>,
}

/// While this lives, signals are reported to the caller, not obeyed; dropping it restores their old effect.
pub struct Caught {
    pipe: File,
    _write_end: OwnedFd,
    old: Vec<(i32, libc::sigaction)>,
}

/// The descriptor that the handler writes to; -1 for none.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Those that ask a process to end.
pub(crate) const ENDINGS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Those that report this process's own errors, if nobody sent them.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// The size of the handler's message about a signal. Pipes keep it whole.
const MESSAGE_BYTES: usize = 24;

extern "C" fn on_signal(number: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo_t.
    let code = unsafe { (*info).si_code };
    if code > 0 && FAULTS.contains(&number) {
        // The instruction runs again, and ends the process.
        // SAFETY: sigaction(2) is async-signal-safe, and an all-zero action is the default one.
        unsafe { libc::sigaction(number, &std::mem::zeroed(), std::ptr::null_mut()) };
        return;
    }
    let pipe = PIPE.load(Ordering::Relaxed);
    if pipe < 0 {
        return;
    }
    let sent = code <= 0;
    // SAFETY: of a signal that a process sent, the sender is filled in; the value is where it was queued, and else
    // some bytes of the structure.
    let (sender, value) = unsafe {
        match sent {
            true => ((*info).si_pid(), (*info).si_value().sival_ptr.addr()),
            false => (0, 0),
        }
    };
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(&number.to_ne_bytes());
    message[4..8].copy_from_slice(&code.to_ne_bytes());
    message[8..12].copy_from_slice(&sender.to_ne_bytes());
    message[16..].copy_from_slice(&(value as u64).to_ne_bytes());
    // SAFETY: write(2) is async-signal-safe and the buffer lives on this stack; errno, which it
    // may change, belongs to the interrupted code and is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(pipe, message.as_ptr().cast(), message.len());
        *libc::__errno_location() = errno;
    }
}

impl Caught {
    /// Catches those that ask a process to end.
    ///
    /// Pre: no other `Caught` lives in this process. Signals that are ignored stay so (`nohup`).
    /// Processes started from now on have the signals' usual effect: handlers do not outlive exec.
    pub fn begin() -> io::Result<Caught> {
        Caught::those(ENDINGS)
    }

    /// The same of every signal that can be caught, those of job control and of children included.
    pub fn every() -> io::Result<Caught> {
        // The C library keeps two for itself, and refuses them.
        let all = (1..=libc::SIGRTMAX()).filter(|&number| {
            let uncatchable = number == libc::SIGKILL || number == libc::SIGSTOP;
            !uncatchable && !(32..libc::SIGRTMIN()).contains(&number)
        });
        Caught::those(all)
    }

    fn those(numbers: impl IntoIterator<Item = i32>) -> io::Result<Caught> {
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
        for number in numbers {
            let old = effect(number)?;
            // A process that ignores SIGCHLD gets none; and every program in Rust ignores SIGPIPE.
            if old.sa_sigaction == libc::SIG_IGN && ![libc::SIGCHLD, libc::SIGPIPE].contains(&number) {
                continue;
            }
            catch(number)?;
            caught.old.push((number, old));
        }
        Ok(caught)
    }

    /// The next signal that came, if any. Does not wait.
    pub fn take(&mut self) -> Option<Arrived> {
        let mut message = [0; MESSAGE_BYTES];
        if !matches!(self.pipe.read(&mut message), Ok(MESSAGE_BYTES)) {
            return None;
        }
        let word = |at: usize| i32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        let (code, value) = (word(4), message[16..].try_into().map_or(0, u64::from_ne_bytes));
        Some(Arrived {
            number: word(0),
            from_terminal: code == libc::SI_KERNEL,
            sender: word(8) as u32,
            value: (code == libc::SI_QUEUE).then_some(value as usize),
        })
    }

    /// Returns whether a signal was ignored before it was caught.
    pub(crate) fn ignored(&self, number: i32) -> bool {
        let old = self.old.iter().find(|(caught, _)| *caught == number);
        old.is_some_and(|(_, old)| old.sa_sigaction == libc::SIG_IGN)
    }

    /// Obeys a signal once, as a process that catches nothing does: for those that stop it. Returns when it goes on.
    pub(crate) fn obey(&self, number: i32) -> io::Result<()> {
        if !self.old.iter().any(|(caught, _)| *caught == number) && number != libc::SIGSTOP {
            return Ok(());
        }
        if number != libc::SIGSTOP {
            // SAFETY: an all-zero action is the default one.
            unsafe { libc::sigaction(number, &std::mem::zeroed(), std::ptr::null_mut()) };
        }
        send(std::process::id(), number)?;
        if number != libc::SIGSTOP {
            catch(number)?;
        }
        Ok(())
    }
}

/// The current action of a signal.
fn effect(number: i32) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action only asks; `old` has room for the answer.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), old.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: sigaction succeeded and filled it.
    Ok(unsafe { old.assume_init() })
}

fn catch(number: i32) -> io::Result<()> {
    // SAFETY: all-zero is a valid sigaction (empty mask, no flags).
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = on_signal as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `new` is initialised and its handler is async-signal-safe.
    if unsafe { libc::sigaction(number, &new, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
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

/// Forwards a signal, with its value.
pub fn pass_on(process: u32, arrived: &Arrived) -> io::Result<()> {
    let (Some(value), Ok(process @ 1..)) = (arrived.value, i32::try_from(process)) else {
        return send(process, arrived.number);
    };
    let value = libc::sigval {
        sival_ptr: std::ptr::without_provenance_mut(value),
    };
    // SAFETY: sigqueue(3) touches no memory of ours; the value is handed on and never followed.
    if unsafe { libc::sigqueue(process, arrived.number, value) } != 0 {
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
    /// All signals wait.
    pub fn begin() -> Held {
        Held::all_but(&[])
    }

    /// All signals but those of a thread's own faults, which a program may handle (a garbage collector, a page that is brought):
    /// for threads that run the program's code. The kernel ends a process whose fault waits.
    pub fn but_faults() -> Held {
        Held::all_but(&FAULTS)
    }

    fn all_but(these: &[i32]) -> Held {
        let (mut all, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets have room, `all` is filled before it is read; with valid arguments the
        // calls cannot fail, and the last one fills `old`.
        let old = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for &signal in these {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
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
        let begun = std::time::Instant::now();
        let mut arrived = caught.take();
        while arrived.is_none() && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            arrived = caught.take();
        }
        assert_eq!(
            arrived,
            Some(Arrived {
                number: libc::SIGTERM,
                from_terminal: false,
                sender: std::process::id(),
                value: None,
            })
        );
        assert!(send(0, libc::SIGTERM).is_err());
    }
}
