//! The memory manager: a service that holds frames sorted by color and hands them to programs that may not
//! look for them themselves (Ding11, section 3.4), and that keeps the ledger of which application has which colors.
//!
//! [`Server`] is the service, [`Client`] a program's side of it, [`wire`] what they say to each other.
//!
//! # How a frame changes hands
//!
//! Memory cannot be moved from one process to another. But what is freed last on a cpu is given out first there: so
//! the daemon goes to the client's cpu, gives up exactly the frames that are wished for, in reverse order, and the
//! client, pinned to that cpu, faults its pages in at once. The kernel fills them with zeros. The daemon looks at
//! the client's page map then and reports what colors it got; what went wrong is tried again. Another process on that
//! cpu may come in between and take some frames: then each page gets the frame of a later one. So pages are filled
//! color by color, where a later one is mostly as good. On a machine with ten programs for each cpu that made the
//! difference between one page in five and all but one in five hundred.
//!
//! # What is trusted
//!
//! Nothing that a client says. A connection belongs to the user and the process that the kernel names; frames that
//! a client says it freed are looked for in its page map and in what comes back; quotas, paces and sizes are
//! bounded for each user; a connection that breaks the protocol is closed and no other one notices. What a client
//! learns is colors, and only of frames that it holds. It never learns a frame's number.

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
