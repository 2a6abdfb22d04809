//! The names of the instructions of a run: line of the source, function, or place in a file of code.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use results::ProfileFrame;
use trace::{Location, Module, Op, Site};

use super::Names;
use super::evidence::STRETCH;
use crate::causes::{Addresses, Sources};
use results::site::base;

/// The name of an instruction of which nothing is known.
pub const UNKNOWN: &str = "code unknown";

/// A line of the source, else a function, else a place in a file of code.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Spot {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Spot {
    /// `file:line`, without folders, else the function.
    pub fn in_short(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => self.function.clone(),
        }
    }
}

/// The names of program counters.
pub struct Code<'a> {
    sites: &'a [Site],
    locations: HashMap<(u32, u64), &'a Location>,
    /// By process and start.
    modules: BTreeMap<(u32, u64), &'a Module>,
    sources: Sources,
}

impl<'a> Code<'a> {
    pub fn new(names: &Names<'a>) -> Code<'a> {
        let locations = names.tables.locations.iter();
        let modules = names.tables.modules.iter();
        Code {
            sites: names.sites,
            locations: locations
                .map(|location| ((location.process, location.pc), location))
                .collect(),
            modules: modules.map(|module| ((module.process, module.start), module)).collect(),
            sources: Sources::new(names.dependences, |site| {
                names.sites.get(site as usize).is_some_and(|site| site.op == Op::Modify)
            }),
        }
    }

    /// The source of the addresses of the accesses of these sites.
    pub fn addresses(&self, sites: &[u32]) -> Addresses {
        self.sources.of(sites)
    }

    /// The location of the instruction of a site, as far as the program says.
    pub fn location(&self, process: u32, site: u32) -> Option<&'a Location> {
        let site = self.sites.get(site as usize).filter(|site| site.pc != 0)?;
        self.locations.get(&(process, site.pc)).copied()
    }

    /// The function of a program counter, and those that it is inlined into, innermost first. Empty if no file of code
    /// is there: unwinding does not always end at the program's beginning.
    pub fn frames(&self, process: u32, pc: u64) -> Vec<ProfileFrame> {
        let frame = |function: &String, file: &Option<String>, line| ProfileFrame {
            function: function.clone(),
            file: file.clone(),
            line,
        };
        match self.locations.get(&(process, pc)) {
            Some(of) => std::iter::once(frame(&of.function, &of.file, of.line))
                .chain(of.inlined_into.iter().map(|of| frame(&of.function, &of.file, of.line)))
                .collect(),
            None if self.module(process, pc).is_none() => Vec::new(),
            None => vec![frame(&self.place(process, pc), &None, None)],
        }
    }

    /// The location of the instruction of a site, if that is all that is known of it: neither its line nor its
    /// function.
    pub fn nameless(&self, process: u32, site: u32) -> Option<u64> {
        let pc = self.sites.get(site as usize)?.pc;
        // Recorders name code without a name by its place: `libx.so.1+0x12f0`.
        let is_place = |function: &str| function.is_empty() || function.contains("+0x");
        let location = self.location(process, site);
        let named = location.is_some_and(|location| location.line.is_some() || !is_place(&location.function));
        (pc != 0 && !named).then_some(pc)
    }

    /// The name of the instruction of a site.
    pub fn spot(&self, process: u32, site: u32) -> Spot {
        let nameless = |function: String| Spot {
            function,
            file: None,
            line: None,
        };
        if let Some(location) = self
            .location(process, site)
            .filter(|location| !location.function.is_empty())
        {
            return Spot {
                function: location.function.clone(),
                file: location.file.clone(),
                line: location.line,
            };
        }
        let pc = match self.sites.get(site as usize) {
            Some(site) if site.pc != 0 => site.pc,
            _ => return nameless(UNKNOWN.to_string()),
        };
        nameless(self.place(process, pc))
    }

    fn module(&self, process: u32, pc: u64) -> Option<&'a Module> {
        let before = self.modules.range(..=(process, pc)).next_back();
        let here = before.filter(|((of, start), module)| *of == process && pc - start < module.bytes);
        here.map(|(_, module)| *module)
    }

    /// A program counter's place in a file of code.
    fn place(&self, process: u32, pc: u64) -> String {
        match self.module(process, pc) {
            Some(module) => format!("{}+{:#x}", base(&module.path), pc.wrapping_sub(module.bias)),
            None => format!("{pc:#x}"),
        }
    }
}

