//! The caches that work can be shipped to.

use sys::cache_domains::CacheDomain;

/// A cache with a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The cpus below it that this process may use. Not empty.
    pub cpus: Vec<u32>,
    /// Its size; 0 where nobody knows it.
    pub bytes: u64,
}

impl Domain {
    /// The part of a machine's domain that is allowed; `None` where nothing of it is.
    pub(crate) fn allowed(of: CacheDomain, allowed: &[u32]) -> Option<Domain> {
        let cpus: Vec<u32> = of.cpus.into_iter().filter(|cpu| allowed.contains(cpu)).collect();
        (!cpus.is_empty()).then_some(Domain {
            cpus,
            bytes: of.bytes.unwrap_or(0),
        })
    }
}
