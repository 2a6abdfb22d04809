//! Pages of parallel arrays in frames of chosen colors: takes what the program says of its loops, and has them colored.
//!
//! Loops that constructors describe are colored before `main`, later ones as they are described, which is right before they run.
//! Nothing that goes wrong here changes what the program does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::cdpc::Coloring;
use live::discovery::ColorsFrom;
use live::protocol::{Alignment, CdpcReport, Directed, Report, State as Stage};
use live::slots::HugePages;
use live::summaries::domicile_loop;
use live::{Colors, Others, PAGE_BYTES};
use policy::cdpc::Loop;

use crate::placing::{FORKS, Stay};
use crate::start::anonymous;
use crate::{aside, end, files, fork, padding, reserve};

/// The process that is colored; 0 before, and where nothing is. A child of fork has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Notes that are kept.
const MOST_NOTES: usize = 16;
/// How often the report is brought up to date at most.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);
/// How long the end waits for a loop that another thread describes.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is left out where the run-time has no memory to work with, and why.
const NO_ROOM: &str = "the program's address space cannot grow (RLIMIT_AS, RLIMIT_DATA, or the limit of all memory)";
/// Bytes that taking a description may need, and each of its summaries; and those of a report.
const DESCRIPTION: usize = 16 << 10;
const SUMMARY: usize = 1 << 10;
const REPORT: usize = 128 << 10;

struct State {
    coloring: Coloring,
    /// Descriptions that could not even be taken.
    unheard: u64,
    align: Option<(Alignment, Option<String>)>,
    /// Finding out what works here.
    opening: Duration,
    notes: Vec<String>,
    huge_pages: HugePages,
    reported: Option<Instant>,
}

/// Large blocks apart from each other, for a program that is run without instructions.
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

/// From now on what the program says is listened to.
fn arm(directed: &Directed, colors: Colors) -> Result<(), String> {
    let began = Instant::now();
    let coloring = Coloring::open(&directed.policy, ColorsFrom::Given(colors)).map_err(|error| error.to_string())?;
    let align = directed
        .align
        .map(|how| (how, padding::begin(how).err().map(str::to_string)));
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State {
        coloring,
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
    Ok(())
}

/// Whether this process is colored.
pub fn is_armed() -> bool {
    // Who this is would be a question to the kernel.
    !aside::is_aside() && PROCESS.load(Ordering::Acquire) == std::process::id()
}

/// The state, for this process; whoever holds it is inside.
fn state() -> Option<MutexGuard<'static, Option<State>>> {
    // In a child of fork another thread of the parent may have had it.
    is_armed().then(|| STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on nothing is colored any more.
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
        let bytes = match state.coloring.loops() {
            [] => 0,
            _ => state.coloring.memory(None),
        };
        if let Some(_held) = reserve::hold(bytes) {
            let (protected, notes) = own_pages(state.coloring.loops());
            state.note_all(notes);
            // A library may have started threads of its own.
            let others = if sys::forks::alone() {
                Others::Absent
            } else {
                Others::Running
            };
            // SAFETY: the program says that the arrays are its own (`domicile_parallel_loop`); `others` was just looked up.
            unsafe { state.coloring.start(others) };
            protect(protected);
        } else {
            state.coloring.pass_over(None, NO_ROOM);
        }
        state.report(false);
    });
}

/// `domicile_parallel_loop`, as the library of that name hands it on.
///
/// # Safety
/// As [`live::summaries::taken`] asks.
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
                // SAFETY: the program says that the arrays are its own.
                unsafe { state.hear(taken.described) };
            }
            Err(why) => state.coloring.refuse(why.to_string()),
        }
        if state.coloring.is_started() && state.reported.is_none_or(|at| at.elapsed() >= BETWEEN_REPORTS) {
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

/// Does something as the run-time, unless this thread does so already; a panic ends there.
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

/// Takes the pages of initialised arrays from the program's file, whose frames could not be exchanged; what is wrong
/// with that. Those that only can be read get their rights back afterwards. Only where no other thread runs.
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
    /// # Safety
    /// As for [`Coloring::hear`].
    unsafe fn hear(&mut self, described: Loop) {
        if !self.coloring.is_started() {
            // SAFETY: the caller's promise.
            return unsafe { self.coloring.hear(described) };
        }
        if !self.coloring.has_work(&described) {
            return self.coloring.heard_again();
        }
        let Some(_held) = reserve::hold(self.coloring.memory(Some(&described))) else {
            return self.coloring.pass_over(Some(described), NO_ROOM);
        };
        let (protected, notes) = if self.coloring.knows(&described) {
            Default::default()
        } else {
            own_pages(std::slice::from_ref(&described))
        };
        self.note_all(notes);
        // SAFETY: the caller's promise.
        unsafe { self.coloring.hear(described) };
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
        let colors = self.coloring.colors().count() as usize;
        let Some(_held) = reserve::hold(REPORT + 16 * colors) else {
            return;
        };
        let room = if at_end {
            reserve::hold(self.coloring.memory(None))
        } else {
            None
        };
        let outcome = self.coloring.outcome(room.is_some());
        let colors = self.coloring.colors();
        let mut report = Report {
            state: if at_end { Stage::Ended } else { Stage::Running },
            means: outcome.means.trim_end().to_string(),
            colors: end::described(colors),
            forced: colors.source == live::Source::Forced,
            start_us: self.opening.as_micros() as u64 + outcome.report.start.us,
            allocation_us: 0,
            notes: self.notes.iter().chain(&outcome.notes).cloned().collect(),
            ..Report::default()
        };
        let bytes = outcome.report.pages * live::PAGE_BYTES as u64;
        report
            .notes
            .extend(HugePages::in_words(self.huge_pages.lost(bytes, false)));
        let forks = FORKS.load(Ordering::Relaxed);
        if forks > 0 {
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
        report.cdpc = Some(CdpcReport {
            padded: self.align.clone().map(|(how, off)| padding::report(how, off)),
            ..outcome.report
        });
        end::put(&report);
        self.reported = Some(Instant::now());
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
