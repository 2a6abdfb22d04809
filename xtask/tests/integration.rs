//! All integration tests of this crate, in one program.

mod drift;
mod layers;
mod troubleshooting;
