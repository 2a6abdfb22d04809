//! Replication only: the decision tree without its branch of pages that one cpu uses, which stay (Verghese96, section
//! 6.2.1, "Repl").

use crate::homes::on_misses::OnMisses;
use crate::seam::Policy;
use crate::settings::{PolicyError, Settings};

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let writes = Some(settings.integer("writes"));
    let reserve = settings.integer("reserve");
    Ok(Box::new(OnMisses::new(settings, writes, None, reserve)))
}
