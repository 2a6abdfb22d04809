//! Pages of parallel arrays in frames of chosen colors, or on chosen nodes: takes the program's descriptions of its
//! loops, and places their arrays.
//!
//! Loops that constructors describe are placed before `main`, later ones when they are described, which is right before
//! they run. No failure here changes the program's behaviour.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::cdpc::Coloring;
use live::discovery::ColorsFrom;
use live::protocol::{Alignment, CdpcReport, Directed, Homed, Report, State as Stage};
use live::slots::HugePages;
use live::summaries::domicile_loop;
use live::summary_homes::SummaryHomes;
use live::{Colors, Others, PAGE_BYTES};
use policy::cdpc::Loop;

use crate::arrays::Arrays;
use crate::placing::{FORKS, Stay};
use crate::start::anonymous;
use crate::{aside, end, files, fork, padding, reserve};

/// The process whose arrays are placed; 0 before, and if none is. A child of fork has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The most notes that are kept.
const MOST_NOTES: usize = 16;
/// The shortest time between updates of the report.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);
/// How long the end waits for a loop that another thread describes.
const PATIENCE: Duration = Duration::from_millis(500);

/// The note on omissions because the run-time has no memory for its work.
const NO_ROOM: &str = "the program's address space cannot grow (RLIMIT_AS, RLIMIT_DATA, or the limit of all memory)";
/// Bytes that handling a description may need, and each of its summaries; and those of a report.
const DESCRIPTION: usize = 16 << 10;
const SUMMARY: usize = 1 << 10;
const REPORT: usize = 128 << 10;

struct State {
    arrays: Arrays,
    /// Descriptions that could not even be received.
    unheard: u64,
    align: Option<(Alignment, Option<&'static str>)>,
    /// The time to find out what works here.
    opening: Duration,
    notes: Vec<String>,
    huge_pages: HugePages,
    reported: Option<Instant>,
}

/// Separates large blocks from each other, for a program that is run without instructions.
pub fn align_alone() {
    let Ok(text) = std::env::var(Alignment::ENVIRONMENT) else {
        return;
    };
    match Alignment::read(&text, Alignment::default()) {
        Ok(Some(how)) => {
            if let Err(why) = padding::begin(how) {
                end::say(&format!("domicile: {}={text}: {why}", Alignment::ENVIRONMENT));
            }
        }
        Ok(None) => {}
        Err(error) => end::say(&format!("domicile: {}: {error}", Alignment::ENVIRONMENT)),
    }
}

/// From now on the program's descriptions are received.
fn arm(directed: &Directed, colors: Colors) -> Result<(), String> {
    let began = Instant::now();
    let coloring = Coloring::open(&directed.policy, ColorsFrom::Given(colors)).map_err(|error| error.to_string())?;
    let align = directed.align.map(|how| (how, padding::begin(how).err()));
    listen(Arrays::Colored(Box::new(coloring)), align, began);
    Ok(())
}

fn listen(arrays: Arrays, align: Option<(Alignment, Option<&'static str>)>, began: Instant) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State {
        arrays,
        unheard: 0,
        align,
        opening: began.elapsed(),
        notes: Vec::new(),
        huge_pages: HugePages::here(),
        reported: None,
    });
    PROCESS.store(std::process::id(), Ordering::Release);
    fork::watch();
    aside::watch();
}

/// Returns true if this process's arrays are placed.
pub fn is_armed() -> bool {
    // The process id would need a system call.
    !aside::is_aside() && PROCESS.load(Ordering::Acquire) == std::process::id()
}

