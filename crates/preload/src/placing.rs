//! The data sets of a running program: the owner and place of each block.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::protocol::{Instructions, Share};
use live::slots::HugePages;
use live::{PAGE_BYTES, Pages};
use results::site::Memory;
use sys::cancellation::Uncancelled;

use crate::blocks::{Blocks, Owned, Painter};
use crate::data_sets::DataSets;
use crate::sites::Sites;
use crate::{aside, end, reserve};

/// The sites, once calls are examined; null before, and in a child of fork.
static SITES: AtomicPtr<Sites> = AtomicPtr::new(std::ptr::null_mut());
static MAPS: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// The frozen state.
static FROZEN: AtomicPtr<Option<State>> = AtomicPtr::new(std::ptr::null_mut());
/// Forks so far.
pub static FORKS: AtomicU64 = AtomicU64::new(0);

/// The shortest time between updates of the report.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

thread_local! {
    /// True if this thread is in the run-time: its own requests meanwhile belong to no data set.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A thread's stay in the run-time. It preserves the program's error number, and makes allocating no cancellation
/// point.
pub struct Stay {
    error: i32,
    /// Dropped last: if a thread was cancelled meanwhile, with immediate effect, it leaves from there.
    _uncancelled: Uncancelled,
}

impl Stay {
    /// `None` if the thread is inside already.
    pub fn begin() -> Option<Stay> {
        (!INSIDE.replace(true)).then(|| Stay {
            // SAFETY: the calling thread's own error number.
            error: unsafe { *libc::__errno_location() },
            _uncancelled: Uncancelled::begin(),
        })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own error number.
        unsafe { *libc::__errno_location() = self.error };
        INSIDE.set(false);
    }
}

/// Returns true if the calling thread is in the run-time.
pub fn inside() -> bool {
    INSIDE.get()
}

/// Everything about the data sets.
pub struct State {
    pub instructions: Instructions,
    pub data_sets: DataSets,
    /// `None` if no addresses were available.
    pub blocks: Option<Blocks>,
    /// The result for each target, and its current bytes.
    pub shares: Vec<(Share, u64)>,
    /// Mappings placed: bytes and target.
    maps: BTreeMap<usize, (usize, u32)>,
    pub start_time: Duration,
    pub allocation_time: Duration,
    pub notes: Vec<String>,
    /// Read before `main`: a later reader of the environment may meet a writer.
    pub huge_pages: HugePages,
    reported: Option<Instant>,
}

impl State {
    pub fn new(instructions: Instructions, data_sets: DataSets, blocks: Option<Blocks>) -> State {
        let share = |target: &live::protocol::Target| Share {
            name: target.name.clone(),
            ..Share::default()
        };
        State {
            shares: instructions.targets.iter().map(|target| (share(target), 0)).collect(),
            instructions,
            data_sets,
            blocks,
            maps: BTreeMap::new(),
            start_time: Duration::ZERO,
            allocation_time: Duration::ZERO,
            notes: Vec::new(),
            huge_pages: HugePages::here(),
            reported: None,
        }
    }

    /// Counts one more block of a target.
    pub fn count(&mut self, target: u32, bytes: usize) {
        let Some((share, now)) = self.shares.get_mut(target as usize) else {
            return;
        };
        *now += bytes as u64;
        share.blocks += 1;
        share.bytes += bytes as u64;
        share.peak_bytes = share.peak_bytes.max(*now);
    }

    fn discount(&mut self, target: u32, bytes: usize) {
        if let Some((_, now)) = self.shares.get_mut(target as usize) {
            *now = now.saturating_sub(bytes as u64);
        }
    }

    fn data_set(&self, target: u32) -> u32 {
        self.instructions
            .targets
            .get(target as usize)
            .map_or(0, |target| target.data_set)
    }

    /// Updates the report from time to time.
    fn report(&mut self) {
        if self.reported.is_none_or(|at| at.elapsed() >= BETWEEN_REPORTS) {
            end::write(self, false);
            self.reported = Some(Instant::now());
        }
    }
}

/// The state, locked; none if it is frozen. Its holder is inside the run-time.
pub fn state() -> Option<MutexGuard<'static, Option<State>>> {
    // Then even waiting is forbidden.
    if aside::is_aside() {
        return None;
    }
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    (!aside::is_aside()).then_some(state)
}

/// From now on nothing changes any more; `aside` announces that before others can look again.
pub fn freeze(aside: impl FnOnce()) {
    stop();
    // A handler of a signal that arrived in the middle of a change cannot wait for its end.
    let Some(_stay) = Stay::begin() else { return };
    let Some(mut state) = state() else { return };
    if let Some(state) = state.as_mut() {
        state.notes.push(aside::NOTE.to_string());
        end::write(state, false);
    }
    FROZEN.store(&raw mut *state, Ordering::Release);
    aside();
}

