//! The program's own code that called a library.
//!
//! A page that `memset` touches first is placed by its caller, and that is the line to change. A call stores where it
//! returns to, so the call itself is the last reference that the program's own code made before.

use std::collections::HashSet;

use trace::{Location, Module};

use super::Names;
use results::allocators::{is_go_runtime, is_library, is_library_source};
use results::site::base;

const NONE: u32 = u32::MAX;

/// The last reference of the program's own code, by thread.
pub struct Callers {
    /// By site.
    own: Vec<bool>,
    last: Vec<u32>,
    /// Processes, by thread.
    processes: Vec<u32>,
}

impl Callers {
    /// Code is the program's own where it has lines of a source and is not the C or C++ library's; of a program without any
    /// lines, all that is not a shared library's.
    pub fn new(names: &Names) -> Callers {
        let within = |module: &&Module, process: u32, pc: u64| {
            module.process == process && (module.start..module.start + module.bytes).contains(&pc)
        };
        let modules = names.tables.modules.iter();
        let system: Vec<&Module> = modules
            .clone()
            .filter(|module| is_library(base(&module.path)))
            .collect();
        let shared: Vec<&Module> = modules.filter(|module| base(&module.path).contains(".so")).collect();
        let lines = names.tables.locations.iter().filter(|location| location.file.is_some());
        let of_system = |location: &&Location| {
            system
                .iter()
                .any(|module| within(module, location.process, location.pc))
        };
        // A run-time is compiled into the program, with lines: Rust's, Go's.
        let of_runtime = |location: &&Location| {
            location.file.as_deref().is_some_and(is_library_source) || is_go_runtime(&location.function)
        };
        let lines: HashSet<u64> = lines
            .filter(|location| !of_system(location) && !of_runtime(location))
            .map(|location| location.pc)
            .collect();
        // A jump to a library has no name of its own: it is taken for the function before it.
        let stubs = names
            .tables
            .locations
            .iter()
            .filter(|location| location.function == "_init");
        let stubs: HashSet<u64> = stubs.map(|location| location.pc).collect();
        let own = |pc: u64| match lines.is_empty() {
            true => pc != 0 && !stubs.contains(&pc) && !shared.iter().any(|module| within(module, module.process, pc)),
            false => lines.contains(&pc),
        };
        Callers {
            own: names.sites.iter().map(|site| own(site.pc)).collect(),
            last: Vec::new(),
            processes: names.tables.threads.iter().map(|thread| thread.process).collect(),
        }
    }

    /// A thread made a reference.
    #[inline(always)]
    pub fn passed(&mut self, thread: u32, site: u32) {
        if !self.own.get(site as usize).is_some_and(|own| *own) {
            return;
        }
        match self.last.get_mut(thread as usize) {
            Some(last) => *last = site,
            None => {
                self.last.resize(thread as usize, NONE);
                self.last.push(site);
            }
        }
    }

    /// A thread was made: its work before it reaches the program's own code is attributed to its creator.
    pub fn spawned(&mut self, by: u32, child: u32) {
        let (by, child) = (by as usize, child as usize);
        // Another program has other code at the same places.
        let Some(&last) = self
            .last
            .get(by)
            .filter(|_| self.processes.get(by) == self.processes.get(child))
        else {
            return;
        };
        if self.last.len() <= child {
            self.last.resize(child + 1, NONE);
        }
        if self.last[child] == NONE {
            self.last[child] = last;
        }
    }

    /// The site at which a thread left its own code, if `site` is not in it.
    pub fn of(&self, thread: u32, site: u32) -> Option<u32> {
        match self.own.get(site as usize) {
            Some(true) => None,
            _ => self.last.get(thread as usize).copied().filter(|last| *last != NONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::{Op, Site, Thread};

    use super::*;
    use crate::structures::Tables;

    /// Data that a run-time touches, before a thread reaches its user's code or within a call, is named by the user's
    /// line.
    #[test]
    fn what_a_run_time_touches_first_is_named_by_the_users_line() {
        let location = |pc, function: &str, file: Option<&str>| Location {
            process: 0,
            pc,
            function: function.to_string(),
            file: file.map(str::to_string),
            line: file.map(|_| 1),
            inlined_into: Vec::new(),
        };
        let locations = [
            location(16, "app::main", Some("/home/me/src/main.rs")),
            location(
                32,
                "std::sys::thread::start",
                Some("/rustc/0123/library/std/src/sys/pal/unix/stack_overflow.rs"),
            ),
            location(48, "runtime.mallocgc", Some("/opt/go/src/runtime/malloc.go")),
            location(64, "sysmalloc", None),
            location(80, "app::work", Some("src/work.rs")),
        ];
        let thread = |process| Thread {
            process,
            ..Thread::default()
        };
        let threads = [thread(0), thread(0), thread(1)];
        let names = Names {
            tables: Tables {
                processes: &[],
                threads: &threads,
                modules: &[],
                symbols: &[],
                arrays: &[],
                stacks: &[],
                locations: &locations,
            },
            sites: &[16, 32, 48, 64, 80].map(|pc| Site {
                pc,
                op: Op::Write,
                size: 8,
            }),
            dependences: None,
        };
        let mut callers = Callers::new(&names);
        let [main, start, go, allocator, work] = [0, 1, 2, 3, 4];
        callers.passed(0, main);
        callers.passed(0, start);
        callers.spawned(0, 1);
        callers.spawned(0, 2);
        for site in [start, go, allocator] {
            assert_eq!(callers.of(1, site), Some(main), "{site}");
        }
        // Another program has other lines.
        assert_eq!(callers.of(2, allocator), None);
        callers.passed(1, work);
        assert_eq!((callers.of(1, allocator), callers.of(1, work)), (Some(work), None));
    }
}
