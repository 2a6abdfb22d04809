//! Files of programs, under the names by which the programs were started: `redis-server` may be a link to
//! `redis-check-rdb`, and a program's behaviour can depend on its name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// For each process, its program's file as the kernel names it, and under the name by which it was started.
pub struct Started(HashMap<u32, (PathBuf, String)>);

impl Started {
    /// Of processes and their programs, as they were started.
    pub fn of<'a>(programs: impl IntoIterator<Item = (u32, &'a str)>) -> Started {
        let mut known: HashMap<&str, Option<(PathBuf, String)>> = HashMap::new();
        let named = programs.into_iter().filter_map(|(process, program)| {
            let names = known.entry(program).or_insert_with(|| names(Path::new(program)));
            Some((process, names.clone()?))
        });
        Started(named.collect())
    }

    /// The name of a file that is mapped into a process.
    pub fn path<'a>(&'a self, process: u32, path: &'a str) -> &'a str {
        match self.0.get(&process) {
            Some((file, started)) if file == Path::new(path) => started,
            _ => path,
        }
    }
}

/// `None` if both are the same, or the file cannot be found from here.
fn names(program: &Path) -> Option<(PathBuf, String)> {
    let file = program.canonicalize().ok()?;
    let leads = |path: &Path| path.canonicalize().is_ok_and(|to| to == file);
    // In one folder, so that links between folders (`/bin` to `/usr/bin`) do not give a file several names.
    let beside = file.with_file_name(program.file_name()?);
    let started = match leads(&beside) {
        true => beside,
        false => std::path::absolute(program).ok()?,
    };
    (started != file).then(|| (file, started.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_give_their_names_to_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name).display().to_string();
        std::fs::create_dir(root.join("bin")).unwrap();
        std::fs::create_dir(root.join("opt")).unwrap();
        std::fs::write(root.join("bin/check"), "").unwrap();
        std::os::unix::fs::symlink("check", root.join("bin/server")).unwrap();
        std::os::unix::fs::symlink("bin", root.join("sbin")).unwrap();
        std::os::unix::fs::symlink("../bin/check", root.join("opt/tool")).unwrap();
        let programs = ["bin/server", "sbin/server", "opt/tool", "bin/check", "bin/none"].map(at);
        let started = Started::of((0..).zip(programs.iter().map(String::as_str)));
        let file = at("bin/check");
        let named: Vec<_> = (0..6).map(|process| started.path(process, &file).to_string()).collect();
        let [server, tool] = ["bin/server", "opt/tool"].map(at);
        assert_eq!(named, [&server, &server, &tool, &file, &file, &file].map(String::clone));
        assert_eq!(started.path(0, "/lib/x.so"), "/lib/x.so");
    }
}
