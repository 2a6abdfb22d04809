//! Pages, which policies place.

/// A virtual page: the address space it belongs to, and its number (address / page size).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page {
    /// Index of the process whose address space it is.
    pub space: u32,
    pub number: u64,
}
