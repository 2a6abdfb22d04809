//! The files of resctrl.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::WaysError;

/// The tree of resctrl, by paths below its root. In tests, one that follows the kernel's rules.
pub(super) trait Tree: Send {
    fn read(&self, path: &str) -> io::Result<String>;
    /// Writes the whole of a file.
    fn write(&self, path: &str, text: &str) -> Result<(), WaysError>;
    /// Writes to a file that takes one thing at a time.
    fn append(&self, path: &str, text: &str) -> io::Result<()>;
    /// The groups below the default one.
    fn groups(&self) -> Result<Vec<String>, WaysError>;
    fn make(&self, group: &str) -> Result<(), WaysError>;
    fn remove(&self, group: &str) -> Result<(), WaysError>;
    /// Keeps other programs that know the custom (`flock` on the root) out until it is dropped.
    fn lock(&self) -> Result<Locked, WaysError>;
    /// An error with its place, and the kernel's message.
    fn cannot(&self, what: &'static str, path: &str, source: io::Error) -> WaysError;
    fn malformed(&self, path: &str, found: &str, expected: &'static str) -> WaysError;
}

/// Holds the lock.
pub(super) struct Locked(#[allow(dead_code)] File);

/// Longest file that is read.
const FILE_LIMIT: u64 = 1 << 20;

pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(root: &Path) -> Directory {
        Directory(root.to_path_buf())
    }
}

impl Tree for Directory {
    fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        File::open(self.0.join(path))?
            .take(FILE_LIMIT)
            .read_to_string(&mut text)?;
        Ok(text)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), WaysError> {
        // In one write: the kernel takes each as a command of its own.
        let file = OpenOptions::new().write(true).truncate(true).open(self.0.join(path));
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| self.cannot("write", path, error))
    }

    fn append(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.0.join(path))?;
        file.write_all(text.as_bytes())
    }

    fn groups(&self) -> Result<Vec<String>, WaysError> {
        let read = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.0)? {
                let entry = entry?;
                let name = entry.file_name().into_string().unwrap_or_default();
                let own = ["info", "mon_groups", "mon_data"].contains(&name.as_str());
                if entry.file_type()?.is_dir() && !own && !name.is_empty() {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        read().map_err(|error| self.cannot("read", "", error))
    }

    fn make(&self, group: &str) -> Result<(), WaysError> {
        fs::create_dir(self.0.join(group)).map_err(|error| match error.raw_os_error() {
            Some(ENOSPC) => WaysError::NoGroups,
            _ => self.cannot("make", group, error),
        })
    }

    fn remove(&self, group: &str) -> Result<(), WaysError> {
        match fs::remove_dir(self.0.join(group)) {
            // Somebody else removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.map_err(|error| self.cannot("remove", group, error)),
        }
    }

    fn lock(&self) -> Result<Locked, WaysError> {
        let lock = || -> io::Result<Locked> {
            let root = File::open(&self.0)?;
            root.lock()?;
            Ok(Locked(root))
        };
        lock().map_err(|error| self.cannot("lock", "", error))
    }

    fn cannot(&self, what: &'static str, path: &str, source: io::Error) -> WaysError {
        let said = self.read("info/last_cmd_status").unwrap_or_default();
        let said = match said.trim() {
            "" | "ok" => String::new(),
            said => format!(" (the kernel says: {said})"),
        };
        WaysError::File {
            what,
            path: self.0.join(path),
            source,
            said,
        }
    }

    fn malformed(&self, path: &str, found: &str, expected: &'static str) -> WaysError {
        WaysError::Malformed {
            path: self.0.join(path),
            found: found.trim().chars().take(60).collect(),
            expected,
        }
    }
}

/// No number for another group is left (Linux's number is the same on all its machines).
const ENOSPC: i32 = 28;
