//! Counting a program: record its references, simulate them, keep what was counted.
//!
//! Traces of the papers' programs have billions of references. They compress well if a program is regular and badly if
//! it is not, and are deleted after simulation unless requested; the counts, some hundred bytes, are kept, under a name
//! that changes with everything that they depend on.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use machine::Machine;
use policy::{Kind, Name};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::counts::Counts;
use crate::error::ReproduceError;
use crate::programs::Program;
use crate::watch::{Step, Watch};

/// The places where counts and traces are kept.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// For counts, and traces while they are needed.
    pub folder: PathBuf,
    /// Keep traces, and use kept ones.
    pub traces: bool,
    /// Count again, rather than use kept counts.
    pub afresh: bool,
}

impl Keeping {
    /// The folder for dispensable files: `$XDG_CACHE_HOME/domicile/reproduce`, or below `~/.cache`, or below the folder
    /// for temporary files.
    pub fn usual() -> PathBuf {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
        cache.unwrap_or_else(std::env::temp_dir).join("domicile/reproduce")
    }
}

/// A program to record on behalf of a machine.
pub struct Recording<'a> {
    pub program: &'a Program,
    pub machine: &'a Machine,
    pub keeping: &'a Keeping,
    /// Names the work.
    pub what: &'a str,
    /// References that a progress bar expects.
    pub expected: u64,
    /// Record the program's prefetches, too.
    pub prefetches: bool,
    /// Record the programs that it starts, too.
    pub children: bool,
    pub watch: Watch<'a>,
}

impl Recording<'_> {
    /// Counts the program on the machine, or finds earlier counts.
    ///
    /// Frames get the colors of their pages, so that a physically indexed cache works with virtual addresses as the
    /// simulator of Philbin96 did (section 6).
    pub fn count(&self) -> Result<Counts, ReproduceError> {
        self.kept("", |trace| self.simulate_once(trace))
    }

    /// The result of `simulate` on a trace of the program, now or earlier. `how` distinguishes different simulations of
    /// the same trace on the same machine.
    pub fn kept<T: Serialize + DeserializeOwned>(
        &self,
        how: &str,
        simulate: impl Fn(&Path) -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        let one = self.kept_each(std::slice::from_ref(self.machine), how, |_, trace| simulate(trace))?;
        one.into_iter()
            .next()
            .ok_or_else(|| self.failed("nothing was simulated".into()))
    }

    /// The same for each of several machines, with one recording for all.
    pub fn kept_each<T: Serialize + DeserializeOwned>(
        &self,
        machines: &[Machine],
        how: &str,
        simulate: impl Fn(&Machine, &Path) -> Result<T, ReproduceError>,
    ) -> Result<Vec<T>, ReproduceError> {
        let keeping = self.keeping;
        fs::create_dir_all(&keeping.folder).map_err(file_error(&keeping.folder, "cannot make the folder"))?;
        let name = self.program.path.file_name().unwrap_or_default().to_string_lossy();
        let recorded = if self.prefetches { "prefetches" } else { "" };
        // A trace serves every machine and every way to simulate it.
        let trace = keeping
            .folder
            .join(format!("{name}-{:016x}.trace", key(self.program, "", recorded)?));
        let mut there = false;
        let mut all = Vec::new();
        for machine in machines {
            let key = key(self.program, &machine.to_toml(), how)?;
            let kept = keeping.folder.join(format!("{name}-{key:016x}.json"));
            let found = fs::read(&kept).ok().filter(|_| !keeping.afresh);
            if let Some(counts) = found.and_then(|text| serde_json::from_slice(&text).ok()) {
                all.push(Ok(counts));
                continue;
            }
            let recorded = if there { Ok(()) } else { self.record(&trace) };
            there |= recorded.is_ok();
            let counts = recorded.and_then(|()| simulate(machine, &trace));
            let failed = counts.is_err();
            // Counts that took minutes are not discarded because they cannot be kept.
            if let Ok(counts) = &counts
                && let Err(error) = keep(&kept, counts)
            {
                let why = format!("cannot keep the counts in {}: {error}", kept.display());
                (self.watch)(Step::Unkept { what: &name, why: &why });
            }
            all.push(counts);
            if failed {
                break;
            }
        }
        if !keeping.traces {
            // If it cannot be removed, it was not written, or somebody who needs the space will find it.
            let _ = fs::remove_file(&trace);
        }
        all.into_iter().collect()
    }

    /// Records, unless there is a whole trace.
    pub(crate) fn record(&self, trace: &Path) -> Result<(), ReproduceError> {
        if self.keeping.traces && !self.keeping.afresh && trace::Trace::open(trace).is_ok() {
            return Ok(());
        }
        // Written under another name: an interrupted recording must not look complete.
        let partial = trace.with_extension("partial");
        let mut options = capture::Options::new(&self.program.path, &self.program.arguments, &partial);
        let variables = self.program.environment.iter();
        options.environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
        options.pcs = false;
        options.symbols = false;
        options.follow_children = self.children;
        options.discard_output = true;
        options.prefetches = self.prefetches;
        let recorded = capture::record(&options, &mut |progress| {
            (self.watch)(Step::Recording {
                what: self.what,
                references: progress.references,
                expected: self.expected,
                bytes: progress.bytes,
            });
        });
        let outcome = recorded.map_err(|source| {
            let _ = fs::remove_file(&partial);
            ReproduceError::Record {
                line: self.program.line(),
                source,
            }
        })?;
        let problem = match (outcome.exit.code(), outcome.failure) {
            (0, None) => None,
            (0, Some(failure)) => Some(format!("its trace is not whole: {failure}")),
            (code, _) => Some(format!("ended with {code} while it was recorded")),
        };
        if let Some(problem) = problem {
            let _ = fs::remove_file(&partial);
            return Err(self.failed(problem));
        }
        fs::rename(&partial, trace).map_err(file_error(trace, "cannot name the trace"))
    }

    fn simulate_once(&self, file: &Path) -> Result<Counts, ReproduceError> {
        // The same program without the recorder reports its threads; that takes seconds.
        let said = self.program.run()?;
        let config = sim::Config::new(
            self.machine.clone(),
            vec![sim::PolicySpec::new(Name::default_of(Kind::Color))],
        );
        let runs = self.simulate(file, &config)?;
        let run = runs
            .first()
            .ok_or_else(|| self.failed("nothing was simulated".into()))?;
        Counts::of(&run.outcome, &said).map_err(|what| self.failed(what))
    }

    /// Simulates a trace of the program.
    pub fn simulate(&self, file: &Path, config: &sim::Config) -> Result<Vec<sim::Simulated>, ReproduceError> {
        let trace = trace::Trace::open(file)?;
        let total = trace.references() * config.policies.len() as u64;
        let done = AtomicU64::new(0);
        let progress = |references: u64| {
            let done = done.fetch_add(references, Ordering::Relaxed) + references;
            (self.watch)(Step::Simulating {
                what: self.what,
                done,
                total,
            });
        };
        sim::simulate(&trace, config, &progress).map_err(|source| ReproduceError::Simulate {
            line: self.program.line(),
            source,
        })
    }

    fn failed(&self, what: String) -> ReproduceError {
        ReproduceError::Program {
            line: self.program.line(),
            what,
        }
    }
}

