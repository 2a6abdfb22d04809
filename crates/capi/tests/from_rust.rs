//! C's calls made from Rust, so that Miri can look at what is unsafe about them: `make miri`.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domicile::ask::{domicile_order_message, domicile_order_pending, domicile_order_worker};
use domicile::error::domicile_error::{self, *};
use domicile::fork::{DOMICILE_NO_THREAD, domicile_order_depend, domicile_order_fork, domicile_order_fork_after};
use domicile::fortran::domicile_th_fork_int32_;
use domicile::order::{domicile_order, domicile_order_create, domicile_order_destroy, domicile_order_run};
use domicile::structures::{domicile_order_attributes, domicile_order_report};
use domicile::th::{th_fork, th_init, th_run};

/// Threads of a run are few under Miri, which is slow.
const MANY: u64 = if cfg!(miri) { 40 } else { 20_000 };

fn make(workers: u32) -> *mut domicile_order {
    let attributes = domicile_order_attributes {
        hints: 1,
        workers,
        block: [10, 0, 0, 0, 0, 0, 0, 0],
        ..Default::default()
    };
    let mut order = ptr::null_mut();
    // SAFETY: both are there.
    let made = unsafe { domicile_order_create(&raw const attributes, &raw mut order) };
    assert_eq!(made, DOMICILE_OK);
    order
}

type Function = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

fn fork<A, B>(
    order: *mut domicile_order,
    f: Function,
    arg1: *const A,
    arg2: *const B,
    hint: u64,
) -> (domicile_error, u64) {
    let mut thread = 0;
    // SAFETY: the order is alive, and each test uses its own; the functions here fit their arguments.
    let code = unsafe {
        domicile_order_fork(
            order,
            Some(f),
            arg1.cast_mut().cast(),
            arg2.cast_mut().cast(),
            &raw const hint,
            &raw mut thread,
        )
    };
    (code, thread)
}

fn run(order: *mut domicile_order, keep: bool) -> (domicile_error, domicile_order_report) {
    let mut report = domicile_order_report {
        size: size_of::<domicile_order_report>(),
        threads: 0,
        bins: 0,
        workers: 0,
        at_caches: 0,
    };
    // SAFETY: the order is alive, and each test uses its own.
    let code = unsafe { domicile_order_run(order, i32::from(keep), &raw mut report) };
    (code, report)
}

fn destroy(order: *mut domicile_order) {
    // SAFETY: each test does so once, at its end.
    assert_eq!(unsafe { domicile_order_destroy(order) }, DOMICILE_OK);
}

fn message(order: *mut domicile_order) -> String {
    // SAFETY: the order is alive, and the words live until it fails again.
    let words = unsafe { CStr::from_ptr(domicile_order_message(order)) };
    words.to_string_lossy().into_owned()
}

unsafe extern "C-unwind" fn note(list: *mut c_void, number: *mut c_void) {
    // SAFETY: forked with such a list.
    let list = unsafe { &*list.cast::<Mutex<Vec<usize>>>() };
    list.lock().unwrap().push(number.addr());
}

unsafe extern "C-unwind" fn add(sum: *mut c_void, number: *mut c_void) {
    // SAFETY: forked with such a sum.
    unsafe { &*sum.cast::<AtomicU64>() }.fetch_add(number.addr() as u64, Relaxed);
}

fn number(value: usize) -> *const c_void {
    ptr::without_provenance(value)
}

#[test]
fn threads_of_a_block_run_together_and_again_when_kept() {
    let order = make(1);
    let list = Mutex::new(Vec::<usize>::new());
    for (at, hint) in [0, 10, 5, 15, 9].into_iter().enumerate() {
        assert_eq!(fork(order, note, &raw const list, number(at), hint).0, DOMICILE_OK);
    }
    for keep in [true, true, false, false] {
        list.lock().unwrap().clear();
        // SAFETY: the order is alive.
        let pending = unsafe { domicile_order_pending(order) };
        let (code, report) = run(order, keep);
        assert_eq!((code, report.threads), (DOMICILE_OK, pending));
        let wanted: &[usize] = if pending == 0 { &[] } else { &[0, 2, 4, 1, 3] };
        assert_eq!(*list.lock().unwrap(), wanted);
    }
    destroy(order);
}

