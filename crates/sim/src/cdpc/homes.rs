//! The homes of pages by summaries: the compiler's description of the program, for the nodes of the machine.

use std::collections::HashMap;

use policy::cdpc::Machine;
use policy::{BestHomes, Page};

use super::gather::gather;
use super::material::Material;
use crate::config::Config;
use crate::error::SimError;
use crate::frames::Frames;
use crate::homes::world;
use crate::layout::Layout;

/// The homes that follow from the summaries of all processes. A loop that is wrong beside others is left out.
///
/// Errors: nothing was described that can be used.
pub fn by_summaries(config: &Config, material: &dyn Material) -> Result<BestHomes, SimError> {
    // Errors in the machine are reported as in a run.
    Layout::new(&config.machine)?;
    let world = world(&config.machine, &Frames::new(&config.machine, 1));
    let machine = Machine {
        page_bytes: world.page_bytes,
        colors: 1,
        cpus: world.cpus,
        fit: false,
    };
    let input = material.open()?;
    let mut described = gather(&input.names().tables, |visit| material.each_event(visit))?;
    let mut homes = HashMap::new();
    for (space, program) in &mut described.programs {
        let made = program.homes(&machine, |cpu| world.node_of(cpu));
        let (made, dropped) = made.map_err(|error| SimError::Hints(error.to_string()))?;
        for wrong in dropped {
            described.malformed.add(wrong.to_string());
        }
        for home in made {
            let page = |number| (Page { space: *space, number }, home.node);
            homes.extend(home.pages.clone().map(page));
        }
    }
    match homes.is_empty() {
        false => Ok(BestHomes::new(homes)),
        true => Err(SimError::NoSummaries {
            wanted: "policy `summary-homes` goes by summaries of parallel loops",
            instead: "use `--policy first-touch`",
            malformed: described.malformed.first.into_iter().next(),
        }),
    }
}
