//! The members of a zip archive, one after the other, as one input.
//!
//! A member's checksum is compared at its end: otherwise a damaged one would look like a shorter or different trace.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};

use crate::error::{Place, TraceError};

/// The prefix of the names of drmemtrace's pieces; a number follows.
const CHUNK: &str = "chunk.";

/// The archive's members, and the names of unread members that are `wanted`. If some are numbered pieces, these are the
/// trace, in the order of their numbers; else all that are `wanted`, in the order of the archive.
pub fn open(format: &'static str, file: File, wanted: fn(&str) -> bool) -> Result<(Members, Vec<String>), TraceError> {
    let at = Place { line: None, offset: 0 };
    let fail = |what: String| TraceError::Import { format, at, what };
    let bad = |e: zip::result::ZipError| fail(format!("cannot read the zip archive: {e}"));
    let mut archive = zip::ZipArchive::new(BufReader::new(&file)).map_err(bad)?;
    let mut members = Vec::with_capacity(archive.len());
    for i in 0..archive.len() {
        let member = archive.by_index_raw(i).map_err(bad)?;
        let name = member.name().map_err(bad)?.into_owned();
        if member.is_dir() {
            continue;
        }
        if member.encrypted() {
            let what = format!("the zip archive's member `{name}` is encrypted: unpack it by `unzip`");
            return Err(fail(what));
        }
        members.push(Member {
            start: member.data_start().unwrap_or(0),
            bytes: member.compressed_size(),
            whole: member.size(),
            sum: member.crc32(),
            compression: member.compression(),
            name,
        });
    }
    drop(archive);
    let pieces = members.iter().any(|member| piece(&member.name).is_some());
    let (mut members, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| match pieces {
        true => piece(&member.name).is_some(),
        false => wanted(&member.name),
    });
    members.sort_by(|one, other| piece(&one.name).cmp(&piece(&other.name)));
    if let Some(member) = members.iter().find(|member| member.deflated().is_none()) {
        let what = format!(
            "the zip archive's members are packed by {}, unpack it by `unzip`",
            member.compression
        );
        return Err(fail(what));
    }
    let members = Members {
        file,
        members: members.into_iter(),
        now: None,
    };
    let others = others.into_iter().map(|member| member.name);
    Ok((members, others.filter(|name| wanted(name)).collect()))
}

/// The folder and the number of a piece; `None` if the name is not a piece's.
fn piece(name: &str) -> Option<(&str, u64)> {
    let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
    Some((folder, last.strip_prefix(CHUNK)?.parse().ok()?))
}

/// The packed bytes of an archive's member, and the checks on the unpacked ones.
struct Member {
    name: String,
    start: u64,
    bytes: u64,
    whole: u64,
    sum: u32,
    compression: zip::CompressionMethod,
}

impl Member {
    /// `Some(true)`: deflated; `Some(false)`: stored; `None`: neither.
    fn deflated(&self) -> Option<bool> {
        match self.compression {
            zip::CompressionMethod::Deflated => Some(true),
            zip::CompressionMethod::Stored => Some(false),
            _ => None,
        }
    }
}

/// The members, as one input.
pub struct Members {
    file: File,
    members: std::vec::IntoIter<Member>,
    now: Option<Unpacked>,
}

struct Unpacked {
    of: Member,
    bytes: Bytes,
    got: u64,
    sum: crc32fast::Hasher,
}

enum Bytes {
    Deflated(flate2::read::DeflateDecoder<Take<File>>),
    Stored(Take<File>),
}

impl Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = match &mut self.bytes {
            Bytes::Deflated(bytes) => bytes.read(into)?,
            Bytes::Stored(bytes) => bytes.read(into)?,
        };
        self.got += got as u64;
        self.sum.update(&into[..got]);
        Ok(got)
    }

    /// The checks at its end.
    fn check(self) -> io::Result<()> {
        if self.got == self.of.whole && self.sum.finalize() == self.of.sum {
            return Ok(());
        }
        let what = format!("the zip archive's member `{}` is damaged; copy it again", self.of.name);
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(now) = &mut self.now {
                let got = now.read(into)?;
                if got > 0 {
                    return Ok(got);
                }
            }
            if let Some(ended) = self.now.take() {
                ended.check()?;
            }
            let Some(member) = self.members.next() else {
                return Ok(0);
            };
            // Clones of a file share its position, so the previous one must be finished, and it is.
            let mut file = self.file.try_clone()?;
            file.seek(SeekFrom::Start(member.start))?;
            let bytes = file.take(member.bytes);
            self.now = Some(Unpacked {
                bytes: match member.deflated() {
                    Some(true) => Bytes::Deflated(flate2::read::DeflateDecoder::new(bytes)),
                    _ => Bytes::Stored(bytes),
                },
                of: member,
                got: 0,
                sum: crc32fast::Hasher::new(),
            });
        }
    }
}
