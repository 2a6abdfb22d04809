//! Builds the programs of pairs, and fills in their commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::TruthError;
use crate::pairs::{Environment, Pair};

/// The sources of the built-in list. Programs of all lists mark and time their work by the last three.
const SOURCES: &[(&str, &str)] = &[
    ("gather.c", include_str!("../../../truth/programs/gather.c")),
    ("index.c", include_str!("../../../truth/programs/index.c")),
    ("layout.c", include_str!("../../../truth/programs/layout.c")),
    ("list.c", include_str!("../../../truth/programs/list.c")),
    ("padding.c", include_str!("../../../truth/programs/padding.c")),
    ("prefetch.c", include_str!("../../../truth/programs/prefetch.c")),
    ("sharing.c", include_str!("../../../truth/programs/sharing.c")),
    ("stride.c", include_str!("../../../truth/programs/stride.c")),
    ("transpose.c", include_str!("../../../truth/programs/transpose.c")),
    ("walk.c", include_str!("../../../truth/programs/walk.c")),
    ("timed.c", include_str!("../../../truth/programs/timed.c")),
    ("timed.h", include_str!("../../../truth/programs/timed.h")),
    (
        "domicile-trace.h",
        include_str!("../../../capture/valgrind/domicile-trace.h"),
    ),
];

/// For sources that are being worked on; the built-in ones meet compilers that nobody here knows.
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// One thread of OpenBLAS, and small pages in numpy, whatever the environment says: a pair changes one thing.
const FIXED: [(&str, &str); 3] = [
    ("OPENBLAS_NUM_THREADS", "1"),
    ("PYTHONHASHSEED", "0"),
    ("NUMPY_MADVISE_HUGEPAGE", "0"),
];

/// A command with its environment, in the folder of the inputs.
#[derive(Clone, Debug)]
pub struct Run {
    pub words: Vec<String>,
    pub environment: Environment,
    pub folder: PathBuf,
}

/// No command of a pair takes as long on any machine that it is worth running on.
pub const LONGEST: Duration = Duration::from_secs(1800);

impl Run {
    /// The command, with empty input and a limit of time.
    pub fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--foreground", &LONGEST.as_secs().to_string()])
            .args(&self.words)
            .envs(&self.environment)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// The same without its environment, for a recorder that runs a program where it is itself; errors go to a file.
    pub fn by_shell(&self, errors: &Path) -> (OsString, Vec<OsString>) {
        const SCRIPT: &str = "cd \"$1\" && exec 2>\"$2\" </dev/null && shift 2 && exec \"$@\"";
        let mut words: Vec<OsString> = ["-c", SCRIPT, "sh"].map(OsString::from).into();
        words.extend([self.folder.clone().into(), errors.into()]);
        words.extend(self.words.iter().map(OsString::from));
        ("sh".into(), words)
    }
}

/// The commands of a pair.
#[derive(Clone, Debug)]
pub struct Commands {
    pub before: Run,
    pub after: Run,
    /// None, one that is both sides', or one of each.
    pub start_up: Vec<Run>,
}

/// Builds in a folder.
pub struct Builder {
    /// The folder of the list: its programs are in `programs`. `None`: the built-in ones.
    list: Option<PathBuf>,
    /// Absolute: commands run in the folder of the inputs.
    pub folder: PathBuf,
    sources: PathBuf,
    inputs: PathBuf,
}

