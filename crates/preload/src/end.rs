//! The report: updated while the program runs, and with an examination of all pages when it ends.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use live::protocol::{DataReport, Report, Share, Slate, State as Stage, Target, What};
use live::slots::HugePages;
use results::site::Memory;

use crate::placing::{self, FORKS, State, Stay};
use crate::{aside, cdpc};

/// The memory of the report's file, and the process that writes there.
struct Sheet {
    memory: &'static mut [u8],
    slate: Slate,
    process: u32,
}

static SHEET: Mutex<Option<Sheet>> = Mutex::new(None);

/// How long the end waits for an allocation of another thread.
const PATIENCE: Duration = Duration::from_millis(500);

/// Makes the file of the report, in the folder of the instructions, and maps it: its contents survive however the
/// program ends, and whatever happens to its files and its user.
pub fn prepare(folder: &Path) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let process = std::process::id();
    let path = folder.join(process.to_string());
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len(Slate::BYTES as u64)?;
    // SAFETY: a new mapping of a file of that length, at addresses that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            Slate::BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping was just made, only for this slice, and stays until the process ends. The command reads the
    // file only afterwards, or checks what it reads.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast(), Slate::BYTES) };
    let sheet = Sheet {
        memory,
        slate: Slate::default(),
        process,
    };
    *SHEET.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(sheet);
    Ok(())
}

/// Writes a report.
pub fn put(report: &Report) {
    let mut sheet = SHEET.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // A child of fork has nothing to report.
    if let Some(sheet) = sheet.as_mut().filter(|sheet| sheet.process == std::process::id()) {
        sheet.slate.write(sheet.memory, report);
    }
}

/// Writes the current state; at the end with an examination of all pages.
pub fn write(state: &State, at_end: bool) {
    let colors = state.data_sets.colors();
    let mut report = Report {
        state: if at_end { Stage::Ended } else { Stage::Running },
        means: state.data_sets.means(),
        colors: described(colors),
        forced: colors.source == live::Source::Forced,
        data_sets: Vec::new(),
        start_us: state.start_time.as_micros() as u64,
        allocation_us: state.allocation_time.as_micros() as u64,
        cdpc: None,
        homes: None,
        notes: state.notes.clone(),
    };
    let forks = FORKS.load(Ordering::Relaxed);
    if forks > 0 {
        report.notes.push(forked(forks));
    }
    for (number, entry) in state.data_sets.entries().iter().enumerate() {
        let number = number as u32;
        let targets = state.instructions.targets.iter().zip(&state.shares);
        let own = targets.filter(|(target, _)| target.data_set == number);
        let mut data = DataReport {
            name: entry.name.clone(),
            slot: entry.slot_name.clone(),
            granted: entry.granted.iter().collect(),
            names: own.map(|(_, (share, _))| share.clone()).collect(),
            placed: entry.placed,
            supplied: entry.supplied,
            left_out: entry.left_out,
            notes: entry.notes.clone(),
            ..DataReport::default()
        };
        if data.names.iter().all(|share| share.blocks == 0) {
            data.notes.push("no memory of that name so far".to_string());
        }
        let targets = state.instructions.targets.iter().zip(&state.shares);
        let own = targets.filter(|(target, _)| target.data_set == number);
        let lost = |(target, (share, _)): (&Target, &(Share, u64))| {
            let malloced = matches!(&target.what, What::Site(site) if site.from != Some(Memory::Map));
            state.huge_pages.lost(share.peak_bytes, malloced)
        };
        let lost: u64 = own.map(lost).sum();
        data.notes.extend(HugePages::in_words(lost));
        if at_end {
            let census = state.data_sets.count(number);
            data.pages = (census.pages - census.absent) as u64;
            (data.allowed, data.unknown) = (census.right as u64, census.unknown as u64);
        }
        report.data_sets.push(data);
    }
    put(&report);
}

/// Prints a message for people. If standard error cannot be written, the program continues.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The colors, for people.
pub fn described(colors: &live::Colors) -> String {
    format!(
        "{} colors of {} KiB each ({}, from bit {} of the frames' addresses)",
        colors.count(),
        colors.color_bytes / 1024,
        colors.cache,
        colors.first_bit
    )
}

/// A hint for a program that forked this often.
pub fn forked(forks: u64) -> String {
    format!(
        "the program forked {forks} times: pages that it wrote afterwards, while the child lived, were copied to frames \
         of any color; the child's memory has no slots"
    )
}

/// When the program ends by itself.
extern "C" fn at_exit() {
    if aside::is_aside() {
        return;
    }
    cdpc::at_end();
    let Some(_stay) = Stay::begin() else { return };
    let began = Instant::now();
    loop {
        if let Some(state) = placing::state_now() {
            if let Some(state) = state.as_ref() {
                write(state, true);
            }
            return;
        }
        // Another thread is in the middle of an allocation, or was ended there.
        if began.elapsed() > PATIENCE {
            return;
        }
        std::thread::yield_now();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
