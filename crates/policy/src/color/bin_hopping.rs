//! Bin hopping: the colors in turn, in the order of page faults (Bugnion96, section 2.1; Digital UNIX).
//!
//! Pages that are first touched close in time never conflict. One turn is shared by all cpus and
//! address spaces, so cpus that fault together race for colors, as the paper describes. A world calls the policy in the
//! order of its clocks, which decides the race in one way. With `race` it ends in another: a fault gets one of
//! the next colors, as many as cpus have faulted of late, by chance; those passed over are for the faults that follow. So
//! a cpu that faults alone gets the colors in turn, and all colors are used evenly as before.

use std::collections::VecDeque;

use crate::random::Random;
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct BinHopping {
    next: u64,
    race: Option<Race>,
}

/// Cpus that fault together.
struct Race {
    random: Random,
    /// Places in the turn that were passed over, and those up to the last that was given.
    open: VecDeque<u64>,
    /// The cpus of the last faults, the latest last.
    faults: VecDeque<u32>,
}

/// `start`: the color of the first page that is touched; `race`: a seed, 0 for the order of the clocks.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let seed = settings.integer("race");
    Ok(Box::new(BinHopping {
        next: settings.integer("start"),
        race: (seed > 0).then(|| Race {
            random: Random::new(seed),
            open: VecDeque::new(),
            faults: VecDeque::new(),
        }),
    }))
}

impl BinHopping {
    fn turn(&mut self) -> u64 {
        let turn = self.next;
        self.next = turn.wrapping_add(1);
        turn
    }
}

impl Race {
    /// The number of cpus that faulted recently: in as many faults as there are cpus.
    fn racing(&mut self, cpu: u32, cpus: u32) -> usize {
        self.faults.push_back(cpu);
        if self.faults.len() > cpus as usize {
            self.faults.pop_front();
        }
        let others = |(at, cpu): &(usize, &u32)| self.faults.iter().take(*at).all(|other| other != *cpu);
        self.faults.iter().enumerate().filter(others).count()
    }
}

impl Policy for BinHopping {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let turn = match self.race.take() {
            None => self.turn(),
            Some(mut race) => {
                let racing = race.racing(touch.cpu, world.cpus.max(1));
                while race.open.len() < racing {
                    race.open.push_back(self.turn());
                }
                let at = race.random.below(racing as u32) as usize;
                let turn = race.open.remove(at).unwrap_or_default();
                self.race = Some(race);
                turn
            }
        };
        Placement {
            color: Some((turn % u64::from(world.colors)) as u32),
            node: None,
        }
    }
}
