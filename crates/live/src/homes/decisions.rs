//! The events told to policies, and their requests: the same for live events and for those read from a log.
//!
//! Each process has a policy of its own, which goes with it. All have the same parameters and see the same machine.

use std::collections::HashMap;

use policy::{Action, Interest, Kind, Miss, MissLevel, Name, Observation, Page, Policy, Pressure, Tick, World};

use super::error::HomesError;
use super::log::{Asked, Entry};

/// Policies at work.
pub struct Decisions {
    name: Name,
    settings: Vec<String>,
    world: World,
    interest: Interest,
    level: MissLevel,
    processes: HashMap<u32, Process>,
}

struct Process {
    policy: Box<dyn Policy>,
    /// The number by which the policy knows each page.
    pages: HashMap<u64, u32>,
}

impl Decisions {
    /// Errors: the policy chooses colors or the order of work, too, or does nothing while a program runs; wrong settings.
    pub fn new(name: Name, settings: Vec<String>, world: World) -> Result<Decisions, HomesError> {
        if name.of(Kind::Color).is_some() || name.of(Kind::Order).is_some() {
            return Err(HomesError::Colors(name.to_string()));
        }
        let built = policy::build(&name, &settings)?;
        if built.wants_prices() {
            return Err(HomesError::Prices(name.to_string()));
        }
        let interest = built.interest();
        let level = match interest {
            Interest { cache_misses: 1.., .. } => MissLevel::Cache,
            Interest { tlb_misses: 1.., .. } => MissLevel::Tlb,
            _ => return Err(HomesError::Still(name.to_string(), moving().join(", "))),
        };
        Ok(Decisions {
            name,
            settings,
            world,
            interest,
            level,
            processes: HashMap::new(),
        })
    }

    pub fn interest(&self) -> Interest {
        self.interest
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn settings(&self) -> &[String] {
        &self.settings
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Tells an entry to its policy, and adds the policy's requests to `asked`. Entries about outcomes, and those of
    /// unknown spaces, are not told.
    pub fn tell(&mut self, entry: &Entry, asked: &mut Vec<Asked>) {
        match entry {
            Entry::Joins { space, .. } => {
                // The beginning has checked that it can be built.
                if let Ok(policy) = policy::build(&self.name, &self.settings) {
                    let pages = HashMap::new();
                    self.processes.insert(*space, Process { policy, pages });
                }
            }
            Entry::Leaves { space, .. } => {
                self.processes.remove(space);
            }
            Entry::Free { frames } => self.world.free_frames.clone_from(frames),
            Entry::Misses(misses) => {
                let page = Page {
                    space: misses.space,
                    number: misses.page,
                };
                let Some(process) = self.processes.get_mut(&misses.space) else {
                    return;
                };
                let next = process.pages.len() as u32;
                let index = *process.pages.entry(misses.page).or_insert(next);
                for _ in 0..misses.times {
                    for &cpu in &misses.cpus {
                        let miss = Observation::Miss(Miss {
                            level: self.level,
                            page,
                            index,
                            thread: misses.thread,
                            cpu,
                            served_by: misses.served_by,
                            write: misses.write,
                            fetch: false,
                        });
                        self.observe(misses.space, misses.at, &miss, asked);
                    }
                }
            }
            Entry::Tick { at, space, cpu } => {
                self.observe(*space, *at, &Observation::Tick(Tick { cpu: *cpu, ran: None }), asked);
            }
            Entry::Pressure {
                at,
                space,
                node,
                free_frames,
            } => {
                let pressure = Observation::Pressure(Pressure {
                    node: *node,
                    free_frames: *free_frames,
                });
                self.observe(*space, *at, &pressure, asked);
            }
            Entry::Begins(_) | Entry::Asks(_) | Entry::Became { .. } => {}
        }
    }

    fn observe(&mut self, space: u32, at: u64, observation: &Observation, asked: &mut Vec<Asked>) {
        let Some(process) = self.processes.get_mut(&space) else {
            return;
        };
        self.world.now_ns = at;
        let mut actions = Vec::new();
        process.policy.observe(observation, &self.world, &mut actions);
        asked.extend(actions.into_iter().filter_map(asked_for));
    }
}

/// The policies that move pages while a program runs.
pub fn moving() -> Vec<&'static str> {
    let homes = policy::registry().iter().filter(|entry| entry.kind == Kind::Home);
    let moving = homes.filter(|entry| entry.traits.later.on_misses());
    moving.map(|entry| entry.name).collect()
}

/// The request that an action makes of this world. No policy of homes asks for anything else.
fn asked_for(action: Action) -> Option<Asked> {
    Some(match action {
        Action::Move { page, to } => Asked::Move {
            space: page.space,
            page: page.number,
            node: to.node?,
        },
        Action::Copy { page, node } => Asked::Copy {
            space: page.space,
            page: page.number,
            node,
        },
        Action::Collapse { page, .. } => Asked::Collapse {
            space: page.space,
            page: page.number,
        },
        Action::Close { .. }
        | Action::Open { .. }
        | Action::MoveThread { .. }
        | Action::Allow { .. }
        | Action::Work { .. } => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_move_pages_are_those_that_want_misses() {
        assert_eq!(moving(), ["migrate", "replicate", "migrate-replicate"]);
        let world = super::super::layout::Layout::new(&[(0, vec![0]), (1, vec![1])], false).world();
        let new = |name: &str, sets: &[&str]| {
            let sets = sets.iter().map(|set| (*set).to_string()).collect();
            Decisions::new(name.parse().unwrap(), sets, world.clone())
        };
        let why = |name: &str, sets: &[&str]| new(name, sets).map(|_| ()).unwrap_err().to_string();
        assert!(why("first-touch", &[]).contains("moves nothing while a program runs"));
        assert!(why("migrate+bin-hopping", &[]).contains("chooses colors, too"));
        assert!(why("migrate", &["migrate.trigger=0"]).contains("migrate.trigger"));
        // A setting that cannot be honoured is refused, not ignored; 0 asks for nothing.
        for name in moving() {
            for set in ["gain=100", "adapt=10"] {
                let refused = why(name, &[&format!("{name}.{set}")]);
                assert!(
                    refused.contains("`gain` and `adapt`") && refused.contains(name),
                    "{refused}"
                );
            }
            assert!(new(name, &[&format!("{name}.gain=0"), &format!("{name}.adapt=0")]).is_ok());
        }
        let counted = new("migrate", &["migrate.count=tlb-misses"]).unwrap();
        assert_eq!(counted.level, MissLevel::Tlb);
    }
}
