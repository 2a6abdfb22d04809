//! What Valgrind makes different is said: threads that spin, and limits that are refused.
#![forbid(unsafe_code)]

use crate::workshop;

use capture::Exit;
use workshop::{Bench, compile};

/// The notes of a run of `spins.c` that speak of `about`.
fn notes(bench: &Bench, how: &str, about: &str) -> Vec<String> {
    let (outcome, _) = bench.record(&[how]);
    assert_eq!(outcome.exit, Exit::Code(0), "{how}");
    let mut notes = outcome.notes;
    notes.retain(|note| note.contains(about));
    notes
}

#[test]
fn threads_that_read_until_another_writes_are_named() {
    let bench = compile("spins", &["-pthread"]);
    let said = notes(&bench, "reads", "spin until another thread writes");
    assert_eq!(said.len(), 1, "{said:?}");
    // Inlined or not, it is a line of that file.
    assert!(said[0].contains("(spins.c:"), "{said:?}");
}

#[test]
fn a_lock_that_is_tried_again_and_again_is_a_wait() {
    let bench = compile("spins", &["-pthread"]);
    let said = notes(&bench, "takes", "spin until another thread writes");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("(spins.c:"), "{said:?}");
}

#[test]
fn loops_that_wait_for_nobody_are_not_called_waits() {
    let bench = compile("spins", &["-pthread"]);
    for how in ["counts", "computes"] {
        let said = notes(&bench, how, "until another thread");
        assert!(said.is_empty(), "{how}: {said:?}");
    }
}

#[test]
fn a_limit_of_descriptors_that_valgrind_refuses_is_said() {
    let bench = compile("spins", &["-pthread"]);
    let (outcome, _) = bench.record(&["limit"]);
    assert_eq!(outcome.exit, Exit::Code(71));
    let said = outcome.notes.iter().filter(|note| note.contains("file descriptors"));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), 1, "{:?}", outcome.notes);
    assert!(said[0].contains("ulimit -n"), "{said:?}");
}
