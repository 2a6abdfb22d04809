//! What a program tells `domicile record` about its cache slots, from Rust: the requests of
//! `capture/valgrind/domicile-trace.h`, which explains them.
//!
//! Each costs a few instructions and does nothing where nobody listens.

/// In the place of a slot: the data set is not worth caching.
pub const NO_SLOT: u64 = u64::MAX;

/// Whether the program is being recorded. Page colors then mean nothing: nobody should move a frame.
pub fn recording() -> bool {
    request(Request::Recording, [0; 3]) == 1
}

/// Slot `slot` has `bytes` in each shared cache.
pub fn slot(slot: u64, bytes: u64, private: bool) {
    request(Request::Slot, [slot, bytes, u64::from(private)]);
}

pub fn slot_free(slot: u64) {
    request(Request::SlotFree, [slot, 0, 0]);
}

/// `[addr, addr + bytes)` belongs to data set `set`.
pub fn data_range(set: u64, addr: u64, bytes: u64) {
    request(Request::DataRange, [set, addr, bytes]);
}

/// The thread of that number (as gettid tells it; 0: the calling one) uses the data set. Without this, all threads do.
pub fn data_thread(set: u64, tid: u64) {
    request(Request::DataThread, [set, tid, 0]);
}

/// The data set gets the slot, or [`NO_SLOT`].
pub fn allocate(set: u64, slot: u64) {
    request(Request::Allocate, [set, slot, 0]);
}

pub fn data_free(set: u64) {
    request(Request::DataFree, [set, 0, 0]);
}

/// The numbers of domicile-trace.h.
#[derive(Clone, Copy)]
enum Request {
    Slot = 5,
    SlotFree = 6,
    DataRange = 7,
    DataThread = 8,
    Allocate = 9,
    DataFree = 10,
    Recording = 11,
}

#[cfg(target_arch = "x86_64")]
fn request(request: Request, [a, b, c]: [u64; 3]) -> u64 {
    let words = [0x444d_0000 + request as u64, a, b, c, 0, 0];
    let mut result = 0u64;
    // SAFETY: on the bare processor the rotations of rdi add up to 128 bits and the exchange is of a register with
    // itself, so that nothing but the flags changes. Under Valgrind the request reads the six words that rax points
    // to, which live until the block ends, and writes rdx. rbx is named in the code but not changed.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") result,
            options(nostack),
        );
    }
    result
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_request: Request, _words: [u64; 3]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_happens_where_nobody_listens() {
        assert!(!super::recording());
        super::slot(1, 65536, true);
        super::data_range(1, 4096, 8192);
        super::data_thread(1, 0);
        super::allocate(1, 1);
        super::allocate(1, super::NO_SLOT);
        super::data_free(1);
        super::slot_free(1);
    }
}
