//! The replacements of the C library's functions: the program's calls arrive here.
//!
//! The few instructions at the beginning of each pass the return address on as one more argument; nothing else knows
//! the caller.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};

use results::site::Memory;

use crate::{arena, next, padding, placing};

type Pointer = *mut c_void;
const NULL: Pointer = std::ptr::null_mut();

/// A function of the C library's name and type that continues in ours, with the return address in the register of one
/// more argument.
macro_rules! entries {
    ($($symbol:ident($($argument:ident: $kind:ty),*) => $to:ident, $x86:literal, $arm:literal;)*) => {$(
        /// # Safety
        /// As the function of that name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol($($argument: $kind),*) -> Pointer {
            naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {to}", to = sym $to)
        }

        /// # Safety
        /// As the function of that name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol($($argument: $kind),*) -> Pointer {
            naked_asm!(concat!("mov ", $arm, ", x30"), "b {to}", to = sym $to)
        }
    )*};
}

entries! {
    malloc(_bytes: usize) => malloc_for, "rsi", "x1";
    calloc(_count: usize, _bytes: usize) => calloc_for, "rdx", "x2";
    realloc(_block: Pointer, _bytes: usize) => realloc_for, "rdx", "x2";
    reallocarray(_block: Pointer, _count: usize, _bytes: usize) => reallocarray_for, "rcx", "x3";
    memalign(_alignment: usize, _bytes: usize) => memalign_for, "rdx", "x2";
    aligned_alloc(_alignment: usize, _bytes: usize) => aligned_alloc_for, "rdx", "x2";
    valloc(_bytes: usize) => valloc_for, "rsi", "x1";
    pvalloc(_bytes: usize) => pvalloc_for, "rsi", "x1";
    _Znwm(_bytes: usize) => new_for, "rsi", "x1";
    _Znam(_bytes: usize) => new_array_for, "rsi", "x1";
    _ZnwmRKSt9nothrow_t(_bytes: usize, _tag: Pointer) => new_or_null_for, "rdx", "x2";
    _ZnamRKSt9nothrow_t(_bytes: usize, _tag: Pointer) => new_array_or_null_for, "rdx", "x2";
    _ZnwmSt11align_val_t(_bytes: usize, _alignment: usize) => new_aligned_for, "rdx", "x2";
    _ZnamSt11align_val_t(_bytes: usize, _alignment: usize) => new_array_aligned_for, "rdx", "x2";
}

/// # Safety
/// As the function of that name.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_memalign(_into: *mut Pointer, _alignment: usize, _bytes: usize) -> c_int {
    naked_asm!("mov rcx, [rsp]", "jmp {to}", to = sym posix_memalign_for)
}

/// # Safety
/// As the function of that name.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_memalign(_into: *mut Pointer, _alignment: usize, _bytes: usize) -> c_int {
    naked_asm!("mov x3, x30", "b {to}", to = sym posix_memalign_for)
}

/// The seventh argument goes on the stack, and code that walks the stack needs to know that.
macro_rules! mappers {
    ($($symbol:ident),*) => {$(
        /// # Safety
        /// As the function of that name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(_at: Pointer, _bytes: usize, _rights: c_int, _flags: c_int, _file: c_int, _offset: i64) -> Pointer {
            naked_asm!(
                ".cfi_startproc",
                "push [rsp]",
                ".cfi_adjust_cfa_offset 8",
                "call {to}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                to = sym mmap_for
            )
        }

        /// # Safety
        /// As the function of that name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(_at: Pointer, _bytes: usize, _rights: c_int, _flags: c_int, _file: c_int, _offset: i64) -> Pointer {
            naked_asm!("mov x6, x30", "b {to}", to = sym mmap_for)
        }
    )*};
}

mappers!(mmap, mmap64);

/// A data set's block, if the call is for one.
#[inline]
fn placed(bytes: usize, alignment: usize, caller: usize) -> Option<placing::Given> {
    let target = placing::target(caller, bytes, Memory::Heap)?;
    placing::take(target, bytes, alignment)
}

