//! Cpus that do not go to sleep while they have nothing to run.
//!
//! A sleeping cpu may lose the content of its private caches: a deep sleep state empties them, and a hypervisor gives
//! the core to another guest. A wake-up takes tens of microseconds. A thread of the lowest class (`SCHED_IDLE`) spins
//! there instead. It runs while nothing else of its control group wants the cpu, and its time counts against the
//! group's quota (`cpu.max`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{affinity, clock};

/// The name of the threads.
const NAME: &str = "domicile-awake";
const ASLEEP: u8 = 0;
const AWAKE: u8 = 1;
const OVER: u8 = 2;
/// Pauses between two looks at the request: some microseconds.
const PAUSES: u32 = 64;

/// While this lives, some cpus can be kept awake.
#[derive(Debug)]
pub struct Awake {
    asked: Arc<AtomicU8>,
    /// True once it was asked for.
    begun: AtomicBool,
    /// With the kernel's number of each.
    threads: Vec<(JoinHandle<()>, u32)>,
}

impl Awake {
    /// A thread for each cpu, which sleeps at first.
    ///
    /// Errors: a cpu may not be used, or the kernel refuses `SCHED_IDLE`.
    pub fn begin(cpus: &[u32]) -> io::Result<Awake> {
        let mut awake = Awake {
            asked: Arc::new(AtomicU8::new(ASLEEP)),
            begun: AtomicBool::new(false),
            threads: Vec::new(),
        };
        for &cpu in cpus {
            let (ready, answer) = std::sync::mpsc::channel();
            let asked = awake.asked.clone();
            let thread = thread::Builder::new().name(NAME.to_string()).spawn(move || {
                // The receiver is gone if the caller has ended.
                let _ = ready.send(affinity::this_thread());
                spin(&asked);
            })?;
            let number = answer.recv().map_err(io::Error::other)?;
            awake.threads.push((thread, number));
            // The cpus are set from here: in its class the thread may wait long for a busy cpu.
            affinity::allow(Some(number), &[cpu])?;
            set_class(number, libc::SCHED_IDLE)?;
        }
        Ok(awake)
    }

    /// The number of cpus that are kept awake on request.
    pub fn count(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Keeps them awake from now on, or lets them sleep.
    pub fn keep(&self, awake: bool) {
        let wish = if awake { AWAKE } else { ASLEEP };
        if self.asked.swap(wish, Ordering::Relaxed) != wish && awake {
            self.begun.store(true, Ordering::Relaxed);
            self.wake();
        }
    }

    fn wake(&self) {
        self.threads.iter().for_each(|(thread, _)| thread.thread().unpark());
    }

    /// The processor time that it took to keep them awake; none if that was never asked for.
    pub fn time(&self) -> Duration {
        if !self.begun.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let threads = self.threads.iter();
        threads.flat_map(|(thread, _)| clock::time_of_thread(thread)).sum()
    }
}

impl Drop for Awake {
    /// The threads end by themselves, and are not waited for.
    fn drop(&mut self) {
        self.asked.store(OVER, Ordering::Relaxed);
        self.wake();
        for (_, number) in &self.threads {
            // One that has ended has no class.
            let _ = set_class(*number, libc::SCHED_OTHER);
        }
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

/// Pre: the thread is one of ours.
fn set_class(thread: u32, class: i32) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameter, which is there, and changes how the thread is scheduled only.
    match unsafe { libc::sched_setscheduler(thread.cast_signed(), class, &raw const none) } {
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
        let begun = std::time::Instant::now();
        while run() != running {
            assert!(begun.elapsed().as_secs() < 60, "{} of {running} run", run());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn cpus_are_kept_awake_while_it_is_asked_for() {
        let cpus = affinity::allowed(None).unwrap();
        let awake = Awake::begin(&cpus).unwrap();
        assert_eq!(awake.count(), cpus.len() as u32);
        wait_until(0);
        awake.keep(false);
        assert_eq!(awake.time(), Duration::ZERO);
        for _ in 0..3 {
            let before = awake.time();
            awake.keep(true);
            wait_until(cpus.len());
            awake.keep(false);
            wait_until(0);
            assert!(awake.time() > before);
        }
        awake.keep(true);
        drop(awake);
        wait_until(0);
        // In the same test, as threads of both have one name.
        assert!(Awake::begin(&[u32::MAX >> 16]).is_err());
    }
}
