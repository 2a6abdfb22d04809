//! The number of threads that a parallel loop would have now.

use policy::cdpc::Loop;

/// The number that OpenMP would give: its own answer if it is in the program, else `OMP_NUM_THREADS`, else the number
/// of this process's cpus. From 1 to [`Loop::THREADS`].
pub fn threads() -> u32 {
    let given = openmp().or_else(|| variable(std::env::var("OMP_NUM_THREADS").ok()?.as_str()));
    let cpus = || sys::affinity::allowed(None).map_or(1, |cpus| cpus.len() as u32);
    given.unwrap_or_else(cpus).clamp(1, Loop::THREADS)
}

/// The number for the outermost level: `4` of `4,2`.
fn variable(value: &str) -> Option<u32> {
    let first = value.split(',').next()?;
    first.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Returns whether OpenMP's library is in the program.
pub fn has_openmp() -> bool {
    openmp().is_some()
}

#[cfg(not(miri))]
fn openmp() -> Option<u32> {
    // SAFETY: a search through what is loaded, for a name that ends in a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"omp_get_max_threads".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: OpenMP defines the function of this name so; any thread may call it at any time.
    let threads = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> std::ffi::c_int>(function)() };
    u32::try_from(threads).ok().filter(|&threads| threads > 0)
}

#[cfg(miri)]
fn openmp() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_speaks_of_the_outermost_level_first() {
        assert_eq!(variable("4,2"), Some(4));
        assert_eq!(variable(" 7 "), Some(7));
        for none in ["", "0", "-1", "x", ",3"] {
            assert_eq!(variable(none), None, "{none}");
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn there_is_at_least_one_thread() {
        assert!((1..=Loop::THREADS).contains(&threads()));
    }
}
