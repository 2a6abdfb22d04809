//! An installation in a directory of its own, and the compilers that use it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// How a program is compiled and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Plain,
    Static,
    AddressSanitizer,
    Valgrind,
}

impl How {
    pub const ALL: [How; 4] = [How::Plain, How::Static, How::AddressSanitizer, How::Valgrind];
}

/// What a command came to.
pub struct Outcome {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

pub struct Prefix(TempDir);

impl Prefix {
    /// The installation, which all tests share; none where there is no way to make one.
    pub fn installed() -> Option<&'static Prefix> {
        static INSTALLED: OnceLock<Option<Prefix>> = OnceLock::new();
        INSTALLED
            .get_or_init(|| {
                if ["make", "gcc", "pkg-config", "nm"].into_iter().any(missing) {
                    return None;
                }
                let place = tempfile::tempdir().expect("a temporary directory");
                // Other users run the programs too.
                std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("its owner may");
                install(&[format!("PREFIX={}", place.path().display())]);
                Some(Prefix(place))
            })
            .as_ref()
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// A program in C99; none where a tool is missing.
    pub fn c(&self, source: &str, how: How) -> Option<PathBuf> {
        let strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread"];
        self.compile("gcc", &strict, source, how)
    }

    pub fn openmp(&self, source: &str) -> Option<PathBuf> {
        let strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fopenmp"];
        self.compile("gcc", &strict, source, How::Plain)
    }

    /// A program in C++17, by one of these compilers.
    pub fn cxx17(&self, compilers: &[&'static str], source: &str, how: How) -> Option<PathBuf> {
        let strict = ["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread"];
        let compiler = compilers.iter().find(|compiler| harness::is_there(compiler));
        self.compile(compiler.unwrap_or(&compilers[0]), &strict, source, how)
    }

    pub fn cxx(&self, source: &str) -> Option<PathBuf> {
        let strict = ["-std=c++14", "-Wall", "-Wextra", "-Werror"];
        self.compile("g++", &strict, source, How::Plain)
    }

    pub fn fortran(&self, source: &str, how: How) -> Option<PathBuf> {
        let strict = ["-std=f2018", "-Wall", "-Wextra", "-pedantic", "-Werror"];
        self.compile("gfortran", &strict, source, how)
    }

    fn compile(&self, compiler: &str, strict: &[&str], source: &str, how: How) -> Option<PathBuf> {
        if missing(compiler) || (how == How::Valgrind && missing("valgrind")) {
            return None;
        }
        let place = self
            .path("programs")
            .join(format!("{source}-{how:?}-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let program = tempfile::Builder::new()
            .tempdir_in(&place)
            .unwrap()
            .keep()
            .join("program");
        let mut command = Command::new(compiler);
        command
            .current_dir(program.parent().unwrap())
            .args(strict)
            .args(["-g", "-O1"]);
        command.arg(concat!("-DVERSION=\"", env!("CARGO_PKG_VERSION"), "\""));
        if how == How::AddressSanitizer {
            command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        }
        command.arg(programs().join(source)).arg("-o").arg(&program);
        let mut libraries = self.described(how == How::Static);
        if how == How::Static {
            // What is static here is the library, not the whole program.
            for library in libraries.iter_mut().filter(|library| *library == "-ldomicile") {
                *library = "-l:libdomicile.a".to_owned();
            }
        } else {
            command.arg(format!("-Wl,-rpath,{}", self.path("lib").display()));
        }
        let said = output(command.args(libraries));
        assert!(said.success, "{compiler} refuses {source}:\n{}", said.stderr);
        Some(program)
    }

    /// What pkg-config says.
    fn described(&self, with_static: bool) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"));
        if with_static {
            command.arg("--static");
        }
        let said = output(command.args(["--cflags", "--libs", "domicile"]));
        assert!(said.success, "{}", said.stderr);
        said.stdout.split_whitespace().map(str::to_owned).collect()
    }

    /// Runs a program, which must succeed; a fault that a checker finds is no success.
    pub fn run(&self, program: &Path, how: How) -> Outcome {
        let mut command = match how {
            How::Valgrind => {
                let mut command = Command::new("valgrind");
                command.args(["-q", "--error-exitcode=97", "--leak-check=full", "--fair-sched=yes"]);
                command
                    .args(["--errors-for-leak-kinds=definite,indirect,possible"])
                    .arg(program);
                command
            }
            _ => Command::new(program),
        };
        // Colors that are forced, and nobody else's.
        command.envs(super::slots::FORCED);
        // As malloc does: too much is an error of the caller, not of the program.
        command.env("ASAN_OPTIONS", "allocator_may_return_null=1");
        let ran = output(&mut command);
        assert!(
            ran.success,
            "{}, {how:?}:\n{}{}",
            program.display(),
            ran.stdout,
            ran.stderr
        );
        ran
    }
}

/// The programs' sources.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// `make install` of the library as `setup/tests` built it with this test program; nothing is built here.
pub fn install(settings: &[String]) {
    let program = std::env::current_exe().expect("the test program has a name");
    let built = program.ancestors().nth(2).expect("it lies in deps/");
    assert!(
        built.join("libdomicile.so").exists(),
        "{} has no libdomicile.so: setup/tests builds it before the tests",
        built.display()
    );
    let mut make = Command::new("make");
    make.arg("-f")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile"));
    make.arg("install")
        .args(settings)
        .arg("CARGO=:")
        .arg(format!("BUILT={}", built.display()));
    // These are of the make that runs the tests, and not meant for this one.
    make.env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env_remove("MFLAGS");
    let said = output(&mut make);
    assert!(said.success, "make install failed:\n{}{}", said.stdout, said.stderr);
}

/// Whether a tool is missing, which is said.
pub fn missing(tool: &str) -> bool {
    !harness::tool(tool)
}

pub fn output(command: &mut Command) -> Outcome {
    // The programs must not find their defaults by measuring, which takes long under a checker.
    command.env("DOMICILE_CACHE_BYTES", "1048576");
    let out = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    Outcome {
        success: out.status.success(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}
