//! A thread as C sees it: a function and its two arguments, 24 bytes (section 3.2).
//!
//! Fortran passes references, and a thread forked with two integers must see their values at the time of the fork. So
//! there are two kinds of call: `f(arg1, arg2)`, and `f(&arg1, &arg2)` with the values kept in the thread itself. The
//! kind is the top bit of the function's address, which is 0 in every program address on the 64-bit machines that Linux
//! runs on.

use std::ffi::c_void;

/// A thread's function. Any worker's thread may call it. It is `C-unwind`, so that a panic in a Rust function is an
/// error of the run and does not end the program.
pub type Function = unsafe extern "C-unwind" fn(arg1: *mut c_void, arg2: *mut c_void);

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the kind of a call is kept in the top bit of a 64-bit address");

const BY_REFERENCE: usize = 1 << 63;

/// A function and its two arguments.
#[derive(Clone, Copy)]
pub struct Call {
    function: *const (),
    arg1: *mut c_void,
    arg2: *mut c_void,
}

// SAFETY: the caller that forks a thread promises that any worker may call its function with its arguments; the
// pointers are passed on and never followed here.
unsafe impl Send for Call {}
// SAFETY: as above; a shared call only gives copies of its pointers.
unsafe impl Sync for Call {}

impl Call {
    /// `function(arg1, arg2)`.
    #[inline]
    pub fn new(function: Function, arg1: *mut c_void, arg2: *mut c_void) -> Call {
        Call {
            function: function as *const (),
            arg1,
            arg2,
        }
    }

    /// `function(&arg1, &arg2)`, with copies of the values. A 32-bit integer occupies the first four bytes of its copy.
    #[inline]
    pub fn with_values(function: Function, arg1: Value, arg2: Value) -> Call {
        Call {
            function: (function as *const ()).map_addr(|address| address | BY_REFERENCE),
            arg1: arg1.word(),
            arg2: arg2.word(),
        }
    }

    /// Its parts, for [`Call::from_parts`] only.
    #[inline]
    pub fn into_parts(self) -> (*const (), *mut c_void, *mut c_void) {
        (self.function, self.arg1, self.arg2)
    }

    /// The call that was taken apart.
    pub fn from_parts(function: *const (), arg1: *mut c_void, arg2: *mut c_void) -> Call {
        Call { function, arg1, arg2 }
    }

    /// Calls it.
    ///
    /// # Safety
    /// The function must be the one given to `new` or `with_values`, must still be loaded, and must be callable with
    /// these arguments on this thread: the caller of `th_fork` and the like promises that.
    #[inline]
    pub unsafe fn call(&self) {
        if self.function.addr() & BY_REFERENCE == 0 {
            // SAFETY: this is the unchanged address of the `Function` given to `new`.
            let function = unsafe { std::mem::transmute::<*const (), Function>(self.function) };
            // SAFETY: the caller's promise.
            unsafe { function(self.arg1, self.arg2) }
        } else {
            let address = self.function.map_addr(|address| address & !BY_REFERENCE);
            // SAFETY: without the mark this is the address of the `Function` given to `with_values`.
            let function = unsafe { std::mem::transmute::<*const (), Function>(address) };
            let (mut arg1, mut arg2) = (self.arg1, self.arg2);
            // SAFETY: the caller's promise; the copies live until the function returns.
            unsafe { function((&raw mut arg1).cast(), (&raw mut arg2).cast()) }
        }
    }
}

/// A Fortran integer to be kept in a thread.
#[derive(Clone, Copy)]
pub enum Value {
    Int32(i32),
    Int64(i64),
}

impl Value {
    #[inline]
    fn word(self) -> *mut c_void {
        let mut bytes = [0; 8];
        match self {
            Value::Int32(value) => bytes[..4].copy_from_slice(&value.to_ne_bytes()),
            Value::Int64(value) => bytes = value.to_ne_bytes(),
        }
        std::ptr::without_provenance_mut(usize::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static SEEN: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
    }

    unsafe extern "C-unwind" fn addresses(arg1: *mut c_void, arg2: *mut c_void) {
        SEEN.set((arg1.addr() as i64, arg2.addr() as i64));
    }

    unsafe extern "C-unwind" fn ints(arg1: *mut c_void, arg2: *mut c_void) {
        // SAFETY: forked with two 32-bit integers, so the arguments point to them.
        SEEN.set(unsafe { (i64::from(*arg1.cast::<i32>()), i64::from(*arg2.cast::<i32>())) });
    }

    unsafe extern "C-unwind" fn longs(arg1: *mut c_void, arg2: *mut c_void) {
        // SAFETY: forked with two 64-bit integers, so the arguments point to them.
        SEEN.set(unsafe { (*arg1.cast::<i64>(), *arg2.cast::<i64>()) });
    }

    fn seen(call: Call) -> (i64, i64) {
        // SAFETY: the functions above may be called on any thread with what they were forked with.
        unsafe { call.call() };
        SEEN.get()
    }

    #[test]
    fn a_call_is_a_function_and_two_words() {
        assert_eq!(size_of::<Call>(), 24);
    }

    #[test]
    fn pointers_are_passed_as_they_are() {
        let word = |value| std::ptr::without_provenance_mut(value);
        assert_eq!(seen(Call::new(addresses, word(3), word(4))), (3, 4));
    }

    #[test]
    fn integers_are_passed_by_reference_to_their_copies() {
        assert_eq!(
            seen(Call::with_values(ints, Value::Int32(-7), Value::Int32(i32::MAX))),
            (-7, i64::from(i32::MAX))
        );
        assert_eq!(
            seen(Call::with_values(longs, Value::Int64(i64::MIN), Value::Int64(9))),
            (i64::MIN, 9)
        );
    }
}
