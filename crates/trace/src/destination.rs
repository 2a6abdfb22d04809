//! Files that appear under their names once they are complete.
//!
//! A file is written as `NAME.partial`, and renamed at the end: if the process is killed meanwhile, the older file is
//! unchanged, and the name of the unfinished file shows that. A destination that is not a regular file (a device, a
//! fifo) is written in place.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The suffix of an unfinished file's name; a number follows if such a file exists already.
const UNFINISHED: &str = ".partial";
/// The most unfinished files of one name.
const MOST_UNFINISHED: u32 = 1000;
/// The longest chain of symbolic links, as in the kernel.
const MOST_LINKS: u32 = 40;

/// A file being written.
///
/// One of [`Destination::keep`] and [`Destination::discard`] ends it. If the caller only drops it, the unfinished file
/// stays: it may contain the work of hours.
#[derive(Debug)]
pub struct Destination {
    file: File,
    /// The caller's name for the file.
    name: PathBuf,
    /// The file that is written and its later name; `None` if it is written in place.
    renamed: Option<(PathBuf, PathBuf)>,
}

impl Destination {
    /// Begins the file `path`. Post: an existing file of that name is unchanged, unless it is not a regular file.
    ///
    /// Errors: there is no such folder, or it may not be written; `path` is a folder, or a file that may not be written.
    pub fn begin(path: &Path) -> io::Result<Destination> {
        let in_place = |file: File| Destination {
            file,
            name: path.to_path_buf(),
            renamed: None,
        };
        let there = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // Another process may also have it open: a file that is standard output.
            Ok(there) if !there.is_file() || of_the_system(path) => return Ok(in_place(File::create(path)?)),
            // A user without write permission for the file could still replace it by renaming: its owner would not
            // allow that.
            Ok(there) => {
                OpenOptions::new().write(true).open(path)?;
                Some(there)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let last = behind_links(path)?;
        if last.file_name().is_none() {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let (file, beside) = match unfinished(&last) {
            Ok(made) => made,
            // In a folder without write permission, the file itself may be writable.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && there.is_some() => {
                return Ok(in_place(File::create(path)?));
            }
            Err(error) => return Err(error),
        };
        if let Some(there) = there {
            // Readers of the old file should be able to read the new one; if that fails, the file is more important.
            let _ = file.set_permissions(there.permissions());
        }
        Ok(Destination {
            file,
            name: path.to_path_buf(),
            renamed: Some((beside, last)),
        })
    }

    /// True if a regular file has that name now, which [`Destination::keep`] would replace.
    pub fn occupied(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|there| there.is_file()) && !of_the_system(path)
    }

    /// The file, to write to.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The path that is written: the name itself if it is not a regular file.
    pub fn path(&self) -> &Path {
        self.renamed.as_ref().map_or(&self.name, |(beside, _)| beside)
    }

    /// A folder for its temporary files.
    pub fn folder(&self) -> PathBuf {
        match &self.renamed {
            Some((beside, _)) => parent(beside).to_path_buf(),
            None => std::env::temp_dir(),
        }
    }

    /// Gives the file its name. The error names its actual path.
    pub fn keep(self) -> io::Result<()> {
        let Some((beside, last)) = &self.renamed else {
            return Ok(());
        };
        fs::rename(beside, last).map_err(|error| {
            let what = format!("{error}; it is kept as {}", beside.display());
            io::Error::new(error.kind(), what)
        })
    }

    /// Removes the file. An earlier file of that name stays.
    pub fn discard(self) {
        if let Some((beside, _)) = &self.renamed {
            // The caller that discards reports a reason of its own.
            let _ = fs::remove_file(beside);
        }
    }
}

/// True if the file belongs to the kernel: a name such as `/dev/stdout` stands for an open file.
fn of_the_system(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The end of a chain of symbolic links, even if nothing is there: links are kept.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = parent(&at).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A new file beside `path`. An existing one may be the only result of another run, or belong to one that still runs.
fn unfinished(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 1;
    loop {
        let mut name = OsString::from(path);
        name.push(UNFINISHED);
        if number > 1 {
            name.push(format!("-{number}"));
        }
        let beside = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => return Ok((file, beside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_UNFINISHED => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let new = Destination::begin(&path).unwrap();
        new.file().unwrap().write_all(b"new").unwrap();
        assert_eq!(names(folder.path()), ["a.trace", "a.trace.partial"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        new.keep().unwrap();
        assert_eq!(names(folder.path()), ["a.trace"]);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        Destination::begin(&path).unwrap().discard();
        assert_eq!(names(folder.path()), ["a.trace"]);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn what_another_left_unfinished_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        drop(Destination::begin(&path).unwrap());
        let second = Destination::begin(&path).unwrap();
        assert_eq!(names(folder.path()), ["a.partial", "a.partial-2"]);
        assert!(!Destination::occupied(&path));
        second.keep().unwrap();
        assert!(Destination::occupied(&path));
        assert_eq!(names(folder.path()), ["a", "a.partial"]);
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let (link, chain) = (folder.path().join("link"), folder.path().join("chain"));
        symlink("elsewhere/a", &link).unwrap();
        symlink("link", &chain).unwrap();
        // First the target does not exist; then it does.
        for text in ["one", "two"] {
            let new = Destination::begin(&chain).unwrap();
            new.file().unwrap().write_all(text.as_bytes()).unwrap();
            assert_eq!(new.folder(), folder.path().join("elsewhere"));
            new.keep().unwrap();
            assert_eq!(fs::read(elsewhere.join("a")).unwrap(), text.as_bytes());
        }
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink() && fs::symlink_metadata(&chain).unwrap().is_symlink()
        );
        symlink("round", folder.path().join("round")).unwrap();
        assert!(Destination::begin(&folder.path().join("round")).is_err());
    }

    #[test]
    fn devices_are_written_in_place() {
        let new = Destination::begin(Path::new("/dev/null")).unwrap();
        assert_eq!(new.path(), Path::new("/dev/null"));
        assert!(!Destination::occupied(Path::new("/dev/null")));
        assert_ne!(new.folder(), Path::new("/dev"), "a device has no room beside it");
        new.keep().unwrap();
        Destination::begin(Path::new("/dev/null")).unwrap().discard();
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| Destination::begin(path).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("no/such")), io::ErrorKind::NotFound);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(kind(&file.join("below")), io::ErrorKind::NotADirectory);
        assert_eq!(kind(Path::new("")), io::ErrorKind::InvalidFilename);
        assert_eq!(names(folder.path()), ["file"]);
    }
}
