//! The kernel's monitor of data accesses (DAMON) for the addresses of processes: `/sys/kernel/mm/damon/admin`.
//!
//! A thread of the kernel checks and clears the accessed bit of a page of each region at every sampling interval. At
//! the end of an aggregation interval it reports for each region the number of checks that found the bit set. Regions
//! grow and shrink by these numbers.
//!
//! There is one such folder for the whole machine, and threads are added to it all together, before any of them runs.
//! So [`Monitors`] takes the whole folder, if nobody uses it, and gives it back empty.

use std::io;
use std::time::{Duration, Instant};

use crate::memory::Span;
use crate::{Problem, Root, SysError};

const ADMIN: &str = "sys/kernel/mm/damon/admin/kdamonds";

/// One region as it was observed during the last aggregation interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub span: Span,
    /// Looks that found it accessed.
    pub accesses: u32,
}

/// How a process is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub sampling: Duration,
    /// A multiple of `sampling`: so many looks are counted together.
    pub aggregation: Duration,
    /// Fewest and most regions: the second bounds what watching costs.
    pub regions: (u32, u32),
}

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Sys(#[from] SysError),
    #[error("the kernel cannot watch the addresses of processes (CONFIG_DAMON_VADDR); it can watch: {0}")]
    NoAddresses(String),
    #[error("it is in use: its thread {0} runs (write `off` to /{ADMIN}/{0}/state, if whoever started it is gone)")]
    InUse(u32),
}

/// The threads that watch, taken as a whole; dropping this stops them and leaves none.
#[derive(Debug)]
pub struct Monitors {
    root: Root,
    count: u32,
}

impl Monitors {
    /// Makes so many threads that may be started.
    ///
    /// Errors: there is no such monitor, it may not be used, it cannot watch processes, or somebody uses it.
    pub fn take(root: &Root, count: u32) -> Result<Monitors, Unusable> {
        let number = format!("{ADMIN}/nr_kdamonds");
        for one in 0..root.number(&number)? as u32 {
            if root.text(&format!("{ADMIN}/{one}/state"))? != "off" {
                return Err(Unusable::InUse(one));
            }
        }
        write(root, &number, count)?;
        // From here on the folder is ours, and is given back whatever happens.
        let monitors = Monitors {
            root: root.clone(),
            count,
        };
        monitors.set(0, "contexts/nr_contexts", 1)?;
        let known = root.text(&monitors.path(0, "contexts/0/avail_operations"))?;
        if !known.split_whitespace().any(|name| name == "vaddr") {
            let known = known.split_whitespace().collect::<Vec<_>>().join(", ");
            return Err(Unusable::NoAddresses(known));
        }
        Ok(monitors)
    }

    /// How many processes can be watched at a time.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Begins to watch a process by one of the threads.
    ///
    /// Errors: the process is gone; or that thread runs.
    pub fn watch(&self, one: u32, process: u32, pace: &Pace) -> Result<(), SysError> {
        let micros = |time: Duration| time.as_micros().max(1);
        self.set(one, "contexts/nr_contexts", 1)?;
        self.set(one, "contexts/0/operations", "vaddr")?;
        let intervals = "contexts/0/monitoring_attrs/intervals";
        self.set(one, &format!("{intervals}/sample_us"), micros(pace.sampling))?;
        self.set(one, &format!("{intervals}/aggr_us"), micros(pace.aggregation))?;
        // New mappings are looked for as seldom as regions are reported twice.
        self.set(one, &format!("{intervals}/update_us"), micros(pace.aggregation * 2))?;
        // The least first where it falls, the most first where it grows: a least above the most is refused by some kernels.
        let regions = "contexts/0/monitoring_attrs/nr_regions";
        self.set(one, &format!("{regions}/max"), pace.regions.1)?;
        self.set(one, &format!("{regions}/min"), pace.regions.0)?;
        self.set(one, "contexts/0/targets/nr_targets", 1)?;
        self.set(one, "contexts/0/targets/0/pid_target", process)?;
        self.set(one, "contexts/0/schemes/nr_schemes", 1)?;
        let scheme = "contexts/0/schemes/0";
        self.set(one, &format!("{scheme}/action"), "stat")?;
        // Regions without accesses need not be reported.
        for (name, least, most) in [
            ("sz", 0, u64::MAX),
            ("nr_accesses", 1, u32::MAX.into()),
            ("age", 0, u32::MAX.into()),
        ] {
            self.set(one, &format!("{scheme}/access_pattern/{name}/max"), most)?;
            self.set(one, &format!("{scheme}/access_pattern/{name}/min"), least)?;
        }
        self.command(one, "on")
    }

