//! Data sets: ranges of memory that get a slot together.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use live::slots::{HugePages, ThreadGroup};

use super::application::Application;
use super::group::Group;
use super::handles::Held;
use super::slot::Slot;
use super::structures::{domicile_allocation, domicile_census, domicile_others};
use super::{
    answer, code, domicile_data_set, domicile_slot, domicile_slots, domicile_thread_group, handles, make, say,
};
use crate::error::domicile_error::{DOMICILE_INTERNAL, DOMICILE_INVALID, DOMICILE_NULL};
use crate::error::{Failure, domicile_error};
use crate::sized::Destination;

/// Ranges of memory that get a slot together.
pub struct DataSet {
    pub application: Arc<Application>,
    state: Mutex<State>,
}

struct State {
    /// Made at the first allocation, when the threads of the group are known.
    live: Option<live::slots::DataSet<'static>>,
    /// None stands for all threads.
    group: Option<Arc<Group>>,
    /// Ranges added before the first allocation.
    ranges: Vec<(usize, usize)>,
}

impl Held for DataSet {
    fn name() -> &'static str {
        "domicile_data_set"
    }

    fn owner(&self) -> usize {
        self.application.owner()
    }

    fn is_here(&self) -> Result<(), Failure> {
        self.application.is_here()
    }
}