/// By site: the first site of the same line of the source. A site without a line is its own.
pub fn source_lines(names: &Names) -> Vec<u32> {
    let with_line = names.tables.locations.iter().filter(|location| location.line.is_some());
    let locations: HashMap<u64, &Location> = with_line.map(|location| (location.pc, location)).collect();
    let mut first: HashMap<(&str, Option<&str>, Option<u32>), u32> = HashMap::new();
    let number = |(site, of): (u32, &Site)| match locations.get(&of.pc) {
        Some(Location {
            function, file, line, ..
        }) => *first.entry((function, file.as_deref(), *line)).or_insert(site),
        None => site,
    };
    (0..).zip(names.sites).map(number).collect()
}

/// The sites of a line of the source, `file:line`, whose folders do not matter; or of a place without a name, `program+0x1100`, with
/// the instructions without names around it. Error: there is no such line, in words.
pub fn sites_of(names: &Names, line: &str) -> Result<HashSet<u32>, String> {
    let wanted = base(line);
    let is_there = |location: &&Location| {
        let place = location.file.as_deref().zip(location.line);
        place.is_some_and(|(file, line)| format!("{}:{line}", base(file)) == wanted)
    };
    let pcs: HashSet<u64> = names
        .tables
        .locations
        .iter()
        .filter(is_there)
        .map(|location| location.pc)
        .collect();
    let sites = (0..)
        .zip(names.sites)
        .filter(|(_, site)| site.pc != 0 && pcs.contains(&site.pc));
    let mut sites: HashSet<u32> = sites.map(|(number, _)| number).collect();
    if sites.is_empty() {
        sites = around(names, line);
    }
    match sites.is_empty() {
        true => Err(format!(
            "no reference is of the line `{line}`; `domicile simulate --by line` lists those that there are"
        )),
        false => Ok(sites),
    }
}

/// The sites of the stretch of code that a place without a name is in.
fn around(names: &Names, place: &str) -> HashSet<u32> {
    let code = Code::new(names);
    let of_modules = names.tables.modules.iter().map(|module| module.process);
    let of_locations = names.tables.locations.iter().map(|location| location.process);
    let processes: BTreeSet<u32> = of_modules.chain(of_locations).collect();
    let mut found = HashSet::new();
    for process in processes {
        let mut nameless: Vec<(u64, u32)> = (0..)
            .zip(names.sites)
            .filter_map(|(site, _)| Some((code.nameless(process, site)?, site)))
            .collect();
        nameless.sort_unstable();
        for stretch in nameless.chunk_by(|a, b| b.0 - a.0 <= STRETCH) {
            if stretch
                .iter()
                .any(|(_, site)| code.spot(process, *site).function == place)
            {
                found.extend(stretch.iter().map(|(_, site)| *site));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::structures::Tables;

    use super::*;

    #[test]
    fn a_place_without_a_name_has_the_instructions_around_it() {
        let modules = [Module {
            start: 0x1000,
            bytes: 0x1000,
            bias: 0,
            path: "/bin/program".to_string(),
            ..Module::default()
        }];
        let named = [Location {
            pc: 0x1050,
            function: "main".to_string(),
            ..Location::default()
        }];
        let sites = [0x1100, 0x1130, 0x1170, 0x11b1, 0x1050, 0].map(|pc| Site {
            pc,
            op: Op::Read,
            size: 8,
        });
        let names = Names {
            tables: Tables {
                modules: &modules,
                locations: &named,
                ..Tables::default()
            },
            sites: &sites,
            dependences: None,
        };
        let of = |place| sites_of(&names, place).map(|sites| sites.into_iter().collect::<BTreeSet<u32>>());
        assert_eq!(of("program+0x1130"), Ok(BTreeSet::from([0, 1, 2])));
        assert_eq!(of("program+0x11b1"), Ok(BTreeSet::from([3])), "65 bytes further on");
        assert!(of("program+0x1101").is_err() && of("main").is_err());
    }
}
