//! After the run: what the addresses in the trace are called. The trace is then complete in itself;
//! the program's files are not needed any more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rayon::prelude::*;
use trace::{Location, Module, Symbol};

use crate::dwarf::{self, Variable};
use crate::elf::{self, Elf};
use crate::module::Mapping;
use crate::options::Options;
use crate::story::Story;
use crate::tool;

/// A file in an address space.
struct Place<'a> {
    process: u32,
    path: &'a str,
    start: u64,
    end: u64,
    bias: u64,
}

/// What a file's own address is in the source.
#[derive(Clone, Default)]
struct Spot {
    function: String,
    file: Option<String>,
    line: Option<u32>,
}

/// All that was asked of one file.
#[derive(Default)]
struct Answers {
    build_id: String,
    data: Vec<Symbol>,
    spots: HashMap<u64, Spot>,
}

/// Writes the tables that give names: modules, symbols and locations.
pub fn write(options: &Options, story: &mut Story, notes: &mut Vec<String>) {
    let mappings: Vec<Mapping> = story.commons.mappings.iter().filter(|m| !is_ours(&m.path)).cloned().collect();
    let paths: HashSet<&str> = mappings.iter().map(|m| m.path.as_str()).collect();
    let elves: HashMap<&str, Elf> =
        paths.into_par_iter().filter_map(|path| Some((path, Elf::open(Path::new(path))?))).collect();
    let places = places(&mappings, &elves);

    let mut asked: HashMap<&str, HashSet<u64>> = HashMap::new();
    let pcs = std::mem::take(&mut story.commons.pcs);
    let mut found: Vec<(u32, u64, &str, u64)> = Vec::new();
    if options.symbols {
        for (process, pcs) in &pcs {
            let here: BTreeMap<u64, &Place<'_>> =
                places.iter().filter(|p| p.process == *process).map(|p| (p.start, p)).collect();
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
    let nothing = HashSet::new();
    let answers: HashMap<&str, Answers> = elves
        .par_iter()
        .map(|(path, elf)| (*path, answer(path, elf, asked.get(path).unwrap_or(&nothing), options.symbols)))
        .collect();

    let without: Vec<&str> = elves.iter().filter(|(_, e)| e.debug.is_none()).map(|(path, _)| *path).collect();
    let program = mappings.first().map(|m| m.path.as_str());
    if let Some(program) = program.filter(|p| options.symbols && without.contains(p)) {
        notes.push(format!(
            "{program} has no debug information: data and code are named by symbols only; compile with -g for files \
             and lines"
        ));
    }
    write_modules(story, &places, &answers);
    write_symbols(story, &places, &answers);
    found.sort_unstable();
    let locations = found.into_iter().filter_map(|(process, pc, path, own)| {
        let spot = answers.get(path)?.spots.get(&own)?.clone();
        Some(Location { process, pc, function: spot.function, file: spot.file, line: spot.line })
    });
    story.out.writer().locations(locations.collect::<Vec<_>>());
}

/// Whether a file is part of the recorder and not of the program.
fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("vgpreload_") || name == tool::EXECUTABLE
}

/// Where each file lies: its mappings of one bias together.
fn places<'a>(mappings: &'a [Mapping], elves: &HashMap<&str, Elf>) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    for m in mappings {
        let bias = match elves.get(m.path.as_str()) {
            Some(elf) => elf.bias(m.start, m.offset, |bias| {
                places.iter().rev().any(|p| p.process == m.process && p.path == m.path && p.bias == bias)
            }),
            None => m.start.wrapping_sub(m.offset),
        };
        let end = m.start.saturating_add(m.bytes);
        let known = places.iter_mut().rev().find(|p| p.process == m.process && p.path == m.path && p.bias == bias);
        match known {
            Some(place) => {
                place.start = place.start.min(m.start);
                place.end = place.end.max(end);
            }
            None => places.push(Place { process: m.process, path: &m.path, start: m.start, end, bias }),
        }
    }
    places
}

/// Looks up everything in one file.
fn answer(path: &str, elf: &Elf, asked: &HashSet<u64>, look: bool) -> Answers {
    let mut answers = Answers { build_id: elf.build_id.clone(), ..Answers::default() };
    if !look {
        return answers;
    }
    let mut variables: HashMap<u64, Variable> = HashMap::new();
    if let Some(bytes) = elf.debug.as_deref().and_then(elf::read) {
        variables.extend(dwarf::variables(&bytes).into_iter().map(|v| (v.addr, v)));
    }
    answers.data = elf
        .data
        .iter()
        .map(|named| {
            let variable = variables.remove(&named.addr).unwrap_or_default();
            // Who only reads shares nothing falsely.
            let fields = if elf.is_writable(named.addr) { variable.fields } else { Vec::new() };
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
    let loader = elf.debug.as_deref().filter(|_| !asked.is_empty()).and_then(|d| addr2line::Loader::new(d).ok());
    let short = Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    for &own in asked {
        let mut spot = loader.as_ref().and_then(|l| look_up(l, own)).unwrap_or_default();
        if spot.function.is_empty() {
            spot.function = match elf.function(own) {
                Some(name) => name.to_string(),
                None => format!("{short}+{own:#x}"),
            };
        }
        answers.spots.insert(own, spot);
    }
    answers
}

/// The innermost function at an address, inlined ones included, and the line.
fn look_up(loader: &addr2line::Loader, own: u64) -> Option<Spot> {
    let mut frames = loader.find_frames(own).ok()?;
    let frame = frames.next().ok()??;
    let function = frame.function.as_ref().and_then(|f| f.demangle().ok()).map(|n| n.into_owned());
    let location = frame.location.as_ref();
    Some(Spot {
        function: function.unwrap_or_default(),
        file: location.and_then(|l| l.file).map(str::to_string),
        line: location.and_then(|l| l.line).filter(|l| *l > 0),
    })
}

fn write_modules(story: &mut Story, places: &[Place<'_>], answers: &HashMap<&str, Answers>) {
    let modules = places.iter().map(|p| Module {
        process: p.process,
        path: p.path.to_string(),
        start: p.start,
        bytes: p.end - p.start,
        bias: p.bias,
        build_id: answers.get(p.path).map(|a| a.build_id.clone()).unwrap_or_default(),
    });
    story.out.writer().modules(modules.collect::<Vec<_>>());
}

fn write_symbols(story: &mut Story, places: &[Place<'_>], answers: &HashMap<&str, Answers>) {
    for place in places {
        let Some(answers) = answers.get(place.path) else { continue };
        let symbols = answers.data.iter().map(|s| Symbol {
            process: place.process,
            addr: s.addr.wrapping_add(place.bias),
            ..s.clone()
        });
        story.out.writer().symbols(symbols.collect::<Vec<_>>());
    }
}
