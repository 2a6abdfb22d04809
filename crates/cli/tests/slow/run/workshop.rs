//! Compiles the programs of these tests, runs them with a plan, and reads the report.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::house::library::built;

/// 16 colors of 64 KiB, on any machine.
pub const COLORS: &str = "12:4:65536";

/// The run-time, built.
fn runtime() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("libdomicile_preload.so"))
}

/// A folder for programs and plans; anybody may read it.
pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Workshop {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Workshop(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Compiles one of the programs beside this file; `None` (counted as skipped) without the compiler.
    pub fn program(&self, source: &str, flags: &[&str]) -> Option<PathBuf> {
        let compiler = match Path::new(source).extension().and_then(|end| end.to_str()) {
            Some("cc") => "g++",
            Some("f90") => "gfortran",
            _ => "gcc",
        };
        let out = self.path(source.split('.').next().unwrap());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slow/run/programs");
        let mut command = Command::new(compiler);
        // The compiler writes Fortran modules here.
        command.current_dir(self.0.path());
        command
            .args(flags)
            .args(["-g", "-pthread", "-o"])
            .arg(&out)
            .arg(folder.join(source));
        match command.status() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                harness::not_installed(format_args!("there is no {compiler}"));
                None
            }
            status => {
                assert!(status.unwrap().success(), "{source} does not compile");
                Some(out)
            }
        }
    }

    /// The same, linked with the library, which is put beside it.
    pub fn linked(&self, source: &str, flags: &[&str]) -> Option<PathBuf> {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let library = BUILT.get_or_init(|| built("libdomicile.so"));
        for name in ["libdomicile.so", "libdomicile.so.0"] {
            // It may be there from the program before.
            let _ = std::fs::copy(library, self.path(name));
        }
        let of_the_library = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi").join(name);
        let folder = self.path("");
        let folder = folder.display();
        let all = [
            format!("-I{}", of_the_library("headers").display()),
            format!("-I{}", of_the_library("include").display()),
            format!("-L{folder}"),
            format!("-Wl,-rpath,{folder}"),
            // Named before the source, and needed all the same.
            "-Wl,--no-as-needed".to_string(),
            "-ldomicile".to_string(),
        ];
        let all: Vec<&str> = all.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        self.program(source, &all)
    }

    /// `domicile run --policy` with options and a command.
    pub fn directed(&self, policy: &str, options: &[&str], command: &[&str]) -> Run {
        self.placed_by(&[], &["--policy", policy], options, command)
    }

    /// `domicile run` with options and a command, to be started; by a command that runs commands, if one is given.
    pub fn command(&self, by: &[&str], options: &[&str], command: &[&str]) -> Command {
        let words = by.iter().chain([&env!("CARGO_BIN_EXE_domicile"), &"run"]);
        let mut words = words.chain(&["--force-colors", COLORS]).chain(options);
        let mut run = Command::new(words.next().unwrap());
        run.args(words).arg("--").args(command);
        run.env("DOMICILE_PRELOAD", runtime())
            .env("DOMICILE_SOCKET", "/nonexistent/socket")
            .env_remove("DOMICILE_COLORS")
            .env_remove("DOMICILE_ALIGN");
        run
    }

    /// The output for people.
    pub fn printed(&self, policy: &str, command: &[&str]) -> String {
        let mut run = Command::new(env!("CARGO_BIN_EXE_domicile"));
        run.args(["run", "--force-colors", COLORS, "--policy", policy, "--"])
            .args(command);
        run.env("DOMICILE_PRELOAD", runtime())
            .env("DOMICILE_SOCKET", "/nonexistent/socket");
        String::from_utf8_lossy(&run.output().unwrap().stderr).into_owned()
    }

    /// The message about options that are refused.
    pub fn refused(&self, options: &[&str]) -> String {
        let mut run = Command::new(env!("CARGO_BIN_EXE_domicile"));
        let output = run.arg("run").args(options).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// `domicile run` with a plan, options, and a command.
    pub fn run(&self, plan: &str, options: &[&str], command: &[&str]) -> Run {
        self.run_by(&[], plan, options, command)
    }

    /// The same, by a command that runs commands.
    pub fn run_by(&self, by: &[&str], plan: &str, options: &[&str], command: &[&str]) -> Run {
        let plan = self.file("plan.toml", plan);
        self.placed_by(by, &["--slots", plan.to_str().unwrap()], options, command)
    }

    fn placed_by(&self, by: &[&str], placement: &[&str], options: &[&str], command: &[&str]) -> Run {
        let report = self.path("report.json");
        let _ = std::fs::remove_file(&report);
        // Another user has to be able to write it, and to run us.
        let _ = std::fs::File::create(&report).map(|file| {
            use std::os::unix::fs::PermissionsExt;
            file.set_permissions(std::fs::Permissions::from_mode(0o666)).unwrap();
        });
        let (mut program, mut before) = (env!("CARGO_BIN_EXE_domicile").to_string(), Vec::new());
        let mut library = runtime().to_path_buf();
        if let [first, rest @ ..] = by {
            let copies = ["domicile", "libdomicile_preload.so"].map(|name| self.path(name));
            for (from, to) in [Path::new(&program), &library].into_iter().zip(&copies) {
                if !to.exists() {
                    harness::copy_program(from, to);
                }
            }
            before.extend(rest.iter().map(|word| word.to_string()));
            before.push(copies[0].display().to_string());
            (program, library) = (first.to_string(), copies[1].clone());
        }
        let output = Command::new(program)
            .args(before)
            .args(["run", "--json", "--force-colors", COLORS])
            .args(placement)
            .args(["--force", "--report"])
            .arg(&report)
            .args(options)
            .arg("--")
            .args(command)
            .env("DOMICILE_PRELOAD", library)
            .env("DOMICILE_SOCKET", "/nonexistent/socket")
            .env_remove("DOMICILE_COLORS")
            .env_remove("DOMICILE_ALIGN")
            .output()
            .unwrap();
        let report = std::fs::read_to_string(report).unwrap_or_default();
        Run {
            output,
            report: serde_json::from_str(&report).unwrap_or(Value::Null),
        }
    }
}

