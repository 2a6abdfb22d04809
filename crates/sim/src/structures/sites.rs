//! Allocation sites: the place in the program that a block of memory is named after.
//!
//! It is the innermost frame outside the allocator and the C and C++ libraries. A program's own
//! wrappers of the allocator (`xmalloc`, `sqlite3DbMallocRaw`) would name everything alike; they
//! are passed over too, and the innermost one is named along with its caller:
//! `sqlite3MemMalloc ← sqlite3VdbeMemGrow (libsqlite3.so.0)`.

use std::collections::{HashMap, HashSet};

use results::allocators::{
    MALLOCS, MAPPERS, is_allocator, is_allocator_library, is_go_runtime, is_library, is_replacement, is_wrapper, plain,
};
use results::site::base;
use trace::{Location, Module, Stack};

use super::Tables;

/// A place that allocates, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Site {
    fn named(name: String) -> Site {
        Site {
            name,
            file: None,
            line: None,
        }
    }
}

/// From this many different callers on, a frame without a name is taken for a wrapper.
const WRAPPER_CALLERS: usize = 4;

/// Memory that malloc maps for itself: blocks in use have names of their own, so this is what it keeps between them.
const MALLOC: &str = "malloc's own memory";

/// The same of Go's runtime: its heap between the objects, stacks of goroutines, the collector's own data.
const GO: &str = "memory of Go's runtime";

/// The same of a library that takes malloc's place.
const OWN: &str = "own memory of ";

/// Returns whether a site of this name is memory that an allocator maps for itself.
pub fn is_allocators_own(name: &str) -> bool {
    name == MALLOC || name == GO || name.strip_prefix(OWN).is_some_and(is_allocator_library)
}

