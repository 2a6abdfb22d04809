//! The conversation of the command with the run-time inside a program.
//!
//! `domicile run` reads the plan, decides the colors and finds the names in the program's files before it starts, and
//! writes [`Instructions`]: addresses in files, nothing that needs debug information to be understood. The run-time,
//! loaded into the program, reads them, gives the memory its colors and keeps a [`Report`] up to date
//! in a file that both have mapped ([`Slate`]), so that it outlives the program however that ends.

mod align;
mod slate;
mod text;

use std::path::{Path, PathBuf};

use machine::Colors;
use policy::Name;
use policy::slots::Plan;
use results::site::Memory;
use serde::{Deserialize, Serialize};

pub use align::{Alignment, BadAlignment};
pub use results::run::{
    Brought, CdpcReport, Chosen, DataReport, HomesReport, HomesWhen, LeftOut, Padded, Report, Seat, Share, State, When,
};
pub use slate::{Slate, read_slate};
pub use text::{ENVIRONMENT as TEXT_ENVIRONMENT, TextInstructions};

/// Names the file of the instructions to the run-time.
pub const ENVIRONMENT: &str = "DOMICILE_INSTRUCTIONS";

/// Changes with the form of the instructions: command and run-time are installed together.
pub const VERSION: u32 = 3;

/// Larger instructions are rejected.
const MOST_BYTES: u64 = 256 << 20;

/// All that `domicile run` asks of the run-time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instructions {
    pub version: u32,
    /// The program that the names were found in. In any other the run-time stays passive.
    pub program: PathBuf,
    /// Its device and number of the file.
    pub program_file: (u64, u64),
    /// The earlier value of `LD_PRELOAD`; programs that this one starts find it so again.
    pub preload_before: Option<String>,
    /// True if programs that this one starts get the same instructions.
    pub children: bool,
    /// The file for the report, of [`slate::BYTES`](Slate) bytes.
    pub slate: PathBuf,
    /// The colors to use: the run-time asks nobody else. `None` if pages get homes.
    pub colors: Option<Colors>,
    /// Empty if pages are placed by the program's descriptions.
    pub plan: Plan,
    pub modules: Vec<Module>,
    /// One for each name of the plan's data sets that was found.
    pub targets: Vec<Target>,
    /// Code that a call stack's owner is looked for behind: allocators, their wrappers.
    pub passed: Vec<Area>,
    /// Instead of a plan: pages get colors by the program's descriptions of its parallel loops.
    #[serde(default)]
    pub directed: Option<Directed>,
    /// Instead of either: they get homes by that.
    #[serde(default)]
    pub homed: Option<Homed>,
}

/// How the arrays of parallel loops are placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directed {
    /// `cdpc`, or one of those that it is compared with.
    pub policy: Name,
    /// How large blocks of the heap are aligned and kept apart, if they are.
    pub align: Option<Alignment>,
}

/// How the arrays of parallel loops get homes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Homed {
    pub policy: Name,
    /// Thread `t` of a team is on the `t`-th.
    pub seats: Vec<Seat>,
}

/// A file that will be in the program's address space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    pub path: PathBuf,
    /// Hexadecimal; empty if the file has none.
    pub build_id: String,
    /// True if all of it is passed over in the search for a call stack's owner: the C library.
    pub passed: bool,
}

/// Code or data of a module, in the file's own addresses: `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Area {
    pub module: u32,
    pub start: u64,
    pub end: u64,
}

/// One name of the plan, found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The data set in the plan, by its place there.
    pub data_set: u32,
    /// As the plan names it.
    pub name: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Static data: one area for each place of that name.
    Symbol(Vec<Area>),
    Site(Site),
}

/// A place in the program that allocates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Code that is on the call stack, from the inside out; the last is whose memory it is.
    pub chain: Vec<Vec<Area>>,
    /// The calls that give memory here; `None`: either.
    pub from: Option<Memory>,
    /// Only blocks of at least, and of at most so many bytes.
    pub bytes: (u64, u64),
}

/// Why instructions cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstructionsError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: std::io::Error },
    #[error("{path}: not instructions of this version of Domicile: {why}")]
    Form { path: PathBuf, why: String },
}

impl Instructions {
    pub fn write(&self, path: &Path) -> Result<(), InstructionsError> {
        let form = |error: serde_json::Error| InstructionsError::Form {
            path: path.to_path_buf(),
            why: error.to_string(),
        };
        let text = serde_json::to_vec(self).map_err(form)?;
        std::fs::write(path, text).map_err(|error| InstructionsError::File {
            path: path.to_path_buf(),
            error,
        })
    }

