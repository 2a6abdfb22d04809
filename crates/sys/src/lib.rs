//! The only floor that talks to Linux.

pub mod packet;
pub mod shared;
pub mod signals;
