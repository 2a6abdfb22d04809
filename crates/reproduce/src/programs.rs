//! The programs of `workloads/`: their places, how to run one, and its output.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::ReproduceError;

/// The variable that names another folder of programs.
const ENVIRONMENT: &str = "DOMICILE_WORKLOADS";
/// Beside the executable, after `make install`.
const INSTALLED: &str = "../libexec/domicile/workloads";
/// In the source tree that this was built from.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/build");
/// The distance between recordings of one program: a whole number of pages, and no multiple of a block or cache.
const ELSEWHERE: usize = 77 << 12;
/// The longest output that is read.
const SAID_MAX: u64 = 1 << 20;

/// The folder of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

/// The programs are built twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Scalar code close to the paper's, to count references of.
    Count,
    /// All that today's compilers can do, for the clock.
    Time,
}

/// One program, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Variables of its environment, with their values.
    pub environment: Vec<(String, String)>,
}

/// The line of JSON that a program prints; other fields are ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Said {
    pub program: String,
    pub version: String,
    pub n: u64,
    /// Time of the measured part, by the clock and by the processor.
    pub seconds: f64,
    pub cpu_seconds: Option<f64>,
    pub checksum: f64,
    #[serde(default)]
    pub threads: u64,
    pub bins: Option<u64>,
}

impl Said {
    /// Processor seconds, as the paper reports them; clock seconds for a program that does not print them.
    pub fn time(&self) -> f64 {
        self.cpu_seconds.unwrap_or(self.seconds)
    }
}

impl Programs {
    /// Searches `given`, or else the folder in `DOMICILE_WORKLOADS`, beside this executable, and in the source tree.
    /// The folder's existence does not guarantee its contents.
    pub fn find(given: Option<&Path>) -> Result<Programs, ReproduceError> {
        let executable = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
        let places = places(
            given,
            std::env::var_os(ENVIRONMENT).map(PathBuf::from),
            executable.as_deref(),
        );
        match places.iter().find(|place| place.is_dir()) {
            Some(folder) => Ok(Programs {
                folder: folder.canonicalize().unwrap_or_else(|_| folder.clone()),
            }),
            None => Err(ReproduceError::NoPrograms {
                looked_in: places.iter().map(|place| place.display().to_string()).collect(),
            }),
        }
    }

    /// A program without versions, for the clock.
    pub fn bare(&self, name: &str) -> Result<PathBuf, ReproduceError> {
        let folder = self.folder.join("time");
        let path = folder.join(name);
        match path.is_file() {
            true => Ok(path),
            false => Err(ReproduceError::NoProgram {
                name: name.to_string(),
                folder,
            }),
        }
    }

    /// A version of a program, with arguments.
    pub fn program(
        &self,
        build: Build,
        name: &str,
        version: &str,
        arguments: Vec<String>,
    ) -> Result<Program, ReproduceError> {
        let folder = self.folder.join(match build {
            Build::Count => "count",
            Build::Time => "time",
        });
        let name = format!("{name}-{version}");
        let path = folder.join(&name);
        if path.is_file() {
            Ok(Program {
                path,
                arguments,
                environment: Vec::new(),
            })
        } else {
            Err(ReproduceError::NoProgram { name, folder })
        }
    }
}

/// The folders to search, in order. A given folder is the only one.
fn places(given: Option<&Path>, environment: Option<PathBuf>, executable: Option<&Path>) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.to_path_buf()];
    }
    if let Some(folder) = environment.filter(|folder| !folder.as_os_str().is_empty()) {
        return vec![folder];
    }
    let installed = executable.and_then(Path::parent).map(|bin| bin.join(INSTALLED));
    installed.into_iter().chain([PathBuf::from(BUILT)]).collect()
}

impl Program {
    /// The same program in another recording: the common frame of the programs in `workloads/` first maps an unused
    /// region of this size, and later allocations lie behind it.
    pub fn elsewhere(mut self, recording: usize) -> Program {
        if recording > 0 {
            let bytes = recording * ELSEWHERE;
            self.environment.push(("FRAME_BEHIND".to_string(), bytes.to_string()));
        }
        self
    }

