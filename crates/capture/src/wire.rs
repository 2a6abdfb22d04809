//! The language of the ring: the Rust side of `capture/valgrind/wire.h`, which explains it.

/// The first word of the greetings, and the version that both sides must have.
pub const MAGIC: u32 = 0x5243_4d44;
pub const VERSION: u32 = 11;

/// Bytes of the page before the slots.
pub const CONTROL_BYTES: usize = 4096;
/// Words of that page: the tool's next write position, the start of the slots, the number of published slots.
pub const CONTROL_CURSOR: usize = 0;
pub const CONTROL_SLOTS: usize = 2;
pub const CONTROL_PUBLISHED: usize = 3;
/// While nothing is recorded: the real position of the cursor.
pub const CONTROL_ASIDE: usize = 4;
/// The first of the words that state how many words each slot has.
pub const CONTROL_WORDS: usize = 5;

/// The top bit marks words that are not addresses.
pub const TAGGED: u64 = 1 << 63;
const KIND_SHIFT: u32 = 60;
pub const NULL: u64 = 0x8;
pub const BLOCK: u64 = 0x9;
pub const EXIT: u64 = 0xa;
pub const RECORD: u64 = 0xb;

/// The kind of a tagged word: [`NULL`], [`BLOCK`], [`EXIT`], [`RECORD`]; below 8 for an address.
#[inline(always)]
pub fn kind(word: u64) -> u64 {
    word >> KIND_SHIFT
}

/// Types of records.
pub mod record {
    pub const BLOCK: u32 = 1;
    pub const THREAD: u32 = 2;
    pub const THREAD_CREATE: u32 = 3;
    pub const THREAD_START: u32 = 4;
    pub const THREAD_EXIT: u32 = 5;
    pub const THREAD_NAME: u32 = 6;
    pub const MAP: u32 = 7;
    pub const UNMAP: u32 = 8;
    pub const STACK: u32 = 9;
    pub const ALLOC: u32 = 10;
    pub const FREE: u32 = 11;
    pub const SYNC: u32 = 12;
    pub const FORK: u32 = 13;
    pub const WAITED: u32 = 14;
    pub const EXEC: u32 = 15;
    pub const PROGRAM: u32 = 16;
    pub const END: u32 = 17;
    pub const PHASE: u32 = 18;
    pub const WORK_BEGIN: u32 = 19;
    pub const WORK_END: u32 = 20;
    pub const ARRAY: u32 = 21;
    pub const SWITCH: u32 = 22;
    pub const SLOTS: u32 = 23;
    pub const SUMMARY: u32 = 24;
    pub const SPUN: u32 = 25;
    pub const LIMIT_REFUSED: u32 = 26;
    pub const LATENCY: u32 = 27;
    pub const CALLED: u32 = 28;
    pub const LINE: u32 = 29;
    pub const AT_LINES: u32 = 30;
}

/// Operations of `record::SLOTS`.
pub mod slots {
    pub const DEFINE: u64 = 1;
    pub const FREE: u64 = 2;
    pub const RANGE: u64 = 3;
    pub const THREAD: u64 = 4;
    pub const ALLOCATE: u64 = 5;
    pub const DATA_FREE: u64 = 6;
    /// In place of a slot: none.
    pub const NONE: u64 = u64::MAX;
}

/// Kinds of mappings.
pub mod map {
    pub const FILE: u64 = 1;
    pub const STACK: u64 = 3;
}

/// Operations of `record::SYNC`.
pub mod sync {
    pub const LOCK: u64 = 1;
    pub const UNLOCK: u64 = 2;
    pub const BARRIER_INIT: u64 = 3;
    pub const BARRIER: u64 = 4;
    pub const COND_SIGNAL: u64 = 5;
    pub const COND_WAITED: u64 = 6;
    pub const SEM_INIT: u64 = 7;
    pub const SEM_POST: u64 = 8;
    pub const SEM_WAITED: u64 = 9;
    pub const JOINED: u64 = 10;
    pub const TEAM_START: u64 = 11;
    pub const TEAM_ENTER: u64 = 12;
    pub const TEAM_LEAVE: u64 = 13;
    pub const TEAM_END: u64 = 14;
    pub const FUTEX_WAKE: u64 = 15;
    pub const FUTEX_WAITED: u64 = 16;
    pub const RESTORE: u64 = 17;
    pub const READ_LOCK: u64 = 18;
    pub const TEAM_BARRIER: u64 = 19;
}

/// Type and payload of the record whose head is `words[at]`; `None` if it is cut short.
pub fn payload(words: &[u64], at: usize) -> Option<(u32, &[u64])> {
    let head = *words.get(at)?;
    let kind = ((head >> 48) & 0xfff) as u32;
    let count = (head & 0xffff_ffff) as usize;
    let payload = words.get(at + 1..)?.get(..count)?;
    Some((kind, payload))
}

/// The text that begins at `words[at]` of a payload.
pub fn text(words: &[u64], at: usize) -> Vec<u8> {
    let Some((&bytes, rest)) = words.get(at..).and_then(|w| w.split_first()) else {
        return Vec::new();
    };
    let mut out: Vec<u8> = rest.iter().flat_map(|w| w.to_le_bytes()).collect();
    out.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    out
}

/// The tool's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub pid: u32,
    pub parent: u32,
    pub forked: bool,
    pub parent_slots: u64,
}

pub const HELLO_BYTES: usize = 32;

impl Hello {
    /// Reads the message; the error is for the notes.
    pub fn parse(message: &[u8]) -> Result<Hello, &'static str> {
        let word = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(message.get(at..at + 4)?.try_into().ok()?)) };
        if message.len() != HELLO_BYTES || word(0) != Some(MAGIC) {
            return Err("something connected that is not our tool");
        }
        if word(4) != Some(VERSION) {
            return Err("the tool and the recorder are of different versions: build both again");
        }
        let field = |at: usize| word(at).unwrap_or(0);
        Ok(Hello {
            pid: field(8),
            parent: field(12),
            forked: field(16) != 0,
            parent_slots: u64::from(field(24)) | u64::from(field(28)) << 32,
        })
    }
}

/// The answer to a [`Hello`].
pub fn welcome(slots: u32, slot_bytes: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    for word in [MAGIC, VERSION, slots, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&slot_bytes.to_le_bytes());
    out
}

#[cfg(test)]
mod tests;