/// A program, run without us.
pub fn plainly(command: &[&str]) -> Output {
    Command::new(command[0]).args(&command[1..]).output().unwrap()
}

/// The outcome of a run.
pub struct Run {
    pub output: Output,
    pub report: Value,
}

impl Run {
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Asserts that the program had the same output and status as by itself.
    pub fn is_as(&self, plain: &Output) {
        let said = self.said();
        assert_eq!(self.printed(), String::from_utf8_lossy(&plain.stdout), "{said}");
        assert_eq!(self.output.status.code(), plain.status.code(), "{said}");
    }

    /// The report on the loops of the only process.
    pub fn cdpc(&self) -> &Value {
        let processes = self.report["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 1, "{:#}\n{}", self.report, self.said());
        assert_ne!(processes[0]["state"], "failed", "{:#}", self.report);
        &processes[0]["cdpc"]
    }

    /// The report on one data set of the only process.
    pub fn data(&self, name: &str) -> &Value {
        let processes = self.report["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 1, "{:#}\n{}", self.report, self.said());
        assert_ne!(processes[0]["state"], "failed", "{:#}", self.report);
        let all = processes[0]["data_sets"].as_array().unwrap();
        let found = all.iter().find(|data| data["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not reported: {:#}", self.report))
    }

    /// The data set has pages at the end, and all whose frames can be seen are in its colors. Their number.
    pub fn placed(&self, name: &str) -> u64 {
        let data = self.data(name);
        let number = |key: &str| data[key].as_u64().unwrap();
        let (pages, known) = (number("pages"), number("pages") - number("unknown"));
        assert!(pages > 0 && number("allowed") == known, "{name}: {data:#}");
        assert_eq!(data["notes"], serde_json::json!([]), "{name}");
        pages
    }

    /// The colors that a program found its data in are granted ones. (None where the kernel hides frames.)
    pub fn agrees(&self, name: &str, shown: &str, colors: &str) {
        let data = self.data(name);
        let granted: Vec<u64> = data["granted"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        let line = colors.lines().find_map(|line| line.strip_prefix(&format!("{shown}:")));
        let line = line.unwrap_or_else(|| panic!("{shown} is not there: {colors}"));
        let seen: Vec<u64> = line.split_whitespace().map(|color| color.parse().unwrap()).collect();
        assert!(
            seen.iter().all(|color| granted.contains(color)),
            "{name}: {seen:?} of {granted:?}"
        );
        if data["unknown"] == 0 {
            assert_eq!(seen.len(), granted.len(), "{name}: {seen:?} of {granted:?}");
        }
    }
}
