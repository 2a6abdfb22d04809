//! System calls that a stopped thread makes in our place.

use std::io;
use std::os::unix::fs::FileExt;

use super::{Event, On, Registers, Stop, Traced};
use crate::mappings::{self, Kind};
use crate::memory::PAGE;

/// A system call: its number and arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call(pub libc::c_long, pub [usize; 6]);

/// Every signal, of which these are let through: a stub ends with a trap, and blocked faults would lose their handlers.
const ALL: u64 = !(1 << (libc::SIGTRAP - 1) | 1 << (libc::SIGSEGV - 1));

impl Traced {
    /// Has a stopped thread make a system call; its registers are then as before.
    ///
    /// Pre: it is not stopped as it enters a call. The call has no effect visible to the program beyond the intended
    /// one. Errors: the call's own, and those of tracing.
    pub(super) fn call(&self, task: u32, gate: usize, call: Call) -> io::Result<usize> {
        let before = self.registers(task)?;
        let Call(number, arguments) = call;
        let mut registers = before.0;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = arguments.map(|argument| argument as u64);
        registers.rax = number as u64;
        // No system call is to be begun again meanwhile.
        registers.orig_rax = u64::MAX;
        registers.rip = gate as u64;
        let blocked = self.blocked(task)?;
        self.set_blocked(task, ALL)?;
        self.set_registers(task, &Registers(registers))?;
        let done = self
            .until(task, On::ToCalls, |stop| stop == Stop::Enters)
            .and_then(|()| self.until(task, On::ToCalls, |stop| stop == Stop::Leaves))
            .and_then(|()| Ok(self.registers(task)?.0.rax as i64));
        self.set_registers(task, &before)?;
        self.set_blocked(task, blocked)?;
        match done? {
            error @ -4095..=-1 => Err(io::Error::from_raw_os_error(-error as i32)),
            value => Ok(value as usize),
        }
    }

    /// Goes on to a stop of this kind. Signals that are sent meanwhile come to the thread afterwards ([`Traced::go_on`]).
    pub(super) fn until(&self, task: u32, on: On, mut wanted: impl FnMut(Stop) -> bool) -> io::Result<()> {
        loop {
            match self.to_stop(task, on)? {
                Event::Stopped(_, stop) if wanted(stop) => return Ok(()),
                Event::Stopped(_, Stop::Signal(signal)) => self.hold(task, signal)?,
                // The thread was asked to stop before.
                Event::Stopped(_, Stop::Interrupted | Stop::Group) => {}
                stop => return Err(unexpected(stop)),
            }
        }
    }

    /// Resumes to the next stop, whatever signals are held.
    fn to_stop(&self, task: u32, on: On) -> io::Result<Event> {
        self.resume(task, on, 0)?;
        loop {
            if let Some(event) = self.wait_for(Some(task))? {
                return Ok(event);
            }
        }
    }

    /// Runs code of ours in a stopped thread, up to its trap (`int3`); registers are then as before. A touch of a closed page on the way
    /// comes to `closed`, with its address. Signals that are sent meanwhile come to the thread afterwards ([`Traced::go_on`]).
    ///
    /// Pre: the code is in the page of `code`, and touches nothing of the program's. It finds `counter` and `base` in
    /// `r12` and `rbx`.
    pub(super) fn run(
        &self,
        task: u32,
        code: usize,
        [base, counter]: [usize; 2],
        mut closed: impl FnMut(usize) -> io::Result<()>,
    ) -> io::Result<()> {
        /// The flag of the processor by which a program single-steps itself.
        const TRAP: u64 = 1 << 8;
        let before = self.registers(task)?;
        let mut registers = before.0;
        registers.orig_rax = u64::MAX;
        registers.eflags &= !TRAP;
        (registers.rip, registers.rbx, registers.r12) = (code as u64, base as u64, counter as u64);
        let blocked = self.blocked(task)?;
        self.set_blocked(task, ALL)?;
        self.set_registers(task, &Registers(registers))?;
        let done = loop {
            let step = match self.to_stop(task, On::Freely) {
                Ok(Event::Stopped(_, Stop::Closed { address, .. } | Stop::Forbidden { address })) => closed(address),
                Ok(Event::Stopped(_, Stop::Signal(signal))) => match self.is_at_trap(task, code) {
                    Ok(true) => break Ok(()),
                    Ok(false) => self.hold(task, signal),
                    Err(error) => Err(error),
                },
                // The thread was asked to stop before.
                Ok(Event::Stopped(_, Stop::Interrupted | Stop::Group)) => Ok(()),
                Ok(stop) => Err(unexpected(stop)),
                Err(error) => Err(error),
            };
            if step.is_err() {
                break step;
            }
        };
        self.set_registers(task, &before)?;
        self.set_blocked(task, blocked)?;
        done
    }

    /// Returns whether a thread stopped for a signal has reached the trap at the end of code of ours, rather than being
    /// sent SIGTRAP.
    fn is_at_trap(&self, task: u32, code: usize) -> io::Result<bool> {
        let here = self.registers(task)?.instruction() / PAGE == code / PAGE;
        Ok(here && self.signal_info(task)?.is_trap())
    }

    /// The address of an instruction `syscall` in the program: in the code that the kernel maps
    /// into each.
    ///
    /// Errors: NotFound; those of reading its memory.
    pub(super) fn gate(&self) -> io::Result<usize> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let mappings = mappings::all(Some(self.process()))?;
        let kernels = mappings
            .into_iter()
            .find(|mapping| mapping.kind == Kind::Special("[vdso]".into()));
        let span = kernels.ok_or(io::ErrorKind::NotFound)?.span;
        let mut code = vec![0; span.bytes];
        memory(self.process())?.read_exact_at(&mut code, span.start as u64)?;
        let at = code.windows(2).position(|two| two == SYSCALL);
        Ok(span.start + at.ok_or(io::ErrorKind::NotFound)?)
    }
}

fn unexpected(event: Event) -> io::Error {
    io::Error::other(format!("a thread that should work for its tracer stopped: {event:?}"))
}

/// The memory of a stopped tracee, as a file.
pub(super) fn memory(process: u32) -> io::Result<std::fs::File> {
    let path = format!("/proc/{process}/mem");
    std::fs::OpenOptions::new().read(true).write(true).open(path)
}
