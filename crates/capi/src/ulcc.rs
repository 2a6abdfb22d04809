//! The functions of the paper (Ding11, section 3.1 and Figure 4); `domicile/ulcc.h` is generated
//! from this file.
//!
//! They are the calls of `slots` on one application for the whole program, with the paper's units and types. If there
//! is nothing to allocate, because colors have no effect here or there is no application, all of them fail and nothing
//! is changed: the program runs as it would without them.
#![allow(non_snake_case, reason = "these are the paper's names")]
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::{Mutex, PoisonError};

use crate::error::Failure;
use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_UNAVAILABLE};
use crate::slots::structures::domicile_others::{DOMICILE_OTHERS_ABSENT, DOMICILE_OTHERS_RUNNING};
use crate::slots::structures::{domicile_others, domicile_slot_kind, domicile_slots_attributes};
use crate::slots::{
    answer, application, data_set, domicile_data_set, domicile_slot, domicile_slots, domicile_thread_group, group,
    slot, words,
};

/// A cache space slot: the result of `ULCC_Cache_Slot`, and an argument of `ULCC_Allocate`.
pub type ULCC_Slot = *mut domicile_slot;
/// Threads that use a data set.
pub type ULCC_Threads = *mut domicile_thread_group;
/// A data set.
pub type ULCC_Data = *mut domicile_data_set;
/// The application that the calls apply to.
pub type ULCC_Slots = *mut domicile_slots;

/// The purpose of a slot; `shared` and `private` in C, as in the paper.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ulcc_kind {
    /// For data with weak locality: the slot may share its colors with other shared slots.
    ULCC_SHARED = 1,
    /// For data with strong locality: no other slot gets the slot's colors.
    ULCC_PRIVATE = 2,
}

const _: () = {
    assert!(ulcc_kind::ULCC_SHARED as u32 == domicile_slot_kind::DOMICILE_SLOT_SHARED as u32);
    assert!(ulcc_kind::ULCC_PRIVATE as u32 == domicile_slot_kind::DOMICILE_SLOT_PRIVATE as u32);
};

/// The result of `ULCC_Cache_Slot` if it fails: not null, which means something else to `ULCC_Allocate`.
const NO_SLOT: usize = usize::MAX;

const NOBODY: usize = 0;

/// The application of the program, by its handle; 0 if there is none.
static PROGRAM: Mutex<usize> = Mutex::new(NOBODY);

fn handle() -> ULCC_Slots {
    std::ptr::without_provenance_mut(*PROGRAM.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The application, if there is one.
fn program() -> Result<ULCC_Slots, Failure> {
    let program = handle();
    if program.is_null() {
        let text = c"there is no application: ULCC_Init was not called, or failed, or ULCC_Exit was called";
        return Err(Failure::new(DOMICILE_UNAVAILABLE, text));
    }
    Ok(program)
}

fn done(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    answer(work).map_or(-1, |()| 0)
}

/// Begins: finds the shared caches of this many processors and their colors, and connects to the memory manager
/// (`domicile daemon`) where one runs. A processor is everything behind one shared cache, as in the paper; 0, or more
/// than there are, stands for all of them.
///
/// If a search found no colors, and Linux's resctrl is there, the slots are ways of the last cache: all threads that
/// use data in private slots share the ways of these slots, and nobody else has them. Data is not separated from other
/// data, and shared slots take nothing. ULCC_Error() says so after the call. This is untested on hardware.
///
/// Returns 0, or -1 if no cache can be allocated here; ULCC_Error() says why. The program may still make the other
/// calls: they also fail and change nothing. Call it again after ULCC_Exit, and in a child of fork.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Init(num_processors: c_int) -> c_int {
    done(|| {
        let processors = u32::try_from(num_processors)
            .map_err(|_| Failure::saying(DOMICILE_INVALID, format!("num_processors is {num_processors}")))?;
        let mut program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
        let known: ULCC_Slots = std::ptr::without_provenance_mut(*program);
        if !known.is_null() && application::is_open(known) {
            let text = c"ULCC_Init was called before, and ULCC_Exit was not: nothing was changed";
            return Err(Failure::new(DOMICILE_INVALID, text));
        }
        let attributes = domicile_slots_attributes {
            processors,
            ..Default::default()
        };
        *program = NOBODY;
        *program = application::open(&attributes)?.addr();
        Ok(())
    })
}

/// The cache space in KB that the application can use, in all shared caches of its processors together, less what
/// private slots have already; 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Available_Space_App() -> c_long {
    let available = answer(|| application::available(program()?));
    available.map_or(0, |bytes| c_long::try_from(bytes / 1024).unwrap_or(c_long::MAX))
}

/// Defines a slot of this many KB in each shared cache whose processors use it, ULCC_PRIVATE or ULCC_SHARED. Its colors
/// are chosen when a data set is allocated to it.
///
/// Returns ULCC_NO_SLOT if it fails. That is not NULL: ULCC_Allocate with NULL would mean that the data is not worth
/// caching.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Cache_Slot(kilobytes: c_long, kind: c_int) -> ULCC_Slot {
    let made = answer(|| {
        let program = program()?;
        let Some(bytes) = u64::try_from(kilobytes).ok().and_then(|kb| kb.checked_mul(1024)) else {
            let text = format!("a slot of {kilobytes} KB: give what there is to be in KB, more than 0");
            return Err(Failure::saying(DOMICILE_INVALID, text));
        };
        slot::create(program, bytes, domicile_slot_kind::from_number(kind as u32)?)
    });
    made.unwrap_or(std::ptr::without_provenance_mut(NO_SLOT))
}