/// The state, unless it is locked.
pub fn state_now() -> Option<MutexGuard<'static, Option<State>>> {
    match STATE.try_lock() {
        Ok(state) => Some(state),
        Err(std::sync::TryLockError::Poisoned(state)) => Some(state.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// From now on calls are examined.
pub fn begin(sites: Sites) {
    MAPS.store(sites.maps, Ordering::Relaxed);
    SITES.store(Box::into_raw(Box::new(sites)), Ordering::Release);
}

/// From now on no call is examined. Existing blocks stay.
pub fn stop() {
    SITES.store(std::ptr::null_mut(), Ordering::Release);
    MAPS.store(false, Ordering::Relaxed);
}

/// Returns true if mappings matter.
#[inline]
pub fn maps() -> bool {
    MAPS.load(Ordering::Relaxed)
}

/// The target of the call that returns to `caller`, if it has one.
#[inline]
pub fn target(caller: usize, bytes: usize, from: Memory) -> Option<u32> {
    let sites = SITES.load(Ordering::Acquire);
    if sites.is_null() {
        return None;
    }
    // SAFETY: once set, the sites are never freed or changed.
    let sites = unsafe { &*sites };
    sites.of(caller, bytes, from)
}

/// A data set's block.
pub struct Given {
    pub pointer: *mut c_void,
    pub clean: bool,
}

/// A block for a target; `None` if the program must use an ordinary one.
#[cold]
pub fn take(target: u32, bytes: usize, alignment: usize) -> Option<Given> {
    let _stay = Stay::begin()?;
    let mut guard = state()?;
    let state = guard.as_mut()?;
    let began = Instant::now();
    let data_set = state.data_set(target);
    let held = reserve::hold(room_for(bytes));
    let block = match &mut state.blocks {
        Some(blocks) if held.is_some() => blocks.take((data_set, target), bytes, alignment, &mut state.data_sets),
        _ => None,
    };
    state.allocation_time += began.elapsed();
    match block {
        Some(block) => {
            let owned = state.blocks.as_ref().and_then(|blocks| blocks.owner(block.address));
            state.count(target, owned.map_or(bytes, |owned| owned.bytes));
            state.report();
            Some(Given {
                pointer: std::ptr::with_exposed_provenance_mut(block.address),
                clean: block.clean,
            })
        }
        None => {
            if let Some((share, _)) = state.shares.get_mut(target as usize) {
                share.refused += 1;
            }
            None
        }
    }
}

/// Bytes of the run-time's own memory that placing this many bytes may take.
fn room_for(bytes: usize) -> usize {
    const ALWAYS: usize = 128 << 10;
    const PAGE: usize = 1 << 10;
    (bytes / PAGE_BYTES + 2).saturating_mul(PAGE).saturating_add(ALWAYS)
}

/// Frees a block of the arena. Anything else is ignored: the C library would end the program.
#[cold]
pub fn free(block: *mut c_void) {
    let Some(_stay) = Stay::begin() else { return };
    let Some(mut guard) = state() else { return };
    let Some(state) = guard.as_mut() else { return };
    let freed = match &mut state.blocks {
        Some(blocks) => blocks.free(block.addr(), &mut state.data_sets),
        None => None,
    };
    match freed {
        Some(owned) => state.discount(owned.target, owned.bytes),
        None => {
            drop(guard);
            wrong_free(block);
        }
    }
}

/// Reacts as the C library does to memory that was never allocated, or is freed twice.
fn wrong_free(block: *mut c_void) -> ! {
    end::say(&format!(
        "free(): invalid pointer {block:p}: not a block of domicile's data sets, or freed before"
    ));
    std::process::abort()
}

fn owner(block: *mut c_void) -> Option<Owned> {
    let _stay = Stay::begin()?;
    let owner = |state: &Option<State>| state.as_ref()?.blocks.as_ref()?.owner(block.addr());
    if let Some(state) = state() {
        return owner(&state);
    }
    // SAFETY: null, or the state within its lock, which is frozen.
    owner(unsafe { FROZEN.load(Ordering::Acquire).as_ref() }?)
}

/// Bytes that may be used of a block of the arena.
pub fn room(block: *mut c_void) -> usize {
    owner(block).map_or(0, |owned| owned.bytes)
}

/// How to resize a block.
pub enum Resized {
    InPlace,
    /// Move to a new block of this target; the old one has `room` bytes.
    Move {
        room: usize,
        target: Option<u32>,
    },
}

/// A block of the arena gets `bytes`, more than 0, at the request of a target's site or of other code.
#[cold]
pub fn resize(block: *mut c_void, bytes: usize, target: Option<u32>) -> Resized {
    let Some(owned) = owner(block) else { wrong_free(block) };
    // An array that grows stays where it belongs.
    let target = target.unwrap_or(owned.target);
    let fits = bytes <= owned.bytes && (bytes > owned.bytes / 2 || owned.bytes <= PAGE_BYTES);
    if fits && target == owned.target {
        return Resized::InPlace;
    }
    Resized::Move {
        room: owned.bytes,
        target: Some(target),
    }
}

/// A mapping that the program made for a target.
pub fn mapped(target: u32, start: *mut c_void, bytes: usize) {
    let Some(_stay) = Stay::begin() else { return };
    let Some(mut guard) = state() else { return };
    let Some(state) = guard.as_mut() else { return };
    let Some(_held) = reserve::hold(room_for(bytes)) else {
        return;
    };
    let began = Instant::now();
    let pages = Pages {
        start: start.addr(),
        count: bytes.div_ceil(PAGE_BYTES),
    };
    let data_set = state.data_set(target);
    state.data_sets.paint(data_set, pages);
    state.maps.insert(pages.start, (pages.bytes(), target));
    state.count(target, pages.bytes());
    state.allocation_time += began.elapsed();
    state.report();
}

/// The program gives up addresses, or moves their contents.
pub fn unmapped(at: *mut c_void, bytes: usize) {
    let Some(_stay) = Stay::begin() else { return };
    let Some(mut guard) = state() else { return };
    let Some(state) = guard.as_mut() else { return };
    let end = at.addr().saturating_add(bytes);
    while let Some((&start, &(length, target))) = state.maps.range(..end).next_back() {
        if start + length <= at.addr() {
            break;
        }
        state.maps.remove(&start);
        let pages = Pages {
            start,
            count: length / PAGE_BYTES,
        };
        state.data_sets.let_go(pages);
        state.discount(target, length);
    }
}
