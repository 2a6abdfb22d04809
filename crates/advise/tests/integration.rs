//! All integration tests of this crate, in one program: what they share compiles once.

mod invented;
mod native;
mod regions;
mod shares;
mod sharing;
mod verdicts;
