//! Migration only: the decision tree without its branch of shared pages, which stay (Verghese96, section 6.2.1, "Migr").

use crate::homes::on_misses::OnMisses;
use crate::seam::Policy;
use crate::settings::{PolicyError, Settings};

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let moves = Some(settings.integer("moves"));
    Ok(Box::new(OnMisses::new(settings, None, moves, 0)))
}
