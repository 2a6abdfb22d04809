//! What C holds in its hands: numbers that look like pointers, looked up and never followed.
//!
//! Threads allocate while others end things, and a program whose colors were refused goes on calling: a handle
//! that is of nothing must be an error and no more. So no number is used twice, and each has a bit set that
//! no address of a program has: following one by mistake ends the program at once.

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

/// What C holds by a handle. It belongs to an application, as the application does to itself.
pub trait Held: Any + Send + Sync {
    /// As C's type is called.
    fn name() -> &'static str
    where
        Self: Sized;
    /// Where its application lies: no two that live have the same.
    fn owner(&self) -> usize;
    /// Whether the caller is in the process that opened its application.
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

/// Held only to look something up, never while memory is at work.
fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle for something new.
pub fn give<T: Held, C>(thing: Arc<T>) -> *mut C {
    let mut table = table();
    table.last += STEP;
    let number = MARK | table.last;
    table.things.insert(number, thing);
    ptr::without_provenance_mut(number)
}

/// What a handle is of, in the process that made it.
pub fn find<T: Held, C>(handle: *const C) -> Result<Arc<T>, Failure> {
    let thing = table().things.get(&handle.addr()).cloned();
    let found = known::<T>(handle.addr(), thing)?;
    found.is_here()?;
    Ok(found)
}

/// Ends a handle; what it was of lives as long as another thread is at work with it.
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

/// Ends the handles of all that belongs to an application.
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
    // Outside the lock: to end a data set is to talk to the daemon.
    drop(ended);
}
