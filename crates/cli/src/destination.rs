//! Files that results go to.
//!
//! What cannot be written is refused before the work, and what exists is not written over unless `--force` says so. A
//! result is written beside its place and renamed: whoever looks there finds the old file, or the whole new one.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Mode of a new file, before the process's mask.
const MODE: u32 = 0o666;
/// Numbers that are tried for a file that nobody named.
const MOST_NUMBERS: u32 = 10_000;

/// The option of verbs that write files.
#[derive(Args, Clone, Copy)]
pub struct Overwrite {
    /// Write over files that exist
    #[arg(long)]
    pub force: bool,
}

/// A place for one result. It could be written when this was made.
#[derive(Debug)]
pub struct Destination {
    /// As the user wrote it.
    named: PathBuf,
    /// What is written, for messages: "the full result".
    what: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A file that is made, or replaced, by renaming one beside it; the path is free of symbolic links.
    File { path: PathBuf, replace: bool },
    /// A pipe or a device: written as it is.
    Special,
}

impl Overwrite {
    /// A place for a result. Error: it cannot be written, or exists and is not to be written over.
    pub fn destination(self, path: &Path, what: &'static str) -> Result<Destination, Failure> {
        let kind = self.check(path, what)?;
        if let Kind::File { path: real, .. } = &kind {
            // A file beside it can be made, and is gone again: nothing is left behind if the work is interrupted.
            beside(real, None).map_err(|error| cannot(what, path, &error))?;
        }
        Ok(Destination {
            named: path.to_path_buf(),
            what,
            kind,
        })
    }

    /// The same for a file that nobody named: where the name is taken the next free one is used, `result-2.json`.
    pub fn unnamed(self, path: &Path, what: &'static str) -> Result<Destination, Failure> {
        if self.force {
            return self.destination(path, what);
        }
        let taken = |path: &Path| fs::symlink_metadata(path).is_ok();
        let numbered = |number: u32| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let end = path
                .extension()
                .map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
            path.with_file_name(format!("{stem}-{number}{end}"))
        };
        let free = std::iter::once(path.to_path_buf())
            .chain((2..MOST_NUMBERS).map(numbered))
            .find(|path| !taken(path));
        self.destination(free.as_deref().unwrap_or(path), what)
    }

    /// Whether a file may be made at a path by somebody else: for traces, which the recorder writes itself.
    pub fn allows(self, path: &Path, what: &'static str) -> Result<(), Failure> {
        self.check(path, what).map(drop)
    }

    fn check(self, path: &Path, what: &'static str) -> Result<Kind, Failure> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Kind::File {
                    path: target(path),
                    replace: self.force,
                });
            }
            Err(error) => return Err(cannot(what, path, &error)),
        };
        if there.is_dir() {
            return Err(cannot(what, path, &"it is a folder"));
        }
        if !there.is_file() {
            return Ok(Kind::Special);
        }
        if !self.force {
            return Err(Failure::work(format!(
                "{} exists, and {what} would be written over it: add `--force`, or name another file",
                path.display()
            )));
        }
        // Renaming needs no right to write the file itself; who protected it meant it.
        OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|error| cannot(what, path, &error))?;
        let path = path.canonicalize().map_err(|error| cannot(what, path, &error))?;
        Ok(Kind::File { path, replace: true })
    }
}

impl Destination {
    pub fn path(&self) -> &Path {
        &self.named
    }

