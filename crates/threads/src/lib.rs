//! Locality threads (Philbin96): work that is given as small run-to-completion threads, each with hints of what memory
//! it uses, and runs in an order in which threads that use the same memory follow one another.
#![forbid(unsafe_code)]

mod error;
mod id;
mod inside;
mod scheduler;

pub use error::Error;
pub use id::ThreadId;
pub use inside::Inside;
pub use policy::order::{DefaultBlock, HINTS_MAX, Limit, Shape, ShapeError, Tour, default_block};
pub use scheduler::{Keep, Report, Scheduler};
