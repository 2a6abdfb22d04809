//! A program that runs traced (`ptrace(2)`): its threads stop at faults, signals and, where that is asked for, system
//! calls, and the tracer decides how they go on. No byte of the program is changed.
//!
//! The kernel takes requests only from the thread that began the tracing, so a [`Traced`] cannot be sent to another.

mod borrowed;
mod calls;
mod pending;
mod restartable;
mod rights;
mod signal_info;
mod start;
mod ticking;

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread::JoinHandle;

pub use borrowed::{Borrowed, Closing, Protected};
pub use rights::Rights;
pub use signal_info::SignalInfo;
pub use ticking::Ticking;

/// The bit of the kernel's word on a stop that says: a system call (`PTRACE_O_TRACESYSGOOD`).
const OF_CALL: i32 = 0x80;
/// The size of the instruction `syscall`.
const SYSCALL_BYTES: u64 = 2;
/// `si_code`: the protection of the page forbids the access; a protection key closes the page.
const SEGV_ACCERR: i32 = 2;
const SEGV_PKUERR: i32 = 4;

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has touched a page whose key its rights close. The instruction did not complete; if the thread resumes
    /// without a signal, it runs again.
    Closed { address: usize, key: u32 },
    /// It has touched a page in a way that the page's protection forbids; as above.
    Forbidden { address: usize },
    /// Another signal is about to be delivered.
    Signal(i32),
    /// It enters a system call.
    Enters,
    /// It has left a system call, and is about to go on.
    Leaves,
    /// The stop that [`Traced::interrupt`] asked for, or the first of a new thread or child.
    Interrupted,
    /// It is stopped as Ctrl-Z stops programs.
    Group,
    /// It has started a thread (same address space), or a child.
    Began { task: u32, vfork: bool },
    /// It runs another program from here on.
    Exec,
}

impl Stop {
    /// The signal of a fault, and that of a single step.
    pub const FAULT: i32 = libc::SIGSEGV;
    pub const STEP: i32 = libc::SIGTRAP;
}

/// An event of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Stopped(u32, Stop),
    /// A thread or process has ended; of a whole process this is how.
    Ended(u32, ExitStatus),
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// To the next fault, signal or event.
    Freely,
    /// The same, and to the next system call.
    ToCalls,
    /// One instruction; where a signal is delivered, to the first instruction of its handler.
    OneStep,
    /// Stopped as it is, until it is continued (`SIGCONT`).
    Resting,
}

/// The registers of a stopped thread.
#[derive(Clone, Copy)]
pub struct Registers(libc::user_regs_struct);

/// How many registers these are.
const REGISTERS: usize = size_of::<libc::user_regs_struct>() / size_of::<u64>();

impl PartialEq for Registers {
    fn eq(&self, other: &Registers) -> bool {
        self.words() == other.words()
    }
}

impl Registers {
    fn words(&self) -> [u64; REGISTERS] {
        // SAFETY: the structure is so many u64 in a row, without padding.
        unsafe { std::mem::transmute(self.0) }
    }

    /// The address of the instruction that runs next.
    pub fn instruction(&self) -> usize {
        self.0.rip as usize
    }

    pub fn stack(&self) -> usize {
        self.0.rsp as usize
    }

    /// The base of thread-local storage.
    pub fn local_storage(&self) -> usize {
        self.0.fs_base as usize
    }

    /// At a stop of a system call: its number, and its first two arguments.
    pub fn call(&self) -> (usize, [usize; 2]) {
        (self.0.orig_rax as usize, [self.0.rdi as usize, self.0.rsi as usize])
    }

    /// Returns whether the system call that the thread leaves succeeded.
    pub fn succeeded(&self) -> bool {
        !(-4095..0).contains(&(self.0.rax as i64))
    }

    /// Returns whether a signal interrupted the system call that the thread leaves, or it is to be
    /// restarted.
    pub fn was_broken_off(&self) -> bool {
        /// EINTR; ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK of the kernel.
        const BROKEN: [i64; 5] = [-4, -512, -513, -514, -516];
        self.0.orig_rax as i64 >= 0 && BROKEN.contains(&(self.0.rax as i64))
    }

    /// Restarts a system call that a stop interrupted and that does not restart by itself. Returns whether there was
    /// one.
    fn begin_call_again(&mut self) -> bool {
        let broken = self.0.orig_rax as i64 >= 0 && self.0.rax as i64 == -i64::from(libc::EINTR);
        if broken {
            self.0.rax = self.0.orig_rax;
            self.0.rip -= SYSCALL_BYTES;
        }
        broken
    }
}

/// A traced program: its first process, and the threads and children that have stopped for us.
pub struct Traced {
    process: u32,
    /// It has ended, or is no longer traced.
    over: Cell<bool>,
    /// Ends with the first exec.
    starter: Cell<Option<JoinHandle<io::Result<u32>>>>,
    /// Signals that came while a thread ran code of ours, and the next event, where that is one of them.
    held: RefCell<Vec<signal_info::Held>>,
    next: Cell<Option<Event>>,
    _here: PhantomData<*const ()>,
}

