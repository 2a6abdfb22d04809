//! A policy in a world that a test makes up, told of each event in turn.

use policy::{Action, Miss, MissLevel, Observation, Page, Policy, World};

pub struct Scene {
    pub policy: Box<dyn Policy>,
    pub world: World,
}

impl Scene {
    /// So many cpus, each on a node of its own. `sets`: `parameter=value`.
    pub fn of(cpus: u32, name: &str, sets: &[&str]) -> Scene {
        let sets: Vec<String> = sets.iter().map(|set| format!("{name}.{set}")).collect();
        Scene {
            policy: policy::build(&name.parse().unwrap(), &sets).unwrap(),
            world: World {
                page_bytes: 4096,
                colors: 1,
                cpus,
                nodes: cpus,
                cpu_nodes: cpus,
                free_frames: vec![100; cpus as usize],
                now_ns: 0,
                caches: None,
                domains: None,
                runnable: Vec::new(),
            },
        }
    }

    pub fn see(&mut self, observation: Observation) -> Vec<Action> {
        let mut actions = Vec::new();
        self.policy.observe(&observation, &self.world, &mut actions);
        actions
    }

    /// A cpu's thread, which has its number, misses.
    pub fn miss(&mut self, page: Page, cpu: u32, served_by: u32, write: bool) -> Vec<Action> {
        self.see(Observation::Miss(Miss {
            level: MissLevel::Cache,
            page,
            index: page.number as u32,
            thread: cpu,
            cpu,
            served_by,
            write,
            fetch: false,
        }))
    }
}
