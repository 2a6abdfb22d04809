//! What is counted beyond the totals: by thread, page, data structure, and line.

use crate::config::Config;

/// To whom a miss is attributed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    pub thread: u32,
    pub structure: u32,
    pub page: u32,
}

pub struct Detail {}

impl Detail {
    pub fn new(_config: &Config) -> Option<Box<Detail>> {
        None
    }
}
