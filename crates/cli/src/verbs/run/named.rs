//! The data of a plan, found in the program's files.

use capture::locate::{LocateError, Program, Range};
use live::protocol::{Area, Module, Site, Target, What};
use policy::slots::{Plan, What as Planned};

use crate::failure::Failure;

/// A name with more data than this does not identify one.
const MOST_PLACES: usize = 64;

/// The names that the run-time will search.
pub struct Named {
    pub modules: Vec<Module>,
    pub targets: Vec<Target>,
    pub passed: Vec<Area>,
    pub notes: Vec<String>,
}

impl Named {
    /// No names: the data is not placed by name.
    pub fn none(program: &Program) -> Named {
        Named {
            modules: modules(program),
            targets: Vec::new(),
            passed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Finds all data of a plan. All missing data is reported at once; with `skip_missing` it is a note.
    pub fn find(plan: &Plan, program: &Program, skip_missing: bool) -> Result<Named, Failure> {
        let mut named = Named {
            modules: modules(program),
            targets: Vec::new(),
            passed: Vec::new(),
            notes: Vec::new(),
        };
        let mut missing = Vec::new();
        let mut sites = Vec::new();
        for (number, data) in plan.data.iter().enumerate() {
            let (name, found) = match &data.what {
                Planned::Symbol { symbol, module } => {
                    let found = named.symbol(program, symbol, module.as_deref());
                    (symbol.to_string(), found)
                }
                Planned::Site {
                    site,
                    at_least,
                    at_most,
                } => {
                    let found = program.site(site).map(|chain| {
                        sites.extend(chain.iter().flatten().copied());
                        What::Site(Site {
                            chain: chain.iter().map(|ranges| ranges.iter().map(area).collect()).collect(),
                            from: site.memory,
                            bytes: (*at_least, *at_most),
                        })
                    });
                    (site.to_string(), found)
                }
            };
            match found {
                Ok(what) => named.targets.push(Target {
                    data_set: number as u32,
                    name,
                    what,
                }),
                Err(error) => missing.push(error.to_string()),
            }
        }
        if !program.missing.is_empty() {
            let libraries = program.missing.join(", ");
            named
                .notes
                .push(format!("the dynamic linker does not find {libraries}"));
        }
        if skip_missing {
            named.notes.append(&mut missing);
        } else if !missing.is_empty() {
            return Err(Failure::work(format!(
                "{}\nThe program was not started; --skip-missing goes on without such data.",
                missing.join("\n")
            )));
        }
        if !sites.is_empty() {
            let passed = program.passed(&sites, results::allocators::is_passed_over);
            named.passed = passed.iter().map(area).collect();
        }
        Ok(named)
    }

    fn symbol(
        &mut self,
        program: &Program,
        symbol: &results::site::Symbol,
        module: Option<&str>,
    ) -> Result<What, LocateError> {
        let found = program.data(symbol, module)?;
        if let Some(other) = found.first().filter(|datum| datum.range.module > 0)
            && let Some(module) = self.modules.get(other.range.module)
        {
            self.notes.push(format!(
                "{symbol} is data of {}, not of the program",
                module.path.display()
            ));
        }
        if found.len() > 1 {
            self.notes.push(format!(
                "{} variables are named {symbol}: all of them are meant",
                found.len()
            ));
        }
        Ok(What::Symbol(
            found.iter().take(MOST_PLACES).map(|datum| area(&datum.range)).collect(),
        ))
    }
}

fn area(range: &Range) -> Area {
    Area {
        module: range.module as u32,
        start: range.start,
        end: range.end,
    }
}

fn modules(program: &Program) -> Vec<Module> {
    let module = |loaded: &capture::locate::Loaded| {
        let name = loaded.path.file_name().map(|name| name.to_string_lossy().into_owned());
        Module {
            path: loaded.path.clone(),
            build_id: loaded.build_id().to_string(),
            passed: name.is_some_and(|name| results::allocators::is_library(&name)),
        }
    };
    program.modules.iter().map(module).collect()
}
