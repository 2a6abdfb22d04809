//! A program that runs in our place: it gets the signals that are sent to us, and we stop and end as it does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, WaitOptions};

use crate::packet;
use crate::signals::{self, Arrived, Caught};

/// How long one wait for a signal takes at most, in milliseconds: each of them wakes us.
const WAIT: u32 = 500;

/// While it lives, no signal that can be caught ends this process.
pub struct Supervisor {
    caught: Caught,
}

impl Supervisor {
    /// Pre: nobody else in this process catches signals.
    pub fn begin() -> io::Result<Supervisor> {
        Ok(Supervisor {
            caught: Caught::every()?,
        })
    }

    /// Makes this process the parent of its children's orphans, for as long as it lives.
    pub fn adopt() -> io::Result<()> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Into::into)
    }

    /// Waits for adopted processes that have ended, which would keep their numbers else. One that ended after `child`, which is waited for
    /// by [`Supervisor::run_with`], waits for that.
    pub fn reap_adopted(child: u32) {
        loop {
            // SAFETY: zeros are a value of this type, which the call fills in.
            let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            // SAFETY: `ended` is ours, and nobody is reaped.
            let found = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut ended, options) };
            // SAFETY: the call filled in the fields of a child that ended, or left zeros.
            let process = unsafe { ended.si_pid() };
            let Some(process) = Pid::from_raw(process).filter(|_| found == 0 && process as u32 != child) else {
                return;
            };
            let _ = rustix::process::waitpid(Some(process), WaitOptions::NOHANG);
        }
    }

    /// Runs a command to its end. Signals sent to us meanwhile, or since the beginning, are forwarded to it;
    /// signals of the terminal reach it directly. If we are killed, it is killed too.
    ///
    /// Errors: it could not be started.
    pub fn run(&mut self, command: Command) -> io::Result<ExitStatus> {
        self.run_with(command, |_| ())
    }

    /// The same, with a call as soon as it runs, of its number.
    pub fn run_with(&mut self, mut command: Command, started: impl FnOnce(u32)) -> io::Result<ExitStatus> {
        let parent = rustix::process::getpid();
        self.prepare(&mut command);
        // SAFETY: the closure calls nothing but system calls that are async-signal-safe.
        unsafe { command.pre_exec(move || die_with(parent)) };
        let child = command.spawn()?.id();
        started(child);
        loop {
            if let Some(status) = self.ended(child)? {
                return Ok(status);
            }
            // Woken early or late, the next look shows it.
            let _ = packet::wait(&[self.caught.as_fd()], WAIT);
            self.pass_on(child);
        }
    }

    /// Has another thread run a program to its end, by `work`, which reports the program's number as soon as there is
    /// one. Signals sent to us meanwhile are forwarded to the program.
    ///
    /// Ensures: that thread alone waits for children; it hears of their stops from its waits, and no signal tells of them.
    pub fn attend<T: Send>(&mut self, work: impl FnOnce(&(dyn Fn(u32) + Sync)) -> T + Send) -> io::Result<T> {
        let (done, ends) = io::pipe()?;
        // Each stop of a traced program would wake this thread. The effect that was there before comes back as `caught` ends.
        // SAFETY: the default effect of this signal is none.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let child = AtomicU32::new(0);
        let result = std::thread::scope(|scope| {
            let child = &child;
            let worker = scope.spawn(move || {
                let result = work(&|number| child.store(number, Ordering::Relaxed));
                drop(ends);
                result
            });
            while !worker.is_finished() {
                // Woken early or late, the next look shows it.
                let _ = packet::wait(&[self.caught.as_fd(), done.as_fd()], WAIT);
                match child.load(Ordering::Relaxed) {
                    0 => {}
                    number => drop(self.pass_on(number)),
                }
            }
            worker.join()
        });
        result.map_err(|panic| std::panic::resume_unwind(panic))
    }

    /// Gives a command the actions of signals that we started with.
    pub fn prepare(&self, command: &mut Command) {
        if self.caught.ignored(libc::SIGCHLD) {
            // SAFETY: the closure calls nothing but what is async-signal-safe.
            unsafe { command.pre_exec(ignore_children) };
        }
    }

    /// The exit status of a child that has ended; does not wait. If the child was stopped, this process
    /// stops too until both go on.
    ///
    /// Pre: nobody else waits for it, and it was not reported as ended.
    pub fn ended(&self, child: u32) -> io::Result<Option<ExitStatus>> {
        let process = Pid::from_raw(child as i32).ok_or(io::ErrorKind::NotFound)?;
        loop {
            match rustix::process::waitpid(Some(process), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((_, status))) => match status.stopping_signal() {
                    Some(number) => self.stopped(number)?,
                    None => return Ok(Some(ExitStatus::from_raw(status.as_raw()))),
                },
                Ok(None) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Forwards the signals sent to us. Returns the last of them that asks a process to end, whoever sent it.
    pub fn pass_on(&mut self, child: u32) -> Option<i32> {
        let mut asked = None;
        while let Some(arrived) = self.caught.take() {
            self.pass_on_one(child, &arrived);
            let ends = signals::ENDINGS.contains(&arrived.number) && arrived.sender != child;
            asked = ends.then_some(arrived.number).or(asked);
        }
        asked
    }

    fn pass_on_one(&self, child: u32, arrived: &Arrived) {
        // Signals sent to the whole group have already reached the program, and our own signals do not concern
        // it.
        let has_it = arrived.from_terminal || arrived.sender == child;
        if arrived.number != libc::SIGCHLD && !has_it && arrived.sender != std::process::id() {
            // A program that has changed its user is the kernel's to protect.
            let _ = signals::pass_on(child, arrived);
        }
    }

    /// Stops this process, as the program has been stopped, for the shell to see. The signal that continues us is
    /// forwarded like any other.
    fn stopped(&self, number: i32) -> io::Result<()> {
        // A process, other than a shell, that stops and continues the program by its number would
        // leave us stopped.
        if number == libc::SIGSTOP && !in_foreground() {
            return Ok(());
        }
        match number {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => self.caught.obey(number),
            _ => Ok(()),
        }
    }
}

/// Returns whether this process is in the foreground of a terminal.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    let group = rustix::process::getpgrp();
    // SAFETY: asks about an open file, and touches no memory.
    let foreground = unsafe { libc::tcgetpgrp(std::os::fd::AsRawFd::as_raw_fd(&terminal)) };
    Pid::from_raw(foreground) == Some(group)
}

impl AsFd for Supervisor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }
}

/// Between fork and exec.
fn ignore_children() -> io::Result<()> {
    // SAFETY: signal(2) is async-signal-safe; ignored signals stay so over exec.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    Ok(())
}

/// Between fork and exec.
fn die_with(parent: Pid) -> io::Result<()> {
    // SAFETY: changes an attribute of this process alone.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have been killed before.
    if rustix::process::getppid() != Some(parent) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}
