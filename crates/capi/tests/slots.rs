//! Calls for slots made from Rust: handles of all kinds by many threads at once.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use domicile::error::domicile_error::{self, *};
use domicile::slots::application::{domicile_slots_close, domicile_slots_means, domicile_slots_open};
use domicile::slots::data_set::{
    domicile_data_set_add, domicile_data_set_allocate, domicile_data_set_create, domicile_data_set_destroy,
};
use domicile::slots::group::{domicile_slots_bind, domicile_thread_group_add, domicile_thread_group_create};
use domicile::slots::memory::{domicile_slot_memory, domicile_slot_memory_free};
use domicile::slots::slot::{domicile_slot_create, domicile_slot_destroy};
use domicile::slots::structures::domicile_slots_attributes;
use domicile::slots::{domicile_slot, domicile_slots, domicile_slots_message, domicile_thread_group};

fn message() -> String {
    // SAFETY: the words live until this thread's next failure.
    unsafe { CStr::from_ptr(domicile_slots_message()) }
        .to_string_lossy()
        .into_owned()
}

fn open() -> Result<*mut domicile_slots, domicile_error> {
    let attributes = domicile_slots_attributes {
        force: 1,
        first_bit: 12,
        bits: 4,
        color_bytes: 65536,
        without_daemon: 1,
        ..Default::default()
    };
    let mut slots = ptr::null_mut();
    // SAFETY: both are there.
    match unsafe { domicile_slots_open(&raw const attributes, &raw mut slots) } {
        DOMICILE_OK => Ok(slots),
        error => {
            assert!(slots.is_null());
            Err(error)
        }
    }
}

#[test]
fn a_handle_of_nothing_is_an_error_and_no_more() {
    for number in [16, 4096, 1 << 62, (1 << 62) + 16, usize::MAX] {
        let slots = ptr::without_provenance_mut::<domicile_slots>(number);
        assert_eq!(domicile_slots_close(slots), DOMICILE_UNKNOWN_HANDLE);
        assert!(message().contains("no such domicile_slots"), "{}", message());
        assert_eq!(domicile_slots_bind(slots, 1), DOMICILE_UNKNOWN_HANDLE);
        assert_eq!(
            domicile_slot_destroy(ptr::without_provenance_mut(number)),
            DOMICILE_UNKNOWN_HANDLE
        );
        // SAFETY: the words live as long as the program.
        let means = unsafe { CStr::from_ptr(domicile_slots_means(slots)) };
        assert_eq!(means, c"there is no such application");
    }
    assert_eq!(domicile_slots_close(ptr::null_mut()), DOMICILE_OK);
    assert_eq!(domicile_data_set_destroy(ptr::null_mut()), DOMICILE_OK);
    let nothing = ptr::null();
    // SAFETY: there is no data set to add it to.
    let added = unsafe { domicile_data_set_add(ptr::null_mut(), nothing, 1) };
    assert_eq!(added, DOMICILE_NULL);
}

#[test]
fn what_cannot_be_forced_is_refused() {
    for (first_bit, bits, color_bytes) in [(11, 4, 65536), (12, 0, 65536), (12, 40, 65536), (12, 4, 0)] {
        let attributes = domicile_slots_attributes {
            force: 1,
            first_bit,
            bits,
            color_bytes,
            ..Default::default()
        };
        let mut slots = ptr::without_provenance_mut(16);
        // SAFETY: both are there.
        let code = unsafe { domicile_slots_open(&raw const attributes, &raw mut slots) };
        assert_eq!((code, slots.is_null()), (DOMICILE_INVALID, true));
        assert!(message().contains(&format!("first_bit {first_bit}")), "{}", message());
    }
}

const THREADS: usize = 4;
const ROUNDS: u64 = 150;
const WORDS: usize = 6000;

/// A sequence that looks random, and is another one for each seed.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// What a call may come to while others end what it is about.
fn harmless(code: domicile_error) {
    assert!(
        matches!(
            code,
            DOMICILE_OK | DOMICILE_UNKNOWN_HANDLE | DOMICILE_OVERCOMMITTED | DOMICILE_IN_USE
        ),
        "{code:?}: {}",
        message()
    );
}

