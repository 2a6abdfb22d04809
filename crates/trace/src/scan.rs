//! Finding the blocks of a file: through its index, or, if a crash or a full disk has left none, by walking from block
//! to block as long as they are complete.

use crate::block::{BLOCK_HEAD, BLOCK_MAGIC, BlockHead, FILE_HEAD, Kind, u64_at};
use crate::error::{Damage, TraceError, within};
use crate::source::{Entry, Room, Source};

/// The blocks of a file in order, and the missing parts.
pub struct Scanned {
    pub blocks: Vec<Entry>,
    pub damage: Vec<Damage>,
}

/// Lists the blocks. Without a complete index, walks the file up to the first incomplete block; with `salvage`,
/// continues after it. With `salvage` every block is checked, so that what stands in damaged ones is not counted.
pub fn blocks(source: &Source, salvage: bool) -> Result<Scanned, TraceError> {
    match indexed(source) {
        Ok(blocks) if salvage => checked(source, blocks),
        Ok(blocks) => Ok(Scanned {
            blocks,
            damage: Vec::new(),
        }),
        Err(_) => walk(source, salvage),
    }
}

/// The blocks of an index that match their checksums.
fn checked(source: &Source, listed: Vec<Entry>) -> Result<Scanned, TraceError> {
    let mut found = Scanned {
        blocks: Vec::with_capacity(listed.len()),
        damage: Vec::new(),
    };
    let mut room = Room::default();
    for entry in listed {
        match source.verify(entry, &mut room) {
            Ok(()) => found.blocks.push(entry),
            Err(error @ TraceError::Read { .. }) => return Err(error),
            Err(error) => {
                let mut damage = error.to_damage(entry.offset);
                match entry.head.kind {
                    // Threads then run in another order, and nothing else is lost.
                    Kind::Order => continue,
                    Kind::Chunk if entry.head.count > 0 => {
                        damage.what = format!("{}; its {} references are lost", damage.what, entry.head.count);
                    }
                    _ => {}
                }
                found.damage.push(damage);
            }
        }
    }
    Ok(found)
}

/// Bytes of an index entry: where the block is, and its header.
const INDEX_ENTRY: usize = 8 + BLOCK_HEAD;

fn indexed(source: &Source) -> Result<Vec<Entry>, TraceError> {
    let end = source.len();
    let at = end.saturating_sub(BLOCK_HEAD as u64);
    let footer = source.head(at)?;
    if footer.head.kind != Kind::Footer || footer.head.stored != 0 {
        return Err(TraceError::damaged(at, "the file does not end in a footer"));
    }
    let index = source.head(footer.head.first)?;
    if index.head.kind != Kind::Index || index.end() != at {
        return Err(TraceError::damaged(
            index.offset,
            "the footer does not lead to the index",
        ));
    }
    // Every entry stands for a block of the file, so the file's length bounds the index.
    let most = end / BLOCK_HEAD as u64;
    within(index.offset, "blocks in the index", u64::from(index.head.count), most)?;
    let length = index.head.count as usize * INDEX_ENTRY;
    let mut room = Room::default();
    source.payload(index, length, &mut room)?;
    if room.raw.len() != length {
        return Err(TraceError::damaged(
            index.offset,
            "the index has another length than it says",
        ));
    }
    let mut blocks = Vec::with_capacity(index.head.count as usize);
    let mut free = FILE_HEAD;
    for entry in room.raw.chunks_exact(INDEX_ENTRY) {
        let offset = u64_at(entry, 0);
        let mut head = [0u8; BLOCK_HEAD];
        head.copy_from_slice(&entry[8..]);
        let entry = Entry {
            offset,
            head: BlockHead::from_bytes(&head, index.offset)?,
        };
        if offset != free || entry.end() > index.offset {
            return Err(TraceError::damaged(
                index.offset,
                "the index names blocks that do not follow each other",
            ));
        }
        free = entry.end();
        blocks.push(entry);
    }
    if free != index.offset {
        return Err(TraceError::damaged(index.offset, "the index leaves blocks out"));
    }
    Ok(blocks)
}

fn walk(source: &Source, salvage: bool) -> Result<Scanned, TraceError> {
    let mut found = Scanned {
        blocks: Vec::new(),
        damage: Vec::new(),
    };
    let mut at = FILE_HEAD;
    let mut room = Room::default();
    let mut finished = false;
    while at < source.len() {
        if finished {
            let extra = source.len() - at;
            found.damage.push(Damage {
                offset: at,
                what: format!("{extra} bytes after the end of the trace"),
            });
            return Ok(found);
        }
        let whole = source
            .head(at)
            .and_then(|entry| source.verify(entry, &mut room).map(|()| entry));
        match whole {
            Ok(entry) => {
                at = entry.end();
                match entry.head.kind {
                    Kind::Footer => finished = true,
                    Kind::Index => {}
                    _ => found.blocks.push(entry),
                }
            }
            Err(error @ TraceError::Read { .. }) => return Err(error),
            Err(error) => {
                let mut damage = error.to_damage(at);
                let next = if salvage { resume(source, at + 1)? } else { None };
                let upto = next.unwrap_or(source.len());
                damage.what = format!("{}; {} bytes from here on are lost", damage.what, upto - at);
                found.damage.push(damage);
                at = upto;
            }
        }
    }
    if !finished && found.damage.is_empty() {
        let what = "the trace was not finished: what its writer still held is lost".to_string();
        found.damage.push(Damage { offset: at, what });
    }
    Ok(found)
}

/// The next place at or after `from` where a block header stands.
fn resume(source: &Source, mut from: u64) -> Result<Option<u64>, TraceError> {
    let mut window = vec![0u8; 1 << 16];
    loop {
        let got = source.read(from, &mut window)?;
        for place in memchr::memmem::find_iter(&window[..got], &BLOCK_MAGIC) {
            let at = from + place as u64;
            if source.head(at).is_ok() {
                return Ok(Some(at));
            }
        }
        if got < window.len() {
            return Ok(None);
        }
        from += (got - BLOCK_MAGIC.len() + 1) as u64;
    }
}
