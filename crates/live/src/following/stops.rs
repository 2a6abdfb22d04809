//! Why the program stopped, and how it goes on.

use std::io;

use sys::Root;
use sys::memory::{PAGE, Span};
use sys::traced::{Closing, Event, On, Stop};

use super::closed::SHUT;
use super::host::Host;

/// Numbers of system calls (x86-64) after which mappings are others: mmap, mprotect, munmap, brk, mremap, shmat, shmdt,
/// remap_file_pages, pkey_mprotect; clone, vfork and clone3, by whose child mappings may be others.
const MAPPINGS: &[usize] = &[9, 10, 11, 12, 25, 30, 56, 58, 67, 216, 329, 435];
/// arch_prctl and rseq: the kernel writes to other pages from then on.
const SPARED: &[usize] = &[158, 334];
/// rt_sigaction: it may ignore the signal of faults from then on.
const SIGACTION: usize = 13;
/// Calls after which the kernel touches memory by itself, or allows no other calls: io_setup, io_uring_setup; seccomp, and prctl with
/// that.
const IO: &[usize] = &[206, 425];
const SECCOMP: usize = 317;
const PRCTL: (usize, usize) = (157, 22);
/// Calls that begin a process or a thread, by their flags.
const CLONE: usize = 56;
const FORK: usize = 57;
const CLONE3: usize = 435;
const MUNMAP: usize = 11;
/// mremap: the kernel refuses ranges whose parts differ in their keys.
const MREMAP: usize = 25;

impl Host {
    /// A thread of ours has stopped, and goes on.
    pub(super) fn stopped(&mut self, task: u32, stop: Stop) -> io::Result<()> {
        if task != self.process() {
            return self.other_stopped(task, stop);
        }
        match stop {
            Stop::Closed { address, key } if self.closed.has(key) => self.touches(task, address, key)?,
            Stop::Forbidden { address } if self.closed.is_shut((address / PAGE) as u64) => {
                self.touches(task, address, SHUT)?;
            }
            // The program has keys and protections of its own.
            Stop::Closed { .. } | Stop::Forbidden { .. } => return self.deliver(Stop::FAULT),
            Stop::Signal(signal) => return self.deliver(signal),
            Stop::Enters => return self.enters(),
            Stop::Leaves => self.leaves()?,
            Stop::Interrupted => self.interrupted()?,
            Stop::Group => {
                self.keep_awake(false);
                return self.resume(On::Resting, 0);
            }
            Stop::Began { task, vfork } => self.began(task, vfork)?,
            Stop::Exec => {
                // The kernel writes the call's results only after this stop.
                self.fresh = true;
                return self.resume(On::ToCalls, 0);
            }
        }
        self.go_on(0)
    }

    fn go_on(&mut self, signal: i32) -> io::Result<()> {
        if self.left {
            return Ok(());
        }
        let on = match self.closed.is_any() || self.in_call || self.aside.is_some() || self.opened.is_some() {
            true => On::ToCalls,
            false => On::Freely,
        };
        self.resume(on, signal)
    }

    /// The thread touches a page that we have closed.
    fn touches(&mut self, task: u32, address: usize, key: u32) -> io::Result<()> {
        self.found.touches += 1;
        let registers = self.traced.registers(task)?;
        if self.is_stuck(registers) {
            self.wide = true;
            return self.set_rights(false);
        }
        self.touched(address, key)
    }

    /// Returns whether the same instruction has stopped again and again while nothing else changed: it uses pages of
    /// several caches at once.
    fn is_stuck(&mut self, registers: sys::traced::Registers) -> bool {
        /// In a phase it may take some touches of one instruction until all of its pages are open.
        const TIMES: u32 = 8;
        let again = self.last.is_some_and(|last| last == registers);
        self.times = if again { self.times + 1 } else { 0 };
        self.last = Some(registers);
        self.times >= TIMES
    }

    /// A signal of the program's own. Its handler runs with all pages open: it may block the signal of faults.
    fn deliver(&mut self, signal: i32) -> io::Result<()> {
        self.again = false;
        if !self.closed.is_any() {
            return self.go_on(signal);
        }
        let task = self.process();
        self.settled = None;
        if self.closed.means() == Closing::Protection {
            return self.deliver_unshut(signal);
        }
        self.set_rights(false)?;
        if !line(&status(task), "SigCgt:").contains(signal) {
            return self.go_on(signal);
        }
        self.resume(On::OneStep, signal)?;
        let event = loop {
            if let Some(event) = self.traced.wait(Some(task))? {
                break event;
            }
        };
        match event {
            // The first instruction of the handler, of which the kernel has closed all keys.
            Event::Stopped(_, Stop::Signal(Stop::STEP)) => {
                self.settled = None;
                self.set_rights(false)?;
                self.go_on(0)
            }
            Event::Stopped(_, stop) => self.stopped(task, stop),
            Event::Ended(..) => {
                self.ended = Some(event);
                Ok(())
            }
        }
    }

