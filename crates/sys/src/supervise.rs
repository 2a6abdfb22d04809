//! A program that runs in our place: it gets the signals that are sent to us, and we stop and end as it does.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, WaitOptions};

use crate::packet;
use crate::signals::{self, Arrived, Caught};

/// How long one wait for a signal takes at most, in milliseconds: each of them wakes us.
const WAIT: u32 = 500;

/// From its beginning to its drop no signal that can be caught ends this process.
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

    /// Runs a command to its end. What is sent to us meanwhile, or was since the beginning, is sent to it; what the
    /// terminal sends it gets by itself. If we are killed, so is it.
    ///
    /// Errors: it could not be started.
    pub fn run(&mut self, mut command: Command) -> io::Result<ExitStatus> {
        let parent = rustix::process::getpid();
        let deaf = self.caught.ignored(libc::SIGCHLD);
        // SAFETY: the closure calls nothing but system calls that are async-signal-safe.
        unsafe { command.pre_exec(move || in_child(parent, deaf)) };
        let child = command.spawn()?.id();
        let process = Pid::from_raw(child as i32).ok_or(io::ErrorKind::NotFound)?;
        loop {
            let ended = loop {
                match rustix::process::waitpid(Some(process), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                    Ok(Some((_, status))) => match status.stopping_signal() {
                        Some(number) => self.stopped(number)?,
                        None => break Some(ExitStatus::from_raw(status.as_raw())),
                    },
                    Ok(None) => break None,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            };
            if let Some(status) = ended {
                return Ok(status);
            }
            // Woken early or late, the next look shows it.
            let _ = packet::wait(&[self.caught.as_fd()], WAIT);
            while let Some(arrived) = self.caught.take() {
                self.pass_on(child, &arrived);
            }
        }
    }

    fn pass_on(&self, child: u32, arrived: &Arrived) {
        // What the program sends to its whole group it has already, and what we do ourselves is not its concern.
        let has_it = arrived.from_terminal || arrived.sender == child;
        if arrived.number != libc::SIGCHLD && !has_it && arrived.sender != std::process::id() {
            // A program that has changed its user is the kernel's to protect.
            let _ = signals::pass_on(child, arrived);
        }
    }

    /// The program has been stopped: so are we, for the shell to see. What makes us go on is sent to it like any other
    /// signal.
    fn stopped(&self, number: i32) -> io::Result<()> {
        // Whoever stops and continues the program by its number, and no shell, would leave us stopped.
        if number == libc::SIGSTOP && !in_foreground() {
            return Ok(());
        }
        match number {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => self.caught.obey(number),
            _ => Ok(()),
        }
    }
}

/// Whether this process is in the foreground of a terminal.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    let group = rustix::process::getpgrp();
    // SAFETY: asks about an open file, and touches no memory.
    let foreground = unsafe { libc::tcgetpgrp(std::os::fd::AsRawFd::as_raw_fd(&terminal)) };
    Pid::from_raw(foreground) == Some(group)
}

/// Between fork and exec.
fn in_child(parent: Pid, deaf: bool) -> io::Result<()> {
    if deaf {
        // SAFETY: signal(2) is async-signal-safe; ignored signals stay so over exec.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    }
    // SAFETY: changes an attribute of this process alone.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // It may have been killed before.
    if rustix::process::getppid() != Some(parent) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}
