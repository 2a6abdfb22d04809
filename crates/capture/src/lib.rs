//! Records unmodified programs: every load, store and read-modify-write of every thread, and what
//! gives the addresses their meaning.
//!
//! The program runs under our Valgrind tool (`capture/valgrind`, a program of its own). The tool
//! describes each superblock once and then writes a word for each reference into shared memory;
//! this crate starts it, turns the words into [`trace::Ref`]s and [`trace::Event`]s, writes the
//! trace, and afterwards reads the program's symbols and debug information into it.
//!
//! ```no_run
//! let options = capture::Options::new("/usr/bin/sort", ["big.txt"], "sort.trace");
//! let outcome = capture::record(&options, &mut |progress| {
//!     eprint!("\r{} references", progress.references);
//! })?;
//! println!("{:?}: {} references", outcome.exit, outcome.summary.references);
//! # Ok::<(), capture::CaptureError>(())
//! ```
#![forbid(unsafe_code)]

mod address_space;
mod allocation;
mod annotations;
mod asked;
mod block;
mod branches;
mod clocks;
mod connection;
mod deadline;
mod differences;
mod dwarf;
mod elf;
mod ending;
mod entry;
mod flow;
mod folder;
mod gate;
mod instruction;
mod interpreted;
mod journal;
mod launch;
mod lines;
pub mod locate;
mod module;
mod options;
mod output;
mod pace;
mod process_tree;
mod recorder;
mod run;
mod said;
mod sampling;
mod schedule;
mod shorten;
mod started;
mod symbols;
mod synchronization;
mod tool;
mod warmth;
mod wire;

pub use asked::broke_off;
pub use ending::ended_with;
pub use folder::Folder;
pub use options::{CaptureError, Exit, Options, Outcome, Progress};
pub use recorder::record;
pub use shorten::{WINDOWS, shorten};
pub use tool::{Tool, find as find_tool};
