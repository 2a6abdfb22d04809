//! The folder of a run: what the command and the run-time say to each other. It goes when the run ends, and if that was
//! killed, with the next run of the same user.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "domicile-run-";
/// Locked as long as the folder is in use. The kernel gives it free when its process ends, however that ends.
const LOCK: &str = "lock";

pub struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// An empty one; and those that nobody uses any more are gone.
    pub fn make() -> io::Result<Folder> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        sweep(&std::env::temp_dir(), folder.path().metadata()?.uid());
        // It has no lock's file before it is locked: who sweeps meanwhile sees none.
        let beside = folder.path().join("new");
        let lock = File::create_new(&beside)?;
        lock.lock()?;
        std::fs::rename(&beside, folder.path().join(LOCK))?;
        Ok(Folder { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of runs that were killed. What cannot be looked at is somebody else's.
fn sweep(place: &Path, own: u32) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        if ours && is_left(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else {
        return false;
    };
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock | TryLockError::Error(_)))
}
