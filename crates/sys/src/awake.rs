//! Cpus that do not go to sleep while they have nothing to run.
//!
//! A cpu that sleeps may lose what its private caches hold: a deep state of sleep empties them, and a hypervisor gives the core to
//! another guest. To wake it takes tens of microseconds. A thread of the lowest class (`SCHED_IDLE`) spins there instead, which anything
//! else that wants the cpu interrupts at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, Thread};

use crate::affinity;

/// Of the threads.
const NAME: &str = "domicile-awake";
const ASLEEP: u8 = 0;
const AWAKE: u8 = 1;
const OVER: u8 = 2;
/// Pauses from one look at what is asked to the next: some microseconds.
const PAUSES: u32 = 64;

/// While this lives, some cpus can be kept awake.
#[derive(Debug)]
pub struct Awake {
    asked: Arc<AtomicU8>,
    threads: Vec<Thread>,
}

impl Awake {
    /// A thread for each cpu, which sleeps at first.
    ///
    /// Errors: a cpu may not be used, or the kernel refuses `SCHED_IDLE`.
    pub fn begin(cpus: &[u32]) -> io::Result<Awake> {
        let mut awake = Awake {
            asked: Arc::new(AtomicU8::new(ASLEEP)),
            threads: Vec::new(),
        };
        let (ready, answers) = std::sync::mpsc::channel();
        for &cpu in cpus {
            let (asked, ready) = (awake.asked.clone(), ready.clone());
            let thread = thread::Builder::new().name(NAME.to_string()).spawn(move || {
                let begun = affinity::allow(None, &[cpu]).and_then(|()| idle_class());
                let runs = begun.is_ok();
                // Nobody hears of it where another thread could not begin.
                let _ = ready.send(begun);
                if runs {
                    spin(&asked);
                }
            })?;
            awake.threads.push(thread.thread().clone());
        }
        for _ in cpus {
            answers.recv().map_err(io::Error::other)??;
        }
        Ok(awake)
    }

    /// The cpus that are kept awake while it is asked for.
    pub fn count(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Keeps them awake from now on, or no more.
    pub fn keep(&self, awake: bool) {
        let wish = if awake { AWAKE } else { ASLEEP };
        if self.asked.swap(wish, Ordering::Relaxed) != wish && awake {
            self.wake();
        }
    }

    fn wake(&self) {
        self.threads.iter().for_each(Thread::unpark);
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.asked.store(OVER, Ordering::Relaxed);
        // They end by themselves, and are not waited for: a thread of their class may wait long for a busy cpu.
        self.wake();
    }
}

fn spin(asked: &AtomicU8) {
    loop {
        match asked.load(Ordering::Relaxed) {
            ASLEEP => thread::park(),
            AWAKE => (0..PAUSES).for_each(|_| std::hint::spin_loop()),
            _ => return,
        }
    }
}

/// The calling thread runs only where nothing else wants to.
fn idle_class() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameter, which is there, and changes how this thread is scheduled only.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Root, tasks};

    /// Waits until as many threads as are asked for run, or wait for their cpu.
    fn wait_until(running: usize) {
        let run = || {
            let tasks = tasks::of(&Root::default(), std::process::id()).unwrap();
            let ours = |number| {
                Root::default()
                    .text(&format!("proc/self/task/{number}/comm"))
                    .is_ok_and(|name| name.trim() == NAME)
            };
            tasks.iter().filter(|task| task.runs && ours(task.number)).count()
        };
        while run() != running {
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn cpus_are_kept_awake_while_it_is_asked_for() {
        let cpus = affinity::allowed(None).unwrap();
        let awake = Awake::begin(&cpus).unwrap();
        assert_eq!(awake.count(), cpus.len() as u32);
        wait_until(0);
        for _ in 0..3 {
            awake.keep(true);
            wait_until(cpus.len());
            awake.keep(false);
            wait_until(0);
        }
        awake.keep(true);
        drop(awake);
        wait_until(0);
        // In the same test, as threads of both have one name.
        assert!(Awake::begin(&[u32::MAX >> 16]).is_err());
    }
}
