//! Replicated data in C.

use crate::slow::installed::prefix::{How, Prefix};

#[test]
fn replicated_data_in_c() {
    runs("replicated.c", &How::ALL);
}

#[test]
fn data_that_processes_share_in_c() {
    // In a child of fork, what only other threads of its parent had is lost, and Valgrind counts it.
    runs("shared_replicas.c", &[How::Plain, How::Static, How::AddressSanitizer]);
}

fn runs(source: &str, ways: &[How]) {
    let Some(prefix) = Prefix::installed() else { return };
    for &how in ways {
        let Some(program) = prefix.c(source, how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}
