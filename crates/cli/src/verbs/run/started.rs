//! Starts the program with the run-time, and waits for it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use capture::Folder;
use capture::locate::Program;
use live::Colors;
use live::protocol::{Directed, Homed, Instructions, Report, VERSION};
use policy::slots::Plan;
use sys::supervise::Supervisor;

use super::named::Named;
use crate::failure::Failure;

/// The run-time, unless `DOMICILE_PRELOAD` names it.
const NAME: &str = "libdomicile_preload.so";
/// The names of the folders by which this process and the run-time communicate.
pub const FOLDER: &str = "run";
const ENVIRONMENT: &str = "DOMICILE_PRELOAD";
/// Relative to the executable: after `make install`, and in cargo's output folder.
const PLACES: [&str; 2] = ["../lib/domicile", "."];

pub struct Start<'a> {
    pub command: &'a OsStr,
    pub arguments: &'a [OsString],
    /// Variables that the program gets in addition to this process's own.
    pub environment: Vec<(&'static str, String)>,
    pub children: bool,
    /// None if pages get homes.
    pub colors: Option<Colors>,
    /// The same for the program's own use of the library, in the environment's syntax.
    pub forced: Option<String>,
    /// Empty if the program's loops declare their data.
    pub plan: Plan,
    /// Instead of a plan.
    pub directed: Option<Directed>,
    /// Instead of either.
    pub homed: Option<Homed>,
}

/// How the program ended.
pub struct Ended {
    pub code: i32,
    /// Reports of each process that runs the program.
    pub reports: Vec<Report>,
    /// Errors in other reports.
    pub notes: Vec<String>,
}

impl Start<'_> {
    pub fn run(self, program: &Program, named: Named) -> Result<Ended, Failure> {
        // From here on, requests to end go to the program: the folder is always removed.
        let mut supervisor =
            Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
        let folder = Folder::make(FOLDER)
            .map_err(|error| Failure::work(format!("cannot make a folder for temporary files (TMPDIR): {error}")))?;
        let failed = |what: &str| {
            let what = what.to_string();
            move |error: std::io::Error| Failure::work(format!("{what}: {error}"))
        };
        let library = preloadable(runtime()?, folder.path())?;
        let slate = folder.path().join("reports");
        std::fs::create_dir(&slate).map_err(failed("cannot make a folder for reports"))?;
        let before = std::env::var("LD_PRELOAD").ok().filter(|before| !before.is_empty());
        let path = folder.path().join("instructions");
        let instructions = Instructions {
            version: VERSION,
            program: program.path.clone(),
            program_file: program.file().map_err(Failure::work)?,
            preload_before: before.clone(),
            children: self.children,
            slate: slate.clone(),
            colors: self.colors,
            plan: self.plan,
            modules: named.modules,
            targets: named.targets,
            passed: named.passed,
            directed: self.directed,
            homed: self.homed,
        };
        instructions.write(&path).map_err(Failure::work)?;

        let mut command = Command::new(self.command);
        command
            .args(self.arguments)
            .envs(self.environment)
            .env("LD_PRELOAD", preloads(&library, before.as_deref()))
            .env(live::protocol::ENVIRONMENT, &path);
        if let Some(forced) = &self.forced {
            command.env(live::discovery::VARIABLE, forced);
        }
        let cannot = failed(&format!("cannot run {}", self.command.to_string_lossy()));
        let status = supervisor.run(command).map_err(cannot)?;
        // The program has run: errors from here on do not change its exit status.
        let (mut reports, mut notes) = (Vec::new(), Vec::new());
        match std::fs::read_dir(&slate) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    match live::protocol::read_slate(&entry.path()) {
                        Ok(report) => reports.extend(report),
                        Err(error) => notes.push(error.to_string()),
                    }
                }
            }
            Err(error) => notes.push(format!("cannot read the reports: {error}")),
        }
        Ok(Ended {
            code: code(status),
            reports,
            notes,
        })
    }
}

/// The library, before those that are loaded anyway.
pub fn preloads(library: &Path, before: Option<&str>) -> String {
    match before {
        Some(before) => format!("{}:{before}", library.display()),
        None => library.display().to_string(),
    }
}

/// The run-time's file.
pub fn runtime() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty()) {
        return std::path::absolute(&path)
            .ok()
            .filter(|path| path.is_file())
            .ok_or_else(|| Failure::work(format!("{ENVIRONMENT}: there is no file {}", path.to_string_lossy())));
    }
    let executable = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let folder = executable.as_deref().and_then(Path::parent).unwrap_or(Path::new("/"));
    let places = PLACES.map(|place| folder.join(place).join(NAME));
    let found = places.iter().find_map(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        let looked = places.map(|path| path.display().to_string()).join(" and ");
        Failure::work(format!(
            "there is no run-time: looked for {looked}; install Domicile, or name the file in {ENVIRONMENT}"
        ))
    })
}

/// `LD_PRELOAD` lists files separated by spaces or colons: a path that contains them needs a link.
pub fn preloadable(path: PathBuf, folder: &Path) -> Result<PathBuf, Failure> {
    if !path.to_string_lossy().contains([' ', ':', '\u{fffd}', '$']) {
        return Ok(path);
    }
    let link = folder.join(NAME);
    std::os::unix::fs::symlink(&path, &link)
        .map_err(|error| Failure::work(format!("cannot link to {}: {error}", path.display())))?;
    Ok(link)
}

/// The exit status as in a shell.
pub fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}
