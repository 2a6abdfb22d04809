//! Room for one errand.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Errand, Header};

#[derive(Default)]
pub(crate) struct Slot(AtomicPtr<Header>);

impl Slot {
    /// Error: there is one already; the errand is returned.
    pub fn put(&self, errand: Errand) -> Result<(), Errand> {
        let address = errand.into_raw();
        let put = self
            .0
            .compare_exchange(ptr::null_mut(), address, Ordering::Release, Ordering::Relaxed);
        // SAFETY: it was not put, so no other thread has it.
        put.map(|_| ()).map_err(|_| unsafe { Errand::from_raw(address) })
    }

    pub fn take(&self) -> Option<Errand> {
        // A read without a change leaves the line in place.
        if self.is_empty() {
            return None;
        }
        let address = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: the swap took it out: no other thread gets it.
        (!address.is_null()).then(|| unsafe { Errand::from_raw(address) })
    }

    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }
}
