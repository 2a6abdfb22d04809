//! Lines and fields of text formats, with their positions for the error message.

use std::io::Read;

use crate::error::{Place, TraceError};

/// A longer line belongs to no format that we read.
const LINE_BYTES: usize = 1 << 12;
const BUFFER_BYTES: usize = 1 << 18;

/// Yields lines without copying them, through one buffer of fixed size.
pub struct Lines<R> {
    format: &'static str,
    input: R,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    from: usize,
    upto: usize,
    ended: bool,
    line: u64,
    /// Offset in the input of the current line, and of the next.
    offset: u64,
    next_offset: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(format: &'static str, input: R) -> Lines<R> {
        let buffer = vec![0; BUFFER_BYTES];
        Lines {
            format,
            input,
            buffer,
            from: 0,
            upto: 0,
            ended: false,
            line: 0,
            offset: 0,
            next_offset: 0,
        }
    }

    /// The next line without its end; `None` after the last.
    pub fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.from..self.upto]) {
                return Ok(Some(self.take(length, 1)));
            }
            let waiting = self.upto - self.from;
            if self.ended {
                return Ok(if waiting == 0 {
                    None
                } else {
                    Some(self.take(waiting, 0))
                });
            }
            if waiting > LINE_BYTES {
                self.line += 1;
                self.offset = self.next_offset;
                return Err(self.error(format!("a line of over {LINE_BYTES} bytes: is this a text file?")));
            }
            self.buffer.copy_within(self.from..self.upto, 0);
            (self.from, self.upto) = (0, waiting);
            let place = Place {
                line: Some(self.line + 1),
                offset: self.next_offset,
            };
            let got = super::packed::fill(self.format, place, &mut self.input, &mut self.buffer[waiting..])?;
            self.upto += got;
            self.ended = got == 0;
        }
    }

    fn take(&mut self, length: usize, end: usize) -> &[u8] {
        let line = &self.buffer[self.from..self.from + length];
        self.from += length + end;
        self.line += 1;
        self.offset = self.next_offset;
        self.next_offset += (length + end) as u64;
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// The place of the current line.
    pub fn place(&self) -> Place {
        Place {
            line: Some(self.line),
            offset: self.offset,
        }
    }

    /// An error at the current line.
    pub fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::Import {
            format: self.format,
            at: self.place(),
            what: what.into(),
        }
    }
}

/// Cuts the first field off, at blanks.
#[inline]
pub fn field<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let bytes = *rest;
    let start = bytes.iter().position(|b| !blank(*b)).unwrap_or(bytes.len());
    let bytes = &bytes[start..];
    let end = bytes.iter().position(|b| blank(*b)).unwrap_or(bytes.len());
    let (field, after) = bytes.split_at(end);
    *rest = after;
    field
}

fn blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A decimal number; `None` if it is none or has over 64 bits.
#[inline]
pub fn decimal(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A hexadecimal number, with or without `0x`.
#[inline]
pub fn hexadecimal(field: &[u8]) -> Option<u64> {
    let digits = match field {
        [b'0', b'x' | b'X', digits @ ..] => digits,
        digits => digits,
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = HEX[usize::from(*byte)];
        if digit > 15 || value >> 60 != 0 {
            return None;
        }
        Some(value << 4 | u64::from(digit))
    })
}

const HEX: [u8; 256] = {
    let mut table = [255; 256];
    let mut i = 0;
    while i < 16 {
        table[b"0123456789abcdef"[i] as usize] = i as u8;
        table[b"0123456789ABCDEF"[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// A field as it may be shown in a message.
pub fn shown(field: &[u8]) -> String {
    let cut = &field[..field.len().min(40)];
    let dots = if cut.len() < field.len() { "..." } else { "" };
    format!("`{}{dots}`", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    #[test]
    fn lines_know_where_they_are() {
        let mut lines = Lines::new("text", Slow(b"one\r\n\nthree"));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let line = line.to_vec();
            seen.push((line, lines.place().line.unwrap(), lines.place().offset));
        }
        assert_eq!(
            seen,
            [(b"one".to_vec(), 1, 0), (b"".to_vec(), 2, 5), (b"three".to_vec(), 3, 6)]
        );
    }

    #[test]
    fn an_endless_line_is_refused_and_not_held() {
        let mut lines = Lines::new("text", std::io::repeat(b'x'));
        let error = lines.next().unwrap_err().to_string();
        assert!(error.contains("line 1 (byte 0)"), "{error}");
        assert_eq!(lines.buffer.capacity(), BUFFER_BYTES);
    }

    #[test]
    fn numbers() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b""), None);
        assert_eq!(decimal(b"-1"), None);
        assert_eq!(hexadecimal(b"0xfF"), Some(255));
        assert_eq!(hexadecimal(b"ffffffffffffffff"), Some(u64::MAX));
        assert_eq!(hexadecimal(b"10000000000000000"), None);
        assert_eq!(hexadecimal(b"0x"), None);
        assert_eq!(hexadecimal(b"fg"), None);
    }
}
