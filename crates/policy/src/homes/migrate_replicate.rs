//! Migration and replication: hot pages that one cpu uses move to it, those that several read are copied, and those
//! that are shared and written stay (Verghese96, Figure 3.1; the base policy of section 6.1).

use crate::homes::on_misses::OnMisses;
use crate::seam::Policy;
use crate::settings::{PolicyError, Settings};

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let writes = Some(settings.integer("writes"));
    let moves = Some(settings.integer("moves"));
    let reserve = settings.integer("reserve");
    Ok(Box::new(OnMisses::new(settings, writes, moves, reserve)))
}
