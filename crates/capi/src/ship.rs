//! Work that goes to the cache that holds its data, for C (Lee12, section 3.1). The safe library is `ship`.
//!
//! A call waits until its work has ended, so the work may use its caller's data.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::ship::{Caches, Home, Inline};

use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_NULL, DOMICILE_PANIC, DOMICILE_UNAVAILABLE};
use crate::error::{Failure, domicile_error};
use crate::handle;
use crate::sized::{Destination, Structure};
use crate::slots::{answer, code, make, words};

/// A worker on each cache that the process may use.
pub struct domicile_caches(Arc<Caches>);

/// Data that is assigned to one of the caches. The workers end when the last home is destroyed.
pub struct domicile_home {
    caches: Arc<Caches>,
    home: Home,
}

/// The fate of the calls so far, and the cost of one. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_caches_state {
    /// sizeof(domicile_caches_state), which tells the library what the program was compiled with.
    pub size: usize,
    /// The number of caches to ship to. 1: all work runs on its caller's thread, since shipping gains nothing.
    pub caches: u64,
    /// Nanoseconds for an empty round trip to a worker that polls for work; measured at the start.
    pub hand_over_ns: u64,
    /// The same for a worker that sleeps, as it does after a millisecond without work.
    pub wake_ns: u64,
    /// Calls whose work went to another cache.
    pub shipped: u64,
    /// Calls that ran on the caller's thread, because the thread was at the cache already,
    pub here: u64,
    /// the process may use one cache only,
    pub one_cache: u64,
    /// this is a child of fork, which has no workers,
    pub forked: u64,
    /// all data fits into one cache,
    pub fits_one_cache: u64,
    /// all caches together are too small for the data,
    pub fits_no_caches: u64,
    /// the home's work takes less time than four hand-overs, on average,
    pub too_short: u64,
    /// the caller was already eight levels deep in nested shipped work,
    pub nested: u64,
    /// or shipped calls were not faster when calls were timed both ways in turn. That is tried again from time to time.
    pub no_gain: u64,
}

// SAFETY: it is `repr(C)`, its size comes first, and the rest is numbers.
unsafe impl Structure for domicile_caches_state {
    const NAME: &'static str = "domicile_caches_state";
}

impl From<&Caches> for domicile_caches_state {
    fn from(caches: &Caches) -> Self {
        let (account, cost) = (caches.account(), caches.cost());
        let of = |why: Inline| {
            let mut counted = account.inline.iter();
            counted
                .find(|(counted, _)| *counted == why)
                .map_or(0, |(_, calls)| *calls)
        };
        domicile_caches_state {
            size: size_of::<Self>(),
            caches: caches.domains().len().max(1) as u64,
            hand_over_ns: cost.awake_ns,
            wake_ns: cost.asleep_ns,
            shipped: account.shipped,
            here: of(Inline::Here),
            one_cache: of(Inline::OneCache),
            forked: of(Inline::Forked),
            fits_one_cache: of(Inline::FitsOneCache),
            fits_no_caches: of(Inline::FitsNoCaches),
            too_short: of(Inline::TooShort),
            nested: of(Inline::Nested),
            no_gain: of(Inline::NoGain),
        }
    }
}

/// A pointer from C that goes to the worker and back.
struct Pointer(*mut c_void);

// SAFETY: it is passed on and never followed here. The caller of `domicile_ship` promises that the work may use it on
// another thread.
unsafe impl Send for Pointer {}

impl Pointer {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// The message of the calling thread's last failed call for caches, in words; empty if none has failed. It lives until
/// the thread's next call fails, for caches, slots or replicated data.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_ship_message() -> *const c_char {
    words()
}

/// Starts a worker on each cache that the calling thread may use, at the outermost level of which the machine has
/// several caches. With one cache there are no workers, and all work runs on its caller's thread.
///
/// DOMICILE_UNAVAILABLE: the caches cannot be read, or a thread cannot be started; *caches is then NULL.
///
/// # Safety
/// `caches` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_caches_start(caches: *mut *mut domicile_caches) -> domicile_error {
    let work = || {
        let started = Caches::start().map_err(|error| Failure::saying(DOMICILE_UNAVAILABLE, error.to_string()))?;
        Ok(Box::into_raw(Box::new(domicile_caches(Arc::new(started)))))
    };
    // SAFETY: the caller's promise.
    unsafe { make(caches, work) }
}