impl Builder {
    /// Makes the folder. Errors: there is no C compiler, or no room.
    pub fn new(list: Option<&Path>, folder: &Path) -> Result<Builder, TruthError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| TruthError::file(path, error));
        let folder = absolute(folder)?;
        let parent = |list: &Path| list.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let list = list
            .map(|list| absolute(&absolute(list).map(|list| parent(&list))?))
            .transpose()?;
        let builder = Builder {
            list,
            sources: folder.join("sources"),
            inputs: folder.join("inputs"),
            folder,
        };
        for made in [&builder.sources, &builder.inputs] {
            std::fs::create_dir_all(made).map_err(|error| TruthError::file(made, error))?;
        }
        for (name, text) in SOURCES {
            let path = builder.sources.join(name);
            std::fs::write(&path, text).map_err(|error| TruthError::file(&path, error))?;
        }
        let timed = builder.sources.join("timed.c");
        call(
            builder
                .compiler("cc", &[])
                .arg("-c")
                .arg(timed)
                .arg("-o")
                .arg(builder.timed()),
        )?;
        Ok(builder)
    }

    fn timed(&self) -> PathBuf {
        self.folder.join("timed.o")
    }

    fn compiler(&self, name: &str, flags: &[String]) -> Command {
        let mut command = Command::new(name);
        command.args(["-O2", "-g"]);
        command.args(self.list.iter().flat_map(|_| WARNINGS));
        command.arg("-I").arg(&self.sources).args(flags);
        command
    }

    /// The program of a pair, built again.
    fn program(&self, pair: &Pair) -> Result<PathBuf, TruthError> {
        let Some(source) = &pair.source else {
            return Ok(PathBuf::new());
        };
        let path = match &self.list {
            Some(list) => list.join("programs").join(source),
            None => self.sources.join(source),
        };
        let program = self.folder.join(format!("{}.program", pair.name));
        let (mut flags, mut link) = (Vec::new(), Vec::new());
        if !pair.libraries.is_empty() {
            let asked = |what| call(Command::new("pkg-config").arg(what).args(&pair.libraries));
            // Others' headers are not ours to mend.
            flags = words(&asked("--cflags")?.replace("-I/", "-isystem/"));
            link = words(&asked("--libs")?);
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = match extension.as_str() {
            "c" => self.compiler("cc", &flags),
            "cpp" => {
                let mut command = self.compiler("g++", &flags);
                command.arg("-std=c++20");
                command
            }
            "f90" => {
                let mut command = Command::new("gfortran");
                command.args(["-O2", "-g", "-Wall", "-Werror"]);
                command
            }
            "rs" => {
                let mut command = Command::new("rustc");
                let object = format!("link-arg={}", self.timed().display());
                command.args(["--edition", "2024", "-O", "-g", "-D", "warnings", "-C", &object]);
                call(command.arg(&path).arg("-o").arg(&program))?;
                return Ok(program);
            }
            _ => {
                return Err(TruthError::List(format!(
                    "{source}: sources end in .c, .cpp, .f90 or .rs"
                )));
            }
        };
        command.arg(&path).arg(self.timed()).arg("-o").arg(&program);
        call(command.arg("-pthread").args(link))?;
        Ok(program)
    }

    /// Builds a pair's programs. Errors: a build command failed.
    pub fn commands(&self, pair: &Pair) -> Result<Commands, TruthError> {
        let program = self.program(pair)?;
        let truth = self.list.clone().unwrap_or_default();
        let fill = |word: &String| {
            let word = word.replace("{program}", &program.display().to_string());
            word.replace("{truth}", &truth.display().to_string())
        };
        let run = |words: &[String], own: &Environment| {
            let mut environment: Environment = FIXED.map(|(name, value)| (name.into(), value.into())).into();
            environment.extend(own.clone());
            Run {
                words: words.iter().map(fill).collect(),
                environment,
                folder: self.inputs.clone(),
            }
        };
        if let Some(prepare) = &pair.prepare {
            call(&mut run(prepare, &Environment::new()).command())?;
        }
        let surroundings = match pair.before_env == pair.after_env {
            true => vec![&pair.before_env],
            false => vec![&pair.before_env, &pair.after_env],
        };
        let start_up = pair
            .start_up
            .iter()
            .flat_map(|words| surroundings.iter().map(|own| run(words, own)));
        Ok(Commands {
            before: run(&pair.before, &pair.before_env),
            after: run(&pair.after, &pair.after_env),
            start_up: start_up.collect(),
        })
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// Runs a command that has to end well, and returns its output.
pub fn call(command: &mut Command) -> Result<String, TruthError> {
    let line = format!("{command:?}");
    let done = command.output();
    let done = done.map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        TruthError::Command(match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("`{program}` is not installed, and builds what is measured: install it and try again")
            }
            _ => format!("cannot run {line}: {error}"),
        })
    })?;
    if !done.status.success() {
        let said = [&done.stderr, &done.stdout].into_iter().find(|said| !said.is_empty());
        let said = said.map_or(String::new(), |said| String::from_utf8_lossy(said).into_owned());
        return Err(TruthError::Command(format!("{line}: {}: {}", done.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
