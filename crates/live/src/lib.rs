//! The Linux world: gives the pages of a running program frames of the colors that were chosen for
//! them.
//!
//! [`Colors`] defines a color on this machine, a [`Supply`] provides frames of known color.
//!
//! A caller that has the pages of others moved makes a promise about them, so [`Engine::color`] and
//! its kin are `unsafe`. [`slots`] is the safe way: a data set borrows the memory that it colors.
#![deny(unsafe_code)]

// Unsafe code stands where pages are moved (`engine`, `pool`, `daemon::client`) and where a promise about
// memory is made or handed on (`supply`, `cdpc`, a few files of `slots`), and where a C ABI is read (`summaries`); nowhere
// else.
#[allow(unsafe_code)]
pub mod cdpc;
pub mod daemon;
pub mod discovery;
#[allow(unsafe_code)]
pub mod engine;
mod error;
#[cfg(target_arch = "x86_64")]
pub mod following;
pub mod homes;
mod means;
pub mod placement;
#[allow(unsafe_code)]
mod pool;
pub mod protocol;
pub mod regions;
pub mod resctrl;
pub mod slots;
#[allow(unsafe_code)]
pub mod summaries;
pub mod summary_homes;
#[allow(unsafe_code)]
mod supply;

pub use engine::{Census, Done, Engine, Left, Others, Repaired, Why, Wish};
pub use error::Error;
pub use machine::{ColorSource as Source, Colors};
pub use means::{Config, Knowledge, Lock, Means, Placing};
pub use pool::Pool;
pub use supply::{PAGE_BYTES, Pages, Supply};

// An engine may be handed to another thread.
const _: () = {
    const fn sent<T: Send>() {}
    sent::<Engine>();
};
