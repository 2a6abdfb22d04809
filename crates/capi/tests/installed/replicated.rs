//! Replicated data in C.

use crate::prefix::{How, Prefix};

#[test]
fn replicated_data_in_c() {
    let Some(prefix) = Prefix::installed() else { return };
    for how in How::ALL {
        let Some(program) = prefix.c("replicated.c", how) else {
            continue;
        };
        assert_eq!(prefix.run(&program, how).stdout, "done\n", "{how:?}");
    }
}
