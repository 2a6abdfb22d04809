//! All integration tests of this crate, in one program: what they share compiles once.

mod processes;
mod threads;
mod told;
