//! What can be said and done before `main` alone: whether there are other threads, and what others will find in the environment.

use std::path::Path;

/// What the program starts is not concerned: it finds none of these variables, and its libraries as they were before.
pub fn leave_no_trace(variables: &[&str], preload_before: Option<&str>) {
    // SAFETY: before `main`; if a library has started threads by now that read the environment, that is theirs to regret
    // as with any `setenv`.
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

/// Whether this thread is the only one.
pub fn alone() -> bool {
    sys::listing::numbers(Path::new("/proc/self/task")).is_ok_and(|threads| threads.len() == 1)
}
