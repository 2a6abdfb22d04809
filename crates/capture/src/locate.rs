//! The reverse direction: from the names in advice to the addresses in a program's files, before the program runs.
//!
//! [`Program::find`] examines the program that a command would start, and its libraries; [`Program::data`] finds static
//! data by the names that a trace would have for it, [`Program::site`] finds the calls that a trace would name
//! `function (file:line)`.

mod code;
mod near;
mod program;
mod sites;

use std::path::{Path, PathBuf};

use results::site::Symbol;

pub use program::{Loaded, Program};
pub use sites::Chain;

/// A range of a file's own addresses, `start..end`, in the module of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    pub module: usize,
    pub start: u64,
    pub end: u64,
}

/// Why a program cannot be started with slots, or a name means nothing in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocateError {
    #[error("{0}: there is no such program")]
    NoProgram(String),
    #[error("{path}: {why}")]
    NotFit { path: PathBuf, why: String },
    #[error("{name}: {why}{near}", near = near::in_words(near))]
    NoName {
        name: String,
        why: String,
        near: Vec<String>,
    },
}

/// Static data found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    pub range: Range,
    pub name: String,
    /// True if the program may write it.
    pub writable: bool,
}

impl Program {
    /// The static data of that name: in the program itself, else in the first of its libraries that has any; or only in
    /// the file whose path ends with `only`. There are several if several source files have their own.
    pub fn data(&self, symbol: &Symbol, only: Option<&str>) -> Result<Vec<Datum>, LocateError> {
        let name = symbol.name.as_str();
        let only = only.or(symbol.program.as_deref());
        for (module, loaded) in self.modules.iter().enumerate() {
            if only.is_some_and(|only| loaded.path.file_name() != Path::new(only).file_name()) {
                continue;
            }
            let named: Vec<Datum> = loaded
                .elf
                .data
                .iter()
                .filter(|datum| datum.name == name)
                .map(|datum| Datum {
                    range: Range {
                        module,
                        start: datum.addr,
                        end: datum.addr.saturating_add(datum.bytes),
                    },
                    name: datum.name.clone(),
                    writable: loaded.elf.is_writable(datum.addr),
                })
                .collect();
            if !named.is_empty() {
                return Ok(named);
            }
        }
        let own = self.modules.iter().take(1).flat_map(|m| &m.elf.data);
        let others = self.modules.iter().skip(1).flat_map(|m| &m.elf.data);
        let all = own.chain(others).map(|datum| datum.name.as_str());
        let stripped = self.modules.first().is_some_and(|m| !m.elf.has_symbols);
        let program = self.path.display();
        Err(LocateError::NoName {
            name: name.to_string(),
            why: if let Some(only) = only {
                format!("no such static data in {only}, or {program} does not come with that file")
            } else if stripped {
                format!("no such static data: {program} was stripped of its table of symbols")
            } else {
                format!("no such static data in {program} or its libraries")
            },
            near: near::nearest(name, all),
        })
    }
}
