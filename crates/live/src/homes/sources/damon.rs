//! DAMON, the kernel's monitor of data accesses, for the addresses of processes.
//!
//! **What a count is.** A thread of the kernel looks at one page of each region at every sampling interval, and finds its
//! accessed bit set or not. A look at the host's interval brings an aggregation interval of [`CHECKS`] sampling intervals. A
//! page gets a count for each quarter of them, begun or whole, in which its region's page was found accessed: a page that is
//! always in use gets [`COUNTS`]. So counts are of the region that a page is in, and of a part of the time.
//!
//! **What is not seen.** The cpu, and the kind of access. An access that hits in the TLB sets no bit: a set of pages
//! small enough to stay in the TLB, the more so of huge pages, looks idle while no other process has the cpu.
//!
//! **What it costs.** Time of a kernel thread for each process ([`Source::kernel_time`]), bounded by [`REGIONS`], and a
//! wait of an aggregation interval at most for each process and look.

use std::collections::HashMap;
use std::time::Duration;

use sys::damon::{Monitors, Pace};
use sys::{Problem, Root, SysError, tasks};

use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "damon";

/// Sampling intervals that are counted together.
const CHECKS: u32 = 10;
/// Counts of a page at a look, at most: policies are told of each.
const COUNTS: u32 = 4;
/// Aggregation intervals in an interval of the host.
const PARTS: u32 = 4;
/// Fewest and most regions of a process.
const REGIONS: (u32, u32) = (10, 500);
/// Processes that are watched at a time.
const PROCESSES: u32 = 32;
/// A kernel thread that sleeps for less does little else than wake up.
const SHORTEST: Duration = Duration::from_millis(1);

struct Damon {
    root: Root,
    monitors: Monitors,
    pace: Pace,
    /// The thread that watches each process, and its time when it was seen last: it ends with its process.
    threads: HashMap<u32, (u32, Duration)>,
    /// Time of threads that have ended.
    before: Duration,
}

pub fn probe(root: &Root, interval: Duration) -> Probed {
    let monitors = Monitors::take(root, PROCESSES).map_err(|error| error.to_string())?;
    let sampling = (interval / PARTS / CHECKS).max(SHORTEST);
    Ok(Box::new(Damon {
        root: root.clone(),
        monitors,
        pace: Pace {
            sampling,
            aggregation: sampling * CHECKS,
            regions: REGIONS,
        },
        threads: HashMap::new(),
        before: Duration::ZERO,
    }))
}

impl Damon {
    fn time(&self, thread: u32) -> Duration {
        let kernel = self.monitors.thread(thread);
        let time = kernel.and_then(|kernel| tasks::kernel_thread_time(&self.root, kernel));
        Duration::from_nanos(time.unwrap_or(0))
    }

    fn lost(&self, thread: u32, error: SysError) -> Lost {
        // The thread ends with its process, and it refuses all later commands.
        match error.problem {
            Problem::Refused(_) | Problem::Absent if !self.monitors.is_on(thread) => Lost::Gone,
            _ => Lost::Refused(error.to_string()),
        }
    }
}

impl Source for Damon {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> String {
        format!(
            "a quarter of {CHECKS} checks at intervals of {} ms that found the page's region accessed",
            self.pace.sampling.as_secs_f64() * 1e3
        )
    }

    fn scale(&self) -> Scale {
        Scale::Looks(COUNTS)
    }

    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        let busy: Vec<u32> = self.threads.values().map(|(thread, _)| *thread).collect();
        let Some(thread) = (0..self.monitors.count()).find(|thread| !busy.contains(thread)) else {
            return Err(Lost::Refused(format!("{PROCESSES} processes are watched already")));
        };
        let watched = self.monitors.watch(thread, process, &self.pace);
        watched.map_err(|error| self.lost(thread, error))?;
        self.threads.insert(process, (thread, Duration::ZERO));
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        let Some(&(thread, before)) = self.threads.get(&process) else {
            return Err(Lost::Gone);
        };
        let time = self.time(thread).max(before);
        self.threads.insert(process, (thread, time));
        let regions = self
            .monitors
            .regions(thread)
            .map_err(|error| self.lost(thread, error))?;
        let touched = regions.into_iter().filter(|region| region.accesses > 0);
        Ok(touched
            .map(|region| Touched {
                span: region.span,
                counts: counts(region.accesses),
                by: None,
                write: None,
            })
            .collect())
    }

    fn end(&mut self, process: u32) {
        if let Some((thread, time)) = self.threads.remove(&process) {
            self.before += self.time(thread).max(time);
            self.monitors.stop(thread);
        }
    }

    fn kernel_time(&mut self) -> Option<Duration> {
        let now: Duration = self
            .threads
            .values()
            .map(|&(thread, time)| self.time(thread).max(time))
            .sum();
        Some(self.before + now)
    }
}

fn counts(accesses: u32) -> u32 {
    (accesses.min(CHECKS) * COUNTS).div_ceil(CHECKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_always_in_use_gets_all_counts_and_none_gets_more() {
        let all: Vec<_> = [0, 1, 2, 3, 5, 6, 10, 20].map(counts).to_vec();
        assert_eq!(all, [0, 1, 1, 2, 2, 3, 4, 4]);
    }
}
