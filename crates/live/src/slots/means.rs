//! The means by which data gets its part of the caches.

use policy::slots::Caches;

use crate::Colors;

/// The means that an application runs with, for people and for programs that show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// `None` if slots are ways of the caches instead, for whole threads.
    pub colors: Option<Colors>,
    /// The caches that the application uses; where slots are ways, these stand for colors here.
    pub caches: Caches,
    /// The keeper of the ledger.
    pub ledger: String,
    /// The engine that moves pages, and the facilities of the kernel that it uses; if slots are
    /// ways, the reason for that.
    pub engine: String,
    /// Under `domicile record`: nothing moves, the trace keeps what is asked for.
    pub recording: bool,
}