unsafe extern "C-unwind" fn malloc_for(bytes: usize, caller: usize) -> Pointer {
    match placed(bytes, 16, caller) {
        Some(given) => given.pointer,
        // SAFETY: the program's own call, for more bytes.
        None => match padding::block(bytes, 16, |bytes| unsafe { next::malloc(bytes) }) {
            Some(block) => block,
            // SAFETY: the program's own call.
            None => unsafe { next::malloc(bytes) },
        },
    }
}

unsafe extern "C-unwind" fn calloc_for(count: usize, bytes: usize, caller: usize) -> Pointer {
    let whole = count.checked_mul(bytes);
    match whole.and_then(|whole| placed(whole, 16, caller)) {
        Some(given) => {
            if !given.clean {
                // SAFETY: the block has that many bytes, and the program does not have it yet.
                unsafe { given.pointer.cast::<u8>().write_bytes(0, count * bytes) };
            }
            given.pointer
        }
        // SAFETY: the program's own call, for more bytes.
        None => match whole.and_then(|whole| padding::block(whole, 16, |bytes| unsafe { next::calloc(1, bytes) })) {
            Some(block) => block,
            // SAFETY: the program's own call.
            None => unsafe { next::calloc(count, bytes) },
        },
    }
}

unsafe extern "C-unwind" fn realloc_for(block: Pointer, bytes: usize, caller: usize) -> Pointer {
    if block.is_null() {
        // SAFETY: as malloc.
        return unsafe { malloc_for(bytes, caller) };
    }
    let target = placing::target(caller, bytes, Memory::Heap);
    let room = if arena::holds(block.addr()) {
        if bytes == 0 {
            placing::free(block);
            return NULL;
        }
        match placing::resize(block, bytes, target) {
            placing::Resized::InPlace => return block,
            placing::Resized::Move { room, target } => (room, target),
        }
    } else if next::is_first(block) {
        (next::first_bytes(block), target)
    } else if target.is_some() && bytes > 0 {
        // SAFETY: the program's own block.
        (unsafe { malloc_usable_size(block) }, target)
    } else {
        // SAFETY: the program's own call.
        let resized = unsafe { padding::resized(block, bytes) };
        // SAFETY: the program's own call.
        return resized.unwrap_or_else(|| unsafe { next::realloc(block, bytes) });
    };
    let (room, target) = room;
    let (new, clean) = match target.and_then(|target| placing::take(target, bytes, 16)) {
        Some(given) => (given.pointer, given.clean),
        // SAFETY: any size may be asked for.
        None if bytes >= SPARSE => (unsafe { next::calloc(1, bytes) }, true),
        // SAFETY: any size may be asked for.
        None => (unsafe { next::malloc(bytes) }, false),
    };
    if !new.is_null() {
        // SAFETY: the old block has that much room, the new one that many bytes, and they are not the same.
        unsafe { copy(block.cast(), new.cast(), bytes.min(room), clean && bytes >= SPARSE) };
        // SAFETY: the program gave the old block up.
        unsafe { free(block) };
    }
    new
}

/// From this size on, untouched parts of a block stay untouched when it moves.
const SPARSE: usize = 1 << 20;

/// # Safety
/// Both have that many bytes and do not overlap; with `sparse` the new place is zeroed.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, sparse: bool) {
    const PAGE: usize = live::PAGE_BYTES;
    if !sparse {
        // SAFETY: the caller's promise.
        return unsafe { from.copy_to_nonoverlapping(to, bytes) };
    }
    for first in (0..bytes).step_by(PAGE) {
        let count = PAGE.min(bytes - first);
        // SAFETY: the caller's promise.
        let page = unsafe { std::slice::from_raw_parts(from.add(first), count) };
        // A page that was never written reads as zeros, and takes no memory for it.
        if page.iter().any(|&byte| byte != 0) {
            // SAFETY: the caller's promise.
            unsafe { from.add(first).copy_to_nonoverlapping(to.add(first), count) };
        }
    }
}

