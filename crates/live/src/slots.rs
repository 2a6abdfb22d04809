//! Cache slots for the data of a running program (Ding11 section 3.1).
//!
//! A program tells how much cache each part of its data may have, and never names colors:
//!
//! ```no_run
//! use live::slots::{Application, Kind, Start, ThreadGroup};
//!
//! let program = Application::start(Start::default())?;
//! let threads = 4;
//! let slot = program.slot(program.available()?.per_thread(threads), Kind::Private)?;
//! let mut mine = ThreadGroup::none();
//! mine.add_this()?;
//! let mut block = vec![0.0f64; 1 << 17];
//! let mut data = program.data_set(&mine)?;
//! let part = data.add(&mut block)?;
//! let grant = data.allocate(Some(&slot))?;
//! println!("{} colors", grant.colors.len());
//! data.part_mut(part)[7] = 1.5;
//! drop(data);
//! assert_eq!(block[7], 1.5);
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! # What the compiler checks
//!
//! A data set borrows the memory that it colors, so that nobody touches it while its pages are on their way, and so that
//! it is there as long as the data set lives. Data that is used meanwhile is lent by `&` ([`DataSet::add_shared`]): its
//! pages change their frames while others read it, and write it where its type lets them (atomics, locks). Memory that is
//! known by its address alone takes an `unsafe fn` ([`DataSet::add_raw`]).
//!
//! Lent memory cannot be freed:
//!
//! ```compile_fail,E0505
//! # use live::slots::{Application, Start, ThreadGroup};
//! # let program = Application::start(Start::default())?;
//! let mut block = vec![0u8; 1 << 20];
//! let mut data = program.data_set(&ThreadGroup::all())?;
//! data.add(&mut block)?;
//! drop(block);
//! data.allocate(None)?;
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! nor touched behind the data set's back:
//!
//! ```compile_fail,E0506
//! # use live::slots::{Application, Start, ThreadGroup};
//! # let program = Application::start(Start::default())?;
//! # let mut block = [0u8; 1 << 14];
//! # let mut data = program.data_set(&ThreadGroup::all())?;
//! data.add(&mut block)?;
//! block[0] = 1;
//! data.allocate(None)?;
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! Only plain data can be discarded, for which zeros are a value; a `String` full of zeros would be none:
//!
//! ```compile_fail,E0277
//! # use live::slots::{Application, Start, ThreadGroup};
//! # let program = Application::start(Start::default())?;
//! # let mut data = program.data_set(&ThreadGroup::all())?;
//! let mut names = vec![String::from("a name"); 4096];
//! data.add(&mut names)?;
//! data.allocate(None)?;
//! data.discard()?;
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! and to say of memory by its address that nobody uses it is `unsafe`:
//!
//! ```compile_fail,E0133
//! # use live::slots::{Application, Others, Start, ThreadGroup};
//! # let program = Application::start(Start::default())?;
//! # let mut data = program.data_set(&ThreadGroup::all())?;
//! # let names = vec![String::from("a name"); 4096];
//! data.add_raw(names.as_ptr() as usize, names.len() * size_of::<String>())?;
//! # Ok::<(), live::slots::Error>(())
//! ```
//!
//! Memory in a slot from the start, for containers that grow, is [`Application::containers`].
//!
//! The parts: the **ledger** knows which colors are whose (the daemon's, if it runs, for all programs together; else
//! one of this process alone), the **engine** moves pages to frames of those colors. Under `domicile record` no frame
//! changes: the trace keeps the program's requests, and the policy `slots` simulates it.
//!
//! If the probe found no colors and there is resctrl, the ledger is one of ways and no page moves: a program's private
//! slots amount to the ways of the threads that use them, all together ([`Means::colors`] is none then).
//!
//! # What becomes of the pages at the ends
//!
//! Only pages that a data set's ranges cover whole are placed, neighbouring ranges taken together. Of a page that is
//! covered in part, the rest belongs to somebody else, so it stays where it is; [`DataSet::left_out`] says how much
//! that is. A page has one data set: pages of another one are refused.

mod application;
#[allow(unsafe_code)]
mod containers;
#[allow(unsafe_code)]
mod data;
mod error;
mod huge;
mod ledger;
mod means;
#[allow(unsafe_code)]
mod place;
mod ranges;
mod served;
mod standby;
mod start;
mod threads;
mod ways;

pub use crate::Others;
pub use crate::discovery::ColorsFrom;
pub use application::{Application, Slot};
pub use containers::{InSlot, Keeping};
pub use data::{DataSet, Part};
pub use error::Error;
pub use huge::HugePages;
pub use ledger::{Given, Ledger};
pub use means::Means;
pub use place::Place;
pub use policy::slots::{Caches, ColorSet, Free, Kind, Refused, Space};
pub use start::{On, Start, Through};
pub use threads::ThreadGroup;
