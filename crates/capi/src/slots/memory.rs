//! Memory that has a slot's colors before it is first touched.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::blocks::Block;

use super::application::Application;
use super::data_set::{DataSet, group_of, slot_of};
use super::structures::domicile_others::DOMICILE_OTHERS_ABSENT;
use super::{answer, code, domicile_slot, domicile_slots, domicile_thread_group, handles, make};
use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_NULL, DOMICILE_OUT_OF_MEMORY, DOMICILE_UNKNOWN_HANDLE};
use crate::error::{Failure, domicile_error};

/// A piece of memory, as a data set of its own. The data set ends first.
struct Piece {
    _set: DataSet,
    _block: Block,
}

/// By address. Pieces outlive their applications, since their contents are the program's.
static PIECES: Mutex<BTreeMap<usize, Piece>> = Mutex::new(BTreeMap::new());

fn pieces() -> MutexGuard<'static, BTreeMap<usize, Piece>> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(
    slots: *const domicile_slots,
    slot: *const domicile_slot,
    group: *const domicile_thread_group,
    bytes: usize,
) -> Result<*mut c_void, Failure> {
    let application = handles::find::<Application, _>(slots)?;
    let Some(slot) = slot_of(&application, slot)? else {
        return Err(Failure::new(DOMICILE_NULL, c"the domicile_slot is NULL"));
    };
    let group = group_of(&application, group)?;
    if bytes == 0 {
        return Err(Failure::new(DOMICILE_INVALID, c"memory of 0 bytes"));
    }
    let block = Block::map(bytes)
        .map_err(|error| Failure::saying(DOMICILE_OUT_OF_MEMORY, format!("{bytes} bytes of memory: {error}")))?;
    let set = DataSet::new(Arc::clone(&application), group);
    // SAFETY: the data set ends before the block does.
    unsafe { set.add(block.start().addr(), block.bytes()) }?;
    // SAFETY: no other code knows the block yet.
    unsafe { set.allocate(Some(slot), DOMICILE_OTHERS_ABSENT) }?;
    let start = block.start();
    let piece = Piece {
        _set: set,
        _block: block,
    };
    pieces().insert(start.addr(), piece);
    Ok(start)
}

fn give_back(memory: *mut c_void) -> Result<(), Failure> {
    if memory.is_null() {
        return Ok(());
    }
    let piece = pieces().remove(&memory.addr());
    piece.map(drop).ok_or_else(|| {
        let text = format!("the memory at {memory:p} is none of domicile_slot_memory, or was freed before");
        Failure::saying(DOMICILE_UNKNOWN_HANDLE, text)
    })
}

/// Allocates memory of at least this many bytes, filled with zeros, whose frames have the slot's colors, for the
/// threads of a group (NULL: all). It begins on a page boundary and shares no page.
///
/// # Safety
/// `memory` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slot_memory(
    slots: *mut domicile_slots,
    slot: *mut domicile_slot,
    group: *mut domicile_thread_group,
    bytes: usize,
    memory: *mut *mut c_void,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { make(memory, || take(slots, slot, group, bytes)) }
}

/// Frees memory from domicile_slot_memory, before or after its application was closed. NULL is allowed.
///
/// # Safety
/// Nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slot_memory_free(memory: *mut c_void) -> domicile_error {
    code(answer(|| give_back(memory)))
}
