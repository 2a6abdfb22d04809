//! By which means data gets its part of the caches.

use policy::slots::Caches;

use crate::Colors;

/// What an application runs with, for people and for programs that show it to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    pub colors: Colors,
    /// The caches that the application uses.
    pub caches: Caches,
    /// Who keeps the ledger.
    pub ledger: String,
    /// What moves pages, and by which facilities of the kernel.
    pub engine: String,
    /// Under `domicile record`: nothing moves, the trace keeps what is asked for.
    pub recording: bool,
}
