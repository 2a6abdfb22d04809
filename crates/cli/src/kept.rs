//! A recording and the work after it: if that work fails or is interrupted, the user learns where the recording is. A
//! recording without a given name is then kept; otherwise it is deleted when the work is done.
//!
//! The user waited a minute for the recording. Ctrl-C in the simulation that follows must not lose it.

use std::fmt::Display;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use capture::Folder;
use sys::packet;
use sys::ready::Bell;
use sys::signals::{self, Caught};

use crate::console::{self, quoted};
use crate::failure::Failure;

/// The name of the folders that hold such recordings.
const FOLDER: &str = "advise";
/// How long one wait for signals lasts; then it starts again.
const LONG: u32 = 3_600_000;

/// The folder of a recording, until it is decided whether to keep it.
type Undecided = Arc<Mutex<Option<Room>>>;

enum Room {
    /// Ours, and deleted when we end.
    Temporary(Folder),
    /// The user named the file.
    Named,
}

pub struct Kept {
    file: PathBuf,
    room: Undecided,
    watch: Option<Watch>,
}

impl Kept {
    /// Makes a folder for a recording of this name.
    pub fn new(name: &str) -> Result<Kept, Failure> {
        let folder = Folder::make(FOLDER);
        let folder = folder
            .map_err(|error| Failure::work(format!("cannot make a folder for the trace: {error}; set TMPDIR")))?;
        Ok(Kept {
            file: folder.path().join(name),
            room: Arc::new(Mutex::new(Some(Room::Temporary(folder)))),
            watch: None,
        })
    }

    /// The recording goes to a file that the user named.
    pub fn named(file: &Path) -> Kept {
        Kept {
            file: file.to_path_buf(),
            room: Arc::new(Mutex::new(Some(Room::Named))),
            watch: None,
        }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Called once the recording exists: from now on a signal that ends this process keeps it.
    pub fn recorded(&mut self) {
        // If signals cannot be watched, they end the process as usual, and the recording stays in its folder without a
        // message.
        self.watch = Watch::begin(self.file.clone(), Arc::clone(&self.room)).ok();
    }

    /// If the later work failed, keeps the recording, and prints its path.
    pub fn or_failed<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        done.map_err(|failure| match failure {
            Failure::Work(text) if self.file.exists() && keep(&self.room) => {
                Failure::Work(format!("{text}\n{}", kept(&self.file)))
            }
            failure => failure,
        })
    }
}

/// A thread that keeps the recording when a signal arrives that ends this process.
struct Watch {
    over: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn begin(file: PathBuf, room: Undecided) -> std::io::Result<Watch> {
        let mut caught = Caught::begin()?;
        let over = Arc::new(Bell::new()?);
        let heard = Arc::clone(&over);
        let thread = thread::Builder::new().name("signals".into()).spawn(move || {
            loop {
                if let Some(signal) = caught.take() {
                    if keep(&room) {
                        console::say(&format!("domicile: interrupted; {}\n", kept(&file)));
                    }
                    // Its default effect is restored, so it ends this process.
                    drop(caught);
                    let _ = signals::send(std::process::id(), signal.number);
                    return;
                }
                match packet::wait(&[caught.as_fd(), heard.as_fd()], LONG) {
                    Ok(ready) if !ready[1] => {}
                    _ => return,
                }
            }
        })?;
        Ok(Watch {
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Keeps the recording; false if there was none left to keep.
fn keep(room: &Undecided) -> bool {
    match room.lock().unwrap_or_else(PoisonError::into_inner).take() {
        None => false,
        Some(Room::Named) => true,
        Some(Room::Temporary(folder)) => {
            folder.keep();
            true
        }
    }
}

fn kept(file: &Path) -> impl Display {
    format!(
        "what was recorded is kept in {}; go on with `domicile advise {}`",
        file.display(),
        quoted(file)
    )
}
