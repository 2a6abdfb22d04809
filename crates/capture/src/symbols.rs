//! After the run: the names of the addresses in the trace. The trace is then complete in itself;
//! the program's files are not needed any more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rayon::prelude::*;
use results::allocators::is_library_source;
use trace::{Inlined, Location, Module, Symbol};

use crate::dwarf::{self, Variable};
use crate::elf::{self, Elf};
use crate::module::Mapping;
use crate::options::Options;
use crate::process_tree::ProcessTree;
use crate::started::Started;
use crate::tool;

/// Static data without initial values that one file may have: 64 GiB.
const MOST_ZEROED: u64 = 1 << 36;
/// The most functions around an inlined place that a trace names.
const MOST_INLINED: usize = 16;

/// A file in an address space.
struct Place<'a> {
    process: u32,
    path: &'a str,
    start: u64,
    end: u64,
    bias: u64,
}

/// The place in the source of a file's own address. The function has no name if nothing gives it one.
#[derive(Clone, Default)]
pub(crate) struct Spot {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The functions that it is inlined into, innermost first.
    pub inlined_into: Vec<Inlined>,
}

impl Spot {
    /// As `wait (spin.c:12)`.
    fn words(&self) -> String {
        let function = results::short(&self.function);
        match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let file = file.rsplit('/').next().unwrap_or(file);
                format!("{function} ({file}:{line})")
            }
            _ => function,
        }
    }
}

/// The answers about one file.
#[derive(Default)]
struct Answers {
    data: Vec<Symbol>,
    spots: HashMap<u64, Spot>,
}

/// Writes the tables of names: modules, symbols and locations. Returns the places in the source of processes' program
/// counters (`wanted`), in words.
pub fn write(
    options: &Options,
    tree: &mut ProcessTree,
    wanted: &[(u32, u64)],
    notes: &mut Vec<String>,
) -> HashMap<(u32, u64), String> {
    let mappings: Vec<Mapping> = tree
        .commons
        .mappings
        .iter()
        .filter(|m| !is_ours(&m.path))
        .cloned()
        .collect();
    let paths: HashSet<&str> = mappings.iter().map(|m| m.path.as_str()).collect();
    let elves: HashMap<&str, Elf> = paths
        .into_par_iter()
        .filter_map(|path| Some((path, Elf::open(Path::new(path))?)))
        .collect();
    let places = places(&mappings, &elves);
    let started = Started::of(tree.programs());

    let mut asked: HashMap<&str, HashSet<u64>> = HashMap::new();
    let mut pcs = std::mem::take(&mut tree.commons.pcs);
    for (process, pc) in wanted {
        pcs.entry(*process).or_default().insert(*pc);
    }
    let mut found: Vec<(u32, u64, &str, u64)> = Vec::new();
    if options.symbols {
        for (process, pcs) in &pcs {
            let here: BTreeMap<u64, &Place<'_>> = places
                .iter()
                .filter(|p| p.process == *process)
                .map(|p| (p.start, p))
                .collect();
            for pc in pcs {
                let place = here.range(..=*pc).next_back().map(|(_, p)| *p).filter(|p| *pc < p.end);
                if let Some(place) = place {
                    let own = pc.wrapping_sub(place.bias);
                    asked.entry(place.path).or_default().insert(own);
                    found.push((*process, *pc, place.path, own));
                }
            }
        }
    }
    let program = mappings.first().map(|m| m.path.as_str());
    let called = mappings.first().map_or("", |m| started.path(m.process, &m.path));
    let nothing = HashSet::new();
    let answers: HashMap<&str, Answers> = elves
        .par_iter()
        .map(|(path, elf)| {
            let asked = asked.get(path).unwrap_or(&nothing);
            // In libraries with separate debug information only code is looked up: they belong to the system, and
            // reading everything takes longer than the run of many programs.
            let variables = Some(*path) == program || elf.debug.as_deref() == Some(Path::new(path));
            (
                *path,
                if options.symbols {
                    answer(elf, asked, variables)
                } else {
                    Answers::default()
                },
            )
        })
        .collect();

    let without: Vec<&str> = elves
        .iter()
        .filter(|(_, e)| e.debug.is_none())
        .map(|(path, _)| *path)
        .collect();
    if program.is_some_and(|p| options.symbols && without.contains(&p)) {
        notes.push(format!(
            "{called} has no debug information: data and code are named by symbols only; compile with -g for files \
             and lines"
        ));
    }
    write_modules(tree, &places, &elves, &started);
    write_symbols(tree, &places, &answers);
    found.sort_unstable_by_key(|(process, pc, path, own)| (*path, *own, *process, *pc));
    let spot_of = |process: u32, path: &str, own: u64| -> Option<Spot> {
        let mut spot = answers.get(path)?.spots.get(&own)?.clone();
        if spot.function.is_empty() {
            let name = started.path(process, path);
            spot.function = format!("{}+{own:#x}", name.rsplit('/').next().unwrap_or(name));
        }
        Some(spot)
    };
    let in_words = |process, pc| {
        let place = found.iter().find(|(of, at, ..)| (*of, *at) == (process, pc));
        let spot = place.and_then(|(_, _, path, own)| spot_of(process, path, *own));
        spot.map_or_else(|| format!("{pc:#x}"), |spot| spot.words())
    };
    notes.extend(tree.commons.differences.notes(in_words));
    let told = wanted
        .iter()
        .map(|(process, pc)| ((*process, *pc), in_words(*process, *pc)));
    let told = told.collect();
    let locations = found.iter().filter_map(|(process, pc, path, own)| {
        let spot = spot_of(*process, path, *own)?;
        Some(Location {
            process: *process,
            pc: *pc,
            function: spot.function,
            file: spot.file,
            line: spot.line,
            inlined_into: spot.inlined_into,
        })
    });
    tree.out.writer().locations(locations.collect::<Vec<_>>());
    let lines = std::mem::take(&mut tree.commons.lines);
    tree.out.writer().locations(lines);
    told
}