/// Releases the caches. The workers end with the last home. NULL is allowed.
///
/// # Safety
/// `caches` is null or was made by `domicile_caches_start` and not yet ended, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_caches_end(caches: *mut domicile_caches) -> domicile_error {
    code(answer(|| {
        if !caches.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(caches) });
        }
        Ok(())
    }))
}

/// Reports the fate of the calls so far, and the cost of one.
///
/// # Safety
/// `caches` is null or alive; `state` is null or points to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_caches_ask(
    caches: *const domicile_caches,
    state: *mut domicile_caches_state,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { known_caches(caches) }?;
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::wanted(state) }?;
        destination.fill(&(&**known).into());
        Ok(())
    }))
}

/// Assigns data of this many bytes to the cache with the least data so far. Handles must be alive: these calls do not
/// check them.
///
/// # Safety
/// `caches` is null or alive; `home` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_home_create(
    caches: *const domicile_caches,
    bytes: u64,
    home: *mut *mut domicile_home,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let caches = Arc::clone(unsafe { known_caches(caches) }?);
        if i64::try_from(bytes).is_err() {
            let text = format!("bytes is {bytes}, more than there can be");
            return Err(Failure::saying(DOMICILE_INVALID, text));
        }
        let home = caches.home(bytes);
        Ok(Box::into_raw(Box::new(domicile_home { caches, home })))
    };
    // SAFETY: the caller's promise.
    unsafe { make(home, work) }
}

/// Frees the room in the cache. NULL is allowed.
///
/// # Safety
/// `home` is null or was made by `domicile_home_create` and not yet destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_home_destroy(home: *mut domicile_home) -> domicile_error {
    code(answer(|| {
        if !home.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(home) });
        }
        Ok(())
    }))
}

/// The number of a home's cache, from 0; UINT32_MAX if home is NULL.
///
/// # Safety
/// `home` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_home_cache(home: *const domicile_home) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { home.as_ref() }.map_or(u32::MAX, |home| home.home.cache())
}

/// Calls work(argument) at the cache of its data, and returns when work has returned. Its value is stored in *value,
/// which may be NULL. Any thread may call, and work may ship other work.
///
/// If shipping cannot pay, work runs on the caller's thread; domicile_caches_ask() counts the reasons. Work must
/// return: leaving it by longjmp, by pthread_exit or by a C++ exception ends the program or worse. It must hold no lock
/// that other shipped work waits for, and must wait for no other thread that ships: there is one worker for each cache.
/// A Rust function that panics is DOMICILE_PANIC, with its words as the message. If the caller is cancelled
/// (pthread_cancel) during the call, that takes effect after it has returned.
///
/// Workers block all signals except those of faults (SIGSEGV, SIGBUS, SIGFPE and the like), and a program that work
/// starts inherits the mask: reset it first. Destroy no home while a call uses it, nor in an exit handler if work may
/// call exit.
///
/// # Safety
/// `home` is null or alive; any thread may call `work` with the argument; `value` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_ship(
    home: *const domicile_home,
    work: Option<unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void>,
    argument: *mut c_void,
    value: *mut *mut c_void,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { home.as_ref() };
        let home = known.ok_or(Failure::new(DOMICILE_NULL, c"the domicile_home is NULL"))?;
        let work = work.ok_or(Failure::new(DOMICILE_NULL, c"work is NULL: there is nothing to call"))?;
        // SAFETY: the caller's promise.
        let done = ship(home, |argument| unsafe { work(argument) }, argument)?;
        if !value.is_null() {
            // SAFETY: the caller's promise.
            unsafe { value.write(done) };
        }
        Ok(())
    }))
}

/// Ships a call from C or Fortran.
pub(crate) fn ship(
    home: &domicile_home,
    work: impl FnOnce(*mut c_void) -> *mut c_void + Send,
    argument: *mut c_void,
) -> Result<*mut c_void, Failure> {
    let argument = Pointer(argument);
    let shipped = || home.caches.ship(&home.home, move || Pointer(work(argument.get())));
    let done = catch_unwind(AssertUnwindSafe(shipped));
    let done = done.map_err(|panic| Failure::saying(DOMICILE_PANIC, handle::words(&*panic)))?;
    Ok(done.get())
}

/// # Safety
/// `caches` is null or alive.
unsafe fn known_caches<'a>(caches: *const domicile_caches) -> Result<&'a Arc<Caches>, Failure> {
    // SAFETY: the caller's promise.
    let known = unsafe { caches.as_ref() };
    known
        .map(|known| &known.0)
        .ok_or(Failure::new(DOMICILE_NULL, c"the domicile_caches is NULL"))
}
