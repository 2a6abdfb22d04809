//! Records of fixed length of binary formats.

use super::packed::{Input, fill};
use crate::error::{Place, TraceError};

const BUFFER_RECORDS: usize = 1 << 12;

/// Yields records of `N` bytes through one buffer of fixed size.
pub struct Records<const N: usize> {
    format: &'static str,
    input: Input,
    buffer: Vec<u8>,
    from: usize,
    upto: usize,
    /// Offset in the (unpacked) input of the next record.
    offset: u64,
}

impl<const N: usize> Records<N> {
    pub fn new(format: &'static str, input: Input) -> Records<N> {
        Records::with_buffer(format, input, BUFFER_RECORDS)
    }

    /// Uses a buffer of this many records, for when many are open at once.
    pub fn with_buffer(format: &'static str, input: Input, records: usize) -> Records<N> {
        Records {
            format,
            input,
            buffer: vec![0; N * records],
            from: 0,
            upto: 0,
            offset: 0,
        }
    }

    /// The next record; `None` at the end, which must not lie inside one.
    #[inline]
    pub fn next(&mut self) -> Result<Option<[u8; N]>, TraceError> {
        if self.upto - self.from < N && !self.more()? {
            return Ok(None);
        }
        let mut record = [0; N];
        record.copy_from_slice(&self.buffer[self.from..self.from + N]);
        self.from += N;
        self.offset += N as u64;
        Ok(Some(record))
    }

    #[cold]
    fn more(&mut self) -> Result<bool, TraceError> {
        self.buffer.copy_within(self.from..self.upto, 0);
        self.upto -= self.from;
        self.from = 0;
        while self.upto < N {
            let place = Place {
                line: None,
                offset: self.offset + self.upto as u64,
            };
            match fill(self.format, place, &mut self.input, &mut self.buffer[self.upto..])? {
                0 if self.upto == 0 => return Ok(false),
                0 => {
                    let what = format!("the file ends {} bytes into a record of {N} bytes", self.upto);
                    let at = Place {
                        line: None,
                        offset: self.offset,
                    };
                    return Err(TraceError::Import {
                        format: self.format,
                        at,
                        what,
                    });
                }
                got => self.upto += got,
            }
        }
        Ok(true)
    }

    /// An error in the record that was read last.
    pub fn error(&self, what: impl Into<String>) -> TraceError {
        let at = Place {
            line: None,
            offset: self.offset.saturating_sub(N as u64),
        };
        TraceError::Import {
            format: self.format,
            at,
            what: what.into(),
        }
    }
}
