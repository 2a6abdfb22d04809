//! The Linux world: gives the pages of a running program frames of the colors that were chosen for
//! them.
//!
//! [`Colors`] says what a color is on this machine, a [`Supply`] where frames of known color come
//! from.
#![forbid(unsafe_code)]

pub mod cdpc;
mod colors;
pub mod daemon;
pub mod engine;
mod error;
pub mod found;
mod pool;
pub mod resctrl;
pub mod slots;
mod supply;

pub use colors::{Colors, Source};
pub use engine::{Census, Config, Done, Engine, Knowledge, Left, Lock, Means, Others, Placing, Repaired, Why, Wish};
pub use error::Error;
pub use pool::Pool;
pub use supply::{PAGE_BYTES, Pages, Supply};

// An engine may be handed to another thread.
const _: () = {
    const fn sent<T: Send>() {}
    sent::<Engine>();
};
