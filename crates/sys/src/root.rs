//! The directory that stands for `/`, and reading small files below it.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Longest file that is read. /proc/cpuinfo of a thousand cpus has some 2 MB.
const FILE_LIMIT: u64 = 16 << 20;

/// The directory that holds `/proc` and `/sys`: `/` itself, or a captured tree. `/` itself, or a
/// captured tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Root(PathBuf::from("/"))
    }
}

/// A file of Linux that did not answer the question.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct SysError {
    /// The path as the machine itself names it, wherever its tree was captured to.
    pub path: PathBuf,
    pub problem: Problem,
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("does not exist")]
    Absent,
    #[error("may not be read")]
    Denied,
    #[error("may not be written")]
    Closed,
    #[error("refuses what is written to it: {0}")]
    Refused(std::io::Error),
    #[error("cannot be read: {0}")]
    Failed(std::io::Error),
    #[error("is longer than {FILE_LIMIT} bytes")]
    TooLong,
    #[error("lies deeper than anything is looked for")]
    TooDeep,
    #[error("holds {found:?} where {expected} was expected")]
    Malformed { found: String, expected: &'static str },
}

impl Root {
    /// The tree below `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Root(directory.into())
    }

    /// Returns whether this is the running system and not a captured tree.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The file `path`, given without a leading `/`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The text of a file, without white space and zero bytes at its ends.
    ///
    /// Ensures: at most 16 MiB were read; bytes that are not UTF-8 are replaced.
    pub fn text(&self, path: &str) -> Result<String, SysError> {
        let fail = |problem| SysError {
            path: Path::new("/").join(path),
            problem,
        };
        let file = std::fs::File::open(self.path(path)).map_err(|error| fail(problem(error)))?;
        let mut bytes = Vec::new();
        file.take(FILE_LIMIT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| fail(problem(error)))?;
        if bytes.len() as u64 > FILE_LIMIT {
            return Err(fail(Problem::TooLong));
        }
        // Linux 5.15 wrote a zero byte at the end of some sets of cpus.
        let is_padding = |c: char| c.is_whitespace() || c == '\0';
        Ok(String::from_utf8_lossy(&bytes).trim_matches(is_padding).to_string())
    }

    /// Writes a file that is there, in one piece, as the kernel's own files want it.
    pub fn write(&self, path: &str, text: &str) -> Result<(), SysError> {
        let written = std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path(path))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| SysError {
            path: Path::new("/").join(path),
            problem: match problem(error) {
                Problem::Denied => Problem::Closed,
                Problem::Failed(error) => Problem::Refused(error),
                other => other,
            },
        })
    }

    /// The number that makes up the whole of a file.
    pub fn number(&self, path: &str) -> Result<u64, SysError> {
        let text = self.text(path)?;
        text.parse().map_err(|_| self.malformed(path, &text, "a number"))
    }

    /// The numbers `n` of the entries of `directory` that are named `prefix` followed by `n`.
    ///
    /// Ensures: ascending, none twice.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Result<Vec<u32>, SysError> {
        let fail = |error| SysError {
            path: Path::new("/").join(directory),
            problem: problem(error),
        };
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(self.path(directory)).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let number: Option<u32> = name
                .to_str()
                .and_then(|name| name.strip_prefix(prefix))
                .and_then(|rest| rest.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    pub(crate) fn malformed(&self, path: &str, found: &str, expected: &'static str) -> SysError {
        let found = found.chars().take(60).collect();
        SysError {
            path: Path::new("/").join(path),
            problem: Problem::Malformed { found, expected },
        }
    }
}

fn problem(error: std::io::Error) -> Problem {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Problem::Absent,
        ErrorKind::PermissionDenied => Problem::Denied,
        _ => Problem::Failed(error),
    }
}
