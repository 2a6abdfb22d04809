//! The structures of `domicile/summary.h`, as C lays them out.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ffi::{c_char, c_void};

/// `DOMICILE_SUMMARY_VERSION`.
pub const VERSION: u32 = 1;

pub(crate) const EVEN: u32 = 0;
pub(crate) const BLOCKED: u32 = 1;
pub(crate) const CHUNKED: u32 = 2;

pub(crate) const NO_COMMUNICATION: u32 = 0;
pub(crate) const SHIFT: u32 = 1;
pub(crate) const ROTATE: u32 = 2;

pub(crate) const READS: u32 = 1;
pub(crate) const WRITES: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct domicile_inner {
    pub stride: i64,
    pub count: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_summary {
    pub name: *const c_char,
    pub start: *const c_void,
    pub bytes: u64,
    pub offset: i64,
    pub unit: i64,
    pub span: u64,
    pub inner: [domicile_inner; 3],
    pub distance: i64,
    pub communication: u32,
    pub access: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_loop {
    pub version: u32,
    pub count: u32,
    pub place: *const c_char,
    pub iterations: u64,
    pub chunk: u64,
    pub schedule: u32,
    pub reverse: u32,
    pub threads: u32,
    pub reserved: u32,
    pub summaries: *const domicile_summary,
}

// The offsets in `headers/domicile/summary.h`; a program in C checks the same offsets from its side.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<domicile_inner>() == 16);
    assert!(size_of::<domicile_summary>() == 112);
    assert!(offset_of!(domicile_summary, inner) == 48);
    assert!(offset_of!(domicile_summary, distance) == 96);
    assert!(offset_of!(domicile_summary, access) == 108);
    assert!(size_of::<domicile_loop>() == 56);
    assert!(offset_of!(domicile_loop, iterations) == 16);
    assert!(offset_of!(domicile_loop, schedule) == 32);
    assert!(offset_of!(domicile_loop, summaries) == 48);
};
