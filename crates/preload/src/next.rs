//! The functions that ours replace: those of the next library that has them.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A function of the next library, looked for once.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Its address; null while this call itself is searching for it, or if there is none.
    #[inline]
    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look() } else { known }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        // dlsym may itself ask for memory, which then comes from `FIRST`. Only this thread's search counts: another
        // thread's call, of any function, searches itself, and does not take the function for absent.
        if LOOKING.replace(true) {
            return std::ptr::null_mut();
        }
        // SAFETY: dlsym takes RTLD_NEXT and a string that ends in a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        LOOKING.set(false);
        found
    }
}

thread_local! {
    /// True if this thread is searching for a function. (There is nothing to initialise or to drop: it can be read at
    /// any time.)
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

macro_rules! next {
    ($($(#[$about:meta])* $name:ident($symbol:literal): fn($($argument:ident: $kind:ty),*) -> $result:ty, else $otherwise:expr;)*) => {$(
        $(#[$about])*
        ///
        /// # Safety
        /// As the function of that name.
        #[inline]
        pub unsafe fn $name($($argument: $kind),*) -> $result {
            static NEXT: Next = Next::new($symbol);
            let address = NEXT.address();
            if address.is_null() {
                return $otherwise;
            }
            // SAFETY: the dynamic linker gave the address for this name, and C's function of this name has this type.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($kind),*) -> $result>(address)
            };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    )*};
}

type Pointer = *mut c_void;
type Nothing = ();
const NOTHING: Nothing = ();
const NULL: Pointer = std::ptr::null_mut();

next! {
    malloc(c"malloc"): fn(bytes: usize) -> Pointer, else first(bytes, 16);
    calloc(c"calloc"): fn(count: usize, bytes: usize) -> Pointer, else first(count.saturating_mul(bytes), 16);
    realloc(c"realloc"): fn(block: Pointer, bytes: usize) -> Pointer, else NULL;
    reallocarray(c"reallocarray"): fn(block: Pointer, count: usize, bytes: usize) -> Pointer, else NULL;
    memalign(c"memalign"): fn(alignment: usize, bytes: usize) -> Pointer, else first(bytes, alignment);
    aligned_alloc(c"aligned_alloc"): fn(alignment: usize, bytes: usize) -> Pointer, else first(bytes, alignment);
    posix_memalign(c"posix_memalign"): fn(into: *mut Pointer, alignment: usize, bytes: usize) -> c_int, else libc::ENOMEM;
    valloc(c"valloc"): fn(bytes: usize) -> Pointer, else first(bytes, 4096);
    pvalloc(c"pvalloc"): fn(bytes: usize) -> Pointer, else first(bytes, 4096);
    free(c"free"): fn(block: Pointer) -> Nothing, else NOTHING;
    malloc_usable_size(c"malloc_usable_size"): fn(block: Pointer) -> usize, else 0;
    new(c"_Znwm"): fn(bytes: usize) -> Pointer, else NULL;
    new_array(c"_Znam"): fn(bytes: usize) -> Pointer, else NULL;
    new_or_null(c"_ZnwmRKSt9nothrow_t"): fn(bytes: usize, tag: Pointer) -> Pointer, else NULL;
    new_array_or_null(c"_ZnamRKSt9nothrow_t"): fn(bytes: usize, tag: Pointer) -> Pointer, else NULL;
    new_aligned(c"_ZnwmSt11align_val_t"): fn(bytes: usize, alignment: usize) -> Pointer, else NULL;
    new_array_aligned(c"_ZnamSt11align_val_t"): fn(bytes: usize, alignment: usize) -> Pointer, else NULL;
    delete(c"_ZdlPv"): fn(block: Pointer) -> Nothing, else NOTHING;
    delete_array(c"_ZdaPv"): fn(block: Pointer) -> Nothing, else NOTHING;
    delete_sized(c"_ZdlPvm"): fn(block: Pointer, bytes: usize) -> Nothing, else NOTHING;
    delete_array_sized(c"_ZdaPvm"): fn(block: Pointer, bytes: usize) -> Nothing, else NOTHING;
    delete_aligned(c"_ZdlPvSt11align_val_t"): fn(block: Pointer, alignment: usize) -> Nothing, else NOTHING;
    delete_array_aligned(c"_ZdaPvSt11align_val_t"): fn(block: Pointer, alignment: usize) -> Nothing, else NOTHING;
    delete_sized_aligned(c"_ZdlPvmSt11align_val_t"): fn(block: Pointer, bytes: usize, alignment: usize) -> Nothing, else NOTHING;
    delete_array_sized_aligned(c"_ZdaPvmSt11align_val_t"): fn(block: Pointer, bytes: usize, alignment: usize) -> Nothing, else NOTHING;
    delete_or_null(c"_ZdlPvRKSt9nothrow_t"): fn(block: Pointer, tag: Pointer) -> Nothing, else NOTHING;
    delete_array_or_null(c"_ZdaPvRKSt9nothrow_t"): fn(block: Pointer, tag: Pointer) -> Nothing, else NOTHING;
    libc_start_main(c"__libc_start_main"): fn(main: Pointer, count: c_int, arguments: Pointer, init: Pointer, fini: Pointer, linker_fini: Pointer, stack_end: Pointer) -> c_int, else never_started();
    close(c"close"): fn(file: c_int) -> c_int, else -1;
    close_range(c"close_range"): fn(first: c_uint, last: c_uint, flags: c_int) -> c_int, else -1;
    prctl(c"prctl"): fn(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int, else -1;
    syscall(c"syscall"): fn(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long, else -1;
    mmap(c"mmap"): fn(at: Pointer, bytes: usize, rights: c_int, flags: c_int, file: c_int, offset: i64) -> Pointer, else libc::MAP_FAILED;
    munmap(c"munmap"): fn(at: Pointer, bytes: usize) -> c_int, else -1;
    mremap(c"mremap"): fn(at: Pointer, bytes: usize, wanted: usize, flags: c_int, new: Pointer) -> Pointer, else libc::MAP_FAILED;
}

/// Without it there is no program.
fn never_started() -> c_int {
    std::process::abort()
}

/// Memory for the dynamic linker while it searches for the functions above. Never freed.
struct First(UnsafeCell<[u8; FIRST_BYTES]>);

const FIRST_BYTES: usize = 1 << 16;

// SAFETY: an atomic counter gives each piece to one caller.
unsafe impl Sync for First {}

static FIRST: First = First(UnsafeCell::new([0; FIRST_BYTES]));
static FIRST_USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed; null when there is no more.
fn first(bytes: usize, alignment: usize) -> Pointer {
    let start = FIRST.0.get().addr();
    let mut from = FIRST_USED.load(Ordering::Relaxed);
    loop {
        let aligned = (start + from).next_multiple_of(alignment.max(16)) - start;
        let Some(to) = aligned.checked_add(bytes).filter(|to| *to <= FIRST_BYTES) else {
            return NULL;
        };
        match FIRST_USED.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return FIRST.0.get().cast::<u8>().wrapping_add(aligned).cast(),
            Err(now) => from = now,
        }
    }
}

/// Returns true if a block is one of those.
#[inline]
pub fn is_first(block: Pointer) -> bool {
    block.addr().wrapping_sub(FIRST.0.get().addr()) < FIRST_BYTES
}

/// Bytes that may be read of such a block: to the end, since sizes are not kept.
pub fn first_bytes(block: Pointer) -> usize {
    FIRST.0.get().addr() + FIRST_BYTES - block.addr()
}

/// The run-time's own memory, from the next malloc, so that an allocation never calls our functions. (`reserve` stands
/// before it.)
pub struct Own;

// SAFETY: the next malloc's blocks meet this trait's requirements: the size, the alignment, valid until freed.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: any size may be asked for.
            unsafe { malloc(layout.size()).cast() }
        } else {
            // SAFETY: a layout's alignment is a power of two.
            unsafe { memalign(layout.align(), layout.size()).cast() }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: any size may be asked for.
            return unsafe { calloc(1, layout.size()).cast() };
        }
        // SAFETY: a layout's alignment is a power of two.
        let block: *mut u8 = unsafe { memalign(layout.align(), layout.size()).cast() };
        if !block.is_null() {
            // SAFETY: the block has that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        if !is_first(block.cast()) {
            // SAFETY: the block came from the next malloc.
            unsafe { free(block.cast()) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= 16 && !is_first(block.cast()) {
            // SAFETY: the block came from the next malloc.
            return unsafe { realloc(block.cast(), bytes).cast() };
        }
        // SAFETY: a valid alignment stays valid; malloc refuses an impossible size.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(bytes, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks have that many bytes, and they are not the same.
            unsafe { block.copy_to_nonoverlapping(new, bytes.min(layout.size())) };
            // SAFETY: the old block is not used any more.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_looks_keeps_no_other_from_finding() {
        static OWN_CALL: Next = Next::new(c"getenv");
        // As where dlsym asks for memory.
        LOOKING.set(true);
        let within = OWN_CALL.address();
        let elsewhere = std::thread::spawn(|| {
            static OTHER: Next = Next::new(c"setenv");
            OTHER.address().is_null()
        });
        let elsewhere = elsewhere.join();
        LOOKING.set(false);
        assert!(within.is_null(), "a question within the question is not asked");
        assert!(
            !elsewhere.unwrap(),
            "another thread hears that there is no such function"
        );
        assert!(!OWN_CALL.address().is_null());
    }
}
