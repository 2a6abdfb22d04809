//! The handles that C holds: numbers that look like pointers, looked up and never followed.
//!
//! Threads allocate while others end things, and a program without colors still calls: an invalid handle must be an
//! error and nothing worse. So no number is used twice, and each has a bit set that no address of a program has:
//! following one by mistake ends the program at once.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Failure;
use crate::error::domicile_error::{DOMICILE_NULL, DOMICILE_UNKNOWN_HANDLE};

/// No address of a program has this bit.
const MARK: usize = 1 << 62;
/// Handles are as far from each other as objects would be.
const STEP: usize = 16;

/// An object behind a handle. It belongs to an application, as the application does to itself.
pub trait Held: Any + Send + Sync {
    /// Its type's name in C.
    fn name() -> &'static str
    where
        Self: Sized;
    /// The address of its application: different for all live applications.
    fn owner(&self) -> usize;
    /// Checks that the caller is in the process that opened its application.
    fn is_here(&self) -> Result<(), Failure>;
}

type Thing = Arc<dyn Held>;

struct Table {
    last: usize,
    // A tree, because it owns nothing when it is empty.
    things: BTreeMap<usize, Thing>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    last: 0,
    things: BTreeMap::new(),
});

/// Held only for a look-up, never while memory is being changed.
fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a handle for something new.
pub fn give<T: Held, C>(thing: Arc<T>) -> *mut C {
    let mut table = table();
    table.last += STEP;
    let number = MARK | table.last;
    table.things.insert(number, thing);
    ptr::without_provenance_mut(number)
}

/// The object behind a handle, in the process that made it.
pub fn find<T: Held, C>(handle: *const C) -> Result<Arc<T>, Failure> {
    let thing = table().things.get(&handle.addr()).cloned();
    let found = known::<T>(handle.addr(), thing)?;
    found.is_here()?;
    Ok(found)
}

/// Ends a handle; its object lives as long as another thread uses it.
pub fn take<T: Held, C>(handle: *const C) -> Result<Arc<T>, Failure> {
    let mut table = table();
    let found = known::<T>(handle.addr(), table.things.get(&handle.addr()).cloned())?;
    table.things.remove(&handle.addr());
    Ok(found)
}

fn known<T: Held>(number: usize, thing: Option<Thing>) -> Result<Arc<T>, Failure> {
    if number == 0 {
        return Err(Failure::saying(DOMICILE_NULL, format!("the {} is NULL", T::name())));
    }
    let Some(thing) = thing else {
        let text = format!(
            "there is no such {}: it was ended, its application was closed, or it never was",
            T::name()
        );
        return Err(Failure::saying(DOMICILE_UNKNOWN_HANDLE, text));
    };
    let thing: Arc<dyn Any + Send + Sync> = thing;
    thing.downcast().map_err(|_| {
        let text = format!("this is no {}, but something else that is alive", T::name());
        Failure::saying(DOMICILE_UNKNOWN_HANDLE, text)
    })
}

/// Ends the handles of everything that belongs to an application.
pub fn forget(application: &impl Held) {
    let ended: Vec<Thing> = {
        let mut table = table();
        let numbers: Vec<usize> = table
            .things
            .iter()
            .filter(|(_, thing)| thing.owner() == application.owner())
            .map(|(&number, _)| number)
            .collect();
        numbers
            .iter()
            .filter_map(|number| table.things.remove(number))
            .collect()
    };
    // Outside the lock: ending a data set involves the daemon.
    drop(ended);
}
