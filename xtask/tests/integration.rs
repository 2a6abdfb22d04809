//! All integration tests of this crate, in one program.

mod generated;
mod layers;
mod readme;
mod troubleshooting;
