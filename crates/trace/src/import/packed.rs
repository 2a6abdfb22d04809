//! Input that may be compressed: recognised by its first bytes, unpacked as it is read.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Take};
use std::path::Path;

use crate::error::{Place, TraceError};

/// Bytes, unpacked.
pub type Input = Box<dyn Read + Send>;

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZIP: &[u8] = b"PK\x03\x04";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// What unpacking an xz file may take; `xz -9` takes 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// Looks at the first bytes and unpacks what needs unpacking.
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
    Ok(Box::new(whole))
}

/// Opens a file. A zip archive is read as its members one after the other, which is how drmemtrace
/// cuts its traces.
pub fn open_file(format: &'static str, path: &Path) -> Result<Input, TraceError> {
    let failed = |source| TraceError::Open {
        path: path.to_path_buf(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !about.is_file() {
        return Ok(Box::new(file));
    }
    let mut first = [0u8; 4];
    let zip = file.read_exact(&mut first).is_ok() && first == ZIP;
    file.rewind().map_err(failed)?;
    if !zip {
        return Ok(Box::new(file));
    }
    let at = Place { line: None, offset: 0 };
    let bad = |e: zip::result::ZipError| TraceError::Import {
        format,
        at,
        what: format!("cannot read the zip archive: {e}"),
    };
    let mut archive = zip::ZipArchive::new(BufReader::new(&file)).map_err(bad)?;
    let mut members = Vec::with_capacity(archive.len());
    for i in 0..archive.len() {
        let member = archive.by_index_raw(i).map_err(bad)?;
        let deflated = match member.compression() {
            zip::CompressionMethod::Deflated => true,
            zip::CompressionMethod::Stored => false,
            other => {
                let what = format!("the zip archive's members are packed by {other}, unpack it by `unzip`");
                return Err(TraceError::Import { format, at, what });
            }
        };
        let start = member.data_start().unwrap_or(0);
        members.push(Member {
            start,
            bytes: member.compressed_size(),
            deflated,
        });
    }
    drop(archive);
    Ok(Box::new(Members {
        file,
        members: members.into_iter(),
        now: None,
    }))
}

/// Where the packed bytes of an archive's member are.
struct Member {
    start: u64,
    bytes: u64,
    deflated: bool,
}

/// The members of a zip archive one after the other.
struct Members {
    file: File,
    members: std::vec::IntoIter<Member>,
    now: Option<Unpacked>,
}

enum Unpacked {
    Deflated(flate2::read::DeflateDecoder<Take<File>>),
    Stored(Take<File>),
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = match &mut self.now {
                None => 0,
                Some(Unpacked::Deflated(member)) => member.read(into)?,
                Some(Unpacked::Stored(member)) => member.read(into)?,
            };
            if got > 0 || into.is_empty() {
                return Ok(got);
            }
            let Some(member) = self.members.next() else {
                self.now = None;
                return Ok(0);
            };
            // Clones of a file share its place, so the one before must be done, and it is.
            let mut file = self.file.try_clone()?;
            file.seek(SeekFrom::Start(member.start))?;
            let bytes = file.take(member.bytes);
            self.now = Some(if member.deflated {
                Unpacked::Deflated(flate2::read::DeflateDecoder::new(bytes))
            } else {
                Unpacked::Stored(bytes)
            });
        }
    }
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