    /// Returns whether it still watches: it stops by itself when its process ends.
    pub fn is_on(&self, one: u32) -> bool {
        let state = self.root.text(&self.path(one, "state"));
        state.is_ok_and(|state| state == "on")
    }

    /// The kernel's number of the thread, while it runs.
    pub fn thread(&self, one: u32) -> Option<u32> {
        let text = self.root.text(&self.path(one, "pid")).ok()?;
        text.parse().ok().filter(|&number| number > 0)
    }

    /// The regions observed during an aggregation interval, ascending by address: waits until the current
    /// interval ends.
    ///
    /// Errors: it does not watch any more.
    pub fn regions(&self, one: u32) -> Result<Vec<Region>, SysError> {
        self.command(one, "update_schemes_tried_regions")?;
        let folder = self.path(one, "contexts/0/schemes/0/tried_regions");
        let mut found: Vec<Region> = Vec::new();
        for number in self.root.numbered(&folder, "")? {
            let read = |name: &str| self.root.number(&format!("{folder}/{number}/{name}"));
            let (start, end, accesses) = (read("start")?, read("end")?, read("nr_accesses")?);
            // If the kernel was slow to end the command, the next interval's regions follow. Those are newer.
            if found.last().is_some_and(|last| (start as usize) < last.span.end()) {
                found.clear();
            }
            found.push(Region {
                span: Span::new(start as usize, end.saturating_sub(start) as usize),
                accesses: u32::try_from(accesses).unwrap_or(u32::MAX),
            });
        }
        Ok(found)
    }

    /// Ends watching; a monitor that does not watch is left as it is.
    pub fn stop(&self, one: u32) {
        if self.is_on(one) {
            // A monitor that has just ended by itself refuses it.
            let _ = self.command(one, "off");
        }
    }

    /// Commands to different threads exclude each other: the second one is told to try again.
    fn command(&self, one: u32, command: &str) -> Result<(), SysError> {
        const PATIENCE: Duration = Duration::from_secs(2);
        const PAUSE: Duration = Duration::from_millis(5);
        let begun = Instant::now();
        loop {
            match self.set(one, "state", command) {
                Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                done => return done,
            }
        }
    }

    fn set(&self, one: u32, name: &str, value: impl ToString) -> Result<(), SysError> {
        write(&self.root, &self.path(one, name), value)
    }

    fn path(&self, one: u32, name: &str) -> String {
        format!("{ADMIN}/{one}/{name}")
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        (0..self.count).for_each(|one| self.stop(one));
        // A user who cannot write it now could not write it before.
        let _ = write(&self.root, &format!("{ADMIN}/nr_kdamonds"), 0);
    }
}

fn is_busy(error: &SysError) -> bool {
    matches!(&error.problem, Problem::Refused(error) if error.kind() == io::ErrorKind::ResourceBusy)
}

