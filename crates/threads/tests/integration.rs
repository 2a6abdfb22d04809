//! All integration tests of this crate, in one program: what they share compiles once.

mod caches;
mod dependencies;
mod inside;
mod memory;
mod order;
mod stress;
