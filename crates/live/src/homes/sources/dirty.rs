//! Soft-dirty bits: which pages were written.
//!
//! **What a count is.** A look that found that the page was written since the look before, whether once or a million
//! times. So a page gets one count a look. If bits are cleared more seldom ([`super::rests`]), a look counts for as
//! many intervals.
//!
//! **What is not seen.** Reads: a page that is only read looks idle. The cpu of a write.
//!
//! **What it costs.** The kernel walks the whole page table of the process to clear the bits, and the first write to each page
//! after that is a fault of about a microsecond, which the process pays.

use sys::frames::Pagemap;
use sys::mappings;
use sys::memory::PAGE;
use sys::soft_dirty;

use super::rests::Rests;
pub use super::rests::works;
use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "soft-dirty";

#[derive(Default)]
struct Dirty {
    rests: Rests,
}

pub fn probe() -> Probed {
    if works()? {
        return Ok(Box::new(Dirty::default()));
    }
    Err("the kernel does not keep them (CONFIG_MEM_SOFT_DIRTY)".to_string())
}

impl Source for Dirty {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> String {
        "a look that found the page written since the look before; reads are not seen".to_string()
    }

    fn scale(&self) -> Scale {
        Scale::Looks(1)
    }

    fn knows_writes(&self) -> bool {
        true
    }

    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        self.rests.begin(process)
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        if !self.rests.is_watched(process) {
            return Err(Lost::Gone);
        }
        let Some(counts) = self.rests.look(process) else {
            return Ok(Vec::new());
        };
        let gone = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Lost::Gone,
            _ => Lost::Refused(error.to_string()),
        };
        let map = Pagemap::of(process).map_err(gone)?;
        let mut found: Vec<Touched> = Vec::new();
        for mapping in mappings::all(Some(process)).map_err(gone)? {
            // Pages of the kernel, and pages that cannot be written, do not count as written; new ones do.
            if !mapping.write {
                continue;
            }
            let scanned = soft_dirty::written(&map, mapping.span, |span| {
                found.push(Touched {
                    span,
                    counts,
                    by: None,
                    write: Some(true),
                });
                true
            });
            scanned.map_err(gone)?;
        }
        let pages = found.iter().map(|touched| (touched.span.bytes / PAGE) as u64).sum();
        self.rests.found(process, pages)?;
        Ok(found)
    }

    fn end(&mut self, process: u32) {
        self.rests.end(process);
    }
}
