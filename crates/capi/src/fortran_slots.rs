//! Functions of C that the Fortran module `domicile_slots` cannot call directly: those with arrays as Fortran describes
//! them, with character strings, or with an omitted argument.

use std::ffi::CStr;

use crate::error::domicile_error::DOMICILE_INVALID;
use crate::error::{Failure, domicile_error};
use crate::fortran_order::fill;
use crate::slots::application::{domicile_slots_means, domicile_slots_open};
use crate::slots::{answer, code, data_set, domicile_data_set, domicile_slots, words};

/// The most dimensions of an array (Fortran 2018, section 8.5.8).
const RANK_MAX: usize = 15;

/// The layout of a Fortran array: `CFI_cdesc_t` of ISO_Fortran_binding.h (Fortran 2018, section 18.5.3). Compilers may
/// order the fields between the version and the dimensions; GNU's, LLVM's and Intel's put the rank first.
#[repr(C)]
pub struct Descriptor {
    base: *const u8,
    /// Bytes of an element.
    element: usize,
    version: i32,
    rank: u8,
    kind: [u8; 3],
    dimensions: [Dimension; RANK_MAX],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Dimension {
    lower: isize,
    /// Elements; -1 for the last dimension of an assumed-size array.
    extent: isize,
    /// Bytes from one element to the next.
    stride: isize,
}

/// The start and the bytes of an array, if it is contiguous.
///
/// # Safety
/// `array` points to a descriptor with as many dimensions as its rank says.
unsafe fn piece(array: *const Descriptor) -> Result<(usize, usize), Failure> {
    let invalid = |text| Err(Failure::new(DOMICILE_INVALID, text));
    if array.is_null() {
        return invalid(c"there is no array");
    }
    // SAFETY: the caller's promise. The fields are read one by one, because only `rank` dimensions exist.
    let (base, element, rank) = unsafe { ((*array).base, (*array).element, usize::from((*array).rank)) };
    if rank > RANK_MAX {
        return invalid(c"the array's description is not as this version of the library knows it");
    }
    // SAFETY: as above.
    let dimension = |at| unsafe { (&raw const (*array).dimensions).cast::<Dimension>().add(at).read() };
    if (0..rank).any(|at| dimension(at).extent < 0) {
        return invalid(c"the array came without its size: give its c_loc and its bytes");
    }
    if (0..rank).any(|at| dimension(at).extent == 0) {
        return Ok((base.addr(), 0));
    }
    let mut bytes = element;
    for at in 0..rank {
        let dimension = dimension(at);
        if dimension.extent > 1 && dimension.stride != bytes as isize {
            return invalid(c"the part of the array does not lie in one piece: give whole columns, one after another");
        }
        bytes = bytes.saturating_mul(dimension.extent as usize);
    }
    if base.is_null() && bytes > 0 {
        return invalid(c"the array is not allocated");
    }
    Ok((base.addr(), bytes))
}

/// # Safety
/// `array` points to the descriptor of an array of this process; its memory is as for `domicile_data_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_data_set_add_array(
    set: *mut domicile_data_set,
    array: *const Descriptor,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let (start, bytes) = unsafe { piece(array) }?;
        // SAFETY: the caller's promise.
        unsafe { data_set::add(set, start, bytes) }
    }))
}

/// # Safety
/// As for `domicile_slots_open`, with no attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slots_open_plain_(slots: *mut *mut domicile_slots) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { domicile_slots_open(std::ptr::null(), slots) }
}

/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slots_message_(text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives until the thread's next failure.
    unsafe { fill(text, length, CStr::from_ptr(words())) }
}

/// # Safety
/// `text` has room for `length` bytes, and no other thread closes the application meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_slots_means_(slots: &*mut domicile_slots, text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives as long as the application.
    unsafe { fill(text, length, CStr::from_ptr(domicile_slots_means(*slots))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(extents: &[isize], strides: &[isize]) -> Result<(usize, usize), Failure> {
        let none = Dimension {
            lower: 0,
            extent: 0,
            stride: 0,
        };
        let mut descriptor = Descriptor {
            base: std::ptr::without_provenance(4096),
            element: 8,
            version: 1,
            rank: extents.len() as u8,
            kind: [0; 3],
            dimensions: [none; RANK_MAX],
        };
        for (at, (&extent, &stride)) in extents.iter().zip(strides).enumerate() {
            descriptor.dimensions[at] = Dimension {
                lower: 1,
                extent,
                stride,
            };
        }
        // SAFETY: it is a descriptor.
        unsafe { piece(&raw const descriptor) }
    }

    #[test]
    fn an_array_in_one_piece_is_so_many_bytes() {
        assert_eq!(described(&[], &[]).unwrap(), (4096, 8));
        assert_eq!(described(&[10], &[8]).unwrap(), (4096, 80));
        assert_eq!(described(&[10, 5], &[8, 80]).unwrap(), (4096, 400));
        // A single column or row may have any stride.
        assert_eq!(described(&[10, 1], &[8, 800]).unwrap(), (4096, 80));
        assert_eq!(described(&[0, 10], &[8, 80]).unwrap(), (4096, 0));
    }

    #[test]
    fn an_array_in_pieces_or_without_its_size_is_refused() {
        for (extents, strides) in [
            (&[5][..], &[16][..]),
            (&[10, 5], &[8, 160]),
            (&[5], &[-8]),
            (&[-1], &[8]),
            (&[10, -1], &[8, 80]),
        ] {
            assert_eq!(described(extents, strides).unwrap_err().code, DOMICILE_INVALID);
        }
    }
}