unsafe extern "C-unwind" fn reallocarray_for(block: Pointer, count: usize, bytes: usize, caller: usize) -> Pointer {
    match count.checked_mul(bytes) {
        // SAFETY: as realloc.
        Some(whole) => unsafe { realloc_for(block, whole, caller) },
        // SAFETY: the program's own call, which fails.
        None => unsafe { next::reallocarray(block, count, bytes) },
    }
}

unsafe extern "C-unwind" fn memalign_for(alignment: usize, bytes: usize, caller: usize) -> Pointer {
    match aligned(alignment, bytes, caller) {
        Some(pointer) => pointer,
        // SAFETY: the program's own call.
        None => unsafe { next::memalign(alignment, bytes) },
    }
}

unsafe extern "C-unwind" fn aligned_alloc_for(alignment: usize, bytes: usize, caller: usize) -> Pointer {
    match aligned(alignment, bytes, caller) {
        Some(pointer) => pointer,
        // SAFETY: the program's own call.
        None => unsafe { next::aligned_alloc(alignment, bytes) },
    }
}

unsafe extern "C-unwind" fn posix_memalign_for(
    into: *mut Pointer,
    alignment: usize,
    bytes: usize,
    caller: usize,
) -> c_int {
    match aligned(alignment, bytes, caller).filter(|_| alignment >= size_of::<Pointer>()) {
        Some(pointer) => {
            // SAFETY: the program's own place for the pointer.
            unsafe { into.write(pointer) };
            0
        }
        // SAFETY: the program's own call.
        None => unsafe { next::posix_memalign(into, alignment, bytes) },
    }
}

/// Handles only valid aligned allocations; the C library reports errors in other calls.
fn aligned(alignment: usize, bytes: usize, caller: usize) -> Option<Pointer> {
    if !alignment.is_power_of_two() || !(size_of::<Pointer>()..=1 << 30).contains(&alignment) {
        return None;
    }
    match placed(bytes, alignment.max(16), caller) {
        Some(given) => Some(given.pointer),
        // SAFETY: any size may be asked for.
        None => padding::block(bytes, alignment, |bytes| unsafe { next::malloc(bytes) }),
    }
}

unsafe extern "C-unwind" fn valloc_for(bytes: usize, caller: usize) -> Pointer {
    match placed(bytes, 4096, caller) {
        Some(given) => given.pointer,
        // SAFETY: the program's own call.
        None => unsafe { next::valloc(bytes) },
    }
}

unsafe extern "C-unwind" fn pvalloc_for(bytes: usize, caller: usize) -> Pointer {
    let whole = bytes.checked_next_multiple_of(4096);
    match whole.and_then(|whole| placed(whole, 4096, caller)) {
        Some(given) => given.pointer,
        // SAFETY: the program's own call.
        None => unsafe { next::pvalloc(bytes) },
    }
}

/// `operator new`: the C++ library handles a failure.
macro_rules! news {
    ($($name:ident($($argument:ident: $kind:ty),*) as $next:ident, aligned to $alignment:expr, $padded:expr;)*) => {$(
        unsafe extern "C-unwind" fn $name(bytes: usize, $($argument: $kind,)* caller: usize) -> Pointer {
            match placed(bytes, $alignment, caller) {
                Some(given) => given.pointer,
                // SAFETY: the program's own call, for more bytes.
                None => match padding::block(bytes, $padded, |bytes| unsafe { next::$next(bytes $(, $argument)*) }) {
                    Some(block) => block,
                    // SAFETY: the program's own call.
                    None => unsafe { next::$next(bytes $(, $argument)*) },
                },
            }
        }
    )*};
}

/// Such blocks are freed with their alignment: they stay unpadded.
const NEVER_PADDED: usize = usize::MAX;