impl DataSet {
    pub fn new(application: Arc<Application>, group: Option<Arc<Group>>) -> DataSet {
        let state = Mutex::new(State {
            live: None,
            group,
            ranges: Vec::new(),
        });
        DataSet { application, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// The memory is the program's, and stays mapped and unchanged in place until the data set is destroyed; a range
    /// that is added before the first allocation must be mapped from that allocation on.
    pub unsafe fn add(&self, start: usize, bytes: usize) -> Result<(), Failure> {
        if start.checked_add(bytes).is_none() {
            let text = format!("{bytes} bytes at {start:#x} reach beyond the end of memory");
            return Err(Failure::saying(DOMICILE_INVALID, text));
        }
        let mut state = self.lock();
        match &mut state.live {
            // SAFETY: the caller's promise.
            Some(live) => unsafe { live.add_raw(start, bytes) }?,
            None => state.ranges.push((start, bytes)),
        }
        Ok(())
    }

    /// # Safety
    /// Nobody uses the data meanwhile if `others` says so.
    pub unsafe fn allocate(
        &self,
        slot: Option<Arc<Slot>>,
        others: domicile_others,
    ) -> Result<domicile_allocation, Failure> {
        let mut state = self.lock();
        if state.live.is_none() {
            let users = state
                .group
                .as_ref()
                .map_or(Ok(ThreadGroup::all()), |group| group.users())?;
            let mut live = self.application.live().data_set(&users)?;
            for &(start, bytes) in &state.ranges {
                // SAFETY: the caller promised this when the range was added.
                unsafe { live.add_raw(start, bytes) }?;
            }
            state.live = Some(live);
        }
        let State { live: Some(live), .. } = &mut *state else {
            return Err(Failure::from(DOMICILE_INTERNAL));
        };
        // SAFETY: the caller's promise.
        let given = unsafe { live.allocate_among(slot.as_ref().map(|slot| &slot.live), others.into()) }?;
        let (colors, caches) = (given.colors.len(), given.caches.len() as u32);
        let moved = live.done().cloned().unwrap_or_default();
        let done = domicile_allocation {
            size: size_of::<domicile_allocation>(),
            colors,
            caches,
            pages: moved.pages as u64,
            kept: moved.kept as u64,
            filled: moved.filled as u64,
            exchanged: moved.exchanged as u64,
            left: moved.left.len() as u64,
            left_out: live.left_out(),
        };
        let trouble = self.application.live().trouble();
        let is_new = !self.application.troubled.swap(trouble.is_some(), Relaxed);
        if let Some(trouble) = trouble.filter(|_| is_new) {
            say(trouble);
        } else if let Some(shortage) = self.application.live().shortage() {
            say(shortage);
        } else if let Some(first) = moved.left.first() {
            let (left, pages) = (moved.left.len(), moved.pages);
            say(format!(
                "{left} of {pages} pages could not be given their colors; the one at {:#x}: {}",
                first.address, first.why
            ));
        } else if let Some(lost) = HugePages::in_words(live.huge_pages_lost()) {
            say(lost);
        }
        Ok(done)
    }

    /// Gives pages that now have another color frames of the right one.
    ///
    /// # Safety
    /// Nobody uses the data meanwhile if `others` says so.
    unsafe fn repair(&self, others: domicile_others) -> Result<(), Failure> {
        match &mut self.lock().live {
            // SAFETY: the caller's promise.
            Some(live) => Ok(unsafe { live.repair_among(others.into()) }.map(drop)?),
            None => Ok(()),
        }
    }

    /// Counts pages by the colors that their frames have now.
    fn census(&self) -> Result<domicile_census, Failure> {
        let state = self.lock();
        let census = state
            .live
            .as_ref()
            .map_or(Ok(Default::default()), |live| live.census())?;
        Ok(domicile_census {
            size: size_of::<domicile_census>(),
            pages: census.pages as u64,
            allowed: census.right as u64,
            other: census.wrong as u64,
            absent: census.absent as u64,
            unknown: census.unknown as u64,
        })
    }

    /// Its colors, lowest first; none before it was allocated.
    fn colors(&self) -> Vec<u32> {
        let state = self.lock();
        let given = state.live.as_ref().and_then(|live| live.given());
        given.map_or_else(Vec::new, |given| given.colors.iter().collect())
    }
}

/// Checks that two objects belong to the same application.
fn same(one: &Arc<Application>, other: &Arc<Application>) -> Result<(), Failure> {
    if Arc::ptr_eq(one, other) {
        return Ok(());
    }
    let text = c"the two are of different applications";
    Err(Failure::new(DOMICILE_INVALID, text))
}

pub fn create(
    slots: *const domicile_slots,
    threads: *const domicile_thread_group,
) -> Result<*mut domicile_data_set, Failure> {
    let application = handles::find::<Application, _>(slots)?;
    let group = group_of(&application, threads)?;
    Ok(handles::give(Arc::new(DataSet::new(application, group))))
}

/// A group, or none for null.
pub fn group_of(
    application: &Arc<Application>,
    threads: *const domicile_thread_group,
) -> Result<Option<Arc<Group>>, Failure> {
    if threads.is_null() {
        return Ok(None);
    }
    let group = handles::find::<Group, _>(threads)?;
    same(application, &group.application)?;
    Ok(Some(group))
}

/// A slot, or none for null.
pub fn slot_of(application: &Arc<Application>, slot: *const domicile_slot) -> Result<Option<Arc<Slot>>, Failure> {
    if slot.is_null() {
        return Ok(None);
    }
    let slot = handles::find::<Slot, _>(slot)?;
    same(application, &slot.application)?;
    Ok(Some(slot))
}

/// # Safety
/// As for [`DataSet::add`].
pub unsafe fn add(set: *mut domicile_data_set, start: usize, bytes: usize) -> Result<(), Failure> {
    let set = handles::find::<DataSet, _>(set)?;
    // SAFETY: the caller's promise.
    unsafe { set.add(start, bytes) }
}

/// # Safety
/// As for [`DataSet::allocate`].
pub unsafe fn allocate(
    set: *mut domicile_data_set,
    slot: *const domicile_slot,
    others: domicile_others,
) -> Result<domicile_allocation, Failure> {
    let set = handles::find::<DataSet, _>(set)?;
    let slot = slot_of(&set.application, slot)?;
    // SAFETY: the caller's promise.
    unsafe { set.allocate(slot, others) }
}

pub fn destroy(set: *mut domicile_data_set) -> Result<(), Failure> {
    let set = handles::take::<DataSet, _>(set)?;
    set.application.is_here()?;
    let mut state = set.lock();
    match &mut state.live {
        Some(live) => Ok(live.free()?),
        None => Ok(()),
    }
}

/// Makes an empty data set for the threads of a group; NULL stands for all threads.
///
/// # Safety
/// `set` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_create(
    slots: *mut domicile_slots,
    group: *mut domicile_thread_group,
    set: *mut *mut domicile_data_set,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { make(set, || create(slots, group)) }
}

/// Adds this many bytes from an address on. They get their colors in the next domicile_data_set_allocate, and must be
/// mapped then.
///
/// # Safety
/// From that allocation on the memory stays mapped, unchanged in place, until the data set is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_add(
    set: *mut domicile_data_set,
    start: *const c_void,
    bytes: usize,
) -> domicile_error {
    // SAFETY: the caller's promise.
    code(answer(|| unsafe { add(set, start.addr(), bytes) }))
}

