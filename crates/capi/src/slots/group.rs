//! The threads that use a data set, by the numbers that the program has for them.
//!
//! A number is any integer: OpenMP's, the program's own, a `pthread_t`, a `gettid`. The library needs the cpus on which
//! the thread may run, and learns them when the thread calls: the thread is bound to its number, explicitly or by the
//! first number that it gives. A thread that is not bound is assumed to run on any of the application's cpus.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use live::slots::ThreadGroup;

use super::application::Application;
use super::handles::Held;
use super::numbers::Bound;
use super::{answer, code, domicile_slots, domicile_thread_group, handles, make};
use crate::error::domicile_error::DOMICILE_INVALID;
use crate::error::{Failure, domicile_error};

/// Somewhat more cpus than Linux can have.
const CPU_LIMIT: u32 = 1 << 16;

/// Threads that use a data set.
pub struct Group {
    pub application: Arc<Application>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    threads: Vec<i64>,
    /// Cpus that were added by number.
    cpus: Vec<u32>,
}

thread_local! {
    /// The application in which this thread has its own number, by its serial number; 0: none. In that application,
    /// other numbers that the thread gives are those of other threads.
    static BOUND_IN: Cell<u64> = const { Cell::new(0) };
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Application {
    /// Binds the caller to this number.
    fn bind(&self, thread: i64) {
        let bound = Bound {
            tid: sys::requests::thread(),
            cpus: sys::affinity::allowed(None).unwrap_or_default(),
        };
        lock(&self.numbers).0.insert(thread, bound);
        // A thread that is about to end does not need it.
        let _ = BOUND_IN.try_with(|bound_in| bound_in.set(self.serial));
    }

    fn is_bound(&self) -> bool {
        BOUND_IN
            .try_with(Cell::get)
            .is_ok_and(|bound_in| bound_in == self.serial)
    }
}

impl Held for Group {
    fn name() -> &'static str {
        "domicile_thread_group"
    }

    fn owner(&self) -> usize {
        self.application.owner()
    }

    fn is_here(&self) -> Result<(), Failure> {
        self.application.is_here()
    }
}

impl Group {
    /// Its threads at this time.
    pub fn users(&self) -> Result<ThreadGroup, Failure> {
        let members = lock(&self.members);
        let numbers = lock(&self.application.numbers);
        let known: Option<Vec<&Bound>> = members.threads.iter().map(|thread| numbers.0.get(thread)).collect();
        let (Some(known), false) = (known, members.threads.is_empty() && members.cpus.is_empty()) else {
            // A thread is unknown and may run anywhere, or no thread was named.
            return Ok(ThreadGroup::all());
        };
        let mut users = ThreadGroup::none();
        if members.cpus.is_empty() && known.iter().all(|bound| users.add(bound.tid).is_ok()) {
            return Ok(users);
        }
        // For a thread that has ended, and for whatever runs on a cpu, only the cpus are known.
        let mut cpus = members.cpus.clone();
        cpus.extend(known.iter().flat_map(|bound| &bound.cpus));
        cpus.sort_unstable();
        cpus.dedup();
        Ok(ThreadGroup::on_cpus(&cpus))
    }
}

pub fn create(slots: *const domicile_slots) -> Result<*mut domicile_thread_group, Failure> {
    let application = handles::find::<Application, _>(slots)?;
    let members = Mutex::default();
    Ok(handles::give(Arc::new(Group { application, members })))
}

pub fn add(group: *mut domicile_thread_group, thread: i64) -> Result<(), Failure> {
    let group = handles::find::<Group, _>(group)?;
    if !group.application.is_bound() {
        group.application.bind(thread);
    }
    let mut members = lock(&group.members);
    if !members.threads.contains(&thread) {
        members.threads.push(thread);
    }
    Ok(())
}

pub fn add_cpu(group: *mut domicile_thread_group, cpu: u32) -> Result<(), Failure> {
    let group = handles::find::<Group, _>(group)?;
    if cpu >= CPU_LIMIT {
        return Err(Failure::saying(DOMICILE_INVALID, format!("there is no cpu {cpu}")));
    }
    let mut members = lock(&group.members);
    if !members.cpus.contains(&cpu) {
        members.cpus.push(cpu);
    }
    Ok(())
}

pub fn bind(slots: *const domicile_slots, thread: i64) -> Result<(), Failure> {
    handles::find::<Application, _>(slots)?.bind(thread);
    Ok(())
}

pub fn destroy(group: *mut domicile_thread_group) -> Result<(), Failure> {
    handles::take::<Group, _>(group).map(drop)
}

