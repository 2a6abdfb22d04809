//! Which line of a Python program runs while it is recorded, told to the recorder as the line changes.
//!
//! The interpreter calls [`traced`] at each call, line and return of a thread (`PyEval_SetTrace`). What it does there is not the
//! program's, and not recorded. Of code in the interpreter's library and in installed packages the line counts that called it: the one
//! that the user can change.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use sys::requests::{self, LINES_MAX};

type Tracer = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyFrameObject, c_int, *mut ffi::PyObject) -> c_int;

unsafe extern "C" {
    // Not in the limited interface, but the same in every CPython: https://docs.python.org/3/c-api/profiling.html
    fn PyEval_SetTrace(tracer: Option<Tracer>, object: *mut ffi::PyObject);
}

// What `tracer` is called for.
const CALL: c_int = 0;
const LINE: c_int = 2;
const RETURN: c_int = 3;

/// `domicile record --from domicile_recording` begins here.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn domicile_recording() {
    std::hint::black_box(());
}

/// What is known of the program's code.
#[derive(Default)]
struct Program {
    /// How the names of files begin that are of the standard library, of packages, or of no file.
    libraries: Vec<String>,
    /// By the address of the code object, which `kept` keeps from being another's.
    code: HashMap<usize, Code>,
    /// Numbers that the recorder knows lines by.
    lines: HashMap<(usize, c_int), u64>,
}

struct Code {
    own: bool,
    /// The function, a newline, the file.
    name: CString,
    _kept: Py<PyAny>,
}

static PROGRAM: Mutex<Option<Program>> = Mutex::new(None);

/// Blocks (`with domicile.recording()`) that threads are in.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether lines are told.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Events that [`traced`] was called for.
static HEARD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static FRAMES: RefCell<Frames> = const { RefCell::new(Frames(Vec::new())) };
}

/// The frames of a thread that run the program's own code, innermost last.
struct Frames(Vec<Own>);

struct Own {
    /// The frame's address, only to be compared.
    frame: usize,
    /// Numbers of its line and of those that it was called from, innermost first.
    at: Vec<u64>,
}

fn program() -> MutexGuard<'static, Option<Program>> {
    PROGRAM.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program {
    fn code(&mut self, code: &Bound<'_, PyAny>) -> &mut Code {
        self.code.entry(code.as_ptr() as usize).or_insert_with(|| {
            let text = |name: &str| {
                let value = code.getattr(name).ok()?.extract::<String>().ok()?;
                Some(value.replace('\0', "?"))
            };
            let file = text("co_filename").unwrap_or_else(|| "?".to_string());
            let function = text("co_qualname").or_else(|| text("co_name")).unwrap_or_default();
            let of_library = self.libraries.iter().any(|name| file.starts_with(name));
            Code {
                own: !of_library,
                name: CString::new(format!("{function}\n{file}")).unwrap_or_default(),
                _kept: code.clone().unbind(),
            }
        })
    }

    /// The number of a line, which is announced when it is new.
    fn line(&mut self, code: &Bound<'_, PyAny>, line: c_int) -> u64 {
        let next = self.lines.len() as u64 + 1;
        let number = *self.lines.entry((code.as_ptr() as usize, line)).or_insert(next);
        if number == next {
            requests::line(number, u32::try_from(line).unwrap_or(0), &self.code(code).name);
        }
        number
    }
}

impl Frames {
    fn enter(&mut self, frame: usize, line: u64) {
        let callers = self.0.last().map_or(&[][..], |caller| &caller.at);
        let mut at = vec![line];
        at.extend(callers.iter().take(LINES_MAX - 1));
        self.0.push(Own { frame, at });
    }

    fn tell(&self) {
        requests::at_lines(self.0.last().map_or(&[], |own| &own.at));
    }

    fn event(&mut self, what: c_int, frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>, line: c_int) {
        let address = frame.as_ptr() as usize;
        let known = self.0.iter().rposition(|own| own.frame == address);
        if what == RETURN {
            // Frames within it are gone, whatever was heard of them.
            if let Some(known) = known {
                self.0.truncate(known);
                // Where none is left, as at a thread's end, its last line stays.
                if !self.0.is_empty() {
                    self.tell();
                }
            }
            return;
        }
        let mut program = program();
        let Some(program) = program.as_mut() else { return };
        match known.filter(|_| what == LINE) {
            Some(known) => {
                self.0.truncate(known + 1);
                self.0[known].at[0] = program.line(code, line);
            }
            None if program.code(code).own => {
                self.0.truncate(known.unwrap_or(self.0.len()));
                self.enter(address, program.line(code, line));
            }
            None => return,
        }
        self.tell();
    }
}

