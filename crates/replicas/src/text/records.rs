//! The records of the store's table: numbers and bytes that all processes of a run read alike.

use bytemuck::{Pod, Zeroable};

/// Bytes of a reason.
pub const WHY: usize = 160;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Head {
    pub magic: u64,
    pub copies: u64,
    /// The position of the next copy.
    pub next: u64,
    pub processes: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub node: u64,
    /// A hash of the bytes.
    pub number: u64,
    pub bytes: u64,
    pub at: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pub number: u64,
    pub node: u64,
    pub near: u64,
    pub left: u64,
    /// In UTF-8, padded with zeros.
    pub why: [u8; WHY],
}

// SAFETY: numbers and bytes without gaps, all of which may have any value.
unsafe impl Zeroable for Head {}
// SAFETY: as above.
unsafe impl Pod for Head {}
// SAFETY: as above.
unsafe impl Zeroable for Entry {}
// SAFETY: as above.
unsafe impl Pod for Entry {}
// SAFETY: as above.
unsafe impl Zeroable for Process {}
// SAFETY: as above.
unsafe impl Pod for Process {}