/// The sites, and the site of each stack. The first one stands for all that is not known.
pub fn find(tables: &Tables) -> (Vec<Site>, Vec<u32>) {
    let names = Names::new(tables);
    let mut sites = vec![Site::named("allocation site unknown".to_string())];
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

/// The same, but if different places ask one place for blocks, these are kept apart by the caller:
/// `team_memory ← make_matrix (makea.c:31)`. Stacks without a site have none.
pub fn find_callers(tables: &Tables) -> Vec<Option<Site>> {
    let names = Names::new(tables);
    let sites: Vec<_> = tables.stacks.iter().map(|stack| names.site(stack)).collect();
    let callers: Vec<_> = tables.stacks.iter().map(|stack| names.caller(stack)).collect();
    let mut askers: HashMap<(&Site, u32), HashSet<&Option<Site>>> = HashMap::new();
    for ((site, caller), stack) in sites.iter().zip(&callers).zip(tables.stacks) {
        if let Some(site) = site {
            askers.entry((site, stack.process)).or_default().insert(caller);
        }
    }
    let one = |((site, caller), stack): ((&Option<Site>, &Option<Site>), &Stack)| {
        let site = site.as_ref()?;
        let several = askers
            .get(&(site, stack.process))
            .is_some_and(|askers| askers.len() > 1);
        Some(caller.as_ref().filter(|_| several).unwrap_or(site).clone())
    };
    sites.iter().zip(&callers).zip(tables.stacks).map(one).collect()
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
    /// Not a place in a program: the end of the unwound part.
    Nowhere,
}

impl<'a> Names<'a> {
    fn new(tables: &Tables<'a>) -> Self {
        let named = |location: &&Location| {
            let function = location.function.as_str();
            // `libx.so+0x12f0` says where the frame is, but is no name.
            !function.is_empty() && function != "???" && !(location.file.is_none() && function.contains("+0x"))
        };
        let locations = tables
            .locations
            .iter()
            .filter(named)
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
        let parts = self.parts(stack);
        let known = |at: &usize| self.location(stack.process, stack.frames[*at].pc).is_some();
        if let Some(owner) = self.allocators_own(stack) {
            return Some(Site::named(owner));
        }
        let wrappers = || (0..parts.len()).filter(|&at| parts[at] == Part::Wrapper);
        let wrapper = wrappers().find(known).or(wrappers().next());
        let program = parts.iter().position(|part| *part == Part::Program);
        // If a wrapper was inlined into main, the caller of main is next; it wants no memory.
        let program = program.filter(|&at| wrapper.is_none() || self.function(stack, at) != START);
        let Some(chosen) = program.or(wrapper) else {
            // The libraries' own: which one says enough.
            let place = (0..parts.len()).find(|&at| parts[at] != Part::Nowhere)?;
            let module = self.module(stack.process, stack.frames[place].pc);
            let name = module.map_or_else(|| self.function(stack, place), |module| base(&module.path).to_string());
            return Some(Site::named(name));
        };
        // The function that the program called to get the memory, if that is worth saying.
        let called = match wrapper.filter(|&wrapper| wrapper < chosen && known(&wrapper)) {
            Some(wrapper) => Some(wrapper),
            None => chosen
                .checked_sub(1)
                .filter(|at| parts[*at] == Part::Library && known(at)),
        };
        let mut name = String::new();
        if let Some(called) = called {
            name = format!("{} ← ", self.function(stack, called));
        }
        name += &self.function(stack, chosen);
        let pc = stack.frames[chosen].pc;
        let Some(location) = self.location(stack.process, pc) else {
            // A nameless place is easier to find by the nearest named function around it.
            if let Some(around) = (chosen + 1..parts.len())
                .find(known)
                .filter(|&at| parts[at] == Part::Program)
            {
                name += &format!(" ← {}", self.function(stack, around));
            }
            return Some(Site::named(name));
        };
        let Some(path) = &location.file else {
            if let Some(module) = self.module(stack.process, pc) {
                name += &format!(" ({})", base(&module.path));
            }
            return Some(Site::named(name));
        };
        name += &match location.line {
            Some(line) => format!(" ({}:{line})", base(path)),
            None => format!(" ({})", base(path)),
        };
        Some(Site {
            name,
            file: Some(path.clone()),
            line: location.line,
        })
    }

    /// The site with the place of the program that called there.
    fn caller(&self, stack: &Stack) -> Option<Site> {
        let parts = self.parts(stack);
        let chosen = parts.iter().position(|part| *part == Part::Program)?;
        let known = |at: &usize| self.location(stack.process, stack.frames[*at].pc).is_some();
        let caller = (chosen + 1..parts.len()).find(|at| parts[*at] == Part::Program && known(at))?;
        let location = self.location(stack.process, stack.frames[caller].pc)?;
        let path = location.file.as_ref()?;
        let place = match location.line {
            Some(line) => format!("{}:{line}", base(path)),
            None => base(path).to_string(),
        };
        Some(Site {
            name: format!(
                "{} ← {} ({place})",
                self.function(stack, chosen),
                self.function(stack, caller)
            ),
            file: Some(path.clone()),
            line: location.line,
        })
    }

    /// The role of each frame. A nameless frame inside a wrapper is part of it.
    fn parts(&self, stack: &Stack) -> Vec<Part> {
        let mut parts: Vec<_> = stack
            .frames
            .iter()
            .map(|frame| self.part(stack.process, frame.pc))
            .collect();
        for at in (1..parts.len()).rev() {
            let nameless = self.location(stack.process, stack.frames[at - 1].pc).is_none();
            if parts[at] == Part::Wrapper && parts[at - 1] == Part::Program && nameless {
                parts[at - 1] = Part::Wrapper;
            }
        }
        parts
    }

    /// The name of memory that an allocator asked the kernel for, and gives the program in blocks of which each has a
    /// name of its own.
    fn allocators_own(&self, stack: &Stack) -> Option<String> {
        if self.is_mallocs(stack) {
            return Some(MALLOC.to_string());
        }
        let mut known = stack
            .frames
            .iter()
            .filter_map(|frame| self.location(stack.process, frame.pc));
        let all_go = known.clone().next().is_some() && known.all(|location| is_go_runtime(&location.function));
        if all_go {
            return Some(GO.to_string());
        }
        let asks = |at: &usize| {
            let location = self.location(stack.process, stack.frames[*at].pc);
            !location.is_some_and(|location| MAPPERS.contains(&plain(&location.function)))
        };
        // Else it is a block that the library gives.
        let first = (0..stack.frames.len()).find(asks).filter(|first| *first > 0)?;
        let module = self.module(stack.process, stack.frames[first].pc)?;
        is_allocator_library(base(&module.path)).then(|| format!("{}{}", OWN, base(&module.path)))
    }

    /// Returns whether malloc asked the kernel for this memory.
    fn is_mallocs(&self, stack: &Stack) -> bool {
        let function = |at: usize| {
            let frame = stack.frames.get(at)?;
            self.location(stack.process, frame.pc)
                .map(|location| plain(&location.function))
        };
        function(0).is_some_and(|first| MAPPERS.contains(&first))
            && (1..stack.frames.len())
                .filter_map(function)
                .any(|name| MALLOCS.contains(&name) || is_replacement(name))
    }

    /// A frame's function, else its place in its module, else its address.
    fn function(&self, stack: &Stack, at: usize) -> String {
        let pc = stack.frames[at].pc;
        match (self.location(stack.process, pc), self.module(stack.process, pc)) {
            (Some(location), _) => location.function.trim_start_matches("__GI_").to_string(),
            (None, Some(module)) => format!("{}+{:#x}", base(&module.path), pc.wrapping_sub(module.bias)),
            (None, None) => format!("{pc:#x}"),
        }
    }

    fn part(&self, process: u32, pc: u64) -> Part {
        let function = self.location(process, pc).map(|location| location.function.as_str());
        let module = self.module(process, pc);
        if function.is_some_and(is_allocator) || module.is_some_and(|module| is_allocator_library(base(&module.path))) {
            return Part::Allocator;
        }
        if function.is_none() && module.is_none() && !self.modules.is_empty() {
            return Part::Nowhere;
        }
        if module.is_some_and(|module| is_library(base(&module.path))) {
            return Part::Library;
        }
        let wrapper = match function {
            Some(function) => is_wrapper(function),
            None => self.wrappers.contains(&(process, pc)),
        };
        if wrapper { Part::Wrapper } else { Part::Program }
    }

    /// Nameless frames through which memory for many different callers comes, from the innermost
    /// frames outwards as long as there are only such and wrappers with a name.
    fn nameless_wrappers(&self, stacks: &[Stack]) -> HashSet<(u32, u64)> {
        let mut callers: HashMap<(u32, u64), HashSet<u64>> = HashMap::new();
        for stack in stacks {
            let nameless = |pc: u64| self.location(stack.process, pc).is_none();
            let own = stack
                .frames
                .iter()
                .map(|frame| frame.pc)
                .filter(|&pc| matches!(self.part(stack.process, pc), Part::Wrapper | Part::Program));
            let pcs: Vec<u64> = own.collect();
            let inner = |pc: u64| nameless(pc) || self.part(stack.process, pc) == Part::Wrapper;
            for pair in pcs.windows(2).take_while(|pair| inner(pair[0])) {
                if nameless(pair[0]) {
                    callers.entry((stack.process, pair[0])).or_default().insert(pair[1]);
                }
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

/// The start of a program, which is the C library's code linked into it.
const START: &str = "_start";
