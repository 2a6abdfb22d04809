//! Replicated data: contents that are read on all memory nodes and rarely written, with a copy on each node.
//!
//! [`Replicated`] is for the threads of one process. Each thread that reads has a [`Reader`]. On entering a region it gets
//! the copy of the node that it is on, and reads through a plain reference; on leaving it says that it is done. A write puts
//! new contents in the place of all copies, and returns when nobody reads the old ones any more.
//!
//! [`SharedReplicas`] is for several processes that cooperate: the same address in each shows the copy of its node, and the
//! master's from before anybody writes.
//!
//! [`TextCopies`] is for the programs that `domicile run` starts: their text and what else of their files is never written.
//!
//! This is not transparent: Linux keeps no copies of its own. [`State`] says how many there are, what they cost, and why a
//! node has none. The protocol and its invariants are in this crate's README.
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

// Unsafe code stands where contents are read that a writer may free (`epochs`) and where copies are seen as what lies in
// them (`copies`, `replicated`), a pointer goes from thread to thread (`processes`), and mappings of a program are
// replaced (`text`); nowhere else.
#[allow(unsafe_code)]
mod copies;
#[allow(unsafe_code)]
mod epochs;
mod error;
// Copies of the model lie in cells of loom's.
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
