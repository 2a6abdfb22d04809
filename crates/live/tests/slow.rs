//! The daemon and its clients, with the waits that it promises: a minute. `make check` leaves them out.

pub mod daemon;