    pub fn read(path: &Path) -> Result<Instructions, InstructionsError> {
        use std::io::Read;
        let file = |error| InstructionsError::File {
            path: path.to_path_buf(),
            error,
        };
        let form = |why: String| InstructionsError::Form {
            path: path.to_path_buf(),
            why,
        };
        let mut text = Vec::new();
        let opened = std::fs::File::open(path).map_err(file)?;
        opened.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(file)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(form(format!("more than {MOST_BYTES} bytes")));
        }
        let instructions: Instructions = serde_json::from_slice(&text).map_err(|error| form(error.to_string()))?;
        if instructions.version != VERSION {
            return Err(form(format!("version {}, not {VERSION}", instructions.version)));
        }
        match &instructions.colors {
            Some(colors) => colors.check().map_err(|error| form(error.to_string()))?,
            None if instructions.homed.is_none() => return Err(form("there are no colors".to_string())),
            None => {}
        }
        if instructions.homed.as_ref().is_some_and(|homed| homed.seats.is_empty()) {
            return Err(form("there is no cpu for a thread".to_string()));
        }
        let slots = instructions.plan.slots.len();
        if instructions
            .plan
            .data
            .iter()
            .any(|data| data.slot.is_some_and(|slot| slot >= slots))
        {
            return Err(form("data is in a slot that there is not".to_string()));
        }
        let known = |area: Area| (area.module as usize) < instructions.modules.len() && area.start <= area.end;
        let areas = instructions.targets.iter().flat_map(|target| match &target.what {
            What::Symbol(areas) => areas.clone(),
            What::Site(site) => site.chain.concat(),
        });
        if !areas.chain(instructions.passed.iter().copied()).all(known) {
            return Err(form("an area is in no module, or ends before it begins".to_string()));
        }
        Ok(instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        [[slot]]
        name = "vector"
        bytes = "512 KiB"
        kind = "private"

        [[data]]
        symbol = "p (cg.c:40)"
        module = "cg"
        slot = "vector"
        cpus = [0, 2]

        [[data]]
        site = "heap: f ← main (x.c:1)"
        at_most = 4096
        slot = "none"
    "#;

    fn instructions() -> Instructions {
        Instructions {
            version: VERSION,
            program: "/bin/x".into(),
            program_file: (1, 2),
            preload_before: None,
            children: false,
            slate: "/tmp/slate".into(),
            colors: Some(Colors::forced("12:4:65536").unwrap()),
            plan: Plan::read(PLAN, "plan").unwrap(),
            modules: vec![Module {
                path: "/bin/x".into(),
                build_id: "ab".into(),
                passed: false,
            }],
            targets: vec![Target {
                data_set: 0,
                name: "heap: f (x.c:1)".into(),
                what: What::Site(Site {
                    chain: vec![vec![Area {
                        module: 0,
                        start: 16,
                        end: 32,
                    }]],
                    from: Some(Memory::Heap),
                    bytes: (0, u64::MAX),
                }),
            }],
            passed: Vec::new(),
            directed: Some(Directed {
                policy: "cdpc".parse().unwrap(),
                align: Some(Alignment::default()),
            }),
            homed: Some(Homed {
                policy: "summary-homes".parse().unwrap(),
                seats: vec![Seat { cpu: 3, node: 1 }],
            }),
        }
    }

    /// A file of its own for each test.
    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("domicile-instructions-{}-{name}", std::process::id()))
    }

    #[test]
    fn instructions_are_read_as_they_were_written() {
        let path = file("whole");
        instructions().write(&path).unwrap();
        assert_eq!(Instructions::read(&path).unwrap(), instructions());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_instructions_is_refused() {
        let path = file("bad");
        let mut other = instructions();
        other.version = VERSION + 1;
        other.write(&path).unwrap();
        assert!(
            Instructions::read(&path)
                .unwrap_err()
                .to_string()
                .contains("version 4, not 3")
        );
        let mut astray = instructions();
        astray.passed.push(Area {
            module: 1,
            start: 0,
            end: 1,
        });
        astray.write(&path).unwrap();
        assert!(Instructions::read(&path).unwrap_err().to_string().contains("no module"));
        let mut slotless = instructions();
        slotless.plan.data[0].slot = Some(1);
        slotless.write(&path).unwrap();
        let said = Instructions::read(&path).unwrap_err().to_string();
        assert!(said.contains("a slot that there is not"), "{said}");
        let mut colorless = instructions();
        colorless.colors.as_mut().unwrap().bits = 17;
        colorless.write(&path).unwrap();
        let said = Instructions::read(&path).unwrap_err().to_string();
        assert!(said.contains("1 to 16 bits"), "{said}");
        let mut homeless = instructions();
        homeless.homed.as_mut().unwrap().seats.clear();
        homeless.write(&path).unwrap();
        let said = Instructions::read(&path).unwrap_err().to_string();
        assert!(said.contains("no cpu for a thread"), "{said}");
        let mut aimless = instructions();
        (aimless.colors, aimless.homed) = (None, None);
        aimless.write(&path).unwrap();
        let said = Instructions::read(&path).unwrap_err().to_string();
        assert!(said.contains("no colors"), "{said}");
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(Instructions::read(&path), Err(InstructionsError::Form { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Instructions::read(&path), Err(InstructionsError::File { .. })));
    }
}