/// True if a file is part of the recorder and not of the program.
pub(crate) fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("vgpreload_") || name == tool::EXECUTABLE
}

/// The places of each file: its mappings of one bias together.
fn places<'a>(mappings: &'a [Mapping], elves: &HashMap<&str, Elf>) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    // An executable that is only read (by a debugger, say) is not loaded.
    let mut loaded: HashSet<(u32, &str, u64)> = HashSet::new();
    for m in mappings {
        let bias = match elves.get(m.path.as_str()) {
            Some(elf) if m.executable => elf.bias_of_code(m.start, m.offset),
            Some(elf) => elf.bias(m.start, m.offset, |bias| {
                places
                    .iter()
                    .rev()
                    .any(|p| p.process == m.process && p.path == m.path && p.bias == bias)
            }),
            None => m.start.wrapping_sub(m.offset),
        };
        if m.executable {
            loaded.insert((m.process, &m.path, bias));
        }
        let end = m.start.saturating_add(m.bytes);
        let known = places
            .iter_mut()
            .rev()
            .find(|p| p.process == m.process && p.path == m.path && p.bias == bias);
        match known {
            Some(place) => {
                place.start = place.start.min(m.start);
                place.end = place.end.max(end);
            }
            None => places.push(Place {
                process: m.process,
                path: &m.path,
                start: m.start,
                end,
                bias,
            }),
        }
    }
    for place in places
        .iter_mut()
        .filter(|p| loaded.contains(&(p.process, p.path, p.bias)))
    {
        let data_end = elves
            .get(place.path)
            .map_or(0, |elf| place.bias.wrapping_add(elf.end()));
        // Data beyond the file's end follows its last mapping.
        if data_end.wrapping_sub(place.end) < MOST_ZEROED {
            place.end = data_end;
        }
    }
    places
}

