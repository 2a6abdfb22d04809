//! The program's statements about itself of more than one word: cache slots, and its compiler's knowledge of its loops.

use trace::Event;

use crate::address_space::AddressSpace;
use crate::block::Malformed;
use crate::wire::slots;

/// The most that a summary may have (`domicile-trace.h`).
const SUMMARY_BYTES: u64 = 1 << 20;

impl AddressSpace {
    /// Adds a piece of a summary; returns the summary with the last piece. Bytes that are not UTF-8 are replaced.
    pub(crate) fn summary(&mut self, bytes: u64, before: u64, piece: &[u8]) -> Result<Option<String>, Malformed> {
        if before == 0 {
            self.summary.clear();
        }
        if before != self.summary.len() as u64 || before + piece.len() as u64 > bytes.min(SUMMARY_BYTES) {
            return Err(Malformed);
        }
        self.summary.extend_from_slice(piece);
        if (self.summary.len() as u64) < bytes {
            return Ok(None);
        }
        let mut text = String::from_utf8_lossy(&std::mem::take(&mut self.summary)).into_owned();
        // A replacement may be longer than what it replaces.
        let mut end = text.len().min(SUMMARY_BYTES as usize);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Ok(Some(text))
    }

    /// The program's statement about cache slots; `None` if it concerns a thread that the program does not have.
    pub(crate) fn slots(&mut self, what: u64, [a, b, c]: [u64; 3]) -> Result<Option<Event>, Malformed> {
        let number = |own: u64| self.objects.number(own);
        Ok(Some(match what {
            slots::DEFINE => Event::Slot {
                slot: number(a),
                bytes: b,
                private: c != 0,
            },
            slots::FREE => Event::SlotFree { slot: number(a) },
            slots::RANGE => Event::DataRange {
                set: number(a),
                addr: b,
                bytes: c,
            },
            slots::THREAD => {
                let set = number(a);
                let mut live = self.runners.iter().flatten().filter(|runner| !runner.ended);
                let thread = match b {
                    0 => Some(self.current()?.id),
                    tid => live.find(|runner| runner.thread.number == tid).map(|runner| runner.id),
                };
                match thread {
                    Some(thread) => Event::DataThread { set, thread },
                    None => return Ok(None),
                }
            }
            slots::ALLOCATE => Event::Allocate {
                set: number(a),
                slot: (b != slots::NONE).then(|| number(b)),
            },
            slots::DATA_FREE => Event::DataFree { set: number(a) },
            _ => return Err(Malformed),
        }))
    }
}
