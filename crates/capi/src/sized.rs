//! Structures that begin with their size in the program, which may have been compiled for another version.
//!
//! A program older than the library has fewer fields: the missing ones are 0, the default. A newer program has more
//! fields: these must be 0, since the library does not know their meaning.

use std::ptr::NonNull;
use std::slice;

use crate::error::Failure;
use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_NULL};

/// A structure of C whose first field is its size.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize`, and everything in it except padding is numbers.
pub unsafe trait Structure: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its size in the first version that has it.
    const FIRST: usize = size_of::<Self>();
}

/// A larger size is not the size of a structure but uninitialized memory.
const SIZE_MAX: usize = 4096;

/// Reads a structure from C; none for null.
///
/// # Safety
/// `from` is null or points to as many bytes as its `size` says.
pub unsafe fn read<T: Structure>(from: *const T) -> Result<Option<T>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let size = unsafe { size(from) }?;
    let known = size_of::<T>();
    if size > known {
        // SAFETY: the caller's pointer is valid for `size` bytes.
        let beyond = unsafe { slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
        if beyond.iter().any(|&byte| byte != 0) {
            let text = format!(
                "{}: a field is set that this version of the library does not know",
                T::NAME
            );
            return Err(Failure::saying(DOMICILE_INVALID, text));
        }
    }
    let mut all = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both sides have that many bytes; any bytes are valid numbers, and the missing ones are 0.
    Ok(Some(unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), all.as_mut_ptr().cast::<u8>(), size.min(known));
        all.assume_init()
    }))
}

/// The destination of a result: checked before the work, filled after it.
pub struct Destination<T>(Option<NonNull<T>>);

impl<T: Structure> Destination<T> {
    /// # Safety
    /// `to` is null or points to as many bytes as its `size` says, until it is filled.
    pub unsafe fn new(to: *mut T) -> Result<Destination<T>, Failure> {
        let to = NonNull::new(to);
        if let Some(to) = to {
            // SAFETY: the caller's promise.
            unsafe { size(to.as_ptr()) }?;
        }
        Ok(Destination(to))
    }

    /// As `new`, but null is an error.
    ///
    /// # Safety
    /// As for `new`.
    pub unsafe fn wanted(to: *mut T) -> Result<Destination<T>, Failure> {
        if to.is_null() {
            let text = format!("the {} is NULL: say where to put what was found", T::NAME);
            return Err(Failure::saying(DOMICILE_NULL, text));
        }
        // SAFETY: the caller's promise.
        unsafe { Destination::new(to) }
    }

    /// Writes the result without the size; fields that one of the two versions does not know stay unchanged.
    pub fn fill(self, value: &T) {
        let Some(to) = self.0 else {
            return;
        };
        // SAFETY: `new` was promised as many bytes as the size says, and checked that the size is valid; only fields
        // that both versions know are copied.
        unsafe {
            let to = to.as_ptr().cast::<u8>();
            let size = to.cast::<usize>().read_unaligned().min(size_of::<T>());
            let behind = size_of::<usize>();
            std::ptr::copy_nonoverlapping(
                (&raw const *value).cast::<u8>().add(behind),
                to.add(behind),
                size - behind,
            );
        }
    }
}

/// The size that a structure states.
///
/// # Safety
/// `at` points to as many bytes as its `size` says.
unsafe fn size<T: Structure>(at: *const T) -> Result<usize, Failure> {
    // SAFETY: the size is the first field, so the caller's pointer is valid for it.
    let size = unsafe { at.cast::<usize>().read_unaligned() };
    if (T::FIRST..=SIZE_MAX).contains(&size) {
        return Ok(size);
    }
    let (name, known) = (T::NAME, size_of::<T>());
    let text = format!("size is {size}: set it to sizeof({name}), which is {known}");
    Err(Failure::saying(DOMICILE_INVALID, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Thing {
        size: usize,
        old: u64,
        new: u64,
    }

    // SAFETY: it meets the requirements.
    unsafe impl Structure for Thing {
        const NAME: &'static str = "thing";
        const FIRST: usize = 16;
    }

    #[repr(C)]
    struct Newer {
        known: Thing,
        beyond: u64,
    }

    fn thing(size: usize) -> Thing {
        Thing { size, old: 1, new: 2 }
    }

    #[test]
    fn what_an_older_program_does_not_know_is_zero_and_stays() {
        let mut older = thing(16);
        // SAFETY: it is larger than its size says.
        let read = unsafe { read(&raw const older) }.unwrap().unwrap();
        assert_eq!((read.old, read.new), (1, 0));
        // SAFETY: as above.
        let destination = unsafe { Destination::new(&raw mut older) }.unwrap();
        destination.fill(&Thing {
            size: 99,
            old: 7,
            new: 8,
        });
        assert_eq!(
            older,
            Thing {
                size: 16,
                old: 7,
                new: 2
            }
        );
    }

    #[test]
    fn a_newer_program_may_leave_out_what_is_new() {
        let mut newer = Newer {
            known: thing(size_of::<Newer>()),
            beyond: 0,
        };
        // SAFETY: it is as large as its size says.
        let taken = unsafe { read((&raw const newer).cast::<Thing>()) };
        assert_eq!(taken.unwrap().unwrap().new, 2);
        newer.beyond = 1;
        // SAFETY: as above.
        let taken = unsafe { read((&raw const newer).cast::<Thing>()) };
        assert_eq!(taken.unwrap_err().code, DOMICILE_INVALID);
        // SAFETY: as above.
        unsafe { Destination::new((&raw mut newer).cast::<Thing>()) }
            .unwrap()
            .fill(&thing(0));
        assert_eq!(newer.known.size, size_of::<Newer>());
    }

    #[test]
    fn a_size_that_was_forgotten_is_refused() {
        for size in [0, 8, 5000, usize::MAX] {
            let mut wrong = thing(size);
            // SAFETY: for these sizes only the size itself is read.
            let read = unsafe { read(&raw const wrong) };
            assert!(read.unwrap_err().message.to_str().unwrap().contains("sizeof(thing)"));
            // SAFETY: as above.
            assert!(unsafe { Destination::new(&raw mut wrong) }.is_err());
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null::<Thing>()) }.unwrap(), None);
    }
}