/// Threads define, allocate and end things of an application that others close and open anew, and none of their data
/// changes.
#[test]
#[cfg_attr(miri, ignore = "opens files and maps memory")]
fn threads_call_while_others_end_what_they_call_about() {
    match open() {
        Ok(slots) => assert_eq!(domicile_slots_close(slots), DOMICILE_OK),
        Err(error) => {
            assert_eq!(error, DOMICILE_UNAVAILABLE);
            return harness::not_allowed(message());
        }
    }
    let shared: [AtomicUsize; 3] = std::array::from_fn(|_| AtomicUsize::new(0));
    let barrier = Barrier::new(THREADS);
    let work = |thread: u64| {
        barrier.wait();
        let mut random = thread + 1;
        let mut data = vec![thread; WORDS];
        for round in 0..ROUNDS {
            step(&shared, thread, next(&mut random), &data);
            assert!(data.iter().all(|&word| word == thread + (round << 8)));
            data.fill(thread + ((round + 1) << 8));
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
    harmless(domicile_slots_close(ptr::without_provenance_mut(
        shared[0].load(Relaxed),
    )));
}

/// One of the things that a thread may do.
fn step(shared: &[AtomicUsize; 3], thread: u64, random: u64, data: &[u64]) {
    let [current, a_slot, a_set] = shared;
    let handle = |of: &AtomicUsize| of.load(Relaxed);
    let slots: *mut domicile_slots = ptr::without_provenance_mut(handle(current));
    let (mut slot, mut group, mut set) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    match random % 8 {
        0 => {
            if let Ok(opened) = open() {
                let before = current.swap(opened.addr(), Relaxed);
                harmless(domicile_slots_close(ptr::without_provenance_mut(before)));
            }
        }
        1 => harmless(domicile_slot_destroy(ptr::without_provenance_mut(handle(a_slot)))),
        2 => harmless(domicile_data_set_destroy(ptr::without_provenance_mut(handle(a_set)))),
        _ if slots.is_null() => {}
        // SAFETY: all places are this thread's; nobody else touches the data.
        which => unsafe {
            let kind = 1 + (random / 8) as u32 % 2;
            harmless(domicile_slot_create(slots, 65536, kind, &raw mut slot));
            harmless(domicile_thread_group_create(slots, &raw mut group));
            if slot.is_null() || group.is_null() {
                return;
            }
            a_slot.store(slot.addr(), Relaxed);
            harmless(domicile_thread_group_add(group, thread as i64));
            if which >= 6 {
                return in_memory(slots, slot, group, thread);
            }
            harmless(domicile_data_set_create(slots, group, &raw mut set));
            if set.is_null() {
                return;
            }
            let start = data.as_ptr().cast::<c_void>();
            harmless(domicile_data_set_add(set, start, WORDS * 8));
            harmless(domicile_data_set_allocate(set, slot, 0, ptr::null_mut()));
            if which == 5 {
                a_set.store(set.addr(), Relaxed);
            } else {
                harmless(domicile_data_set_destroy(set));
            }
            harmless(domicile_slot_destroy(slot));
        },
    }
}

/// # Safety
/// The handles are handles.
unsafe fn in_memory(
    slots: *mut domicile_slots,
    slot: *mut domicile_slot,
    group: *mut domicile_thread_group,
    thread: u64,
) {
    let mut memory = ptr::null_mut();
    // SAFETY: the place is there, and the memory is used here alone until it is freed.
    unsafe {
        harmless(domicile_slot_memory(slots, slot, group, WORDS * 8, &raw mut memory));
        if memory.is_null() {
            return;
        }
        let words = std::slice::from_raw_parts_mut(memory.cast::<u64>(), WORDS);
        assert!(words.iter().all(|&word| word == 0));
        words.fill(thread);
        assert!(words.iter().all(|&word| word == thread));
        assert_eq!(domicile_slot_memory_free(memory), DOMICILE_OK);
        assert_eq!(domicile_slot_memory_free(memory), DOMICILE_UNKNOWN_HANDLE);
    }
}
