//! Errors, as numbers for C and as words for people.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};

/// The result of a call. `DOMICILE_OK` is 0; later versions may add values, so treat every value that you do not know
/// as a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_error {
    /// Done.
    DOMICILE_OK = 0,
    /// A pointer that must point to something is null.
    DOMICILE_NULL = 1,
    /// A value is outside its permitted range; the message names it.
    DOMICILE_INVALID = 2,
    /// There is no memory left. Threads forked before are still there, and this call changed nothing.
    DOMICILE_OUT_OF_MEMORY = 3,
    /// The order is running already, or the call must wait until the run is over.
    DOMICILE_RUNNING = 4,
    /// The order is running, and the caller is not one of its running threads.
    DOMICILE_NOT_INSIDE = 5,
    /// No pending thread has this id.
    DOMICILE_UNKNOWN_THREAD = 6,
    /// Threads wait for each other in a cycle; the message names them.
    DOMICILE_CYCLE = 7,
    /// A thread unwound (a panic in Rust). Threads that have not run are still pending.
    DOMICILE_PANIC = 8,
    /// The library found itself in an impossible state; please report it.
    DOMICILE_INTERNAL = 9,
    /// A necessary facility does not work here; the message names it, and says what to change.
    DOMICILE_UNAVAILABLE = 10,
    /// Not that much cache is left; the message says how much is.
    DOMICILE_OVERCOMMITTED = 11,
    /// The handle refers to nothing that is alive.
    DOMICILE_UNKNOWN_HANDLE = 12,
    /// The object is in use.
    DOMICILE_IN_USE = 13,
    /// These addresses cannot be given colors: nothing is mapped there, or a file, or shared memory. Nothing was lost.
    DOMICILE_UNFIT = 14,
    /// The kernel refused; the message gives details. Nothing was lost.
    DOMICILE_REFUSED = 15,
}

impl domicile_error {
    const ALL: [domicile_error; 16] = {
        use domicile_error::*;
        [
            DOMICILE_OK,
            DOMICILE_NULL,
            DOMICILE_INVALID,
            DOMICILE_OUT_OF_MEMORY,
            DOMICILE_RUNNING,
            DOMICILE_NOT_INSIDE,
            DOMICILE_UNKNOWN_THREAD,
            DOMICILE_CYCLE,
            DOMICILE_PANIC,
            DOMICILE_INTERNAL,
            DOMICILE_UNAVAILABLE,
            DOMICILE_OVERCOMMITTED,
            DOMICILE_UNKNOWN_HANDLE,
            DOMICILE_IN_USE,
            DOMICILE_UNFIT,
            DOMICILE_REFUSED,
        ]
    };

    /// The error in words; lives as long as the program.
    pub fn text(self) -> &'static CStr {
        match self {
            Self::DOMICILE_OK => c"done",
            Self::DOMICILE_NULL => c"a pointer that must point to something is null",
            Self::DOMICILE_INVALID => c"a value is outside what it may be",
            Self::DOMICILE_OUT_OF_MEMORY => c"out of memory",
            Self::DOMICILE_RUNNING => c"not while the order is running",
            Self::DOMICILE_NOT_INSIDE => c"the order is running, and the caller is not one of its threads",
            Self::DOMICILE_UNKNOWN_THREAD => c"no pending thread has this id",
            Self::DOMICILE_CYCLE => c"threads wait for each other in a circle",
            Self::DOMICILE_PANIC => c"a thread panicked",
            Self::DOMICILE_INTERNAL => c"an error within the library",
            Self::DOMICILE_UNAVAILABLE => c"something that is needed does not work here",
            Self::DOMICILE_OVERCOMMITTED => c"there is not that much cache left",
            Self::DOMICILE_UNKNOWN_HANDLE => c"the handle is of nothing that is alive",
            Self::DOMICILE_IN_USE => c"not while it is in use",
            Self::DOMICILE_UNFIT => c"these addresses cannot be given colors",
            Self::DOMICILE_REFUSED => c"the kernel refused",
        }
    }
}

/// An error, with the message for this case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: domicile_error,
    pub message: Cow<'static, CStr>,
}

impl Failure {
    /// Allocates no memory, since there may be none left.
    pub const fn new(code: domicile_error, message: &'static CStr) -> Failure {
        Failure {
            code,
            message: Cow::Borrowed(message),
        }
    }

    pub fn saying(code: domicile_error, text: impl Into<String>) -> Failure {
        // A zero byte would end the message for C.
        let message = CString::new(text.into().replace('\0', " ")).unwrap_or_default();
        Failure {
            code,
            message: Cow::Owned(message),
        }
    }
}

impl From<domicile_error> for Failure {
    fn from(code: domicile_error) -> Failure {
        Failure::new(code, code.text())
    }
}

/// The error in a few words, for any number; never null, and not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_error_text(error: i32) -> *const c_char {
    let known = domicile_error::ALL.into_iter().find(|known| *known as i32 == error);
    known
        .map_or(c"an error that this version does not know", domicile_error::text)
        .as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_words_of_its_own() {
        let mut seen: Vec<_> = domicile_error::ALL.iter().map(|error| error.text()).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), domicile_error::ALL.len());
        assert!(
            domicile_error::ALL
                .iter()
                .enumerate()
                .all(|(at, error)| *error as usize == at)
        );
    }

    #[test]
    fn a_message_keeps_its_words_when_there_is_a_zero_among_them() {
        let failure = Failure::saying(domicile_error::DOMICILE_INVALID, "one\0two");
        assert_eq!(&*failure.message, c"one two");
    }
}
