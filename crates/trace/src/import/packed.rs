//! Input that may be compressed: recognised by its first bytes, unpacked as it is read.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;

use super::archive;
use crate::error::{Place, TraceError};

/// Bytes, unpacked.
pub type Input = Box<dyn Read + Send>;

/// A file that was opened.
pub struct Opened {
    pub input: Input,
    /// Names of an archive's members that are not read.
    pub left_out: Vec<String>,
}

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZIP: &[u8] = b"PK\x03\x04";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The first bytes of compressed files that are not unpacked here: their name, and the program that unpacks them.
const OTHERS: [(&[u8], &str, &str); 3] = [
    (b"\x04\x22\x4d\x18", "lz4", "unpack it by `lz4 -d`"),
    (
        b"\xff\x06\x00\x00sN",
        "snappy",
        "write it with `drraw2trace -compress gzip`",
    ),
    (b"BZh", "bzip2", "unpack it by `bunzip2`"),
];

/// The memory that unpacking an xz file may take; `xz -9` takes 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// Examines the first bytes, and unpacks if necessary.
pub fn open(format: &'static str, mut input: Input) -> Result<Input, TraceError> {
    let start = Place { line: None, offset: 0 };
    let fail = |what: String| TraceError::Import {
        format,
        at: start,
        what,
    };
    let mut first = [0u8; 6];
    let mut got = 0;
    while got < first.len() {
        match fill(format, start, &mut input, &mut first[got..])? {
            0 => break,
            n => got += n,
        }
    }
    let first = &first[..got];
    let whole = BufReader::with_capacity(1 << 16, Cursor::new(first.to_vec()).chain(input));
    if first.starts_with(GZIP) {
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(whole)));
    }
    if first.starts_with(XZ) {
        let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)
            .map_err(|e| fail(format!("cannot unpack xz: {e}")))?;
        return Ok(Box::new(liblzma::bufread::XzDecoder::new_stream(whole, stream)));
    }
    if first.starts_with(ZSTD) {
        let decoder = zstd::Decoder::with_buffer(whole).map_err(|e| fail(format!("cannot unpack zstd: {e}")))?;
        return Ok(Box::new(decoder));
    }
    if first.starts_with(ZIP) {
        return Err(fail(
            "a zip archive cannot be read from a pipe: give the file itself".into(),
        ));
    }
    if let Some((_, name, remedy)) = OTHERS.iter().find(|(begin, ..)| first.starts_with(begin)) {
        return Err(fail(format!("it is compressed by {name}, which is not read: {remedy}")));
    }
    Ok(Box::new(whole))
}

/// Opens a file. The members of a zip archive are read one after the other, as drmemtrace splits its traces; `wanted`
/// selects them by name.
pub fn open_file(format: &'static str, path: &Path, wanted: fn(&str) -> bool) -> Result<Opened, TraceError> {
    let failed = |source| TraceError::Open {
        path: path.to_path_buf(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut first = [0u8; 4];
    let zip = about.is_file() && file.read_exact(&mut first).is_ok() && first == ZIP;
    if about.is_file() {
        file.rewind().map_err(failed)?;
    }
    if zip {
        let (members, left_out) = archive::open(format, file, wanted)?;
        return Ok(Opened {
            input: Box::new(members),
            left_out,
        });
    }
    Ok(Opened {
        input: Box::new(file),
        left_out: Vec::new(),
    })
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
