//! The program's own code that called a library.
//!
//! A page that `memset` touches first is placed by whoever called it, and that is the line to change. A call stores where it
//! returns to, so the call itself is the last reference that the program's own code made before.

use std::collections::HashSet;

use trace::{Location, Module};

use super::Names;
use results::allocators::is_library;
use results::site::base;

const NONE: u32 = u32::MAX;

/// The last reference of the program's own code, by thread.
pub struct Callers {
    /// By site.
    own: Vec<bool>,
    last: Vec<u32>,
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
        let lines: HashSet<u64> = lines
            .filter(|location| !of_system(location))
            .map(|location| location.pc)
            .collect();
        // What jumps to libraries has no name of its own: it is taken for the function before it.
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

    /// The site at which a thread left its own code, where `site` is not of it.
    pub fn of(&self, thread: u32, site: u32) -> Option<u32> {
        match self.own.get(site as usize) {
            Some(true) => None,
            _ => self.last.get(thread as usize).copied().filter(|last| *last != NONE),
        }
    }
}
