//! Cache slots for the data of a running program (Ding11 section 3.1), in safe Rust.
//!
//! A program says how much cache which of its data may have, and never which colors:
//!
//! ```no_run
//! use live::slots::{Application, Kind, Others, Start, ThreadGroup};
//!
//! let program = Application::start(Start::default())?;
//! let threads = 4;
//! let slot = program.slot(program.available()?.per_thread(threads), Kind::Private)?;
//! let mut mine = ThreadGroup::none();
//! mine.add_this()?;
//! let block = vec![0u8; 1 << 20];
//! let mut data = program.data_set(&mine)?;
//! data.add(block.as_ptr() as usize, block.len())?;
//! let grant = data.allocate(Some(&slot), Others::Absent)?;
//! println!("{} colors", grant.colors.len());
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! Who is who: the **ledger** knows which colors are whose (the daemon's, if it runs, for all programs together; else one
//! of this process alone), the **engine** moves pages to frames of those colors. Under `domicile record`
//! no frame changes: what the program asks is told to the trace, and the policy `slots` simulates it.
//!
//! # What becomes of the pages at the ends
//!
//! Only pages that a data set's ranges cover whole are placed, neighbouring ranges taken together. Of a page that
//! is covered in part, the rest belongs to somebody else, so it stays where it is; [`DataSet::left_out`] tells how much that is.
//! A page has one data set: what another one has already is refused.

mod application;
mod containers;
mod data;
mod error;
mod ledger;
mod place;
mod ranges;
mod served;
mod start;
mod threads;

pub use crate::Others;
pub use application::{Application, Slot};
pub use containers::{InSlot, Keeping};
pub use data::DataSet;
pub use error::Error;
pub use ledger::{Given, Ledger};
pub use place::Place;
pub use policy::slots::{Caches, ColorSet, Free, Kind, Refused, Space};
pub use start::{ColorsFrom, Means, On, Start, Through};
pub use threads::ThreadGroup;