/// The state, for this process; its holder is inside the run-time.
fn state() -> Option<MutexGuard<'static, Option<State>>> {
    // In a child of fork another thread of the parent may have held the lock.
    is_armed().then(|| STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on nothing is placed.
pub fn freeze() {
    guarded(|| {
        if let Some(mut state) = state()
            && let Some(state) = state.as_mut()
        {
            state.notes.push(aside::NOTE.to_string());
            state.report(false);
        }
        PROCESS.store(0, Ordering::Release);
    });
}

/// All constructors have run, and `main` comes next.
pub fn before_main() {
    guarded(|| {
        let Some(mut state) = state() else { return };
        let Some(state) = state.as_mut() else { return };
        let bytes = match state.arrays.loops() {
            [] => 0,
            _ => state.arrays.memory(None),
        };
        if let Some(_held) = reserve::hold(bytes) {
            let (protected, notes) = state.own_pages(state.arrays.loops());
            state.note_all(notes);
            // A library may have started its own threads.
            let others = if sys::forks::alone() {
                Others::Absent
            } else {
                Others::Running
            };
            // SAFETY: the program declares the arrays its own (`domicile_parallel_loop`); `others` was just determined.
            unsafe { state.arrays.start(others) };
            protect(protected);
        } else {
            state.arrays.pass_over(None, NO_ROOM);
        }
        state.report(false);
    });
}

/// `domicile_parallel_loop`, as the library of that name passes it on.
///
/// # Safety
/// As [`live::summaries::taken`] requires.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn domicile_run_parallel_loop(from: *const domicile_loop) {
    guarded(|| {
        let Some(mut state) = state() else { return };
        let Some(state) = state.as_mut() else { return };
        // SAFETY: the caller's promise.
        let summaries = unsafe { live::summaries::count(from) };
        let Some(_held) = reserve::hold(DESCRIPTION + summaries as usize * SUMMARY) else {
            state.unheard += 1;
            return;
        };
        // SAFETY: the caller's promise.
        match unsafe { live::summaries::taken(from) } {
            Ok(taken) => {
                state.note_all(taken.passed_over.iter().map(ToString::to_string));
                // SAFETY: the program declares the arrays its own.
                unsafe { state.hear(taken.described) };
            }
            Err(why) => state.arrays.refuse(why.to_string()),
        }
        if state.arrays.is_started() && state.reported.is_none_or(|at| at.elapsed() >= BETWEEN_REPORTS) {
            state.report(false);
        }
    });
}

