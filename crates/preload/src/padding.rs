//! Large blocks of the heap on lines of the on-chip cache, each at a different place in it (Bugnion96, section 5.4).
//!
//! The C library puts every block that it maps at the same place of a page, 16 bytes after its start: arrays that are
//! used together then compete for the same lines of a cache whose ways are pages, and begin in the middle of a line.
//! Here a large block is requested with one way more than it needs, and begins within that at the place with the fewest
//! large blocks. A table keeps the C library's block by the address of ours: `free` and similar functions look there.
//! When the table is full, blocks begin where the C library puts them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use live::protocol::{Alignment, Padded};

use crate::{next, placing};

type Pointer = *mut c_void;

/// Blocks that the table has room for, a power of two, and how many entries are tried for each.
const ROOM: usize = 8192;
const TRIES: usize = 16;
/// Stands for an address while an entry changes.
const BUSY: usize = 1;

static ON: AtomicBool = AtomicBool::new(false);
/// True if there may be blocks in the table.
static EVER: AtomicBool = AtomicBool::new(false);
static LINE: AtomicUsize = AtomicUsize::new(64);
static WAY: AtomicUsize = AtomicUsize::new(4096);
static AT_LEAST: AtomicUsize = AtomicUsize::new(usize::MAX);
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Blocks that begin at each place.
static USED: [AtomicU32; Alignment::PLACES] = [const { AtomicU32::new(0) }; Alignment::PLACES];

/// A block that begins inside the C library's block.
struct Entry {
    /// 0: none.
    address: AtomicUsize,
    given: AtomicUsize,
}

static TABLE: [Entry; ROOM] = [const {
    Entry {
        address: AtomicUsize::new(0),
        given: AtomicUsize::new(0),
    }
}; ROOM];

/// Begins. Returns why not, if it cannot be done here.
pub fn begin(how: Alignment) -> Result<(), &'static str> {
    if !ours() {
        return Err("the program has an allocator of its own, whose blocks stay where it puts them");
    }
    LINE.store(how.line, Ordering::Relaxed);
    WAY.store(how.way, Ordering::Relaxed);
    AT_LEAST.store(how.at_least, Ordering::Relaxed);
    EVER.store(true, Ordering::Relaxed);
    ON.store(true, Ordering::Release);
    Ok(())
}

/// Returns true if the program's calls reach us: blocks allocated here must be freed here.
fn ours() -> bool {
    use crate::entry;
    let ours: [(&std::ffi::CStr, usize); 4] = [
        (c"malloc", entry::malloc as *const () as usize),
        (c"calloc", entry::calloc as *const () as usize),
        (c"realloc", entry::realloc as *const () as usize),
        (c"free", entry::free as *const () as usize),
    ];
    ours.iter().all(|&(name, address)| {
        // SAFETY: a search through what is loaded, for a name that ends in a zero.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr() == address
    })
}

/// The report.
pub fn report(how: Alignment, off: Option<String>) -> Padded {
    Padded {
        line: how.line as u64,
        way: how.way as u64,
        at_least: how.at_least as u64,
        blocks: BLOCKS.load(Ordering::Relaxed),
        refused: REFUSED.load(Ordering::Relaxed),
        off,
    }
}

/// A block of this many bytes with its own place, inside a larger one from `ask`. `None`: it is not worth it, or there
/// is no such memory, and the program's own call must be made.
#[inline]
pub fn block(bytes: usize, alignment: usize, ask: impl FnOnce(usize) -> Pointer) -> Option<Pointer> {
    if !ON.load(Ordering::Relaxed) || bytes < AT_LEAST.load(Ordering::Relaxed) || placing::inside() {
        return None;
    }
    padded(bytes, alignment, ask)
}

#[cold]
fn padded(bytes: usize, alignment: usize, ask: impl FnOnce(usize) -> Pointer) -> Option<Pointer> {
    let (line, way) = (LINE.load(Ordering::Relaxed), WAY.load(Ordering::Relaxed));
    if alignment > line {
        return None;
    }
    let given = ask(bytes.checked_add(way)?);
    if given.is_null() {
        return None;
    }
    let places = way / line;
    // The place with the fewest blocks; among equals the first in an order that puts each as far as possible from those
    // before it.
    let bits = places.trailing_zeros();
    let far = |turn: usize| turn.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    let used = |place: &usize| USED[*place].load(Ordering::Relaxed);
    let place = (0..places).map(far).min_by_key(used).unwrap_or(0);
    BLOCKS.fetch_add(1, Ordering::Relaxed);
    Some(at_place(given, place * line))
}

