//! Replicated data in C.

use crate::prefix::{How, Prefix};

#[test]
fn replicated_data_in_c() {
    runs("replicated.c");
}

#[test]
fn data_that_processes_share_in_c() {
    runs("shared_replicas.c");
}

fn runs(source: &str) {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c(source, how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}
