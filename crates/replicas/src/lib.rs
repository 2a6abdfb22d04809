//! Replicated data: contents that are read on all memory nodes and rarely written, with a copy on each node.
//!
//! [`Replicated`] is for the threads of one process. Each thread that reads has a [`Reader`]. On entering a region it
//! gets the copy of its node, and reads through a plain reference; on leaving it releases the copy. A write replaces
//! the contents of all copies, and returns when nobody reads the old ones any more.
//!
//! [`SharedReplicas`] is for several cooperating processes: the same address in each shows the copy of its node, and,
//! from before a write on, the master.
//!
//! [`TextCopies`] is for the programs that `domicile run` starts: their text and the unwritten parts of their files.
//!
//! This is not transparent: Linux keeps no copies of its own. [`State`] reports how many there are, their cost, and why
//! a node has none. The protocol and its invariants are in this crate's README.
//!
//! ```
//! use replicas::Replicated;
//!
//! let table = Replicated::new(&[1u32, 2, 3])?;
//! let mut reader = table.reader();
//! assert_eq!(reader.enter()[2], 3);
//! table.update(|numbers| numbers[2] = 7)?;
//! assert_eq!(*reader.enter(), [1, 2, 7]);
//! # Ok::<(), replicas::Error>(())
//! ```
#![deny(unsafe_code)]

// Unsafe code is only where contents are read that a writer may free (`epochs`), where copies are viewed as their
// elements (`copies`, `replicated`), where a pointer moves between threads (`processes`), and where mappings of a
// program are replaced (`text`).
#[allow(unsafe_code)]
mod copies;
#[allow(unsafe_code)]
mod epochs;
mod error;
// Copies in the model are in loom's cells.
#[cfg(all(test, feature = "loom"))]
#[allow(unsafe_code)]
mod model;
mod places;
#[cfg(not(feature = "loom"))]
#[allow(unsafe_code)]
mod processes;
#[allow(unsafe_code)]
mod replicated;
mod state;
mod sync;
#[cfg(not(feature = "loom"))]
#[allow(unsafe_code)]
mod text;
#[cfg_attr(feature = "loom", expect(dead_code, reason = "who asks is not built"))]
mod told;

pub use error::Error;
#[cfg(not(feature = "loom"))]
pub use processes::SharedReplicas;
pub use replicated::{Kept, Reader, Region, Replicated};
pub use state::{CopyOn, Mode, State, Way, Without};
#[cfg(not(feature = "loom"))]
pub use text::{Segment, TextCopies, TextOf, TextState};
#[cfg(not(feature = "loom"))]
pub use told::{ENVIRONMENT as TOLD, Taken};