    /// As typed, without the folder.
    pub fn line(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let words = std::iter::once(name.into_owned()).chain(self.arguments.iter().cloned());
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Runs the program to its end and reads what it printed.
    pub fn run(&self) -> Result<Said, ReproduceError> {
        let failed = |what: String| ReproduceError::Program {
            line: self.line(),
            what,
        };
        let mut child = Command::new(&self.path)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // The comparison is for one cpu.
            .env("OPENBLAS_NUM_THREADS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let mut text = String::new();
        let read = match child.stdout.take() {
            Some(out) => out.take(SAID_MAX).read_to_string(&mut text).map(|_| ()),
            None => Ok(()),
        };
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(failed(format!("ended with {status}")));
        }
        read.map_err(|error| failed(format!("what it printed cannot be read: {error}")))?;
        said(&text).map_err(failed)
    }
}

/// The line of JSON in what a program printed.
fn said(text: &str) -> Result<Said, String> {
    let line = text.lines().find(|line| line.trim_start().starts_with('{'));
    let line = line.ok_or("printed no line of JSON; is it one of Domicile's workloads?")?;
    let said: Said =
        serde_json::from_str(line).map_err(|error| format!("printed a line that is not understood: {error}"))?;
    if !(said.seconds.is_finite() && said.time().is_finite() && said.time() >= 0.0) {
        return Err("printed a time that is none".to_string());
    }
    Ok(said)
}

/// Arguments with their placeholders filled: `{n}` by the value called `n`, and so on.
pub fn filled(arguments: &[String], values: &[(&str, u64)]) -> Vec<String> {
    let fill = |argument: &String| {
        let put = |text: String, (name, value): &(&str, u64)| text.replace(&format!("{{{name}}}"), &value.to_string());
        values.iter().fold(argument.clone(), put)
    };
    arguments.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"program":"sor","version":"untiled","n":5,"iterations":30,"workers":1,"seconds":0.5,"cpu_seconds":0.25,"checksum":1.5,"threads":0,"bins":null,"residual":1e-5}"#;

    #[test]
    fn a_programs_line_is_read() {
        let read = said(&format!("a word before\n{LINE}\n")).unwrap();
        assert_eq!((read.n, read.time(), read.threads, read.bins), (5, 0.25, 0, None));
        let short = r#"{"program":"a","version":"b","n":1,"seconds":2.0,"checksum":0,"threads":4,"bins":2}"#;
        let read = said(short).unwrap();
        assert_eq!((read.time(), read.bins), (2.0, Some(2)));
        assert!(said("").unwrap_err().contains("no line of JSON"));
        assert!(said("{\"program\":3}").unwrap_err().contains("not understood"));
        assert!(said(&LINE.replace("0.25", "-1")).unwrap_err().contains("time"));
    }

    #[test]
    fn who_says_where_looks_nowhere_else() {
        let given = places(Some(Path::new("/a")), Some("/b".into()), None);
        assert_eq!(given, [PathBuf::from("/a")]);
        assert_eq!(places(None, Some("/b".into()), None), [PathBuf::from("/b")]);
        let searched = places(None, Some("".into()), Some(Path::new("/opt/bin/domicile")));
        assert_eq!(searched[0], PathBuf::from("/opt/bin/../libexec/domicile/workloads"));
        assert_eq!(searched.len(), 2);
    }

    #[test]
    fn a_missing_program_says_what_to_do() {
        let none = Programs::find(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(
            none.contains("/nowhere") && none.contains("make -C workloads"),
            "{none}"
        );
        let room = tempfile::tempdir().unwrap();
        let programs = Programs::find(Some(room.path())).unwrap();
        let program = |build| programs.program(build, "sor", "untiled", vec!["--n".into(), "5".into()]);
        let none = program(Build::Count).unwrap_err().to_string();
        assert!(
            none.contains("sor-untiled") && none.contains("make -C workloads"),
            "{none}"
        );
        std::fs::create_dir(room.path().join("count")).unwrap();
        std::fs::write(room.path().join("count/sor-untiled"), "").unwrap();
        assert!(program(Build::Time).is_err());
        let found = program(Build::Count).unwrap();
        assert_eq!(found.line(), "sor-untiled --n 5");
    }

    #[test]
    fn arguments_are_filled() {
        let arguments = ["--n".to_string(), "{n}".to_string(), "{block}".to_string()];
        assert_eq!(filled(&arguments, &[("n", 7), ("block", 4096)]), ["--n", "7", "4096"]);
    }
}