/// The start of the program's block in the given block, at this place in a way.
fn at_place(given: Pointer, place: usize) -> Pointer {
    let way = WAY.load(Ordering::Relaxed);
    let block = given.wrapping_byte_add(place.wrapping_sub(given.addr()) % way);
    if note(block, given) {
        return block;
    }
    REFUSED.fetch_add(1, Ordering::Relaxed);
    given
}

fn places_of(block: usize) -> impl Iterator<Item = &'static Entry> {
    let first = (block >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> (usize::BITS - ROOM.trailing_zeros());
    (0..TRIES).map(move |step| &TABLE[(first + step) % ROOM])
}

fn count(block: usize) -> &'static AtomicU32 {
    &USED[block % WAY.load(Ordering::Relaxed) / LINE.load(Ordering::Relaxed)]
}

/// Keeps the C library's block for a block; returns whether there was room.
fn note(block: Pointer, given: Pointer) -> bool {
    let address = block.addr();
    for entry in places_of(address) {
        let free = entry
            .address
            .compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if free.is_ok() {
            entry.given.store(given.expose_provenance(), Ordering::Relaxed);
            count(address).fetch_add(1, Ordering::Relaxed);
            entry.address.store(address, Ordering::Release);
            return true;
        }
    }
    false
}

/// The entry of a block that the program gives up, exclusively ours until it is put back or left.
struct Held {
    entry: &'static Entry,
    address: usize,
    given: Pointer,
}

fn hold(block: Pointer) -> Option<Held> {
    let address = block.addr();
    if !EVER.load(Ordering::Relaxed) || address == 0 || !address.is_multiple_of(LINE.load(Ordering::Relaxed)) {
        return None;
    }
    let entry = places_of(address).find(|entry| {
        let held = entry
            .address
            .compare_exchange(address, BUSY, Ordering::Acquire, Ordering::Relaxed);
        held.is_ok()
    })?;
    let given = std::ptr::with_exposed_provenance_mut(entry.given.load(Ordering::Relaxed));
    Some(Held { entry, address, given })
}

impl Held {
    /// The program keeps the block.
    fn put_back(self) {
        self.entry.address.store(self.address, Ordering::Release);
    }

    /// The block no longer exists; returns the C library's block.
    fn leave(self) -> Pointer {
        count(self.address).fetch_sub(1, Ordering::Relaxed);
        self.entry.address.store(0, Ordering::Release);
        self.given
    }
}

/// The C library's block behind a block that the program frees, if it is one of these.
#[inline]
pub fn taken(block: Pointer) -> Option<Pointer> {
    hold(block).map(Held::leave)
}

/// Bytes that may be used of a block, if it is one of these.
pub fn room(block: Pointer) -> Option<usize> {
    let held = hold(block)?;
    // SAFETY: what the C library gave, and has not got back.
    let room = unsafe { next::malloc_usable_size(held.given) } - (block.addr() - held.given.addr());
    held.put_back();
    Some(room)
}

/// `realloc` of a block that is one of these; `None` if it is not.
///
/// # Safety
/// As for `realloc`.
pub unsafe fn resized(block: Pointer, bytes: usize) -> Option<Pointer> {
    let held = hold(block)?;
    if bytes == 0 {
        // SAFETY: what the C library gave, and the program gave up.
        unsafe { next::free(held.leave()) };
        return Some(std::ptr::null_mut());
    }
    let (way, shift) = (WAY.load(Ordering::Relaxed), block.addr() - held.given.addr());
    // SAFETY: what the C library gave, and has not got back.
    let old = unsafe { next::malloc_usable_size(held.given) } - shift;
    let Some(whole) = bytes.checked_add(way) else {
        held.put_back();
        return Some(std::ptr::null_mut());
    };
    // SAFETY: what the C library gave, and has not got back.
    let given = unsafe { next::realloc(held.given, whole) };
    if given.is_null() {
        held.put_back();
        return Some(given);
    }
    let place = held.address % way;
    // The old block is gone, also where the new one begins there.
    let _ = held.leave();
    let new = at_place(given, place);
    if new != given.wrapping_byte_add(shift) {
        // SAFETY: the content lies `shift` bytes after the start, and both blocks have its length; the new one is less
        // than a way after the start, and there is a way more than its bytes.
        unsafe {
            given
                .cast::<u8>()
                .wrapping_add(shift)
                .copy_to(new.cast(), old.min(bytes));
        }
    }
    Some(new)
}
