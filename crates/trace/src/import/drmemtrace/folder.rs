//! The files of a folder that are a trace: one for each thread (or core), as DynamoRIO's post-processing leaves them.
//!
//! The folder may be `trace` itself, the one that contains `trace` and `raw`, or one with a folder for each window.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::names::{belongs, is_called_trace};
use super::source::{Described, FORMAT, named};
use crate::block::FILE_MAGIC;
use crate::error::{Place, TraceError};

/// The folder in a recording's that contains the readable files, and the one of the unreadable files.
const TRACE: &str = "trace";
const RAW: &str = "raw";
/// Folders that DynamoRIO makes without a trace.
const OTHER_FOLDERS: [&str; 4] = [RAW, "aux", "kernel.raw", TRACE];
const WINDOW: &str = "window.";

/// How many odd files and recordings are named.
const NAMED: usize = 20;

/// The files of a trace.
#[derive(Default)]
pub struct Folder {
    /// Those of each window, which come one after the other.
    pub windows: Vec<Vec<Described>>,
    /// Names of everything else in the folder.
    pub others: Vec<String>,
}

/// The content of a folder.
#[derive(Default)]
struct Listed {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Folder {
    pub fn find(path: &Path) -> Result<Folder, TraceError> {
        let listed = list(path)?;
        let mut found = Folder::default();
        found.add(&listed, None)?;
        for (window, folder) in windows(&listed) {
            found.add(&list(&folder)?, Some(window))?;
        }
        let inner = path.join(TRACE);
        if found.windows.is_empty() && inner.is_dir() {
            return Folder::find(&inner);
        }
        if found.windows.is_empty() {
            return Err(nothing(path, &listed));
        }
        let odd = |folder: &&PathBuf| !OTHER_FOLDERS.contains(&name(folder).as_str()) && window(folder).is_none();
        let odd = listed.folders.iter().filter(odd).map(|folder| name(folder) + "/");
        found.others.extend(odd);
        found.tell_threads_apart();
        found.shorten();
        Ok(found)
    }

    fn add(&mut self, listed: &Listed, window: Option<u64>) -> Result<(), TraceError> {
        let mut files = Vec::new();
        for path in &listed.files {
            let name = name(path);
            if !belongs(&name) {
                continue;
            }
            // Neither fifos nor hidden files are opened.
            if !path.is_file() || name.starts_with('.') {
                self.others.push(name);
                continue;
            }
            let known = is_called_trace(&name) && !is_ours(path);
            match Described::new(path) {
                Ok(Some(mut file)) => {
                    file.window = window;
                    let members = file.left_out.drain(..).map(|member| format!("{name}: {member}"));
                    self.others.extend(members);
                    files.push(file);
                }
                Ok(None) if known => return Err(no_trace(path)),
                Err(error) if known => return Err(named(path, error)),
                Ok(None) | Err(_) => self.others.push(name),
            }
        }
        if !files.is_empty() {
            self.windows.push(files);
        }
        Ok(())
    }

    /// A thread number means one thread in all windows. Within one folder, files of the same number are of two threads,
    /// one of which ended before the other began.
    fn tell_threads_apart(&mut self) {
        let mut spaces = 0;
        let mut known: HashMap<(u64, usize), usize> = HashMap::new();
        let mut last: HashMap<(u64, usize), (usize, usize)> = HashMap::new();
        for at in 0..self.windows.len() {
            let mut seen: HashMap<u64, usize> = HashMap::new();
            for number in 0..self.windows[at].len() {
                let Some(tid) = self.windows[at][number].tid else {
                    continue;
                };
                let times = seen.entry(tid).or_default();
                let thread = (tid, *times);
                *times += 1;
                let space = *known.entry(thread).or_insert_with(|| {
                    // 0 is for files of cores, which share their threads.
                    spaces += 1;
                    spaces
                });
                self.windows[at][number].space = space;
                if let Some((window, before)) = last.insert(thread, (at, number)) {
                    self.windows[window][before].goes_on = true;
                }
            }
        }
    }

    fn shorten(&mut self) {
        let more = self.others.len().saturating_sub(NAMED);
        if more > 0 {
            self.others.truncate(NAMED);
            self.others.push(format!("{more} more"));
        }
    }
}

fn list(path: &Path) -> Result<Listed, TraceError> {
    let failed = |source| TraceError::Open {
        path: path.to_path_buf(),
        source,
    };
    let mut listed = Listed::default();
    for entry in fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.is_dir() {
            true => listed.folders.push(path),
            false => listed.files.push(path),
        }
    }
    listed.files.sort();
    listed.folders.sort();
    Ok(listed)
}

fn windows(listed: &Listed) -> Vec<(u64, PathBuf)> {
    let numbered = |folder: &PathBuf| Some((window(folder)?, folder.clone()));
    let mut windows: Vec<_> = listed.folders.iter().filter_map(numbered).collect();
    windows.sort();
    windows
}

/// The number of a window's folder.
fn window(folder: &Path) -> Option<u64> {
    name(folder).strip_prefix(WINDOW)?.parse().ok()
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// True if it is one of our traces, imported or recorded before: these may be called `.trace`, too.
fn is_ours(path: &Path) -> bool {
    let mut first = [0; FILE_MAGIC.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == FILE_MAGIC
}

fn fail(what: String) -> TraceError {
    TraceError::Import {
        format: FORMAT,
        at: Place { line: None, offset: 0 },
        what,
    }
}

fn no_trace(path: &Path) -> TraceError {
    let what = match fs::metadata(path) {
        Ok(about) if about.len() == 0 => {
            "it is empty: process the raw trace again by `drraw2trace -indir DIR`, or remove it"
        }
        _ => "no header of a 64-bit trace; process the raw trace by `drraw2trace -indir DIR`, or remove the file",
    };
    named(path, fail(what.into()))
}

/// Why there is nothing to read, and what to do.
fn nothing(path: &Path, listed: &Listed) -> TraceError {
    let is_raw = |path: &PathBuf| name(path).contains(".raw");
    let raw = path.join(RAW).is_dir() || name(path) == RAW || listed.files.iter().any(is_raw);
    let recordings = listed.folders.iter().filter(|folder| folder.join(TRACE).is_dir());
    let recordings: Vec<String> = recordings.map(|folder| format!("`{}`", name(folder))).collect();
    let made = path.with_file_name(TRACE);
    fail(match recordings.as_slice() {
        [] if name(path) == RAW && made.is_dir() => {
            format!("the folder has raw traces only; what was made of them is in {}: import that", made.display())
        }
        [] if raw => "the folder has raw traces only; they must go through `drraw2trace -indir DIR` first".into(),
        [] => "no file in the folder begins as a trace does; give the folder `drmemtrace.*.dir` that `drrun -t drmemtrace \
               -offline` made"
            .into(),
        several => format!(
            "the folder has several recordings in it; import one: {}",
            several[..several.len().min(NAMED)].join(", ")
        ),
    })
}
