//! The names: built once from a trace's tables, shared by all runs over it.

use std::collections::HashMap;

use trace::{Allocation, StackId, Symbol};

use super::blocks::{Sorted, Span};
use super::sites::{self, Site};
use super::{Description, Place, StructureId, StructureKind, Tables, UNKNOWN};

/// Structures of one allocation site, one for each kind of allocation.
const KINDS: u32 = 4;

/// Data with a fixed place from the start to the end of a run, by process.
#[derive(Debug, Default)]
pub struct Fixed {
    /// Declared arrays over symbols.
    pub named: Sorted,
    pub stacks: Sorted,
    pub files: Sorted,
    /// The room for growth of a process's first stack; it is as long as it was at the start.
    pub growth: Sorted,
}

/// Bytes that a process's first stack may grow to.
const GROWTH: u64 = 16 << 20;

pub struct Catalog {
    /// Structures that are not allocation sites; number 0 is [`UNKNOWN`].
    structures: Vec<Structure>,
    sites: Vec<Site>,
    /// The site of each of the trace's stacks.
    site_of: Vec<u32>,
    fixed: Vec<Fixed>,
    /// If a process has no tables of its own: the process that it was copied from.
    parents: Vec<Option<u32>>,
    /// The process whose tables a process uses: its own, or those of an ancestor.
    owners: Vec<u32>,
    /// The process of each thread.
    spaces: Vec<u32>,
}

struct Structure {
    start: u64,
    description: Description,
    fields: Vec<(u64, u64, String)>,
}

impl Catalog {
    pub fn new(tables: &Tables) -> Self {
        let spaces = tables.processes.len().max(1);
        let (sites, site_of) = sites::find(tables);
        let parents = parents(tables);
        let mut owners: Vec<u32> = Vec::new();
        for (space, parent) in parents.iter().enumerate() {
            owners.push(parent.map_or(space as u32, |parent| owners[parent as usize]));
        }
        let mut catalog = Catalog {
            structures: vec![unknown()],
            sites,
            site_of,
            fixed: Vec::new(),
            parents,
            owners,
            spaces: tables.threads.iter().map(|thread| thread.process).collect(),
        };
        let mut named = vec![Vec::new(); spaces];
        let mut stacks = vec![Vec::new(); spaces];
        let mut files = vec![Vec::new(); spaces];
        let mut growth = vec![Vec::new(); spaces];
        let suffix = |process| program_suffix(tables, process);
        catalog.add_symbols(tables, &mut named, &suffix);
        for array in tables.arrays {
            let name = format!("{}{}", array.name, suffix(array.process));
            let structure = catalog.add(array.addr, array.bytes, name, StructureKind::Array);
            push(&mut named, array.process, Span::new(array.addr, array.bytes, structure));
        }
        for thread in tables.threads {
            let Some((low, high)) = thread.stack else { continue };
            let mut name = format!("stack of thread {}", thread.number);
            if !thread.name.is_empty() {
                name += &format!(" ({})", thread.name);
            }
            let bytes = high.saturating_sub(low);
            let structure = catalog.add(low, bytes, name, StructureKind::Stack);
            push(&mut stacks, thread.process, Span::new(low, bytes, structure));
            if let Some(first) = growth.get_mut(thread.process as usize).filter(|first| first.is_empty()) {
                let low = high.saturating_sub(GROWTH);
                first.push(Span::new(low, high - low, structure));
            }
        }
        catalog.add_files(tables, &mut files, &suffix);
        catalog.fixed = named
            .into_iter()
            .zip(stacks)
            .zip(files)
            .zip(growth)
            .map(|(((named, stacks), files), growth)| Fixed {
                named: Sorted::new(named),
                stacks: Sorted::new(stacks),
                files: Sorted::new(files),
                growth: Sorted::new(growth),
            })
            .collect();
        catalog
    }

    pub fn count(&self) -> u32 {
        (self.structures.len() + self.sites.len() * KINDS as usize) as u32
    }

    /// The fixed structures that a process sees: its own, else its parent's.
    pub fn fixed(&self, space: u32) -> &Fixed {
        static NONE: Fixed = Fixed::NONE;
        let owner = self.owners.get(space as usize).copied().unwrap_or(space);
        self.fixed.get(owner as usize).unwrap_or(&NONE)
    }

    pub fn parent(&self, space: u32) -> Option<u32> {
        self.parents.get(space as usize).copied().flatten()
    }

    pub fn space_of(&self, thread: u32) -> Option<u32> {
        self.spaces.get(thread as usize).copied()
    }

    /// The structure of a stack's allocations.
    pub fn site(&self, stack: StackId, kind: Allocation) -> StructureId {
        let kind = match kind {
            Allocation::Heap => 0,
            Allocation::Map => 1,
            Allocation::File => 2,
            Allocation::Stack => 3,
        };
        // Site 0 is the unknown one: there always is one.
        let site = self.site_of.get(stack as usize).copied().unwrap_or(0);
        self.structures.len() as u32 + site * KINDS + kind
    }

    pub fn describe(&self, structure: StructureId) -> Description {
        if let Some(fixed) = self.structures.get(structure as usize) {
            return fixed.description.clone();
        }
        let number = structure - self.structures.len() as u32;
        let Some(site) = self.sites.get((number / KINDS) as usize) else {
            return unknown().description;
        };
        let (prefix, kind) = match number % KINDS {
            0 => ("heap", StructureKind::Heap),
            1 => ("mmap", StructureKind::Heap),
            2 => ("mapped file", StructureKind::File),
            _ => ("stack", StructureKind::Stack),
        };
        Description {
            name: match site.name.as_str() {
                own if sites::is_allocators_own(own) => own.to_string(),
                name => format!("{prefix}: {name}"),
            },
            kind,
            file: site.file.clone(),
            line: site.line,
            bytes: 0,
            blocks: 0,
        }
    }

