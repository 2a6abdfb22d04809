//! All integration tests of this crate, in one program: what they share compiles once.

mod assets;
mod browser;
mod comparison;
mod html;
#[path = "../../advise/tests/invented/mod.rs"]
mod invented;
mod tables;
