//! The memory manager: a service that holds frames sorted by color and hands them to programs that may not
//! look for them themselves (Ding11, section 3.4), and that keeps the ledger of which application has which colors.
//!
//! [`Server`] is the service, [`Client`] a program's side of it, [`wire`] their messages.
//!
//! # How a frame changes hands
//!
//! Memory cannot be moved from one process to another. But a cpu's free list hands out first the frame freed last. So
//! the daemon goes to the client's cpu and frees exactly the wanted frames, in reverse order; the client, pinned to
//! that cpu, faults its pages in at once. The kernel fills them with zeros. The daemon then looks at the client's
//! page map and reports the colors that it got; wrong pages are tried again. Another process on that cpu may come in
//! between and take some frames: then each page gets the frame of a later one. So pages are filled color by color,
//! where a later one is mostly as good. On a machine with ten programs for each cpu that made the difference between
//! one page in five and all but one in five hundred.
//!
//! # What is trusted
//!
//! No word of a client. A connection belongs to the user and the process that the kernel names; frames that a client
//! claims to have freed are looked for in its page map and among the frames that come back; quotas, paces and sizes
//! are bounded for each user; a connection that breaks the protocol is closed and no other one notices. A client
//! learns only colors, and only of frames that it holds. It never learns a frame's number.

mod account;
mod asked;
mod broker;
#[allow(unsafe_code)]
mod client;
mod keepers;
mod looks;
mod metrics;
mod places;
mod pressure;
mod scrape;
mod server;
mod session;
mod stock;
mod users;
mod whereabouts;
pub mod wire;

pub use client::{Client, ClientError, Granted, SOCKET, SOCKET_VARIABLE, socket};
pub use places::sharers;
pub use scrape::At;
pub use server::{Config, Server, ServerError};
