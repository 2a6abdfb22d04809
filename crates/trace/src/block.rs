//! The skeleton of a trace file: 16 bytes of file head, then blocks, each a header of fixed length
//! and a payload. All numbers are little-endian. README.md has the layout byte by byte.

use crate::error::TraceError;

/// First bytes of every trace: a byte that no text has, the name, and line ends that reveal a transfer which rewrites
/// them.
pub const FILE_MAGIC: [u8; 8] = *b"\x8dDOM\r\n\x1a\n";
pub const VERSION: u16 = 5;
pub const FILE_HEAD: u64 = 16;
/// First bytes of every block.
pub const BLOCK_MAGIC: [u8; 4] = *b"dBlk";
pub const BLOCK_HEAD: usize = 52;

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Header = 1,
    Sites = 2,
    Tables = 3,
    Chunk = 4,
    Order = 5,
    Index = 6,
    Footer = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Header,
            2 => Kind::Sites,
            3 => Kind::Tables,
            4 => Kind::Chunk,
            5 => Kind::Order,
            6 => Kind::Index,
            7 => Kind::Footer,
            _ => return None,
        })
    }
}

/// The header of a block. The meaning of `id`, `count`, `first`, `sum` and `events` depends on the kind:
///
/// | kind | id | count | first | sum | events |
/// | --- | --- | --- | --- | --- | --- |
/// | Chunk | thread | references | references of the thread before it | instructions | events |
/// | Sites | first site | sites | 0 | 0 | 0 |
/// | Order | 0 | runs | 0 | 0 | 0 |
/// | Index | 0 | blocks | 0 | 0 | 0 |
/// | Footer | 0 | 0 | offset of the index | 0 | 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    pub kind: Kind,
    /// True if the payload is a zstd frame; otherwise it is uncompressed.
    pub compressed: bool,
    /// Bytes of payload in the file, and once decompressed.
    pub stored: u32,
    pub raw: u32,
    pub id: u32,
    pub count: u32,
    pub first: u64,
    pub sum: u64,
    pub events: u32,
    /// CRC-32 of the payload as stored.
    pub crc: u32,
}

impl BlockHead {
    pub fn new(kind: Kind) -> BlockHead {
        BlockHead {
            kind,
            compressed: false,
            stored: 0,
            raw: 0,
            id: 0,
            count: 0,
            first: 0,
            sum: 0,
            events: 0,
            crc: crc32fast::hash(&[]),
        }
    }

    pub fn to_bytes(self) -> [u8; BLOCK_HEAD] {
        let mut b = [0u8; BLOCK_HEAD];
        b[0..4].copy_from_slice(&BLOCK_MAGIC);
        b[4] = self.kind as u8;
        b[5] = u8::from(self.compressed);
        b[8..12].copy_from_slice(&self.stored.to_le_bytes());
        b[12..16].copy_from_slice(&self.raw.to_le_bytes());
        b[16..20].copy_from_slice(&self.id.to_le_bytes());
        b[20..24].copy_from_slice(&self.count.to_le_bytes());
        b[24..32].copy_from_slice(&self.first.to_le_bytes());
        b[32..40].copy_from_slice(&self.sum.to_le_bytes());
        b[40..44].copy_from_slice(&self.events.to_le_bytes());
        b[44..48].copy_from_slice(&self.crc.to_le_bytes());
        let crc = crc32fast::hash(&b[..48]);
        b[48..52].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// `offset` is the place of the bytes in the file, for the message.
    pub fn from_bytes(b: &[u8; BLOCK_HEAD], offset: u64) -> Result<BlockHead, TraceError> {
        if b[0..4] != BLOCK_MAGIC {
            return Err(TraceError::damaged(offset, "no block begins here"));
        }
        if crc32fast::hash(&b[..48]) != u32_at(b, 48) {
            return Err(TraceError::damaged(
                offset,
                "the block header does not match its checksum",
            ));
        }
        let kind = Kind::from_byte(b[4])
            .ok_or_else(|| TraceError::damaged(offset, format!("unknown kind of block {}", b[4])))?;
        if b[5] > 1 || b[6] != 0 || b[7] != 0 {
            return Err(TraceError::damaged(offset, "unknown flags in a block header"));
        }
        Ok(BlockHead {
            kind,
            compressed: b[5] == 1,
            stored: u32_at(b, 8),
            raw: u32_at(b, 12),
            id: u32_at(b, 16),
            count: u32_at(b, 20),
            first: u64_at(b, 24),
            sum: u64_at(b, 32),
            events: u32_at(b, 40),
            crc: u32_at(b, 44),
        })
    }
}

/// The first bytes of the file: magic, version, two zero bytes, CRC-32 of those twelve.
pub fn file_head() -> [u8; FILE_HEAD as usize] {
    let mut b = [0u8; FILE_HEAD as usize];
    b[..8].copy_from_slice(&FILE_MAGIC);
    b[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32fast::hash(&b[..12]);
    b[12..16].copy_from_slice(&crc.to_le_bytes());
    b
}

/// The beginning of a file that is no trace: as text, if it is text.
fn begins_with(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.starts_with('{') => "it looks like a result, which `domicile report` shows".to_string(),
        Ok(text)
            if text
                .chars()
                .all(|character| !character.is_control() || character.is_whitespace()) =>
        {
            format!("it begins with the text {text:?}")
        }
        _ if bytes.starts_with(b"\x7fELF") => "it is a program, of which `domicile record` makes a trace".to_string(),
        _ => format!("it begins with the bytes {bytes:02x?}"),
    }
}

/// Checks the first bytes of a file; `bytes` holds up to sixteen of them.
pub fn check_file_head(bytes: &[u8]) -> Result<(), TraceError> {
    if bytes.is_empty() {
        return Err(TraceError::NotATrace {
            what: "the file is empty".into(),
        });
    }
    let seen = bytes.len().min(8);
    if bytes[..seen] != FILE_MAGIC[..seen] {
        return Err(TraceError::NotATrace {
            what: begins_with(&bytes[..seen]),
        });
    }
    if bytes.len() < FILE_HEAD as usize {
        return Err(TraceError::damaged(
            bytes.len() as u64,
            "the file ends inside its first 16 bytes",
        ));
    }
    if crc32fast::hash(&bytes[..12]) != u32_at(bytes, 12) {
        return Err(TraceError::damaged(8, "the file head does not match its checksum"));
    }
    let found = u16::from_le_bytes([bytes[8], bytes[9]]);
    // Newer versions add kinds of events and of references, which older files do not have.
    if !(1..=VERSION).contains(&found) {
        return Err(TraceError::Version { found, known: VERSION });
    }
    Ok(())
}

/// Reads at a place that the caller knows to exist.
pub fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

pub fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}
