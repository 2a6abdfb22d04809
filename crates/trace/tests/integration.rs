//! All integration tests of this crate, in one program: what they share compiles once.

mod bounds;
mod champsim;
mod crash;
mod damage;
mod dependences;
mod drmemtrace;
mod drmemtrace_files;
mod import;
mod memory;
mod roundtrip;
mod runs;
mod threads;