    /// A signal of the program's own. Before it is delivered, code that the thread runs opens the pages that are shut.
    fn deliver_unshut(&mut self, signal: i32) -> io::Result<()> {
        if !self.closed.has_shut() {
            return self.go_on(signal);
        }
        let task = self.process();
        let info = self.traced.signal_info(task)?;
        self.set_rights(false)?;
        // The state of the fault that the kernel shows a handler is that of our code now: the fault comes again, with its own.
        if info.comes_again() {
            return self.go_on(0);
        }
        self.traced.set_signal_info(task, &info)?;
        self.go_on(signal)
    }

    fn enters(&mut self) -> io::Result<()> {
        self.in_call = true;
        self.again = false;
        // If pages are shut, the call is put off and comes again.
        self.found.calls += u64::from(!self.closed.has_shut());
        let task = self.process();
        let (number, arguments) = self.traced.registers(task)?.call();
        self.call = number;
        self.arguments = arguments;
        let why = match (number, arguments[0]) {
            _ if IO.contains(&number) => {
                Some("it uses asynchronous input and output, by which the kernel touches memory that is closed")
            }
            (SECCOMP, _) | PRCTL => Some("it enters seccomp, which may forbid the calls by which pages are closed"),
            _ => None,
        };
        if let (Some(why), None) = (why, &self.aside) {
            self.aside = Some(why.to_string());
            self.traced.postpone_call(task)?;
            self.postponed = Some(number);
        }
        let [start, bytes] = arguments;
        if number == MREMAP && self.aside.is_none() && self.closed.open_range(Span::new(start, bytes)) {
            self.traced.postpone_call(task)?;
            self.postponed = Some(number);
        }
        if self.postponed.is_none() && self.copies_memory(number, start) && self.open_for_fork() {
            self.traced.postpone_call(task)?;
            self.postponed = Some(number);
        }
        match self.closed.means() {
            Closing::Keys if self.shut => self.set_rights(false)?,
            // No code of ours can run here: the call is made once it has run.
            Closing::Protection if self.closed.has_shut() && self.postponed.is_none() => {
                self.traced.postpone_call(task)?;
                self.postponed = Some(number);
            }
            _ => {}
        }
        self.resume(On::ToCalls, 0)
    }

    /// Returns whether a call begins a process with a copy of this one's memory.
    fn copies_memory(&self, number: usize, argument: usize) -> bool {
        let flags = match number {
            FORK => 0,
            CLONE => argument as u64,
            // If they cannot be read, the call fails.
            CLONE3 => self.image.borrowed.word(argument).unwrap_or(0),
            _ => return false,
        };
        flags & libc::CLONE_VM as u64 == 0
    }

    /// Opens all pages until the call is left. In the child, the parts of a mapping that have keys of their own when it is copied never
    /// become one mapping again, as each has frames of its own (`anon_vma`); its `mremap` of several would fail.
    fn open_for_fork(&mut self) -> bool {
        match self.closed.open_keyed() {
            Some(opened) => {
                self.opened.get_or_insert_default().extend(opened);
                true
            }
            None => false,
        }
    }

    fn leaves(&mut self) -> io::Result<()> {
        self.in_call = false;
        self.settled = None;
        if std::mem::take(&mut self.fresh) {
            return self.begin_image();
        }
        if self.closed.has_shut() {
            // The call was put off for it.
            self.set_rights(false)?;
        }
        self.image.stale |= MAPPINGS.contains(&self.call);
        if SPARED.contains(&self.call) {
            self.open_spared()?;
        }
        if self.call == MUNMAP && self.traced.registers(self.process())?.succeeded() {
            let [start, bytes] = self.arguments;
            self.closed.unmapped(Span::new(start, bytes));
        }
        if self.call == SIGACTION {
            self.ignores_faults = line(&status(self.process()), "SigIgn:").contains(Stop::FAULT);
        }
        if let Some(why) = self.aside.take() {
            let postponed = self.postponed.take();
            return self.step_aside(&why, postponed);
        }
        if let Some(number) = self.postponed {
            self.write_keys()?;
            self.postponed = None;
            self.again = true;
            return self.traced.make_call_again(self.process(), number);
        }
        if let Some(opened) = self.opened.take() {
            for (page, cpus) in opened {
                self.closed.set(page, self.closed.of(page) | cpus);
            }
            self.write_keys()?;
        }
        // The signal that broke it off is yet to come, and by the signals that the call blocked: code of ours would end that.
        if self.closed.means() == Closing::Protection && self.traced.registers(self.process())?.was_broken_off() {
            return Ok(());
        }
        self.settle()
    }

    /// Opens the pages that the kernel writes to now, and that were closed before.
    fn open_spared(&mut self) -> io::Result<()> {
        self.image.stale = true;
        self.image.look(&self.traced)?;
        self.closed.forget_moves();
        for span in self.image.layout.spared() {
            self.closed.open_range(*span);
        }
        self.write_keys()
    }