fn write(root: &Root, path: &str, value: impl ToString) -> Result<(), SysError> {
    root.write(path, &value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that the kernel has there, as far as they are read.
    fn tree(operations: &str, state: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let kdamonds = folder.path().join(ADMIN);
        for one in 0..2 {
            let scheme = kdamonds.join(format!("{one}/contexts/0/schemes/0"));
            for (number, start, end, accesses) in
                [(2, 0x7000, 0x9000, 3), (1, 0x1000, 0x2000, 10), (0, 0x1000, 0x9000, 7)]
            {
                let region = scheme.join(format!("tried_regions/{number}"));
                std::fs::create_dir_all(&region).unwrap();
                for (name, value) in [("start", start), ("end", end), ("nr_accesses", accesses)] {
                    std::fs::write(region.join(name), value.to_string()).unwrap();
                }
            }
            std::fs::write(scheme.join("tried_regions/total_bytes"), "1").unwrap();
            let context = kdamonds.join(format!("{one}/contexts/0"));
            for at in [
                "operations",
                "avail_operations",
                "schemes/nr_schemes",
                "schemes/0/action",
            ] {
                std::fs::write(context.join(at), operations).unwrap();
            }
            for at in ["sz", "nr_accesses", "age"].map(|name| format!("schemes/0/access_pattern/{name}")) {
                ends(&context.join(at));
            }
            ends(&context.join("monitoring_attrs/nr_regions"));
            for at in ["sample_us", "aggr_us", "update_us"] {
                file(&context.join("monitoring_attrs/intervals").join(at));
            }
            file(&context.join("targets/nr_targets"));
            file(&context.join("targets/0/pid_target"));
            file(&kdamonds.join(format!("{one}/contexts/nr_contexts")));
            std::fs::write(kdamonds.join(format!("{one}/pid")), "-1\n").unwrap();
            std::fs::write(kdamonds.join(format!("{one}/state")), state).unwrap();
        }
        std::fs::write(kdamonds.join("nr_kdamonds"), "2\n").unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    fn ends(folder: &std::path::Path) {
        file(&folder.join("min"));
        file(&folder.join("max"));
    }

    fn file(path: &std::path::Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    const PACE: Pace = Pace {
        sampling: Duration::from_millis(25),
        aggregation: Duration::from_millis(250),
        regions: (10, 500),
    };

    #[test]
    fn a_process_is_watched_as_the_kernel_wants_to_be_told_and_given_back() {
        let (_folder, root) = tree("vaddr\nfvaddr\npaddr\n", "off\n");
        let monitors = Monitors::take(&root, 2).unwrap();
        monitors.watch(1, 4711, &PACE).unwrap();
        let text = |name: &str| root.text(&format!("{ADMIN}/1/{name}")).unwrap();
        assert_eq!(text("contexts/0/targets/0/pid_target"), "4711");
        assert_eq!(text("contexts/0/operations"), "vaddr");
        assert_eq!(text("contexts/0/monitoring_attrs/intervals/sample_us"), "25000");
        assert_eq!(text("contexts/0/monitoring_attrs/intervals/aggr_us"), "250000");
        assert_eq!(text("contexts/0/monitoring_attrs/nr_regions/max"), "500");
        assert_eq!(text("contexts/0/schemes/0/action"), "stat");
        assert_eq!(text("contexts/0/schemes/0/access_pattern/nr_accesses/min"), "1");
        assert_eq!(text("state"), "on");
        assert!(monitors.is_on(1) && !monitors.is_on(0));
        assert_eq!(monitors.thread(1), None);
        let regions = monitors.regions(1).unwrap();
        let expected = [(0x1000, 0x1000, 10), (0x7000, 0x2000, 3)];
        let expected = expected.map(|(start, bytes, accesses)| Region {
            span: Span::new(start, bytes),
            accesses,
        });
        assert_eq!(regions, expected);
        drop(monitors);
        assert_eq!(root.text(&format!("{ADMIN}/nr_kdamonds")).unwrap(), "0");
    }

    #[test]
    fn what_cannot_watch_processes_or_is_in_use_is_left_alone() {
        let (_folder, root) = tree("paddr\n", "off\n");
        let why = Monitors::take(&root, 2).unwrap_err().to_string();
        assert!(why.contains("CONFIG_DAMON_VADDR") && why.ends_with(": paddr"), "{why}");
        assert_eq!(root.text(&format!("{ADMIN}/nr_kdamonds")).unwrap(), "0");
        let (_folder, root) = tree("vaddr\n", "on\n");
        let why = Monitors::take(&root, 2).unwrap_err().to_string();
        assert!(why.contains("in use: its thread 0 runs"), "{why}");
        assert_eq!(root.text(&format!("{ADMIN}/nr_kdamonds")).unwrap(), "2");
        let (_folder, root) = (tempfile::tempdir().unwrap(), Root::new("/nowhere"));
        let why = Monitors::take(&root, 2).unwrap_err().to_string();
        assert!(why.contains("does not exist"), "{why}");
    }
}
