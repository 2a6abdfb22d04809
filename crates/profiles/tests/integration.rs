//! All integration tests of this crate, in one program: what they share compiles once.

mod callgrind;
mod choices;
mod folded;
mod invented;
mod lacking;
mod perfetto;
mod pprof;
mod readers;
mod sums;
mod tables;
