//! The program that a command would start: its file, checked, and the libraries that come with it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LocateError;
use crate::elf::Elf;
use crate::tool;

/// A script's interpreter may be a script, but not without limit.
const MOST_SCRIPTS: usize = 4;
/// Bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;

/// A program that could be started, with its libraries.
pub struct Program {
    /// The file that the kernel runs.
    pub path: PathBuf,
    /// The script that was asked for, where the program is its interpreter.
    pub script: Option<PathBuf>,
    /// The program's own file first, then the libraries as the dynamic linker lists them.
    pub modules: Vec<Loaded>,
    /// Libraries that the dynamic linker does not find.
    pub missing: Vec<String>,
    pub(super) codes: Vec<std::cell::OnceCell<super::code::Code>>,
}

/// A file that will be in the program's address space.
pub struct Loaded {
    pub path: PathBuf,
    pub(super) elf: Elf,
}

impl Loaded {
    pub fn build_id(&self) -> &str {
        &self.elf.build_id
    }
}

impl Program {
    /// The program that a shell would start for `name`; for a script its interpreter.
    pub fn find(name: &OsStr) -> Result<Program, LocateError> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let look = |name: &OsStr| tool::lookup(name, &search);
        let asked = look(name).ok_or_else(|| absent(name))?;
        let mut path = asked.clone();
        let mut scripts = 0;
        while let Some(interpreter) = interpreter(&path, look) {
            scripts += 1;
            if scripts > MOST_SCRIPTS {
                return Err(not_fit(&asked, "scripts that interpret scripts, too many of them"));
            }
            path = interpreter?;
        }
        File::open(&path).map_err(|error| not_fit(&path, format!("names cannot be looked up in it: {error}")))?;
        let elf = Elf::open(&path)
            .ok_or_else(|| not_fit(&path, "neither an ELF program nor a script that begins with #!"))?;
        let script = (scripts > 0).then_some(asked);
        let linker = check(&path, &elf)?;
        let (libraries, missing) = libraries(&linker, &path)?;
        let mut modules = vec![Loaded {
            path: path.clone(),
            elf,
        }];
        let opened = libraries.into_iter().filter_map(|path| {
            let elf = Elf::open(&path)?;
            Some(Loaded { path, elf })
        });
        modules.extend(opened);
        let codes = modules.iter().map(|_| std::cell::OnceCell::new()).collect();
        Ok(Program {
            path,
            script,
            modules,
            missing,
            codes,
        })
    }

    /// Device and number of the program's file.
    pub fn file(&self) -> Result<(u64, u64), LocateError> {
        let about = self.path.metadata().map_err(|error| not_fit(&self.path, error))?;
        Ok((about.dev(), about.ino()))
    }
}

/// Why there is no program of a name: a file without permission to run looks absent.
fn absent(name: &OsStr) -> LocateError {
    let path = Path::new(name);
    match path.metadata() {
        Ok(about) if name.as_bytes().contains(&b'/') => {
            let why = if about.is_dir() {
                "a folder, and no program"
            } else {
                "not executable: chmod +x makes it so, if it is a program"
            };
            not_fit(path, why)
        }
        _ => LocateError::NoProgram(name.to_string_lossy().into_owned()),
    }
}

fn not_fit(path: &Path, why: impl ToString) -> LocateError {
    LocateError::NotFit {
        path: path.to_path_buf(),
        why: why.to_string(),
    }
}

/// The interpreter of a script; `None` if the file is not one. For `env` it is the program that `env` would find.
fn interpreter(path: &Path, look: impl Fn(&OsStr) -> Option<PathBuf>) -> Option<Result<PathBuf, LocateError>> {
    let mut line = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
    let words: Vec<OsString> = line
        .split(|byte| b" \t\r".contains(byte))
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_os_string())
        .collect();
    let first = words.first()?;
    let by_env = Path::new(first).file_name() == Some(OsStr::new("env"));
    let plain = |word: &&OsString| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    let meant = match words.iter().skip(1).find(plain) {
        Some(program) if by_env => program,
        _ => first,
    };
    let missing = || {
        not_fit(
            path,
            format!("its interpreter {} does not exist", meant.to_string_lossy()),
        )
    };
    Some(look(meant).ok_or_else(missing))
}

