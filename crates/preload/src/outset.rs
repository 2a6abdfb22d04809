//! Steps that are possible only before `main`: counting other threads, and changing the environment that others will
//! read.

use std::path::Path;

/// Removes these variables, and restores the preloaded libraries, for the programs that the program starts.
pub fn leave_no_trace(variables: &[&str], preload_before: Option<&str>) {
    // SAFETY: before `main`; a library that has already started threads which read the environment takes the usual risk
    // of `setenv`.
    unsafe {
        for variable in variables {
            std::env::remove_var(variable);
        }
        match preload_before {
            Some(before) => std::env::set_var("LD_PRELOAD", before),
            None => std::env::remove_var("LD_PRELOAD"),
        }
    }
}

/// Returns true if this thread is the only one.
pub fn alone() -> bool {
    sys::listing::numbers(Path::new("/proc/self/task")).is_ok_and(|threads| threads.len() == 1)
}
