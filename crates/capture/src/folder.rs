//! A folder for temporary files that is deleted when its maker ends; if that was killed, the next folder of the same
//! family and user deletes it.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The prefix of the names of all such folders.
const FAMILY: &str = "domicile-";
/// Locked as long as the folder is in use. The kernel releases it when its process ends, in whatever way.
const LOCK: &str = "lock";
/// The prefix of the name of a file that a program under Valgrind writes; its process's number follows.
pub(crate) const LOG: &str = "log.";

/// See the module's documentation.
pub struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// Makes an empty one among the temporary files, and deletes unused ones. `kind` is in its name.
    pub fn make(kind: &str) -> io::Result<Folder> {
        Folder::below(&std::env::temp_dir(), kind)
    }

    /// The same in another place.
    pub fn below(place: &Path, kind: &str) -> io::Result<Folder> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FAMILY}{kind}-"))
            .tempdir_in(place)?;
        sweep(place, folder.path().metadata()?.uid());
        // The folder has no lock file before the lock is held: a sweep in the meantime finds none.
        let beside = folder.path().join("new");
        let lock = File::create_new(&beside)?;
        lock.lock()?;
        std::fs::rename(&beside, folder.path().join(LOCK))?;
        Ok(Folder { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder, for its user to remove.
    pub fn keep(self) -> PathBuf {
        // Without the lock file, no sweep removes the folder. If this fails, the next recording's sweep removes it.
        let _ = std::fs::remove_file(self.folder.path().join(LOCK));
        self.folder.keep()
    }
}

/// Removes the folders of recorders that were killed. A folder that cannot be read belongs to somebody else.
fn sweep(place: &Path, own: u32) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(FAMILY)
            && entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        if ours && is_left(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// True if neither its maker nor a program that writes there is alive: a program may outlive its recorder.
fn is_left(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else {
        return false;
    };
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock | TryLockError::Error(_))) && !is_written(folder)
}

fn is_written(folder: &Path) -> bool {
    let lives = |name: &str| {
        let process = name.strip_prefix(LOG).and_then(|number| number.parse::<u32>().ok());
        process.is_some_and(|process| Path::new("/proc").join(process.to_string()).exists())
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| lives(&entry.file_name().to_string_lossy()))
}