/// The dynamic linker of a program, if a library can be preloaded into it; else why not.
fn check(path: &Path, elf: &Elf) -> Result<PathBuf, LocateError> {
    let about = path.metadata().map_err(|error| not_fit(path, error))?;
    // The owner of the kernel's files about a process is its effective user.
    let me = Path::new("/proc/self")
        .metadata()
        .map_err(|error| not_fit(Path::new("/proc/self"), error))?;
    let other_user = about.mode() & 0o4000 != 0 && about.uid() != me.uid();
    let other_group = about.mode() & 0o2010 == 0o2010 && about.gid() != me.gid();
    if other_user || other_group {
        return Err(not_fit(
            path,
            "it runs with the rights of its owner (setuid or setgid), and the dynamic linker loads no run-time into such \
             programs; run it as its owner, or use a copy without that bit",
        ));
    }
    if !elf.is_of_this_machine() {
        return Err(not_fit(path, "a program for another kind of processor"));
    }
    elf.linker.clone().ok_or_else(|| {
        not_fit(
            path,
            "statically linked: no run-time can be loaded into it; link it dynamically, or use the library in the program",
        )
    })
}

/// The libraries that the dynamic linker would load, and the names of those that it does not find. The program is
/// not run.
fn libraries(linker: &Path, path: &Path) -> Result<(Vec<PathBuf>, Vec<String>), LocateError> {
    let path = std::path::absolute(path).map_err(|error| not_fit(path, error))?;
    let listed = Command::new(linker)
        .arg("--list")
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            not_fit(
                linker,
                format!("cannot list the libraries of {}: {error}", path.display()),
            )
        })?;
    Ok(list(&String::from_utf8_lossy(&listed.stdout)))
}

/// Understands `libc.so.6 => /lib/libc.so.6 (0x7f...)`, `/lib64/ld-linux-x86-64.so.2 (0x7f...)`, `libx.so => not found`.
fn list(text: &str) -> (Vec<PathBuf>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for line in text.lines().map(str::trim) {
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        if place.starts_with("not found") {
            missing.push(name.to_string());
            continue;
        }
        let place = place.rsplit_once(" (0x").map_or(place, |(place, _)| place).trim();
        if place.starts_with('/') && seen.insert(place.to_string()) {
            found.push(PathBuf::from(place));
        }
    }
    (found, missing)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_linkers_list_is_understood() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibz.so.1 => not found\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                    (0x00007f3a)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f3b)\n";
        let (found, missing) = list(text);
        assert_eq!(
            found,
            [
                Path::new("/lib/x86_64-linux-gnu/libc.so.6"),
                Path::new("/lib64/ld-linux-x86-64.so.2")
            ]
        );
        assert_eq!(missing, ["libz.so.1"]);
    }

    #[test]
    fn a_program_comes_with_its_libraries() {
        let program = Program::find(OsStr::new("sort")).unwrap();
        assert!(program.script.is_none() && program.missing.is_empty());
        let names: Vec<_> = program.modules.iter().map(|m| m.path.display().to_string()).collect();
        assert!(names[0].ends_with("/sort"), "{names:?}");
        assert!(names.iter().any(|name| name.contains("libc.so")), "{names:?}");
    }

    #[test]
    fn a_script_stands_for_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let found = |path: &Path| Program::find(path.as_os_str()).map(|program| program.path);
        let direct = script("a", "#!/bin/sh -e\necho\n");
        assert_eq!(found(&direct).unwrap(), Path::new("/bin/sh"));
        let by_env = script("b", "#!/usr/bin/env -S sort -r\n");
        assert!(found(&by_env).unwrap().ends_with("sort"));
        let nothing = script("c", "#!/nonexistent/shell\n");
        assert!(found(&nothing).unwrap_err().to_string().contains("/nonexistent/shell"));
        let circle = folder.path().join("d");
        script("d", &format!("#!{}\n", circle.display()));
        assert!(found(&circle).unwrap_err().to_string().contains("too many"));
        let text = script("e", "echo no first line\n");
        assert!(found(&text).unwrap_err().to_string().contains("neither"));
        assert!(matches!(
            found(Path::new("no-such-program")),
            Err(LocateError::NoProgram(_))
        ));
    }
}
