//! All integration tests of this crate, in one program: what they share compiles once.

mod huge_pages;
mod invented;
mod native;
mod regions;
mod shares;
mod sharing;
mod verdicts;