/// A hash of everything that counts depend on: the program (with its linked library of threads), its arguments, the
/// machine (as its file), the simulation's settings, and the recorder and simulator themselves.
fn key(program: &Program, machine: &str, how: &str) -> Result<u64, ReproduceError> {
    let mut hasher = DefaultHasher::new();
    hash_file(&program.path, &mut hasher)?;
    if let Ok(own) = std::env::current_exe() {
        hash_file(&own, &mut hasher)?;
    }
    if let Ok(tool) = capture::find_tool(None) {
        for file in sorted(&tool.folder) {
            hash_file(&file, &mut hasher)?;
        }
    }
    for argument in &program.arguments {
        hasher.write(argument.as_bytes());
        hasher.write_u8(0);
    }
    for (name, value) in &program.environment {
        hasher.write(format!("{name}={value}\n").as_bytes());
    }
    hasher.write(machine.as_bytes());
    hasher.write(how.as_bytes());
    Ok(hasher.finish())
}

/// The plain files of a folder, by name; none where it cannot be read.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().filter(|path| path.is_file()).collect();
    files.sort();
    files
}

pub(crate) fn hash_file(path: &Path, hasher: &mut DefaultHasher) -> Result<(), ReproduceError> {
    let failed = file_error(path, "cannot be read");
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Err(failed(error)),
    };
    let mut room = vec![0; 1 << 16];
    loop {
        match file.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(bytes) => hasher.write(&room[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn file_error(path: &Path, what: &'static str) -> impl Fn(io::Error) -> ReproduceError + use<> {
    let path = path.to_path_buf();
    move |source| ReproduceError::File {
        path: path.clone(),
        what,
        source,
    }
}

/// Writes counts to a temporary file and renames it: a reader finds all or nothing.
pub(crate) fn keep(path: &Path, counts: &impl Serialize) -> std::io::Result<()> {
    let begun = trace::Destination::begin(path)?;
    let written = begun.file().and_then(|file| Ok(serde_json::to_writer(file, counts)?));
    match written {
        Ok(()) => begun.keep(),
        Err(error) => {
            begun.discard();
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_for_what_they_were_counted_of() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("sor-untiled");
        fs::write(&path, "one").unwrap();
        let program = |arguments: &[&str]| Program {
            path: path.clone(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
        };
        let r8000 = machine::load("sgi-power-indigo2-r8000").unwrap().to_toml();
        let r10000 = machine::load("sgi-indigo2-impact-r10000").unwrap().to_toml();
        let first = key(&program(&["--n", "5"]), &r8000, "").unwrap();
        assert_eq!(key(&program(&["--n", "5"]), &r8000, "").unwrap(), first);
        assert_ne!(key(&program(&["--n", "6"]), &r8000, "").unwrap(), first);
        assert_ne!(key(&program(&["--n5", ""]), &r8000, "").unwrap(), first);
        assert_ne!(key(&program(&["--n", "5"]), &r10000, "").unwrap(), first);
        fs::write(&path, "two").unwrap();
        assert_ne!(key(&program(&["--n", "5"]), &r8000, "").unwrap(), first);
        fs::remove_file(&path).unwrap();
        assert!(key(&program(&[]), &r8000, "").is_err());
    }
}
