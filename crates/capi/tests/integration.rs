//! All integration tests of this crate, in one program: what they share compiles once.

mod from_rust;
#[cfg(not(miri))]
mod mappings;
mod slots;
mod slow;
