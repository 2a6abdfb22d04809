//! By which means data gets its part of the caches.

use policy::slots::Caches;

use crate::Colors;

/// What an application runs with, for people and for programs that show it to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// None where slots are ways of the caches instead, for whole threads.
    pub colors: Option<Colors>,
    /// The caches that the application uses; where slots are ways, these stand for colors here.
    pub caches: Caches,
    /// Who keeps the ledger.
    pub ledger: String,
    /// What moves pages, and by which facilities of the kernel; where slots are ways, why they are.
    pub engine: String,
    /// Under `domicile record`: nothing moves, the trace keeps what is asked for.
    pub recording: bool,
}
