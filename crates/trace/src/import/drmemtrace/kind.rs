//! Types of records, kinds of markers and bits of the file type, by DynamoRIO's names for them.

use crate::model::Op;

/// The kind of a record, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data(Op),
    /// An instruction that was fetched and executed.
    Fetch,
    /// Up to eight instructions after the previous one.
    Bundle,
    /// One more round of a repeated string instruction: executed, not fetched, not counted.
    Round,
    /// A fetch, or a round of the previous instruction if that has the same address.
    MaybeFetch,
    Thread,
    Exit,
    Pid,
    Header,
    Marker,
    /// Known, without an access of the program: encodings, cache flushes, prefetches of instructions and by hardware.
    Passed,
    Unknown,
}

impl Kind {
    pub fn of(number: u16) -> Kind {
        match number {
            0 => Kind::Data(Op::Read),
            1 => Kind::Data(Op::Write),
            // PREFETCH, PREFETCHT0 to T2, PREFETCHNTA, PREFETCH_READ and PREFETCH_WRITE.
            2..=8 => Kind::Data(Op::Prefetch),
            9 => Kind::Passed,
            10..=16 => Kind::Fetch,
            17 => Kind::Bundle,
            18..=21 => Kind::Passed,
            22 => Kind::Thread,
            23 => Kind::Exit,
            24 => Kind::Pid,
            25 => Kind::Header,
            // FOOTER and HARDWARE_PREFETCH.
            26 | 27 => Kind::Passed,
            28 => Kind::Marker,
            29 => Kind::Round,
            30 => Kind::MaybeFetch,
            // INSTR_SYSENTER.
            31 => Kind::Fetch,
            // PREFETCH_READ_L1_NT to L3_NT.
            32..=34 => Kind::Data(Op::Prefetch),
            // PREFETCH_INSTR_L1 to L3_NT.
            35..=40 => Kind::Passed,
            // PREFETCH_WRITE_L1 to L3_NT.
            41..=46 => Kind::Data(Op::Prefetch),
            47 => Kind::Passed,
            // INSTR_TAKEN_JUMP and INSTR_UNTAKEN_JUMP.
            48 | 49 => Kind::Fetch,
            // INVALID is 50.
            _ => Kind::Unknown,
        }
    }
}

/// Kinds of markers.
pub mod marker {
    pub const TIMESTAMP: u16 = 2;
    pub const FILETYPE: u16 = 9;
    pub const WINDOW_ID: u16 = 14;
    pub const PAGE_SIZE: u16 = 18;
    pub const FILTER_ENDPOINT: u16 = 23;
    pub const SYSCALL_TRACE_START: u16 = 27;
    pub const SYSCALL_TRACE_END: u16 = 28;
    pub const CONTEXT_SWITCH_START: u16 = 34;
    pub const CONTEXT_SWITCH_END: u16 = 35;
    pub const HARDWARE_EVENT: u16 = 43;
    pub const HARDWARE_CONTEXT_RETURN: u16 = 44;
    /// SKIPPED_MEMREF, the last that is defined.
    pub const LAST: u16 = 46;
}

/// Bits of the file type.
pub mod filetype {
    /// In old files: both of the others.
    pub const FILTERED: u64 = 0x1;
    pub const INSTRUCTION_ONLY: u64 = 0x4;
    pub const ARCH_32_BIT: u64 = 0x10 | 0x20;
    pub const IFILTERED: u64 = 0x80;
    pub const DFILTERED: u64 = 0x100;
    pub const BIMODAL_FILTERED_WARMUP: u64 = 0x2000;
    pub const KERNEL_TEMPLATES: u64 = 0x4000;
    pub const CORE_SHARDED: u64 = 0x10000;
    /// All bits that are defined.
    pub const KNOWN: u64 = 0x7ffff;
}

/// The newest version of the format that is known here: RETIRED_INSTRUCTIONS_ONLY.
pub const VERSION: u64 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetches_of_data_are_told_from_those_of_instructions() {
        let of_data = (0..=50).filter(|number| Kind::of(*number) == Kind::Data(Op::Prefetch));
        let expected: Vec<u16> = (2..=8).chain(32..=34).chain(41..=46).collect();
        assert_eq!(of_data.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn instructions_are_those_that_the_format_calls_so() {
        let fetched = (0..=50).filter(|number| Kind::of(*number) == Kind::Fetch);
        assert_eq!(fetched.collect::<Vec<_>>(), [10, 11, 12, 13, 14, 15, 16, 31, 48, 49]);
    }
}
