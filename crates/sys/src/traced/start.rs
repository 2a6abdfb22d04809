//! The start of a traced program: it waits between fork and exec until it is traced, and stops at its first
//! instruction.

use std::cell::{Cell, RefCell};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{Event, On, Stop, Traced, ask, is_over};

impl Traced {
    /// Starts a command, and stops it at the first instruction of its program. If this process ends, so does the program.
    ///
    /// Errors: it cannot be started, or may not be traced.
    pub fn begin(mut command: Command) -> io::Result<Traced> {
        let (mut told, tell) = io::pipe()?;
        let (wait, go) = io::pipe()?;
        // SAFETY: the closure makes system calls only, on descriptors that live until exec.
        unsafe { command.pre_exec(move || await_tracer(&tell, &wait)) };
        // Spawning ends with exec, for which the child waits until it is traced, by this thread.
        let starter = std::thread::spawn(move || command.spawn().map(|child| child.id()));
        let mut number = [0; 4];
        if let Err(error) = told.read_exact(&mut number) {
            return Err(starter.join().map_or(error, |started| {
                started.err().unwrap_or_else(|| io::ErrorKind::Other.into())
            }));
        }
        let process = u32::from_ne_bytes(number);
        let options = libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_EXITKILL;
        let seized = ask(libc::PTRACE_SEIZE, process, options as usize);
        // If it may not be traced, it reads the end of the pipe and exits at once.
        let mut go = Some(go);
        if seized.is_ok() {
            go.as_mut().map_or(Ok(()), |go| go.write_all(&[1]))?;
        }
        drop(go.take());
        let traced = Traced {
            process,
            over: Cell::new(false),
            starter: Cell::new(Some(starter)),
            held: RefCell::new(Vec::new()),
            next: Cell::new(None),
            _here: PhantomData,
        };
        seized?;
        loop {
            if has_ended(process)? {
                // The starter waits for it too, and knows why.
                traced.over.set(true);
                return Err(traced.not_started().unwrap_or_else(|| io::ErrorKind::NotFound.into()));
            }
            match traced.wait(Some(process))? {
                Some(Event::Stopped(_, Stop::Exec)) => break,
                Some(Event::Stopped(task, Stop::Signal(signal))) => traced.go_on(task, On::Freely, signal)?,
                Some(Event::Stopped(task, _)) => traced.go_on(task, On::Freely, 0)?,
                Some(Event::Ended(..)) => {
                    return Err(traced.not_started().unwrap_or_else(|| io::ErrorKind::NotFound.into()));
                }
                None => {}
            }
        }
        if let Some(error) = traced.not_started() {
            return Err(error);
        }
        // Exec has a result still to be written; then the program's first instruction comes.
        traced.until(process, On::ToCalls, |stop| stop == Stop::Leaves)?;
        Ok(traced)
    }

    /// The error before exec, if there was one.
    fn not_started(&self) -> Option<io::Error> {
        self.starter.take().and_then(|starter| starter.join().ok()?.err())
    }
}

/// Waits until a traced process stops or ends, and leaves that to be waited for. Returns whether it has ended.
fn has_ended(process: u32) -> io::Result<bool> {
    // SAFETY: any bytes are a siginfo_t.
    let mut info = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
    let events = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    loop {
        // SAFETY: the kernel writes one siginfo_t.
        if unsafe { libc::waitid(libc::P_PID, process, &raw mut info, events) } == 0 {
            return Ok([libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&info.si_code));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            // The starter has waited for it.
            _ if is_over(&error) => return Ok(true),
            _ => return Err(error),
        }
    }
}

/// Between fork and exec: reports the process's number, and waits until it is traced.
fn await_tracer(tell: &PipeWriter, wait: &PipeReader) -> io::Result<()> {
    // SAFETY: getpid(2) takes nothing.
    let number = unsafe { libc::getpid() }.to_ne_bytes();
    let mut answer = 0u8;
    // SAFETY: write(2) and read(2) are async-signal-safe; both buffers are on this stack.
    let read = unsafe {
        libc::write(tell.as_fd().as_raw_fd(), number.as_ptr().cast(), number.len());
        libc::read(wait.as_fd().as_raw_fd(), (&raw mut answer).cast(), 1)
    };
    if read == 1 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }
}
