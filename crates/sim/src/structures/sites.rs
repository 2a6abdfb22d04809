//! Allocation sites: the place in the program that a block of memory is named after.
//!
//! It is the innermost frame outside the allocator and the C and C++ libraries. A program's own
//! wrappers of the allocator (`xmalloc`, `sqlite3DbMallocRaw`) would name everything alike; they
//! are passed over too, and the innermost one is told along with its caller:
//! `sqlite3MemMalloc ← sqlite3VdbeMemGrow (libsqlite3.so.0)`.

use std::collections::{HashMap, HashSet};

use trace::{Location, Module, Stack};

use super::Tables;

/// A place that allocates, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// From so many different callers on, a frame without a name is taken for a wrapper.
const WRAPPER_CALLERS: usize = 4;

/// The sites, and the site of each stack. The first one stands for all that is not known.
pub fn find(tables: &Tables) -> (Vec<Site>, Vec<u32>) {
    let names = Names::new(tables);
    let mut sites = vec![Site {
        name: "allocation site unknown".to_string(),
        file: None,
        line: None,
    }];
    let mut numbers: HashMap<Site, u32> = HashMap::new();
    let site_of = tables
        .stacks
        .iter()
        .map(|stack| {
            let Some(site) = names.site(stack) else { return 0 };
            *numbers.entry(site).or_insert_with_key(|site| {
                sites.push(site.clone());
                sites.len() as u32 - 1
            })
        })
        .collect();
    (sites, site_of)
}

/// The last part of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

struct Names<'a> {
    locations: HashMap<(u32, u64), &'a Location>,
    /// By process and start.
    modules: Vec<&'a Module>,
    /// Frames without a name that many different frames call.
    wrappers: HashSet<(u32, u64)>,
}

/// How much a frame says about who wanted the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// malloc and its family, or C++ library code inlined into the program.
    Allocator,
    /// Some other function of the C library: `fopen`, `getline`.
    Library,
    /// The program's own wrapper of the allocator.
    Wrapper,
    Program,
}

impl<'a> Names<'a> {
    fn new(tables: &Tables<'a>) -> Self {
        let locations = tables
            .locations
            .iter()
            .filter(|location| !location.function.is_empty() && location.function != "???")
            .map(|location| ((location.process, location.pc), location))
            .collect();
        let mut modules: Vec<_> = tables.modules.iter().collect();
        modules.sort_by_key(|module| (module.process, module.start));
        let mut names = Names {
            locations,
            modules,
            wrappers: HashSet::new(),
        };
        names.wrappers = names.nameless_wrappers(tables.stacks);
        names
    }

    fn site(&self, stack: &Stack) -> Option<Site> {
        let parts: Vec<_> = stack
            .frames
            .iter()
            .map(|frame| self.part(stack.process, frame.pc))
            .collect();
        let known = |at: &usize| self.location(stack.process, stack.frames[*at].pc).is_some();
        let wrapper = parts.iter().position(|part| *part == Part::Wrapper);
        let chosen = parts
            .iter()
            .position(|part| *part == Part::Program)
            .or(wrapper)
            .or_else(|| (0..parts.len()).find(known))
            .or((!parts.is_empty()).then_some(0))?;
        // What the program called to get the memory, if that is worth telling.
        let called = match wrapper.filter(|&wrapper| wrapper < chosen) {
            Some(wrapper) => Some(wrapper),
            None => chosen.checked_sub(1).filter(|&at| parts[at] == Part::Library),
        };
        let mut name = String::new();
        if let Some(called) = called {
            name = format!("{} ← ", self.function(stack, called));
        }
        name += &self.function(stack, chosen);
        let pc = stack.frames[chosen].pc;
        let location = self.location(stack.process, pc);
        let (mut file, mut line) = (None, None);
        match location.and_then(|location| location.file.as_deref().map(|file| (file, location.line))) {
            Some((path, number)) => {
                name += &match number {
                    Some(number) => format!(" ({}:{number})", base(path)),
                    None => format!(" ({})", base(path)),
                };
                (file, line) = (Some(path.to_string()), number);
            }
            None => {
                if let Some(module) = self.module(stack.process, pc).filter(|_| location.is_some()) {
                    name += &format!(" ({})", base(&module.path));
                }
                // A nameless place is easier to find by the nearest named function around it.
                let around = (chosen + 1..stack.frames.len())
                    .find(known)
                    .filter(|_| location.is_none());
                if let Some(around) = around {
                    name += &format!(" ← {}", self.function(stack, around));
                }
            }
        }
        Some(Site { name, file, line })
    }

