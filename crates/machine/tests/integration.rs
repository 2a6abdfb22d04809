//! All integration tests of this crate, in one program: the code they share compiles once.

mod format;
mod host;
mod prefetch;
mod presets;
mod shapes;