/// Gives all pages of a data set frames of the slot's colors; slot NULL: confines them to the fewest colors, because
/// they are not worth caching. others is a domicile_others; done may be NULL. Contents stay intact whatever the result.
///
/// The whole data set is refused (DOMICILE_UNFIT), before anything is moved, if a single page cannot have a color:
/// nothing is mapped there, it is shared memory or a file's own page, it may not be read and written, or it is
/// executable. Such a page is surely not what the caller meant. domicile_slots_message names it; make the data set from
/// the memory around it. Pages that merely cannot be moved at the moment stay, and are counted in done.
///
/// While others run, mremap and move_pages wait for the end of a batch; the library interposes these two functions.
/// Direct system calls do not wait: mremap may then fail with EFAULT where part of its pages is being colored, with
/// some of them moved, and move_pages may report ENOENT.
///
/// # Safety
/// `done` is null or points to as many bytes as its `size` says; nobody uses the data meanwhile if `others` says so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_allocate(
    set: *mut domicile_data_set,
    slot: *mut domicile_slot,
    others: u32,
    done: *mut domicile_allocation,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::new(done) }?;
        let others = domicile_others::from_number(others)?;
        // SAFETY: the caller's promise.
        destination.fill(&unsafe { allocate(set, slot, others) }?);
        Ok(())
    }))
}

/// The colors of a data set, lowest first: at most `room` of them are stored at colors, which may be NULL if room is 0;
/// *count is how many there are.
///
/// # Safety
/// `colors` has room for `room` numbers; `count` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_colors(
    set: *const domicile_data_set,
    colors: *mut u32,
    room: usize,
    count: *mut usize,
) -> domicile_error {
    code(answer(|| {
        let set = handles::find::<DataSet, _>(set)?;
        let all = set.colors();
        if room > 0 && colors.is_null() {
            return Err(Failure::new(
                DOMICILE_NULL,
                c"colors is NULL where there should be room",
            ));
        }
        for (at, &color) in all.iter().take(room).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { colors.add(at).write_unaligned(color) };
        }
        if !count.is_null() {
            // SAFETY: the caller's promise.
            unsafe { count.write_unaligned(all.len()) };
        }
        Ok(())
    }))
}

/// Counts the pages of a data set by the current colors of their frames: the kernel may have exchanged some since the
/// allocation.
///
/// # Safety
/// `census` points to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_census(
    set: *const domicile_data_set,
    census: *mut domicile_census,
) -> domicile_error {
    code(answer(|| {
        let set = handles::find::<DataSet, _>(set)?;
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::wanted(census) }?;
        destination.fill(&set.census()?);
        Ok(())
    }))
}

/// Gives pages whose frames now have another color frames of the right ones; census may be NULL, otherwise it receives
/// the counts afterwards. The process must be allowed to read frame numbers (CAP_SYS_ADMIN), otherwise
/// DOMICILE_UNAVAILABLE; allocating again gives all pages new frames instead.
///
/// # Safety
/// As for `domicile_data_set_allocate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_repair(
    set: *mut domicile_data_set,
    others: u32,
    census: *mut domicile_census,
) -> domicile_error {
    code(answer(|| {
        let set = handles::find::<DataSet, _>(set)?;
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::new(census) }?;
        let others = domicile_others::from_number(others)?;
        // SAFETY: the caller's promise.
        unsafe { set.repair(others) }?;
        destination.fill(&set.census()?);
        Ok(())
    }))
}

/// Destroys a data set. Its data stays where it is; its share of a slot becomes free for other data sets. Call it
/// before the data's memory is freed. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_data_set_destroy(set: *mut domicile_data_set) -> domicile_error {
    code(answer(|| if set.is_null() { Ok(()) } else { destroy(set) }))
}