/// Binds the caller to the number by which groups know it, any integer. Data sets that are allocated for the first time
/// afterwards count it on the processors that it may use.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_bind(slots: *mut domicile_slots, thread: i64) -> domicile_error {
    code(answer(|| bind(slots, thread)))
}

/// Makes an empty group, which stands for all threads of the program.
///
/// # Safety
/// `group` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_thread_group_create(
    slots: *mut domicile_slots,
    group: *mut *mut domicile_thread_group,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { make(group, || create(slots)) }
}

/// Adds a thread, by its number, any integer. A caller that is not bound yet is bound to the number it gives; other
/// threads bind themselves (domicile_slots_bind), before or after. As long as a thread of the group is not bound, it
/// may run on any of the application's processors.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_thread_group_add(group: *mut domicile_thread_group, thread: i64) -> domicile_error {
    code(answer(|| add(group, thread)))
}

/// Adds whatever runs on a processor, by the kernel's number.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_thread_group_add_cpu(group: *mut domicile_thread_group, cpu: u32) -> domicile_error {
    code(answer(|| add_cpu(group, cpu)))
}

/// Destroys a group; data sets that were made with it keep their threads. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_thread_group_destroy(group: *mut domicile_thread_group) -> domicile_error {
    code(answer(|| if group.is_null() { Ok(()) } else { destroy(group) }))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::super::structures::domicile_slots_attributes;
    use super::*;

    /// An application, where pages can be moved.
    fn opened() -> Option<*mut domicile_slots> {
        let attributes = domicile_slots_attributes {
            force: 1,
            first_bit: 12,
            bits: 4,
            color_bytes: 65536,
            without_daemon: 1,
            ..Default::default()
        };
        match super::super::application::open(&attributes) {
            Ok(opened) => Some(opened),
            Err(failure) => {
                harness::not_allowed(failure.message.to_string_lossy());
                None
            }
        }
    }

    fn group(slots: *mut domicile_slots, threads: &[i64]) -> Arc<Group> {
        let group = create(slots).unwrap();
        for &thread in threads {
            add(group, thread).unwrap();
        }
        handles::find(group).unwrap()
    }

    #[test]
    fn a_group_is_its_threads_as_soon_as_all_are_bound() {
        let Some(slots) = opened() else { return };
        assert_eq!(group(slots, &[]).users().unwrap(), ThreadGroup::all());
        let mut own = ThreadGroup::none();
        own.add_this().unwrap();
        // The first number that this thread gives is its own; the next one is another thread's.
        assert_eq!(group(slots, &[7]).users().unwrap(), own);
        let both = group(slots, &[7, -3]);
        assert_eq!(both.users().unwrap(), ThreadGroup::all());
        let (done, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let handle = slots.addr();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                bind(std::ptr::without_provenance(handle), -3).unwrap();
                done.wait();
                end.wait();
            });
            done.wait();
            let users = both.users().unwrap();
            assert!(users != ThreadGroup::all() && users != own);
            end.wait();
        });
        super::super::application::close(slots).unwrap();
    }

    #[test]
    fn of_a_thread_that_has_ended_its_cpus_count() {
        let Some(slots) = opened() else { return };
        let handle = slots.addr();
        let ended = std::thread::spawn(move || {
            bind(std::ptr::without_provenance(handle), 9).unwrap();
            sys::affinity::allowed(None).unwrap()
        });
        let cpus = ended.join().unwrap();
        // This thread has a number already, so 9 is not taken for its own.
        bind(slots, 1).unwrap();
        let group = group(slots, &[9]);
        // The kernel may still know the thread for a moment.
        let users = std::iter::repeat_with(|| group.users().unwrap()).take(10_000);
        assert!(users.into_iter().any(|users| users == ThreadGroup::on_cpus(&cpus)));
        super::super::application::close(slots).unwrap();
    }

    #[test]
    fn cpus_that_are_named_join_those_of_threads() {
        let Some(slots) = opened() else { return };
        bind(slots, 1).unwrap();
        let named = create(slots).unwrap();
        add_cpu(named, 3).unwrap();
        let group: Arc<Group> = handles::find(named).unwrap();
        assert_eq!(group.users().unwrap(), ThreadGroup::on_cpus(&[3]));
        add(named, 1).unwrap();
        let mut cpus = sys::affinity::allowed(None).unwrap();
        cpus.push(3);
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(group.users().unwrap(), ThreadGroup::on_cpus(&cpus));
        assert!(add_cpu(named, CPU_LIMIT).is_err());
        super::super::application::close(slots).unwrap();
    }
}
