//! Summary homes: each page of the arrays of parallel loops lives from the first on the node whose cpus' iterations touch it most,
//! as the summaries of the loops say (Bugnion96, section 5.1, which are there for colors). All other pages are placed on first touch.
//!
//! First touch is as good if a program fills its arrays in parallel loops that are dealt as those that use them. If one
//! thread fills them, all of them would live on its node.

use crate::best_homes::HomesFrom;
use crate::homes::foretold::Foretold;
use crate::seam::Policy;
use crate::settings::{PolicyError, Settings};

pub fn build(_settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Foretold::new(HomesFrom::Summaries)))
}
