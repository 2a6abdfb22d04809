//! The bytes that carry a report: a length, a check, and JSON text; written over and over in place.
//!
//! The writer may be killed in the middle. There are two sides, written by turns, each with a number: a
//! reader takes the side with the higher number among those that are whole.

use std::path::Path;

use super::{InstructionsError, Report};

/// Bytes of one side.
const SIDE: usize = 1 << 19;
/// Number of the writing, length, check: 8 bytes each.
const HEAD: usize = 24;

/// Writes reports into memory that somebody else reads.
#[derive(Debug, Default)]
pub struct Slate {
    writings: u64,
}

impl Slate {
    /// Bytes of the file.
    pub const BYTES: usize = 2 * SIDE;

    /// Writes a report into `memory`, which has [`Slate::BYTES`]; one that is too long loses its last notes, then its
    /// last data sets.
    pub fn write(&mut self, memory: &mut [u8], report: &Report) {
        let Some(text) = fitting(report) else { return };
        self.writings += 1;
        let from = (self.writings as usize % 2) * SIDE;
        let Some(side) = memory.get_mut(from..from + SIDE) else {
            return;
        };
        let (head, body) = side.split_at_mut(HEAD);
        // The slate is not whole until the last step.
        head.fill(0);
        body[..text.len()].copy_from_slice(&text);
        head[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
        head[16..24].copy_from_slice(&check(&text).to_le_bytes());
        head[..8].copy_from_slice(&self.writings.to_le_bytes());
    }
}

fn fitting(report: &Report) -> Option<Vec<u8>> {
    let mut shorter = report.clone();
    loop {
        let text = serde_json::to_vec(&shorter).ok()?;
        if text.len() <= SIDE - HEAD {
            return Some(text);
        }
        if shorter.notes.pop().is_none() {
            shorter.data_sets.pop()?;
        }
    }
}

/// The last whole report; `None` if none was ever written.
pub fn read_slate(path: &Path) -> Result<Option<Report>, InstructionsError> {
    let memory = std::fs::read(path).map_err(|error| InstructionsError::File {
        path: path.to_path_buf(),
        error,
    })?;
    Ok(last(&memory))
}

fn last(memory: &[u8]) -> Option<Report> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let mut sides: Vec<_> = memory.chunks_exact(SIDE).collect();
    sides.sort_by_key(|side| std::cmp::Reverse(number(&side[..8])));
    sides.into_iter().find_map(|side| {
        let length = usize::try_from(number(&side[8..16])).ok()?;
        let text = side[HEAD..].get(..length).filter(|text| !text.is_empty())?;
        if number(&side[..8]) == 0 || check(text) != number(&side[16..24]) {
            return None;
        }
        serde_json::from_slice(text).ok()
    })
}

/// FNV-1a.
fn check(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(pages: u64) -> Report {
        Report {
            means: format!("{pages} pages"),
            ..Report::default()
        }
    }

    #[test]
    fn the_last_whole_writing_is_read() {
        let mut memory = vec![0; Slate::BYTES];
        assert_eq!(last(&memory), None);
        let mut slate = Slate::default();
        for pages in 1..6 {
            slate.write(&mut memory, &report(pages));
            assert_eq!(last(&memory), Some(report(pages)));
        }
        // The fifth writing went to the second side: broken, it leaves the fourth.
        memory[SIDE + HEAD + 3] ^= 1;
        assert_eq!(last(&memory), Some(report(4)));
    }

    #[test]
    fn what_is_too_long_loses_its_notes() {
        let mut long = report(1);
        long.notes = vec!["x".repeat(SIDE / 3); 4];
        let mut memory = vec![0; Slate::BYTES];
        Slate::default().write(&mut memory, &long);
        assert_eq!(last(&memory).unwrap().notes.len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..64), at in 0..Slate::BYTES - 64) {
            let mut memory = vec![0; Slate::BYTES];
            Slate::default().write(&mut memory, &report(7));
            memory[at..at + bytes.len()].copy_from_slice(&bytes);
            let read = last(&memory);
            prop_assert!(read.is_none() || read == Some(report(7)));
        }
    }
}