    /// Writes the result. What was written is kept, and named in the error, where only its last step fails.
    pub fn write(self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot(self.what, &self.named, &error);
        let (path, replace) = match &self.kind {
            Kind::Special => {
                let file = OpenOptions::new().write(true).open(&self.named).map_err(failed)?;
                return through(file, fill).map_err(failed);
            }
            Kind::File { path, replace } => (path, *replace),
        };
        let mode = fs::metadata(path).ok().map(|there| there.permissions());
        let made = beside(path, mode).map_err(failed)?;
        through(made.as_file(), fill).map_err(failed)?;
        let renamed = match replace {
            true => made.persist(path),
            false => made.persist_noclobber(path),
        };
        renamed.map(drop).map_err(|lost| {
            let error = lost.error;
            match lost.file.keep() {
                Ok((_, kept)) => cannot(
                    self.what,
                    &self.named,
                    &format_args!("{error}; it is in {} instead", kept.display()),
                ),
                Err(_) => failed(error),
            }
        })
    }

    pub fn write_text(self, text: &str) -> Result<(), Failure> {
        self.write(|out| out.write_all(text.as_bytes()))
    }
}

/// A new file in the folder of another, with the permissions of that one or of any new file.
fn beside(path: &Path, permissions: Option<fs::Permissions>) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let made = tempfile::Builder::new()
        .prefix(&format!(".{}.", name.to_string_lossy()))
        .suffix(".partial")
        .permissions(fs::Permissions::from_mode(MODE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    if let Some(permissions) = permissions {
        made.as_file().set_permissions(permissions)?;
    }
    Ok(made)
}

/// Where a new file is made: behind a symbolic link that leads to nothing yet.
fn target(path: &Path) -> PathBuf {
    match fs::read_link(path) {
        Ok(behind) => path.parent().unwrap_or(Path::new(".")).join(behind),
        Err(_) => path.to_path_buf(),
    }
}

fn through(file: impl Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    out.flush()
}

fn cannot(what: &str, path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::work(format!(
        "cannot write {what} to {}: {why}; name another file",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Overwrite = Overwrite { force: true };
    const NO: Overwrite = Overwrite { force: false };

    fn text(failure: &Failure) -> &str {
        match failure {
            Failure::Work(text) | Failure::Usage(text) => text,
            Failure::ReaderLeft => "",
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_result_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let failed = NO.destination(&path, "the result").unwrap().write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(text(&failed.unwrap_err()).contains("the disk is full"));
        assert!(names(folder.path()).is_empty());
        NO.destination(&path, "the result")
            .unwrap()
            .write_text("whole")
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn what_exists_is_written_over_by_force_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = NO.destination(&path, "the result").unwrap_err();
        assert!(text(&refused).contains("--force"), "{refused:?}");
        YES.destination(&path, "the result").unwrap().write_text("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn who_comes_in_between_is_not_written_over_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let place = NO.destination(&path, "the result").unwrap();
        fs::write(&path, "another's").unwrap();
        let failure = place.write_text("ours").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        let kept = names(folder.path())
            .into_iter()
            .find(|name| name.ends_with(".partial"))
            .unwrap();
        assert!(text(&failure).contains(&kept), "{failure:?}");
        assert_eq!(fs::read_to_string(folder.path().join(kept)).unwrap(), "ours");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        NO.destination(&link, "the result").unwrap().write_text("one").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        YES.destination(&link, "the result").unwrap().write_text("two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_name_that_nobody_chose_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        for name in ["result.json", "result-2.json", "result-3.json"] {
            let place = NO.unnamed(&path, "the result").unwrap();
            assert_eq!(place.path(), folder.path().join(name));
            place.write_text("").unwrap();
        }
        assert_eq!(YES.unnamed(&path, "the result").unwrap().path(), path);
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| NO.destination(path, "the result").unwrap_err();
        assert!(text(&refused(folder.path())).contains("folder"));
        assert!(text(&refused(&folder.path().join("missing/result"))).contains("No such file"));
        assert!(matches!(refused(Path::new("")), Failure::Work(_)));
        assert!(matches!(refused(Path::new("/proc/result")), Failure::Work(_)));
        // A device is written as it is.
        let failure = NO.destination(Path::new("/dev/full"), "the result").unwrap();
        assert!(text(&failure.write_text("text").unwrap_err()).contains("No space left"));
    }
}