    fn interrupted(&mut self) -> io::Result<()> {
        let task = self.process();
        if self.in_call || !self.is_followed() {
            return Ok(());
        }
        let status = status(task);
        let waiting = line(&status, "SigPnd:").0 | line(&status, "ShdPnd:").0;
        // A signal that is about to come does so by the signals that a call blocked, which code of ours would end.
        if waiting & !line(&status, "SigBlk:").0 != 0 || self.again {
            return Ok(());
        }
        self.traced.begin_call_again(task)?;
        // The policy was asked at a touch meanwhile.
        if !self.is_due() {
            return Ok(());
        }
        self.ignores_faults = line(&status, "SigIgn:").contains(Stop::FAULT);
        if line(&status, "Seccomp:") != Set(0) {
            return self.step_aside(
                "it runs under seccomp, which may forbid the calls by which pages are closed",
                None,
            );
        }
        if uses_rings(task) {
            return self.step_aside(
                "it uses io_uring, by which the kernel touches memory that is closed",
                None,
            );
        }
        self.tick()
    }

    pub(super) fn blocks_faults(&self) -> io::Result<bool> {
        Ok(self.ignores_faults || Set(self.traced.blocked(self.process())?).contains(Stop::FAULT))
    }

    /// It has started something, and is within that call still.
    fn began(&mut self, task: u32, vfork: bool) -> io::Result<()> {
        self.in_call = true;
        let shares = self.traced.share_memory(self.process(), task)?;
        if shares && !vfork && self.aside.is_none() {
            self.aside = Some("it began a second thread, and only programs of one thread are followed".to_string());
        }
        let other = match (shares, vfork) {
            (true, true) => Other::Borrows,
            (true, false) => Other::Thread,
            (false, _) => Other::Child,
        };
        self.others.insert(task, other);
        // Its first stop may have come before.
        if self.early.remove(&task) {
            self.first_stop(task, other)?;
        }
        Ok(())
    }

    /// A task that this thread began has stopped.
    fn other_stopped(&mut self, task: u32, stop: Stop) -> io::Result<()> {
        match (self.others.get(&task).copied(), stop) {
            (None, Stop::Interrupted) => {
                self.early.insert(task);
                Ok(())
            }
            (Some(other), Stop::Interrupted) => self.first_stop(task, other),
            (Some(Other::Borrows), Stop::Closed { key, .. }) if self.closed.has(key) => {
                self.open_to(task)?;
                self.traced.go_on(task, On::Freely, 0)
            }
            (_, Stop::Exec) => {
                self.others.remove(&task);
                self.traced.leave(task, 0)
            }
            (_, Stop::Signal(signal)) => self.traced.go_on(task, On::Freely, signal),
            (_, Stop::Closed { .. } | Stop::Forbidden { .. }) => self.traced.go_on(task, On::Freely, Stop::FAULT),
            (_, Stop::Group) => self.traced.go_on(task, On::Resting, 0),
            (_, Stop::Began { task: child, .. }) => {
                // A child that borrows memory is about to run another program, so the children that it starts do
                // not matter.
                self.others.insert(child, Other::Child);
                self.traced.go_on(task, On::Freely, 0)
            }
            (_, _) => self.traced.go_on(task, On::Freely, 0),
        }
    }

    fn first_stop(&mut self, task: u32, other: Other) -> io::Result<()> {
        match other {
            // All is opened by the thread that began it, which leaves its call first.
            Other::Thread => {
                if self.left {
                    return self.release(task);
                }
                self.held.push(task);
                Ok(())
            }
            Other::Borrows => {
                self.open_to(task)?;
                self.traced.go_on(task, On::Freely, 0)
            }
            Other::Child => {
                self.others.remove(&task);
                self.open_child(task)?;
                self.traced.leave(task, 0)
            }
        }
    }
}

/// A task that the thread has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    Thread,
    /// A child that runs in its parent's memory until it runs another program (vfork(2)).
    Borrows,
    Child,
}

/// A set of signals as `/proc/PID/status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set(u64);

impl Set {
    fn contains(self, signal: i32) -> bool {
        signal > 0 && self.0 >> (signal - 1) & 1 == 1
    }
}

fn status(task: u32) -> String {
    Root::default().text(&format!("proc/{task}/status")).unwrap_or_default()
}

/// A line of a status, in hexadecimal; 0 if there is none.
fn line(status: &str, name: &str) -> Set {
    let value = status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Set(value.and_then(|value| u64::from_str_radix(value, 16).ok()).unwrap_or(0))
}

/// Returns whether a process has a ring of io_uring, whose threads touch memory with rights of
/// their own.
fn uses_rings(process: u32) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    let targets = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .into_iter()
        .any(|target| target.as_os_str() == "anon_inode:[io_uring]")
}
