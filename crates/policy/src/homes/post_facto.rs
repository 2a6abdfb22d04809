//! Post facto: from the start each page lives on the node that most of its misses will come from. No real system can
//! know that; it is the best that placing a page once can do (Verghese96, section 6.2.1). A page without misses is as
//! well off on first touch.

use crate::best_homes::HomesFrom;
use crate::homes::foretold::Foretold;
use crate::seam::Policy;
use crate::settings::{PolicyError, Settings};

pub fn build(_settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Foretold::new(HomesFrom::Misses)))
}