/// Adds a thread to a group, and returns the group; NULL makes a group. Returns NULL if it fails.
///
/// A thread is any integer by which the program knows it. A caller that is not bound yet (ULCC_Bind_Thread) is bound to
/// the number it gives: its data is cached by the processors that it may run on when the data is allocated. Numbers of
/// other threads may be given as well; as long as such a thread is not bound, it may run on any of the application's
/// processors.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Thread_Group(group: ULCC_Threads, thread: c_long) -> ULCC_Threads {
    let made = answer(|| {
        let known = if group.is_null() {
            group::create(program()?)?
        } else {
            group
        };
        match group::add(known, thread) {
            Ok(()) => Ok(known),
            Err(failure) => {
                if group.is_null() {
                    group::destroy(known)?;
                }
                Err(failure)
            }
        }
    });
    made.unwrap_or(std::ptr::null_mut())
}

/// Makes a data set that these threads use; NULL stands for all threads of the program. Returns NULL if it fails.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Data_Set(threads: ULCC_Threads) -> ULCC_Data {
    answer(|| data_set::create(program()?, threads)).unwrap_or(std::ptr::null_mut())
}

/// Adds the memory from one address up to, but not including, another. Returns 0, or -1 if it fails.
///
/// Only whole pages get colors: a page that the ranges of the data set cover in part stays as it is.
///
/// # Safety
/// As for `domicile_data_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ULCC_More_Data(set: ULCC_Data, from: *const c_void, to: *const c_void) -> c_int {
    done(|| {
        let Some(bytes) = to.addr().checked_sub(from.addr()) else {
            let text = format!("the range ends at {to:p}, before it begins at {from:p}");
            return Err(Failure::saying(DOMICILE_INVALID, text));
        };
        // SAFETY: the caller's promise.
        unsafe { data_set::add(set, from.addr(), bytes) }
    })
}

/// Chooses colors for the slot, if it has none yet, and gives all pages of the data set frames of these colors. With
/// NULL the data is not worth caching: it is confined to the fewest colors. Returns 0, or -1 if it fails, or the number
/// of pages that could not be given these colors, and are in other frames; contents stay intact whatever the result.
///
/// Nobody else may use the data meanwhile, not even the caller's system calls; otherwise see ULCC_Allocate_Running.
///
/// # Safety
/// Nobody else uses the data meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ULCC_Allocate(set: ULCC_Data, slot: ULCC_Slot) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { allocate(set, slot, DOMICILE_OTHERS_ABSENT) }
}

/// The same while other threads read and write the data; not in the paper. It takes a privilege (`domicile doctor`
/// reports it) and fails without it.
///
/// Meanwhile, fork, vfork and posix_spawn may make children; _Fork or a bare clone may do so only with CAP_SYS_PTRACE,
/// else the child may find zeros. A thread that is created meanwhile, on a stack in the data, must not end before the
/// call does.
///
/// # Safety
/// As described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ULCC_Allocate_Running(set: ULCC_Data, slot: ULCC_Slot) -> c_int {
    // SAFETY: the caller's promise; others may use the data.
    unsafe { allocate(set, slot, DOMICILE_OTHERS_RUNNING) }
}

/// # Safety
/// Nobody uses the data meanwhile if `others` says so.
unsafe fn allocate(set: ULCC_Data, slot: ULCC_Slot, others: domicile_others) -> c_int {
    let allocated = answer(|| {
        if slot.addr() == NO_SLOT {
            let text = c"ULCC_Cache_Slot failed and gave ULCC_NO_SLOT: nothing was changed";
            return Err(Failure::new(DOMICILE_INVALID, text));
        }
        // SAFETY: the caller's promise.
        unsafe { data_set::allocate(set, slot, others) }
    });
    allocated.map_or(-1, |done| c_int::try_from(done.left).unwrap_or(c_int::MAX))
}

/// Ends. Slots, groups and data sets no longer exist; the data stays where it is, and its memory is freed as usual.
/// Returns 0, or -1 if there was nothing to end.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Exit() -> c_int {
    done(|| {
        let program = std::mem::replace(&mut *PROGRAM.lock().unwrap_or_else(PoisonError::into_inner), NOBODY);
        if program == NOBODY {
            return Err(Failure::new(DOMICILE_UNAVAILABLE, c"there is no application to end"));
        }
        application::close(std::ptr::without_provenance_mut(program))
    })
}

/// Destroys a data set; not in the paper. Its data stays where it is; its share of a slot becomes free for other data
/// sets. Call it before the data's memory is freed. Returns 0, or -1 if it fails.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Free_Data_Set(set: ULCC_Data) -> c_int {
    done(|| data_set::destroy(set))
}

/// Destroys a slot; not in the paper. Data sets in it stay there, and its colors become free with the last of them.
/// Returns 0, or -1 if it fails.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Free_Slot(slot: ULCC_Slot) -> c_int {
    done(|| slot::destroy(slot))
}

/// Binds the caller to this thread number; not in the paper. Data sets that are allocated for the first time afterwards
/// count it on the processors that it may use. Returns 0, or -1 if it fails.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Bind_Thread(thread: c_long) -> c_int {
    done(|| group::bind(program()?, thread))
}

/// The message of the caller's last failed call, in words for people; empty if none has failed. It lives until the next
/// failure. After ULCC_Init it may name the means that provide the slots.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Error() -> *const c_char {
    words()
}

/// The application, for the calls of domicile/domicile.h, whose slots, groups and data sets have the same types. NULL
/// before ULCC_Init, after ULCC_Exit, and if ULCC_Init failed.
#[unsafe(no_mangle)]
pub extern "C" fn ULCC_Application() -> ULCC_Slots {
    handle()
}