/// Called by the interpreter with its lock held.
unsafe extern "C" fn traced(
    _object: *mut ffi::PyObject,
    frame: *mut ffi::PyFrameObject,
    what: c_int,
    _argument: *mut ffi::PyObject,
) -> c_int {
    if !matches!(what, CALL | LINE | RETURN) || !TOLD.load(Ordering::Relaxed) {
        return 0;
    }
    requests::aside(true);
    HEARD.fetch_add(1, Ordering::Relaxed);
    Python::attach(|py| {
        // SAFETY: the interpreter hands over a frame that lives until this returns; its code is a new reference.
        let (frame, code, line) = unsafe {
            (
                Bound::from_borrowed_ptr(py, frame.cast()),
                Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(frame).cast()),
                ffi::PyFrame_GetLineNumber(frame),
            )
        };
        if let Some(code) = code {
            // It is borrowed where the program's frames are looked at first, which no line of the program comes between.
            FRAMES.with(|frames| {
                if let Ok(mut frames) = frames.try_borrow_mut() {
                    frames.event(what, &frame, &code, line);
                }
            });
        }
    });
    requests::aside(false);
    0
}

/// From now on this thread's lines are told.
fn trace(on: bool) {
    // SAFETY: the caller has the interpreter's lock, as every function that Python calls; the tracer has no object.
    unsafe { PyEval_SetTrace(on.then_some(traced as Tracer), std::ptr::null_mut()) }
}

/// Whether `domicile record` listens.
#[pyfunction]
pub fn is_recorded() -> bool {
    requests::recording()
}

/// This thread's lines are told from now on, and those of threads that come to [`lines_of_thread`]. `frame`: where it is; `is_own`:
/// its code is the program's own wherever it lies. `libraries`: how the names of files begin whose code is not.
#[pyfunction]
pub fn lines_begin(frame: &Bound<'_, PyAny>, is_own: bool, libraries: Vec<String>) -> PyResult<()> {
    requests::aside(true);
    let begun = FRAMES.with(|frames| begin(&mut frames.borrow_mut(), frame, is_own, libraries));
    requests::aside(false);
    begun
}

/// Calls, lines and returns that were heard of.
#[pyfunction]
pub fn lines_heard() -> u64 {
    HEARD.load(Ordering::Relaxed)
}

fn begin(frames: &mut Frames, frame: &Bound<'_, PyAny>, is_own: bool, libraries: Vec<String>) -> PyResult<()> {
    // Before the program is locked: this may run code of Python.
    let mut outwards = Some(frame.clone());
    let mut found = Vec::new();
    while let Some(frame) = outwards {
        let (code, line) = (frame.getattr("f_code")?, frame.getattr("f_lineno")?);
        let line = line.extract::<Option<c_int>>()?.unwrap_or(0);
        outwards = Some(frame.getattr("f_back")?).filter(|outer| !outer.is_none());
        found.push((frame.as_ptr() as usize, code, line));
    }
    let mut program = program();
    let program = program.get_or_insert_with(Program::default);
    program.libraries = libraries;
    program.code(&found[0].1).own |= is_own;
    frames.0.clear();
    for (frame, code, line) in found.into_iter().rev() {
        if program.code(&code).own {
            frames.enter(frame, program.line(&code, line));
        }
    }
    frames.tell();
    TOLD.store(true, Ordering::Relaxed);
    trace(true);
    Ok(())
}

/// Lines are told no longer.
#[pyfunction]
pub fn lines_end() {
    requests::aside(true);
    TOLD.store(false, Ordering::Relaxed);
    trace(false);
    FRAMES.with(|frames| {
        let mut frames = frames.borrow_mut();
        frames.0.clear();
        frames.tell();
    });
    requests::aside(false);
}

/// A trace function of Python for threads that begin meanwhile: their lines are told from here on.
#[pyfunction]
#[pyo3(signature = (_frame, _event, _argument))]
pub fn lines_of_thread(_frame: &Bound<'_, PyAny>, _event: &Bound<'_, PyAny>, _argument: &Bound<'_, PyAny>) {
    trace(true);
}

/// A block is entered; the first one lets the recorder begin. False where nobody records.
#[pyfunction]
pub fn recording_begin() -> bool {
    if !requests::recording() {
        return false;
    }
    domicile_recording();
    if OPEN.fetch_add(1, Ordering::Relaxed) == 0 {
        requests::record(true);
    }
    true
}

/// A block is left; between blocks nothing is recorded.
#[pyfunction]
pub fn recording_end() {
    if OPEN.fetch_sub(1, Ordering::Relaxed) == 1 {
        requests::record(false);
    }
}