/// A request that needs no memory of ours.
fn ask(request: libc::c_uint, task: u32, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests that this module asks for this way takes an address of ours; the kernel refuses a task that is not
    // our tracee, or is not stopped.
    let done = unsafe { libc::ptrace(request, task as libc::pid_t, 0usize, data) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A request that reads into `value`, or writes from it.
///
/// # Safety
///
/// The request takes a `T` at its data, and leaves a valid one there.
unsafe fn ask_with<T>(request: libc::c_uint, task: u32, address: usize, value: &mut T) -> io::Result<()> {
    // SAFETY: as promised above.
    let done = unsafe { libc::ptrace(request, task as libc::pid_t, address, std::ptr::from_mut(value)) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

impl Traced {
    /// Ends the program, whatever it does.
    pub fn end(&self) -> io::Result<ExitStatus> {
        // SAFETY: sends a signal to a process that nobody has waited for.
        unsafe { libc::kill(self.process as libc::pid_t, libc::SIGKILL) };
        loop {
            if let Some(Event::Ended(_, status)) = self.wait(Some(self.process))? {
                return Ok(status);
            }
        }
    }

    /// The program's first process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Waits for the next event of any thread that this one traces, or of one. `None`: a signal to this thread came
    /// first ([`Ticking`]).
    ///
    /// Errors: ECHILD if nothing is traced any more.
    pub fn wait(&self, task: Option<u32>) -> io::Result<Option<Event>> {
        match self.next.take() {
            Some(event @ Event::Stopped(of, _)) if task.is_none_or(|task| task == of) => return Ok(Some(event)),
            other => self.next.set(other),
        }
        self.wait_for(task)
    }

    fn wait_for(&self, task: Option<u32>) -> io::Result<Option<Event>> {
        let mut status = 0;
        let whom = task.map_or(-1, |task| task as libc::pid_t);
        loop {
            // SAFETY: the kernel writes one number to `status`.
            let found = unsafe { libc::waitpid(whom, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
            if found < 0 {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::Interrupted {
                    Ok(None)
                } else {
                    Err(error)
                };
            }
            let task = found as u32;
            if !libc::WIFSTOPPED(status) {
                self.over.set(self.over.get() || task == self.process);
                return Ok(Some(Event::Ended(task, ExitStatus::from_raw(status))));
            }
            let stop = self.why(task, status)?;
            if stop != Stop::Interrupted || !self.has_faulted(task)? {
                return Ok(Some(Event::Stopped(task, stop)));
            }
            // The fault comes before any instruction, and is a stop as good as the one that was asked for.
            self.resume(task, On::Freely, 0)?;
        }
    }

    /// Waits for the end of the first process, if it is no longer traced.
    pub fn wait_for_end(&self) -> io::Result<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: the kernel writes one number to `status`.
            let found = unsafe { libc::waitpid(self.process as libc::pid_t, &raw mut status, 0) };
            match found {
                0.. => return Ok(ExitStatus::from_raw(status)),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn why(&self, task: u32, status: i32) -> io::Result<Stop> {
        let signal = libc::WSTOPSIG(status);
        let stop = match status >> 16 {
            0 if signal == libc::SIGTRAP | OF_CALL => match self.enters(task)? {
                true => Stop::Enters,
                false => Stop::Leaves,
            },
            0 if signal == libc::SIGSEGV => self.closed(task)?.unwrap_or(Stop::Signal(signal)),
            0 => Stop::Signal(signal),
            libc::PTRACE_EVENT_EXEC => Stop::Exec,
            event @ (libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                let mut number: libc::c_ulong = 0;
                // SAFETY: the request writes an unsigned long.
                unsafe { ask_with(libc::PTRACE_GETEVENTMSG, task, 0, &mut number)? };
                Stop::Began {
                    task: number as u32,
                    vfork: event == libc::PTRACE_EVENT_VFORK,
                }
            }
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
            libc::PTRACE_EVENT_STOP => Stop::Group,
            _ => Stop::Interrupted,
        };
        Ok(stop)
    }

    /// Returns whether a stop at a system call is at its entry.
    fn enters(&self, task: u32) -> io::Result<bool> {
        // The first byte says which; its size is all that is asked for.
        let mut operation = [0u8; 8];
        // SAFETY: the request writes no more bytes than its address argument says.
        unsafe {
            ask_with(
                libc::PTRACE_GET_SYSCALL_INFO,
                task,
                size_of_val(&operation),
                &mut operation,
            )?
        };
        Ok(operation[0] == libc::PTRACE_SYSCALL_INFO_ENTRY)
    }

    fn closed(&self, task: u32) -> io::Result<Option<Stop>> {
        let info = self.signal_info(task)?;
        let address = info.address();
        Ok(match info.code() {
            SEGV_PKUERR => Some(Stop::Closed {
                address,
                key: info.key(),
            }),
            SEGV_ACCERR => Some(Stop::Forbidden { address }),
            _ => None,
        })
    }

    /// Resumes a stopped thread and delivers the signal to it, if any. A signal that arrived while it ran code of ours
    /// is its next stop.
    pub fn go_on(&self, task: u32, on: On, signal: i32) -> io::Result<()> {
        if signal == 0
            && on != On::Resting
            && let Some(signal) = self.held(task)?
        {
            self.next.set(Some(Event::Stopped(task, Stop::Signal(signal))));
            return Ok(());
        }
        self.resume(task, on, self.unless_continued(task, signal)?)
    }

    fn resume(&self, task: u32, on: On, signal: i32) -> io::Result<()> {
        let request = match on {
            On::Freely => libc::PTRACE_CONT,
            On::ToCalls => libc::PTRACE_SYSCALL,
            On::OneStep => libc::PTRACE_SINGLESTEP,
            On::Resting => libc::PTRACE_LISTEN,
        };
        ask(request, task, signal as usize)
    }

    /// A thread that runs stops soon ([`Stop::Interrupted`]).
    pub fn interrupt(&self, task: u32) -> io::Result<()> {
        ask(libc::PTRACE_INTERRUPT, task, 0)
    }

    /// Resumes a stopped thread and detaches from it.
    pub fn leave(&self, task: u32, signal: i32) -> io::Result<()> {
        let signal = match signal {
            0 => self.held(task)?.unwrap_or(0),
            signal => signal,
        };
        self.over.set(self.over.get() || task == self.process);
        ask(libc::PTRACE_DETACH, task, signal as usize)
    }

    pub fn registers(&self, task: u32) -> io::Result<Registers> {
        // SAFETY: any bytes are registers.
        let mut registers = unsafe { std::mem::zeroed::<libc::user_regs_struct>() };
        // SAFETY: the request writes a user_regs_struct.
        unsafe { ask_with(libc::PTRACE_GETREGS, task, 0, &mut registers)? };
        Ok(Registers(registers))
    }

    /// Restarts a system call that [`Traced::interrupt`] interrupted and that does not restart by itself
    /// (epoll_wait(2)): a program that is not traced does not see `EINTR` without a signal.
    ///
    /// Pre: the thread is stopped as it was interrupted, and no signal waits for it.
    pub fn begin_call_again(&self, task: u32) -> io::Result<()> {
        let mut registers = self.registers(task)?;
        match registers.begin_call_again() {
            true => self.set_registers(task, &registers),
            false => Ok(()),
        }
    }

    /// Turns the system call that a thread is about to enter into one that does nothing; [`Traced::make_call_again`]
    /// makes it later.
    pub fn postpone_call(&self, task: u32) -> io::Result<()> {
        let mut registers = self.registers(task)?;
        registers.0.orig_rax = u64::MAX;
        self.set_registers(task, &registers)
    }

    /// Pre: the thread has left the call of this number, which was put off.
    pub fn make_call_again(&self, task: u32, number: usize) -> io::Result<()> {
        let mut registers = self.registers(task)?;
        registers.0.rax = number as u64;
        registers.0.rip -= SYSCALL_BYTES;
        self.set_registers(task, &registers)
    }

    fn set_registers(&self, task: u32, registers: &Registers) -> io::Result<()> {
        let mut registers = registers.0;
        // SAFETY: the request reads a user_regs_struct.
        unsafe { ask_with(libc::PTRACE_SETREGS, task, 0, &mut registers) }
    }

    /// The signals that a stopped thread blocks: bit n-1 is signal n.
    pub fn blocked(&self, task: u32) -> io::Result<u64> {
        let mut mask = 0u64;
        // SAFETY: the request writes as many bytes as its address argument says.
        unsafe { ask_with(libc::PTRACE_GETSIGMASK, task, size_of::<u64>(), &mut mask)? };
        Ok(mask)
    }

    fn set_blocked(&self, task: u32, mask: u64) -> io::Result<()> {
        let mut mask = mask;
        // SAFETY: the request reads as many bytes as its address argument says.
        unsafe { ask_with(libc::PTRACE_SETSIGMASK, task, size_of::<u64>(), &mut mask) }
    }

    /// Returns whether two tasks share one address space (`kcmp(2)`).
    pub fn share_memory(&self, one: u32, other: u32) -> io::Result<bool> {
        const KCMP_VM: libc::c_int = 1;
        // SAFETY: the call takes numbers.
        let order = unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, KCMP_VM, 0, 0) };
        if order < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(order == 0)
        }
    }
}

impl Drop for Traced {
    /// A program that nobody makes go on is ended.
    fn drop(&mut self) {
        if !self.over.get() {
            let _ = self.end();
        }
    }
}

/// Returns whether a request failed because the thread was killed meanwhile. Its end is then an
/// event to come.
pub fn has_died(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// Returns whether a wait failed because nothing is traced any more.
pub fn is_over(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ECHILD)
}