    /// Start and size of a variable or a declared array.
    pub fn place_of(&self, structure: StructureId) -> Option<(u64, u64)> {
        let one = |fixed: &&Structure| matches!(fixed.description.kind, StructureKind::Symbol | StructureKind::Array);
        let fixed = self.structures.get(structure as usize).filter(one)?;
        Some((fixed.start, fixed.description.bytes))
    }

    pub fn place(&self, span: Span, addr: u64) -> Place {
        let fixed = self.structures.get(span.structure as usize);
        let start = fixed.map_or(span.start, |fixed| fixed.start);
        let offset = addr.wrapping_sub(start);
        let field = fixed.and_then(|fixed| field(&fixed.fields, offset));
        let name = match field {
            _ if span.structure == UNKNOWN => format!("{addr:#x}"),
            Some(field) => format!("{}{field}", self.describe(span.structure).name),
            None if offset == 0 && fixed.is_some_and(|fixed| fixed.description.bytes <= 8) => {
                self.describe(span.structure).name
            }
            None => format!("{}+{offset}", self.describe(span.structure).name),
        };
        Place {
            structure: span.structure,
            offset,
            name,
        }
    }

    fn add(&mut self, start: u64, bytes: u64, name: String, kind: StructureKind) -> StructureId {
        let description = Description {
            name,
            kind,
            file: None,
            line: None,
            bytes,
            blocks: 0,
        };
        self.structures.push(Structure {
            start,
            description,
            fields: Vec::new(),
        });
        self.structures.len() as u32 - 1
    }

    /// Larger symbols first, so that a symbol inside another one keeps its own name.
    fn add_symbols(&mut self, tables: &Tables, named: &mut [Vec<Span>], suffix: &dyn Fn(u32) -> String) {
        let mut symbols: Vec<&Symbol> = tables.symbols.iter().collect();
        symbols.sort_by_key(|symbol| std::cmp::Reverse(symbol.bytes));
        for symbol in symbols {
            let name = format!("{}{}", symbol.name, suffix(symbol.process));
            let structure = self.add(symbol.addr, symbol.bytes, name, StructureKind::Symbol);
            let added = &mut self.structures[structure as usize];
            added.description.file.clone_from(&symbol.file);
            added.description.line = symbol.line;
            added.fields.clone_from(&symbol.fields);
            push(named, symbol.process, Span::new(symbol.addr, symbol.bytes, structure));
        }
    }

    /// All mappings of one file in one process are one structure.
    fn add_files(&mut self, tables: &Tables, files: &mut [Vec<Span>], suffix: &dyn Fn(u32) -> String) {
        let mut seen = HashMap::new();
        for module in tables.modules {
            let key = (module.process, module.path.as_str());
            let structure = *seen.entry(key).or_insert_with(|| {
                let name = format!("file: {}{}", results::site::base(&module.path), suffix(module.process));
                let structure = self.add(module.start, 0, name, StructureKind::File);
                self.structures[structure as usize].description.file = Some(module.path.clone());
                structure
            });
            let bytes = &mut self.structures[structure as usize].description.bytes;
            *bytes = bytes.saturating_add(module.bytes);
            push(files, module.process, Span::new(module.start, module.bytes, structure));
        }
    }
}

impl Fixed {
    const NONE: Fixed = Fixed {
        named: Sorted::EMPTY,
        stacks: Sorted::EMPTY,
        files: Sorted::EMPTY,
        growth: Sorted::EMPTY,
    };
}

/// A process without symbols, arrays and modules has its parent's: it was forked.
pub(super) fn parents(tables: &Tables) -> Vec<Option<u32>> {
    let mut own = vec![false; tables.processes.len()];
    let named = tables.symbols.iter().map(|symbol| symbol.process);
    let named = named.chain(tables.arrays.iter().map(|array| array.process));
    for process in named.chain(tables.modules.iter().map(|module| module.process)) {
        if let Some(own) = own.get_mut(process as usize) {
            *own = true;
        }
    }
    let parents = tables.processes.iter().zip(own).enumerate();
    parents
        .map(|(number, (process, own))| {
            // Parents come before their children; anything else would be a circle.
            process.parent.filter(|&parent| !own && (parent as usize) < number)
        })
        .collect()
}

/// Distinguishes processes where the trace has several programs.
fn program_suffix(tables: &Tables, process: u32) -> String {
    let first = tables.processes.first().map(|first| first.program.as_str());
    match tables.processes.get(process as usize) {
        Some(process) if Some(process.program.as_str()) != first => {
            format!(" [{}]", results::site::base(&process.program))
        }
        _ => String::new(),
    }
}

fn push(spans: &mut [Vec<Span>], process: u32, span: Span) {
    if let Some(spans) = spans.get_mut(process as usize) {
        spans.push(span);
    }
}

/// The smallest field that covers an offset.
fn field(fields: &[(u64, u64, String)], offset: u64) -> Option<&str> {
    let covering = fields
        .iter()
        .filter(|(start, bytes, _)| *start <= offset && offset - start < *bytes);
    covering
        .min_by_key(|(_, bytes, _)| *bytes)
        .map(|(_, _, name)| name.as_str())
}

fn unknown() -> Structure {
    Structure {
        start: 0,
        description: Description {
            name: "(memory without a name)".to_string(),
            kind: StructureKind::Unknown,
            file: None,
            line: None,
            bytes: 0,
            blocks: 0,
        },
        fields: Vec::new(),
    }
}
