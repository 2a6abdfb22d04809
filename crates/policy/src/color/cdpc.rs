//! Compiler-directed page coloring (Bugnion96, section 5): a preferred color for each page of a parallel program,
//! from what its compiler says of each array in each parallel loop.

mod placing;
mod summary;

pub(crate) use placing::{FROM, REST, build};
pub use placing::{PageColors, Source};
pub use summary::{Access, Communication, Direction, Inner, Loop, Malformed, Schedule, Summary};
