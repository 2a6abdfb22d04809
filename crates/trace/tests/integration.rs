//! All integration tests of this crate, in one program: what they share compiles once.

mod bounds;
mod crash;
mod damage;
mod dependences;
mod import;
mod memory;
mod roundtrip;
mod runs;
mod threads;
