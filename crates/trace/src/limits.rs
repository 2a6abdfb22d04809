//! Hard limits of the format: the most that a reader may be asked to hold at once.
//!
//! Every length that comes from a file is checked against one of these before anything is
//! allocated, so that a damaged or hostile file costs an error and not the machine's memory.
//! The writer keeps to the same limits.

/// References in one chunk. A chunk names its sites by 16-bit numbers, so it cannot have more.
pub const CHUNK_REFS: usize = 1 << 16;
/// References of more bytes than this are *wide*: only instructions that save a processor's state make them, and
/// records that stand for a whole copy.
pub const WIDE: u16 = 256;
/// Bytes of the wide references of one chunk together: a reader's work grows with the bytes that references touch, so
/// the file's length must bound it.
pub const WIDE_BYTES: usize = 16 << 20;
/// Events in one chunk.
pub const CHUNK_EVENTS: usize = 1 << 14;
/// Bytes of the encoded events of one chunk (names and hints have variable length).
pub const CHUNK_EVENT_BYTES: usize = 4 << 20;
/// Bytes of a chunk before zstd; the longest possible columns are shorter.
pub const CHUNK_BYTES: usize = 8 << 20;
/// Bytes of a name inside an event, and number of hints of a work item.
pub const NAME_BYTES: usize = 1 << 16;
pub const HINTS: usize = 1 << 12;
/// Bytes of a summary of a parallel loop.
pub const SUMMARY_BYTES: usize = 1 << 20;

/// Bytes of one header or table block before zstd.
pub const TABLE_BYTES: usize = 16 << 20;
/// Bytes of all table blocks of a trace together, before zstd.
pub const TABLES_BYTES: u64 = 1 << 30;
/// The same per byte in the file, beyond one block's [`TABLE_BYTES`]: zstd compresses the names of a program to a
/// tenth, and only deliberate input to a ten-thousandth.
pub const TABLES_PER_STORED: u64 = 256;
/// Sites in one block, and in a trace.
pub const SITES_PER_BLOCK: usize = 1 << 18;
pub const SITES: usize = 1 << 24;
pub const THREADS: usize = 1 << 20;
pub const PROCESSES: usize = 1 << 20;
pub const STACKS: usize = 1 << 24;

/// Runs of the serial schedule in one block.
pub const ORDER_RUNS: usize = 1 << 16;
/// Bytes of such a block before zstd: three numbers of up to 10 bytes each.
pub const ORDER_BYTES: usize = ORDER_RUNS * 30 + 16;

/// The most that the writer buffers for all threads together, in references' worth of memory: 64 MiB.
pub const BUFFERED_REFS: usize = 4 << 20;