struct Tree {
    order: *mut domicile_order,
    ran: AtomicU64,
}

unsafe extern "C-unwind" fn grow(tree: *mut c_void, depth: *mut c_void) {
    // SAFETY: forked with a tree.
    let here = unsafe { &*tree.cast::<Tree>() };
    here.ran.fetch_add(1, Relaxed);
    // SAFETY: the order is alive.
    assert!(unsafe { domicile_order_worker(here.order) } >= 0);
    if depth.addr() < 4 {
        for hint in [3, 13] {
            let (code, thread) = fork(
                here.order,
                grow,
                tree.cast_const().cast::<Tree>(),
                number(depth.addr() + 1),
                hint,
            );
            assert_eq!((code, thread), (DOMICILE_OK, DOMICILE_NO_THREAD));
        }
    }
}

#[test]
fn running_threads_fork_on_one_worker_and_on_several() {
    for workers in [1, 3] {
        let tree = Tree {
            order: make(workers),
            ran: AtomicU64::new(0),
        };
        assert_eq!(fork(tree.order, grow, &raw const tree, number(0), 0).0, DOMICILE_OK);
        let (code, report) = run(tree.order, false);
        assert_eq!(
            (code, report.threads, tree.ran.load(Relaxed)),
            (DOMICILE_OK, 31, 31),
            "{workers} workers"
        );
        destroy(tree.order);
    }
}

#[test]
fn every_thread_runs_once_on_several_workers() {
    let order = make(4);
    let sum = AtomicU64::new(0);
    for at in 0..MANY {
        assert_eq!(
            fork(order, add, &raw const sum, number(at as usize), at * 7 % 300).0,
            DOMICILE_OK
        );
    }
    for times in 1..=2 {
        assert_eq!(run(order, times == 1).0, DOMICILE_OK);
        assert_eq!(sum.load(Relaxed), times * (MANY * (MANY - 1) / 2));
    }
    destroy(order);
}

unsafe extern "C-unwind" fn panics(_: *mut c_void, _: *mut c_void) {
    panic!("as it was asked to");
}

#[test]
fn a_panic_is_an_error_and_no_thread_is_lost() {
    for workers in [1, 2] {
        let order = make(workers);
        let sum = AtomicU64::new(0);
        assert_eq!(fork(order, panics, number(0), number(0), 0).0, DOMICILE_OK);
        for at in 1..=5 {
            assert_eq!(fork(order, add, &raw const sum, number(1), at * 10).0, DOMICILE_OK);
        }
        assert_eq!(run(order, false).0, DOMICILE_PANIC);
        assert!(message(order).contains("as it was asked to"), "{}", message(order));
        assert_eq!(run(order, false).0, DOMICILE_OK, "{}", message(order));
        assert_eq!(sum.load(Relaxed), 5, "{workers} workers");
        destroy(order);
    }
}

#[test]
fn dependencies_are_kept_and_circles_refused() {
    let order = make(1);
    let list = Mutex::new(Vec::<usize>::new());
    let (_, first) = fork(order, note, &raw const list, number(0), 50);
    let (_, second) = fork(order, note, &raw const list, number(1), 0);
    let (hint, mut third) = (0, 0);
    let earlier = [first, second];
    // SAFETY: the order is alive, and all that is pointed to is there.
    unsafe {
        assert_eq!(domicile_order_depend(order, first, second), DOMICILE_OK);
        let list = (&raw const list).cast_mut().cast();
        let forked = domicile_order_fork_after(
            order,
            Some(note),
            list,
            number(2).cast_mut(),
            &raw const hint,
            earlier.as_ptr(),
            2,
            &raw mut third,
        );
        assert_eq!(forked, DOMICILE_OK);
        assert_eq!(domicile_order_depend(order, second, third), DOMICILE_CYCLE);
    }
    assert_eq!(run(order, false).0, DOMICILE_OK);
    assert_eq!(*list.lock().unwrap(), [1, 0, 2]);
    destroy(order);
}

