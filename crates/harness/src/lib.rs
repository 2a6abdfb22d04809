//! Shared by the tests of all crates: skips that are counted ([`skips`]), the number of cases of a property
//! ([`cases`]), separate processes ([`alone`]), and programs that a test makes ([`copy_program`], [`write_program`]).
#![forbid(unsafe_code)]

mod alone;
mod cases;
mod copies;
pub mod skips;

pub use alone::alone;
pub use cases::{cases, repetitions};
pub use copies::{copy_program, write_program};
pub use skips::{is_there, not_allowed, not_here, not_in_this_kernel, not_installed, root, tool};
