//! Policies that choose a page's home: the node whose memory holds it.

pub mod first_touch;
pub mod round_robin;
