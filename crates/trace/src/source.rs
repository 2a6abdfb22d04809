//! The source that a trace is read from, block by block and from any thread at once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use zstd::bulk::Decompressor;

use crate::block::{BLOCK_HEAD, BlockHead, Kind};
use crate::error::{TraceError, within};

/// A file, or bytes in memory.
pub enum Source {
    File(File, u64),
    Bytes(Vec<u8>),
}

/// A block and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: u64,
    pub head: BlockHead,
}

/// Memory for reading blocks, reused from block to block.
#[derive(Default)]
pub struct Room {
    bytes: Vec<u8>,
    /// The payload of the block that was read last.
    pub raw: Vec<u8>,
    zstd: Option<Decompressor<'static>>,
}

impl Room {
    /// Bytes that the buffers take.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.raw.capacity()
    }
}

impl Entry {
    pub fn end(&self) -> u64 {
        self.offset + BLOCK_HEAD as u64 + u64::from(self.head.stored)
    }
}

impl Source {
    pub fn len(&self) -> u64 {
        match self {
            Source::File(_, length) => *length,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Reads as many bytes as there are from `offset` on, at most `into.len()`.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, TraceError> {
        match self {
            Source::File(file, _) => {
                let mut filled = 0;
                while filled < into.len() {
                    match file.read_at(&mut into[filled..], offset + filled as u64) {
                        Ok(0) => break,
                        Ok(n) => filled += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(source) => {
                            return Err(TraceError::Read {
                                offset: offset + filled as u64,
                                source,
                            });
                        }
                    }
                }
                Ok(filled)
            }
            Source::Bytes(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = into.len().min(bytes.len() - from);
                into[..count].copy_from_slice(&bytes[from..from + count]);
                Ok(count)
            }
        }
    }

    /// The header of the block at `offset`; its payload must lie within the file.
    pub fn head(&self, offset: u64) -> Result<Entry, TraceError> {
        let mut bytes = [0u8; BLOCK_HEAD];
        let got = self.read(offset, &mut bytes)?;
        if got < BLOCK_HEAD {
            return Err(TraceError::damaged(
                offset,
                format!("the file ends {got} bytes into a block header"),
            ));
        }
        let entry = Entry {
            offset,
            head: BlockHead::from_bytes(&bytes, offset)?,
        };
        if entry.end() > self.len() {
            let missing = entry.end() - self.len();
            return Err(TraceError::damaged(
                offset,
                format!("the file ends {missing} bytes before this block does"),
            ));
        }
        Ok(entry)
    }

    /// Reads a block, checks it, and leaves its payload, of at most `allowed` bytes, in `room.raw`.
    pub fn payload(&self, entry: Entry, allowed: usize, room: &mut Room) -> Result<(), TraceError> {
        let Entry { offset, head } = entry;
        within(offset, "bytes in a block", u64::from(head.raw), allowed as u64)?;
        // zstd's output never exceeds its input by much; a larger claim is not from our writer.
        within(
            offset,
            "stored bytes in a block",
            u64::from(head.stored),
            allowed as u64 + (allowed as u64 >> 7) + 512,
        )?;
        if entry.end() > self.len() {
            return Err(TraceError::damaged(offset, "the file ends inside this block"));
        }
        self.stored(entry, &mut room.bytes)?;
        let stored = &room.bytes[BLOCK_HEAD..];
        room.raw.clear();
        if !head.compressed {
            if head.raw != head.stored {
                return Err(TraceError::damaged(
                    offset,
                    "a block that is not compressed has two lengths",
                ));
            }
            room.raw.extend_from_slice(stored);
            return Ok(());
        }
        let broken = |e| TraceError::damaged(offset, format!("a block cannot be decompressed: {e}"));
        let zstd = match &mut room.zstd {
            Some(zstd) => zstd,
            none => none.insert(Decompressor::new().map_err(broken)?),
        };
        room.raw.reserve(head.raw as usize);
        let got = zstd.decompress_to_buffer(stored, &mut room.raw).map_err(broken)?;
        if got != head.raw as usize {
            return Err(TraceError::damaged(
                offset,
                "a block decompresses to another length than it says",
            ));
        }
        Ok(())
    }

    /// Reads a block whole, header first, and checks both checksums.
    fn stored(&self, entry: Entry, bytes: &mut Vec<u8>) -> Result<(), TraceError> {
        let Entry { offset, head } = entry;
        bytes.resize(BLOCK_HEAD + head.stored as usize, 0);
        if self.read(offset, bytes)? != bytes.len() {
            return Err(TraceError::damaged(offset, "the file ends inside this block"));
        }
        if bytes[..BLOCK_HEAD] != head.to_bytes() {
            return Err(TraceError::damaged(
                offset,
                "the block header differs from what the index says",
            ));
        }
        if crc32fast::hash(&bytes[BLOCK_HEAD..]) != head.crc {
            return Err(TraceError::damaged(offset, "a block does not match its checksum"));
        }
        Ok(())
    }

    /// Checks, without decompression, that the payload of a block is as it was written.
    pub fn verify(&self, entry: Entry, room: &mut Room) -> Result<(), TraceError> {
        let allowed = match entry.head.kind {
            Kind::Index => u64::from(u32::MAX),
            _ => crate::limits::TABLE_BYTES as u64 * 2,
        };
        within(
            entry.offset,
            "stored bytes in a block",
            u64::from(entry.head.stored),
            allowed,
        )?;
        self.stored(entry, &mut room.bytes)
    }
}