news! {
    new_for() as new, aligned to 16, 16;
    new_array_for() as new_array, aligned to 16, 16;
    new_or_null_for(tag: Pointer) as new_or_null, aligned to 16, 16;
    new_array_or_null_for(tag: Pointer) as new_array_or_null, aligned to 16, 16;
    new_aligned_for(alignment: usize) as new_aligned, aligned to alignment, NEVER_PADDED;
    new_array_aligned_for(alignment: usize) as new_array_aligned, aligned to alignment, NEVER_PADDED;
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn free(block: Pointer) {
    if arena::holds(block.addr()) {
        placing::free(block);
    } else if let Some(given) = padding::taken(block) {
        // SAFETY: the C library's block behind the program's block.
        unsafe { next::free(given) };
    } else if !next::is_first(block) {
        // SAFETY: the program's own block.
        unsafe { next::free(block) };
    }
}

/// `operator delete`: a C++ library with its own allocator does not end in our `free`.
macro_rules! deletes {
    ($($symbol:ident($($argument:ident: $kind:ty),*) as $next:ident, $plain:ident;)*) => {$(
        /// # Safety
        /// As the operator of that name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(block: Pointer $(, $argument: $kind)*) {
            if arena::holds(block.addr()) {
                placing::free(block);
            } else if let Some(given) = padding::taken(block) {
                // SAFETY: `new`'s block behind the program's block, which is larger than the program knows.
                unsafe { next::$plain(given) };
            } else {
                // SAFETY: the program's own block.
                unsafe { next::$next(block $(, $argument)*) };
            }
        }
    )*};
}

deletes! {
    _ZdlPv() as delete, delete;
    _ZdaPv() as delete_array, delete_array;
    _ZdlPvm(bytes: usize) as delete_sized, delete;
    _ZdaPvm(bytes: usize) as delete_array_sized, delete_array;
    _ZdlPvSt11align_val_t(alignment: usize) as delete_aligned, delete;
    _ZdaPvSt11align_val_t(alignment: usize) as delete_array_aligned, delete_array;
    _ZdlPvmSt11align_val_t(bytes: usize, alignment: usize) as delete_sized_aligned, delete;
    _ZdaPvmSt11align_val_t(bytes: usize, alignment: usize) as delete_array_sized_aligned, delete_array;
    _ZdlPvRKSt9nothrow_t(tag: Pointer) as delete_or_null, delete;
    _ZdaPvRKSt9nothrow_t(tag: Pointer) as delete_array_or_null, delete_array;
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn malloc_usable_size(block: Pointer) -> usize {
    if arena::holds(block.addr()) {
        return placing::room(block);
    }
    if let Some(room) = padding::room(block) {
        return room;
    }
    // SAFETY: the program's own block, or null.
    unsafe { next::malloc_usable_size(block) }
}

/// A block of the arena is mapped memory: requests to `mmap` go directly to the kernel here.
unsafe extern "C-unwind" fn mmap_for(
    at: Pointer,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    caller: usize,
) -> Pointer {
    // SAFETY: the program's own call.
    let start = unsafe { next::mmap(at, bytes, rights, flags, file, offset) };
    if start != libc::MAP_FAILED && placing::maps() {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let other = libc::MAP_GROWSDOWN | libc::MAP_HUGETLB | libc::MAP_STACK | libc::MAP_FIXED;
        if rights & both == both
            && flags & (kind | other) == kind
            && let Some(target) = placing::target(caller, bytes, Memory::Map)
        {
            placing::mapped(target, start, bytes);
        }
    }
    start
}

/// # Safety
/// As C's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn munmap(at: Pointer, bytes: usize) -> c_int {
    if placing::maps() {
        placing::unmapped(at, bytes);
    }
    // SAFETY: the program's own call.
    unsafe { next::munmap(at, bytes) }
}

/// # Safety
/// As C's function of that name. (Its last argument is present only with some flags; it is passed on unchanged.)
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mremap(
    at: Pointer,
    bytes: usize,
    wanted: usize,
    flags: c_int,
    new: Pointer,
) -> Pointer {
    if placing::maps() {
        placing::unmapped(at, bytes);
    }
    // If part of its pages is being colored, it would fail halfway.
    // SAFETY: the program's own call.
    sys::changes::change(|| unsafe { next::mremap(at, bytes, wanted, flags, new) })
}