/// Looks up everything in one file.
fn answer(elf: &Elf, asked: &HashSet<u64>, with_variables: bool) -> Answers {
    let mut answers = Answers::default();
    let mut variables: HashMap<u64, Variable> = HashMap::new();
    if let Some(bytes) = elf.debug.as_deref().filter(|_| with_variables).and_then(elf::read) {
        variables.extend(dwarf::variables(&bytes).into_iter().map(|v| (v.addr, v)));
    }
    answers.data = elf
        .data
        .iter()
        .map(|named| {
            let variable = variables.remove(&named.addr).unwrap_or_default();
            // Read-only data has no false sharing.
            let fields = if elf.is_writable(named.addr) {
                variable.fields
            } else {
                Vec::new()
            };
            Symbol {
                process: 0,
                name: named.name.clone(),
                addr: named.addr,
                bytes: named.bytes,
                file: variable.file,
                line: variable.line,
                fields,
            }
        })
        .collect();
    let loader = elf
        .debug
        .as_deref()
        .filter(|_| !asked.is_empty())
        .and_then(|d| addr2line::Loader::new(d).ok());
    for &own in asked {
        let mut spot = loader.as_ref().and_then(|l| look_up(l, own)).unwrap_or_default();
        if spot.function.is_empty() {
            spot.function = elf.function(own).unwrap_or_default().to_string();
        }
        answers.spots.insert(own, spot);
    }
    answers
}

/// The function at an address, including inlined ones, and the line: the innermost of the user's code. A function
/// inlined from a library's header gets the line of the user's code that calls it; pure library code is named as in the
/// library.
pub(crate) fn look_up(loader: &addr2line::Loader, own: u64) -> Option<Spot> {
    let mut frames = loader.find_frames(own).ok()?;
    let mut spots: Vec<Spot> = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        spots.push(spot(&frame));
    }
    let of_library = |spot: &Spot| spot.file.as_deref().is_some_and(is_library_source);
    let own = spots.iter().position(|spot| !of_library(spot)).unwrap_or(0);
    let mut spots = spots.into_iter().skip(own);
    let mut found = spots.next()?;
    let into = |Spot {
                    function, file, line, ..
                }: Spot| Inlined { function, file, line };
    let mut inlined: Vec<Inlined> = spots.map(into).collect();
    // The last is the function of the machine code, which is never left out.
    if inlined.len() > MOST_INLINED {
        inlined.drain(MOST_INLINED - 1..inlined.len() - 1);
    }
    found.inlined_into = inlined;
    Some(found)
}

fn spot(frame: &addr2line::Frame<impl addr2line::gimli::Reader>) -> Spot {
    let function = frame
        .function
        .as_ref()
        .and_then(|f| f.demangle().ok())
        .map(|n| n.into_owned());
    let location = frame.location.as_ref();
    Spot {
        function: function.unwrap_or_default(),
        file: location.and_then(|l| l.file).map(str::to_string),
        line: location.and_then(|l| l.line).filter(|l| *l > 0),
        inlined_into: Vec::new(),
    }
}

fn write_modules(tree: &mut ProcessTree, places: &[Place<'_>], elves: &HashMap<&str, Elf>, started: &Started) {
    let modules = places.iter().map(|p| Module {
        process: p.process,
        path: started.path(p.process, p.path).to_string(),
        start: p.start,
        bytes: p.end - p.start,
        bias: p.bias,
        build_id: elves.get(p.path).map(|e| e.build_id.clone()).unwrap_or_default(),
    });
    tree.out.writer().modules(modules.collect::<Vec<_>>());
}

/// Writes the same symbol of all processes together: the table of a program with many processes is then, compressed,
/// hardly longer than that of one.
fn write_symbols(tree: &mut ProcessTree, places: &[Place<'_>], answers: &HashMap<&str, Answers>) {
    let mut by_path: BTreeMap<&str, Vec<&Place<'_>>> = BTreeMap::new();
    for place in places {
        by_path.entry(place.path).or_default().push(place);
    }
    for (path, places) in by_path {
        let Some(answers) = answers.get(path) else { continue };
        for symbol in &answers.data {
            tree.out.writer().symbols(places.iter().map(|place| Symbol {
                process: place.process,
                addr: symbol.addr.wrapping_add(place.bias),
                ..symbol.clone()
            }));
        }
    }
}