unsafe extern "C-unwind" fn run_other(inner: *mut c_void, list: *mut c_void) {
    let (inner, list) = (
        inner.cast::<domicile_order>(),
        list.cast_const().cast::<Mutex<Vec<usize>>>(),
    );
    assert_eq!(fork(inner, note, list, number(1), 0).0, DOMICILE_OK);
    assert_eq!(run(inner, false).0, DOMICILE_OK);
}

#[test]
fn a_thread_of_one_order_runs_another() {
    let (outer, inner) = (make(1), make(2));
    let list = Mutex::new(Vec::<usize>::new());
    for _ in 0..3 {
        assert_eq!(fork(outer, run_other, inner, &raw const list, 0).0, DOMICILE_OK);
    }
    assert_eq!(run(outer, false).0, DOMICILE_OK);
    assert_eq!(*list.lock().unwrap(), [1, 1, 1]);
    destroy(outer);
    destroy(inner);
}

struct Shared(*mut domicile_order);

// SAFETY: the order outlives the thread that it is sent to.
unsafe impl Send for Shared {}

unsafe extern "C-unwind" fn run_itself(order: *mut c_void, _: *mut c_void) {
    assert_eq!(run(order.cast(), false).0, DOMICILE_RUNNING);
    let shared = Shared(order.cast());
    // The thread of the operating system that is no worker only learns that it is none.
    let forked = std::thread::spawn(move || {
        let shared = shared;
        fork(shared.0, panics, number(0), number(0), 0).0
    });
    assert_eq!(forked.join().unwrap(), DOMICILE_NOT_INSIDE);
}

#[test]
fn a_run_inside_a_run_and_a_fork_by_a_stranger_are_refused() {
    for workers in [1, 2] {
        let order = make(workers);
        assert_eq!(fork(order, run_itself, order, number(0), 0).0, DOMICILE_OK);
        assert_eq!(run(order, false).0, DOMICILE_OK, "{}", message(order));
        destroy(order);
    }
}

unsafe extern "C-unwind" fn note_integers(i: *mut c_void, j: *mut c_void) {
    // SAFETY: forked with two integers, which come by reference.
    let (i, j) = unsafe { (*i.cast::<i32>(), *j.cast::<i32>()) };
    PAPER.lock().unwrap().push((i * 4 + j + 1) as usize);
    if (i, j) == (3, 3) {
        let number = number(17).cast_mut();
        // SAFETY: a running thread may fork, and may not run.
        unsafe {
            th_fork(
                Some(note_number),
                number,
                ptr::null_mut(),
                number,
                ptr::null(),
                ptr::null(),
            );
            th_run(0);
        }
    }
}

unsafe extern "C-unwind" fn note_number(number: *mut c_void, _: *mut c_void) {
    PAPER.lock().unwrap().push(number.addr());
}

static PAPER: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The only test of the calls that share the state of the program.
#[test]
fn the_papers_example() {
    let at = |vector: i32| number(32 * vector as usize + 0x1_0000);
    // SAFETY: no other test makes these calls, and the integers are there.
    unsafe {
        th_init(64, 0);
        for i in 0..4 {
            for j in 0..4 {
                domicile_th_fork_int32_(Some(note_integers), &i, &j, at(i), at(j), ptr::null());
            }
        }
        th_run(0);
    }
    let wanted = [1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16, 17];
    assert_eq!(*PAPER.lock().unwrap(), wanted);
}
