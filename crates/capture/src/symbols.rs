//! Names.
use crate::options::Options;
use crate::story::Story;
pub fn write(_options: &Options, _story: &mut Story, _notes: &mut Vec<String>) {}
