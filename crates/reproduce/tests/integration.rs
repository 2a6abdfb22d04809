//! All integration tests of this crate, in one program: what they share compiles once.

mod further;
mod headlines;
mod traces;
