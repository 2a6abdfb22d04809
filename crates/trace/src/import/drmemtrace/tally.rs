//! Counts of the records of a trace's files that are left out of the result, for the header.

use std::collections::{BTreeMap, HashSet};

use super::kind::{VERSION, filetype};
use crate::limits;
use crate::model::{Chosen, Gaps, Header, KernelPart, Unknown};

/// The most different unknown kinds. A file with more is no trace, or its records begin elsewhere.
const UNKNOWN: usize = 64;

#[derive(Default)]
pub struct Tally {
    fetches: u64,
    data: u64,
    kernel: KernelPart,
    unknown: BTreeMap<Strange, u64>,
    /// Bits of the file types of files that are filtered to their end, and of those that may be filtered up to a
    /// marker.
    filtered: u64,
    filtered_at_first: u64,
    instructions_only: bool,
    /// True if filtering ended somewhere.
    counted: bool,
    windows: HashSet<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strange {
    Record(u16),
    Marker(u16),
    FileType(u64),
    Version(u64),
}

impl Strange {
    fn in_words(self) -> String {
        match self {
            Strange::Record(kind) => format!("record type {kind}"),
            Strange::Marker(kind) => format!("marker {kind}"),
            Strange::FileType(bits) => format!("file type {bits:#x}"),
            Strange::Version(version) => format!("format version {version}, newer than {VERSION},"),
        }
    }
}

impl Tally {
    #[inline]
    pub fn fetched(&mut self) {
        self.fetches += 1;
    }

    #[inline]
    pub fn touched(&mut self) {
        self.data += 1;
    }

    pub fn fetched_in_kernel(&mut self, instructions: u64) {
        self.kernel.instructions += instructions;
    }

    pub fn touched_in_kernel(&mut self) {
        self.kernel.references += 1;
    }

    pub fn counts_from_here(&mut self) {
        self.counted = true;
    }

    /// Takes a file's type; returns the fault in it.
    pub fn file_type(&mut self, bits: u64) -> Result<(), String> {
        if bits & filetype::ARCH_32_BIT != 0 {
            return Err("this is the trace of a 32-bit program; only 64-bit ones are read".into());
        }
        if bits & filetype::KERNEL_TEMPLATES != 0 {
            return Err(
                "this file holds pieces of the kernel to put into other traces, and no program; import one of those"
                    .into(),
            );
        }
        match bits & filetype::BIMODAL_FILTERED_WARMUP {
            0 => self.filtered |= bits,
            _ => self.filtered_at_first |= bits,
        }
        self.instructions_only |= bits & filetype::INSTRUCTION_ONLY != 0;
        match bits & !filetype::KNOWN {
            0 => Ok(()),
            strange => self.strange(Strange::FileType(strange)),
        }
    }

    /// Counts one more unknown record, or reports that there are too many.
    #[cold]
    pub fn strange(&mut self, what: Strange) -> Result<(), String> {
        *self.unknown.entry(what).or_default() += 1;
        match self.unknown.len() {
            0..=UNKNOWN => Ok(()),
            _ => Err(format!(
                "more than {UNKNOWN} types of records and markers that are not known, the last is {}: this is damaged, or no trace",
                what.in_words()
            )),
        }
    }

    pub fn window(&mut self, index: u32) {
        if self.windows.len() < limits::CHUNK_EVENTS {
            self.windows.insert(index);
        }
    }

    /// The totals.
    pub fn finish(self, other_files: Vec<String>, header: &mut Header) {
        let filtered = match (self.counted, self.filtered_at_first) {
            (false, at_first) => self.filtered | at_first,
            // Files without a mark for the end of filtering, if there is one.
            (true, 0) => 0,
            (true, _) => self.filtered,
        };
        let unknown = self.unknown.into_iter().map(|(what, count)| Unknown {
            what: what.in_words(),
            count,
        });
        let gaps = Gaps {
            filtered_fetches: filtered & (filetype::FILTERED | filetype::IFILTERED) != 0,
            filtered_data: filtered & (filetype::FILTERED | filetype::DFILTERED) != 0,
            no_data: self.data == 0 && (self.fetches > 0 || self.instructions_only),
            kernel: (self.kernel != KernelPart::default()).then_some(self.kernel),
            unknown: unknown.collect(),
            other_files,
        };
        header.has_fetches = self.fetches > 0;
        header.has_pcs = true;
        header.counts_instructions = self.fetches > 0 && !gaps.filtered_fetches;
        header.chosen = (self.counted || !self.windows.is_empty()).then(|| Chosen {
            windows: self.windows.len().max(1) as u32,
            warmed: self.counted,
            ..Chosen::default()
        });
        header.gaps = (gaps != Gaps::default()).then_some(gaps);
    }
}
