//! Faults of hints: those of pages that the kernel's own balancing has closed to see the threads that touch them,
//! sampled with thread and cpu.
//!
//! **What a count is.** A page fault of any kind, read or write: the first touch of a page since the kernel closed it,
//! by the thread and on the cpu that made it. The kernel closes some part of a process's memory every so often
//! (`kernel.numa_balancing`: 256 MiB, each second at the soonest), without a request. So a page gets a count a second
//! at most, and most get fewer.
//!
//! **What is not seen.** The kind of access, read or write. The kernel does not close pages of nodes that it thinks
//! well placed, program text, and pages that several processes map. Samples that arrive while the rings of the cpus are
//! full ([`sys::samples`]).
//!
//! **What it costs.** Nothing that the kernel does not do anyway, and every page fault of every process on the machine is
//! sampled: CAP_PERFMON. The kernel moves pages by these faults, too.

use sys::{Root, balancing};

use super::gathered::Gathered;
use super::hardware::pages;
use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "hint-faults";

struct Hints {
    gathered: Gathered,
}

pub fn probe(root: &Root) -> Probed {
    match balancing::state(root) {
        Ok(state) if state.among_nodes => {}
        Ok(_) => {
            return Err(
                "the kernel's own balancing, whose faults these are, is off (kernel.numa_balancing)".to_string(),
            );
        }
        Err(_) => return Err("the kernel has no balancing of its own (CONFIG_NUMA_BALANCING)".to_string()),
    }
    let gathered = Gathered::begin(root, &sys::samples::Event::PAGE_FAULTS);
    Ok(Box::new(Hints {
        gathered: gathered.map_err(|why| format!("page faults cannot be sampled: {why}"))?,
    }))
}

impl Source for Hints {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> String {
        "the first touch of a page since the kernel's balancing closed it, with its cpu; writes are not told from reads"
            .to_string()
    }

    fn scale(&self) -> Scale {
        Scale::Looks(1)
    }

    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        self.gathered.watch(process);
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        self.gathered.gather();
        let mut found = pages(&self.gathered.take(process)?);
        // A fault does not tell reads from writes.
        found.iter_mut().for_each(|touched| touched.write = None);
        Ok(found)
    }

    fn end(&mut self, process: u32) {
        self.gathered.leave(process);
    }

    fn notes(&self) -> Vec<String> {
        self.gathered.notes("page faults")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_kernels_balancing_there_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert!(probe(&root).map(|_| ()).unwrap_err().contains("CONFIG_NUMA_BALANCING"));
        std::fs::create_dir_all(folder.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(folder.path().join("proc/sys/kernel/numa_balancing"), "2\n").unwrap();
        assert!(probe(&root).map(|_| ()).unwrap_err().contains("is off"));
    }
}
