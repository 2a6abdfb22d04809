//! Pages that are only read, code among them, shown from other memory with the same bytes, at the same address.

use std::io;
use std::os::fd::AsRawFd;

use crate::memory::{PAGE, Span};
use crate::shared_pages::SharedPages;

/// Puts a part of shared pages in the place of a span of this process, if it holds the same bytes. True: it is in place, each
/// page as it was, to be read, and to be executed where `execute` says so. False: the bytes differ, and nothing was done.
///
/// Threads that execute or read there meanwhile, the caller included, go on: the kernel replaces the mapping within one
/// call, and a thread that touches a page in between waits for its end. Later writes, through `mprotect` or by a
/// debugger, stay private to this process. A child of fork has what its parent has.
///
/// # Safety
/// The span is mapped, readable, and nobody writes to it, unmaps it or changes its rights meanwhile. It maps pages of a
/// file, private to this process. Nobody writes to the part of the shared pages any more.
///
/// Errors: EINVAL if span and part are no whole pages; EACCES or EPERM if memory without a file of its own may not be
/// executed here; ENOMEM. After an error nothing has changed.
pub unsafe fn show(pages: &SharedPages, at: usize, span: Span, execute: bool) -> io::Result<bool> {
    let beyond = at.checked_add(span.bytes).is_none_or(|end| end > pages.bytes());
    let whole = [at, span.start, span.bytes]
        .iter()
        .all(|bytes| bytes.is_multiple_of(PAGE));
    if beyond || !whole || span.bytes == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let rights = libc::PROT_READ | if execute { libc::PROT_EXEC } else { 0 };
    let map = |address: usize, fixed: libc::c_int| {
        // SAFETY: a new mapping where the kernel has room; or, fixed, in the place of nothing (below).
        unsafe {
            libc::mmap(
                address as *mut libc::c_void,
                span.bytes,
                rights,
                libc::MAP_PRIVATE | fixed,
                pages.descriptor().as_raw_fd(),
                at as libc::off_t,
            )
        }
    };
    let copy = map(0, 0);
    if copy == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let there = span.start as *mut libc::c_void;
    // SAFETY: both are mapped and can be read for so many bytes; nobody writes to either.
    let same = unsafe {
        let here = std::slice::from_raw_parts(there.cast::<u8>(), span.bytes);
        let other = std::slice::from_raw_parts(copy.cast::<u8>(), span.bytes);
        here == other
    };
    if !same {
        // SAFETY: the mapping that was made just now.
        unsafe { libc::munmap(copy, span.bytes) };
        return Ok(false);
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: what comes to lie there holds the same bytes, with the rights that readers and code need; its caller promises
    // that nobody needs more.
    let moved = unsafe { libc::mremap(copy, span.bytes, span.bytes, flags, there) };
    if moved != libc::MAP_FAILED {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    // Out of memory for the change: the kernel may have unmapped the place already, and then it is filled again.
    if map(span.start, libc::MAP_FIXED) == libc::MAP_FAILED {
        return Err(error);
    }
    // SAFETY: the mapping that was made above, and is still where it was.
    unsafe { libc::munmap(copy, span.bytes) };
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of a file with these bytes, mapped to be read.
    fn mapped(bytes: &[u8]) -> Span {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
        // SAFETY: a new mapping, wherever the kernel has room.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes.len(),
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        Span::new(start as usize, bytes.len())
    }

    #[test]
    fn the_same_bytes_take_the_place_and_others_do_not() {
        let bytes = [7u8; 2 * PAGE];
        let span = mapped(&bytes);
        let pages = SharedPages::executable("domicile-test", 8 * PAGE).unwrap();
        pages.write(2 * PAGE, &bytes).unwrap();
        // SAFETY: the mapping was made for this, and nobody writes to it.
        let shown = |at, execute| unsafe { show(&pages, at, span, execute) };
        assert!(!shown(4 * PAGE, false).unwrap());
        assert!(shown(2 * PAGE, true).unwrap());
        let name = |span| crate::mappings::within(span).unwrap()[0].clone();
        assert!(matches!(name(span).kind, crate::mappings::Kind::File(name) if name.contains("domicile-test")));
        assert!(name(span).execute && name(span).read && !name(span).write && !name(span).shared);
        // SAFETY: it is mapped, and nobody writes.
        assert_eq!(unsafe { *(span.start as *const [u8; 2 * PAGE]) }, bytes);
        for (at, span) in [
            (1, span),
            (7 * PAGE, span),
            (usize::MAX - PAGE + 1, span),
            (0, Span::new(span.start, 0)),
        ] {
            // SAFETY: refused before anything is touched.
            assert!(unsafe { show(&pages, at, span, false) }.is_err());
        }
    }

    #[test]
    fn code_goes_on_while_it_is_replaced() {
        // The function itself, and the parts of the library that it calls.
        let here = code_goes_on_while_it_is_replaced as fn() as usize;
        let all = crate::mappings::all(None).unwrap();
        let own = all.iter().find(|mapping| mapping.span.contains(here)).unwrap();
        let pages = SharedPages::executable("domicile-test", own.span.bytes).unwrap();
        // SAFETY: code that nobody writes to.
        let bytes = unsafe { std::slice::from_raw_parts(own.span.start as *const u8, own.span.bytes) };
        pages.write(0, bytes).unwrap();
        // SAFETY: as above; the span is a private mapping of this program's file.
        assert!(unsafe { show(&pages, 0, own.span, true) }.unwrap());
        let now = crate::mappings::within(own.span).unwrap();
        assert_eq!((now.len(), now[0].execute), (1, true));
        assert!(matches!(&now[0].kind, crate::mappings::Kind::File(name) if name.contains("domicile-test")));
    }
}
