//! Input that may be compressed: told by its first bytes, unpacked as it is read.

use std::io::{self, Chain, Cursor, Read};

use crate::error::{Place, TraceError};

/// Input whose first bytes have been looked at and put back.
pub type Input = Box<dyn Read + Send>;

/// Looks at the first bytes and unpacks what needs unpacking.
pub fn open(format: &'static str, mut input: Input) -> Result<Input, TraceError> {
    let mut first = [0u8; 6];
    let start = Place { line: None, offset: 0 };
    let mut got = 0;
    while got < first.len() {
        match fill(format, start, &mut input, &mut first[got..])? {
            0 => break,
            n => got += n,
        }
    }
    let whole: Chain<Cursor<Vec<u8>>, Input> = Cursor::new(first[..got].to_vec()).chain(input);
    Ok(Box::new(whole))
}

/// Reads some bytes; 0 at the end. `place` is for the message.
pub fn fill(format: &'static str, place: Place, input: &mut impl Read, into: &mut [u8]) -> Result<usize, TraceError> {
    loop {
        match input.read(into) {
            Ok(got) => return Ok(got),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                return Err(TraceError::Import {
                    format,
                    at: place,
                    what: format!("cannot read on: {e}"),
                });
            }
        }
    }
}
