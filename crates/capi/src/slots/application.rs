//! Applications: the available cache, and the means to give it to data.

use std::ffi::{CString, c_char};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::handles::{self, Held};
use super::numbers::Numbers;
use super::structures::{domicile_slots_attributes, domicile_slots_state};
use super::terms;
use super::{answer, code, domicile_slots, make, say};
use crate::error::domicile_error::DOMICILE_UNKNOWN_HANDLE;
use crate::error::{Failure, domicile_error};
use crate::sized::{self, Destination};

/// A program that divides the shared caches among its data.
pub struct Application {
    /// Not ended in a child of fork: its state in the daemon is its parent's.
    live: ManuallyDrop<live::slots::Application>,
    process: u32,
    /// Its number among all applications that this program opened; never 0.
    pub serial: u64,
    means: CString,
    /// True if the daemon's absence was reported.
    pub troubled: AtomicBool,
    /// The bound threads.
    pub numbers: Mutex<Numbers>,
}

/// Applications from before this process was forked, which are never ended.
static INHERITED: Mutex<Vec<live::slots::Application>> = Mutex::new(Vec::new());

/// How many applications were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

impl Application {
    pub fn live(&self) -> &live::slots::Application {
        &self.live
    }

    fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Held for Application {
    fn name() -> &'static str {
        "domicile_slots"
    }

    fn owner(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_here(&self) -> Result<(), Failure> {
        if self.is_of_this_process() {
            return Ok(());
        }
        let text = c"the application is the parent's: a process that was forked opens its own";
        Err(Failure::new(DOMICILE_UNKNOWN_HANDLE, text))
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // SAFETY: it is taken only here, and not used any more.
        let live = unsafe { ManuallyDrop::take(&mut self.live) };
        if !self.is_of_this_process() {
            INHERITED.lock().unwrap_or_else(PoisonError::into_inner).push(live);
        }
    }
}

pub fn open(attributes: &domicile_slots_attributes) -> Result<*mut domicile_slots, Failure> {
    let live = terms::application(attributes)?;
    if live.means().colors.is_none() {
        say(live.means().engine.clone());
    }
    let application = Application {
        means: CString::new(terms::words(live.means()).replace('\0', " ")).unwrap_or_default(),
        live: ManuallyDrop::new(live),
        troubled: AtomicBool::new(false),
        process: std::process::id(),
        serial: OPENED.fetch_add(1, Relaxed) + 1,
        numbers: Mutex::default(),
    };
    Ok(handles::give(Arc::new(application)))
}

/// Returns true if the handle refers to an application of this process.
pub fn is_open(slots: *const domicile_slots) -> bool {
    handles::find::<Application, _>(slots).is_ok()
}

pub fn available(slots: *const domicile_slots) -> Result<u64, Failure> {
    Ok(handles::find::<Application, _>(slots)?.live.available()?.bytes)
}

pub fn close(slots: *mut domicile_slots) -> Result<(), Failure> {
    let application = handles::take::<Application, _>(slots)?;
    handles::forget(&*application);
    application.is_here().map_or(Ok(()), |()| Ok(application.live.exit()?))
}

/// Opens an application: finds the shared caches and their colors, and connects to the daemon where one runs.
///
/// attributes may be NULL: all defaults. If the call fails, *slots is NULL, and domicile_slots_message() says why and
/// what to change: DOMICILE_UNAVAILABLE if colors are neither validated on this machine nor forced.
///
/// If `domicile probe` found no colors and resctrl is mounted and writable, the application has ways of the outermost
/// cache instead: threads that use data in private slots share the ways of all these slots; no page moves.
/// domicile_slots_message() and domicile_slots_means() say so. This is untested on hardware.
///
/// # Safety
/// `attributes` is null or points to as many bytes as its `size` says; `slots` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slots_open(
    attributes: *const domicile_slots_attributes,
    slots: *mut *mut domicile_slots,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let attributes = unsafe { sized::read(attributes) }?;
        open(&attributes.unwrap_or_default())
    };
    // SAFETY: the caller's promise.
    unsafe { make(slots, work) }
}

/// Ends an application with its slots, groups and data sets. The data stays where it is; memory from
/// domicile_slot_memory stays, and is freed with domicile_slot_memory_free. Calls that other threads are making finish
/// first. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_close(slots: *mut domicile_slots) -> domicile_error {
    code(answer(|| if slots.is_null() { Ok(()) } else { close(slots) }))
}

/// Bytes of cache that the application can still get, in all shared caches of its processors together; 0 if there is no
/// such application.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_available(slots: *const domicile_slots) -> u64 {
    answer(|| available(slots)).unwrap_or(0)
}

/// The state of an application: its colors, their source, what is left.
///
/// # Safety
/// `state` points to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slots_ask(
    slots: *const domicile_slots,
    state: *mut domicile_slots_state,
) -> domicile_error {
    code(answer(|| {
        let application = handles::find::<Application, _>(slots)?;
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::wanted(state) }?;
        destination.fill(&terms::state(&application.live)?);
        Ok(())
    }))
}

/// The facilities of the system that are in use and why, in words for people, a line for each. Lives until the
/// application is closed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_means(slots: *const domicile_slots) -> *const c_char {
    let application = answer(|| handles::find::<Application, _>(slots));
    // The table also holds the application, so the words outlive this call.
    application.map_or(c"there is no such application".as_ptr(), |application| {
        application.means.as_ptr()
    })
}