    /// A frame's function, else its place in its module, else its address.
    fn function(&self, stack: &Stack, at: usize) -> String {
        let pc = stack.frames[at].pc;
        match (self.location(stack.process, pc), self.module(stack.process, pc)) {
            (Some(location), _) => location.function.clone(),
            (None, Some(module)) => format!("{}+{:#x}", base(&module.path), pc.wrapping_sub(module.bias)),
            (None, None) => format!("{pc:#x}"),
        }
    }

    fn part(&self, process: u32, pc: u64) -> Part {
        let function = self.location(process, pc).map(|location| location.function.as_str());
        if function.is_some_and(is_allocator) {
            return Part::Allocator;
        }
        if self
            .module(process, pc)
            .is_some_and(|module| is_library(base(&module.path)))
        {
            return Part::Library;
        }
        let wrapper = match function {
            Some(function) => function.to_ascii_lowercase().contains("alloc"),
            None => self.wrappers.contains(&(process, pc)),
        };
        if wrapper { Part::Wrapper } else { Part::Program }
    }

    /// Nameless frames through which memory for many different callers comes, from the innermost
    /// frames outwards as long as such are found.
    fn nameless_wrappers(&self, stacks: &[Stack]) -> HashSet<(u32, u64)> {
        let mut callers: HashMap<(u32, u64), HashSet<u64>> = HashMap::new();
        for stack in stacks {
            let own = stack
                .frames
                .iter()
                .filter(|frame| !matches!(self.part(stack.process, frame.pc), Part::Allocator | Part::Library));
            let pcs: Vec<u64> = own.map(|frame| frame.pc).collect();
            for pair in pcs
                .windows(2)
                .take_while(|pair| self.location(stack.process, pair[0]).is_none())
            {
                callers.entry((stack.process, pair[0])).or_default().insert(pair[1]);
            }
        }
        callers.retain(|_, callers| callers.len() >= WRAPPER_CALLERS);
        callers.into_keys().collect()
    }

    fn location(&self, process: u32, pc: u64) -> Option<&'a Location> {
        self.locations.get(&(process, pc)).copied()
    }

    fn module(&self, process: u32, pc: u64) -> Option<&'a Module> {
        let above = self
            .modules
            .partition_point(|module| (module.process, module.start) <= (process, pc));
        let module = self.modules[..above].last()?;
        (module.process == process && pc - module.start < module.bytes).then_some(module)
    }
}

/// malloc and its family, by the name of a function; and what C++ compilers inline into programs.
fn is_allocator(function: &str) -> bool {
    const FAMILY: &[&str] = &[
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "strdup",
        "strndup",
        "mmap",
        "mmap64",
        "mremap",
        "brk",
        "sbrk",
    ];
    let plain = function.trim_start_matches('_').trim_start_matches("libc_");
    FAMILY.contains(&plain)
        || function.starts_with("operator new")
        || function.starts_with("_Zn")
        || function.starts_with("std::")
        || function.starts_with("__gnu_cxx::")
        || function.starts_with("_ZNSt")
        || function.starts_with("_ZN9__gnu_cxx")
}

fn is_library(module: &str) -> bool {
    [
        "libc.so",
        "libc-2",
        "ld-linux",
        "ld-2",
        "ld.so",
        "libpthread",
        "libstdc++",
        "libgcc_s",
        "vgpreload",
    ]
    .iter()
    .any(|library| module.starts_with(library))
}
