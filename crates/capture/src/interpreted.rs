//! Lines of interpreted programs (`DOMICILE_LINE`): an interpreter's work at a line gets that line's name.
//!
//! Names belong to program counters, so an instruction of the interpreter gets its own program counter at each line
//! where it makes references: a number beyond all addresses. The superblock likewise gets a copy ([`Blocks::at_line`]),
//! and words that enter it are rewritten before anything else reads them. Compiled programs are unaffected.

use std::borrow::Cow;
use std::sync::Arc;

use trace::StackId;

use crate::address_space::{AddressSpace, Commons};
use crate::block::Malformed;
use crate::output::Output;
use crate::wire;

/// The function in which a Python program begins what is to be recorded (`domicile.recording()`).
pub(crate) const BEGINS: &str = "domicile_recording";

/// The variable that tells it to report its lines from its import of `domicile` on.
pub(crate) const WANTED: &str = "DOMICILE_LINES";

/// With fewer references an interpreter has not started yet.
const FEW: u64 = 100_000;

/// References per reached line, below which the interpreter's own work of following lines matters. CPython 3.11 makes
/// some 170 more at a line, 3.13 some 100.
const BUSY: u64 = 1_000;

/// The note about a program with this many references and reached lines.
pub(crate) fn note(reached: u64, references: u64) -> Option<String> {
    (reached > 0 && references / reached < BUSY).then(|| {
        format!(
            "the interpreted program reached {reached} lines, {} references apart: an interpreter that follows lines makes \
             some 100 to 170 references more at each (CPython), so that its own work takes too long here; \
             `domicile.recording(lines=False)` records it as it is, without lines",
            references / reached
        )
    })
}

impl AddressSpace {
    /// A line is announced.
    pub(crate) fn line(&mut self, number: u64, line: u64, payload: &[u64], out: &Output, commons: &mut Commons) {
        if self.lines.is_empty() && out.seen() > FEW {
            commons.notes.push(format!(
                "{} references were recorded before the first line of the interpreted program, and have the interpreter's names; \
                 `--from domicile_recording` begins at the first `domicile.recording()`",
                out.seen()
            ));
        }
        self.lines.define(number, line, &wire::text(payload, 2));
    }

    /// The current thread is at these lines.
    pub(crate) fn at_lines(&mut self, numbers: &[u64], commons: &mut Commons) -> Result<(), Malformed> {
        let at = numbers.iter().map(|number| self.lines.number(*number));
        let at: Option<Vec<u32>> = at.collect();
        self.current()?.at_lines = at.ok_or(Malformed)?;
        commons.lines_reached += u64::from(!self.paused && !numbers.is_empty());
        Ok(())
    }

    /// The stack of the lines that the current thread is at; `None` if it is at none.
    pub(crate) fn stack_of_lines(&mut self, out: &mut Output, commons: &mut Commons) -> Option<StackId> {
        let at = &self.runners.get(self.current)?.as_ref()?.at_lines;
        (!at.is_empty() && out.pcs).then(|| self.lines.stack(self.process, at, out, &mut commons.lines))
    }

    /// Puts the superblocks from `words[from]` to the next record at the current thread's line. Returns the end; `from`
    /// if the thread is at no line.
    pub(crate) fn put_at_line(&mut self, words: &mut Cow<[u64]>, from: usize) -> usize {
        let at = self.runners.get(self.current).and_then(Option::as_ref);
        let Some(&line) = at.and_then(|runner| runner.at_lines.first()) else {
            return from;
        };
        let words = words.to_mut();
        for (at, word) in words.iter_mut().enumerate().skip(from) {
            match wire::kind(*word) {
                wire::RECORD => return at,
                wire::BLOCK => {
                    // An unknown superblock keeps its number, and is reported.
                    if let Some(number) = Arc::make_mut(&mut self.blocks).at_line(*word as u32, line) {
                        *word = *word >> 32 << 32 | u64::from(number);
                    }
                }
                _ => {}
            }
        }
        words.len()
    }
}
