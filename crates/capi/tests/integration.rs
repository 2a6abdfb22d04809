//! All integration tests of this crate, in one program: what they share compiles once.

mod from_rust;
mod slots;
mod slow;