/// When the program ends by itself.
pub fn at_end() {
    guarded(|| {
        if !is_armed() {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let state = match STATE.try_lock() {
                Ok(state) => Some(state),
                Err(std::sync::TryLockError::Poisoned(state)) => Some(state.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => None,
            };
            if let Some(mut state) = state {
                if let Some(state) = state.as_mut() {
                    state.report(true);
                }
                return;
            }
            std::thread::yield_now();
        }
    });
}

/// Does something inside the run-time, unless this thread is inside already; a panic ends here.
fn guarded(act: impl FnOnce()) {
    let Some(_stay) = Stay::begin() else { return };
    let _ = catch_unwind(AssertUnwindSafe(act));
}

type Protected = Vec<(live::Pages, libc::c_int)>;

fn protect(pages: Protected) {
    for (pages, rights) in pages {
        let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(pages.start);
        // SAFETY: `anonymous` took the pages from the program's file, where they had these rights.
        unsafe { libc::mprotect(start, pages.bytes(), rights) };
    }
}

/// Takes the pages of initialised arrays from the program's file, since the file's frames cannot be exchanged; returns
/// the errors. Read-only pages get their rights back afterwards. Only if no other thread runs.
fn own_pages(loops: &[Loop]) -> (Protected, Vec<String>) {
    let (mut protected, mut notes) = (Vec::new(), Vec::new());
    let summaries = loops.iter().flat_map(|a_loop| &a_loop.summaries);
    let mut arrays: Vec<(usize, usize)> = summaries
        .map(|summary| (summary.start as usize, summary.bytes as usize))
        .collect();
    arrays.sort_unstable();
    arrays.dedup();
    for (start, bytes) in arrays {
        let first = start / PAGE_BYTES * PAGE_BYTES;
        let end = start.checked_add(bytes);
        let Some(last) = end.and_then(|end| end.checked_next_multiple_of(PAGE_BYTES)) else {
            continue;
        };
        if let Err(why) = anonymous(first, last, sys::forks::alone(), &mut protected) {
            notes.push(format!("the array at {start:#x}: {why}"));
        }
    }
    (protected, notes)
}

impl State {
    /// [`own_pages`], if necessary.
    fn own_pages(&self, loops: &[Loop]) -> (Protected, Vec<String>) {
        match self.arrays.leave_files() {
            true => own_pages(loops),
            false => Default::default(),
        }
    }

    /// # Safety
    /// As for [`Arrays::hear`].
    unsafe fn hear(&mut self, described: Loop) {
        if !self.arrays.is_started() {
            // SAFETY: the caller's promise.
            return unsafe { self.arrays.hear(described) };
        }
        if !self.arrays.has_work(&described) {
            return self.arrays.heard_again();
        }
        let Some(_held) = reserve::hold(self.arrays.memory(Some(&described))) else {
            return self.arrays.pass_over(Some(described), NO_ROOM);
        };
        let (protected, notes) = if self.arrays.knows(&described) {
            Default::default()
        } else {
            self.own_pages(std::slice::from_ref(&described))
        };
        self.note_all(notes);
        // SAFETY: the caller's promise.
        unsafe { self.arrays.hear(described) };
        protect(protected);
    }

    fn note_all(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    fn report(&mut self, at_end: bool) {
        let colors = match &self.arrays {
            Arrays::Colored(coloring) => coloring.colors().count() as usize,
            Arrays::Homed(_) => 0,
        };
        let Some(_held) = reserve::hold(REPORT + 16 * colors) else {
            return;
        };
        let room = if at_end {
            reserve::hold(self.arrays.memory(None))
        } else {
            None
        };
        let mut report = match &mut self.arrays {
            Arrays::Colored(coloring) => colored(coloring, room.is_some(), self.align, self.huge_pages),
            Arrays::Homed(homes) => homed(homes, room.is_some()),
        };
        report.state = if at_end { Stage::Ended } else { Stage::Running };
        report.start_us += self.opening.as_micros() as u64;
        report.notes.splice(..0, self.notes.iter().cloned());
        let forks = FORKS.load(Ordering::Relaxed);
        if forks > 0 && matches!(self.arrays, Arrays::Colored(_)) {
            report.notes.push(end::forked(forks));
        }
        if at_end && room.is_none() {
            report
                .notes
                .push(format!("the pages were not looked at in the end: {NO_ROOM}"));
        }
        if self.unheard > 0 {
            let times = self.unheard;
            report
                .notes
                .push(format!("{times} descriptions of loops were passed over: {NO_ROOM}"));
        }
        end::put(&report);
        self.reported = Some(Instant::now());
    }
}

/// The report on colors, with an examination of all pages if `look`.
fn colored(
    coloring: &mut Coloring,
    look: bool,
    align: Option<(Alignment, Option<&'static str>)>,
    huge_pages: HugePages,
) -> Report {
    let outcome = coloring.outcome(look);
    let colors = coloring.colors();
    let bytes = outcome.report.pages * PAGE_BYTES as u64;
    let mut notes = outcome.notes;
    notes.extend(HugePages::in_words(huge_pages.lost(bytes, false)));
    Report {
        means: outcome.means.trim_end().to_string(),
        colors: end::described(colors),
        forced: colors.source == live::Source::Forced,
        start_us: outcome.report.start.us,
        notes,
        cdpc: Some(CdpcReport {
            padded: align.map(|(how, off)| padding::report(how, off.map(str::to_string))),
            ..outcome.report
        }),
        ..Report::default()
    }
}

/// The same for homes.
fn homed(homes: &mut SummaryHomes, look: bool) -> Report {
    let (report, notes) = homes.outcome(look);
    Report {
        start_us: report.start.us,
        notes,
        homes: Some(report),
        ..Report::default()
    }
}

/// Begins, before the program's constructors run.
pub fn start(directed: &Directed, colors: Colors) {
    files::out_of_the_way(|| {
        if let Err(why) = arm(directed, colors) {
            end::put(&Report {
                state: Stage::Failed,
                notes: vec![why],
                ..Report::default()
            });
        }
    });
}

/// The same, if pages get homes.
pub fn start_homes(homed: &Homed) {
    let began = Instant::now();
    let homes = SummaryHomes::new(&homed.policy, &homed.seats);
    listen(Arrays::Homed(Box::new(homes)), None, began);
}
