//! Slots: parts of the shared caches.

use std::sync::Arc;

use super::application::Application;
use super::handles::Held;
use super::structures::domicile_slot_kind;
use super::{answer, code, domicile_slot, domicile_slots, handles, make};
use crate::error::domicile_error::DOMICILE_INVALID;
use crate::error::{Failure, domicile_error};

/// A part of the shared caches.
pub struct Slot {
    pub application: Arc<Application>,
    pub live: live::slots::Slot,
}

impl Held for Slot {
    fn name() -> &'static str {
        "domicile_slot"
    }

    fn owner(&self) -> usize {
        self.application.owner()
    }

    fn is_here(&self) -> Result<(), Failure> {
        self.application.is_here()
    }
}

pub fn create(
    slots: *const domicile_slots,
    bytes: u64,
    kind: domicile_slot_kind,
) -> Result<*mut domicile_slot, Failure> {
    let application = handles::find::<Application, _>(slots)?;
    if bytes == 0 {
        let text = c"a slot of 0 bytes; give it the bytes of cache that its data should have";
        return Err(Failure::new(DOMICILE_INVALID, text));
    }
    let live = application.live().slot(bytes, kind.into())?;
    Ok(handles::give(Arc::new(Slot { application, live })))
}

pub fn destroy(slot: *mut domicile_slot) -> Result<(), Failure> {
    handles::take::<Slot, _>(slot).map(drop)
}

/// Defines a slot of this many bytes in each shared cache whose processors use it; kind is a domicile_slot_kind. Its
/// colors are chosen when a data set is allocated to it.
///
/// # Safety
/// `slot` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slot_create(
    slots: *mut domicile_slots,
    bytes: u64,
    kind: u32,
    slot: *mut *mut domicile_slot,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { make(slot, || create(slots, bytes, domicile_slot_kind::from_number(kind)?)) }
}

/// Destroys a slot. Data sets in it stay there, and its colors become free with the last of them. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slot_destroy(slot: *mut domicile_slot) -> domicile_error {
    code(answer(|| if slot.is_null() { Ok(()) } else { destroy(slot) }))
}
