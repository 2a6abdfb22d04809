//! The number of touches of closed pages a second that policy `regions` answers on one core.
//!
//! `regions_speed [SECONDS [NAME]]` prints one JSON object: for each kind of touches, their number in a second of
//! processor time, and the pages opened and closed at each. It has only those whose name contains NAME. Two regions
//! take turns, on two caches of a cpu each. The policy hears of each touch: its page was closed to the cpu.

use std::sync::Arc;
use std::time::Duration;

use policy::{Accessed, Action, Domains, Nature, Observation, Page, Policy, Ran, Tick, Touch, Touched, World};

/// Each page of a region is touched so often before the other region has its turn.
const ROUNDS: u64 = 8;
/// Touches of closed pages that are recorded.
const TOUCHES: usize = 200_000;

struct Mix {
    name: &'static str,
    /// Pages of each region.
    pages: u64,
    /// Regioning phases take this many of 1000 parts of the time.
    share: u64,
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let mixes = [
        ("threads that follow, regions of 16 pages", 16, 1),
        ("threads that follow, regions of 768 pages", 768, 1),
        ("in phases, regions of 16 pages", 16, 1000),
        ("in phases, regions of 768 pages", 768, 1000),
    ];
    let mixes = mixes.map(|(name, pages, share)| Mix { name, pages, share });
    let only = std::env::args().nth(2).unwrap_or_default();
    let results: Vec<String> = mixes
        .iter()
        .filter(|mix| mix.name.contains(&only))
        .map(|mix| {
            let (touches, pages) = rate(mix, Duration::from_secs_f64(seconds));
            format!("\"{}\": [{touches:.0}, {pages:.1}]", mix.name)
        })
        .collect();
    println!("{{{}}}", results.join(", "));
}

/// An event that the policy hears of, and its time.
enum Heard {
    Observation(Observation),
    Looked(Vec<Accessed>),
}

fn new_policy(mix: &Mix) -> Box<dyn Policy> {
    let sets = [
        format!("period={}", mix.pages * 100),
        format!("share={}", mix.share.max(100)),
        format!("scan={}", mix.pages * 25),
        format!("idle={}", mix.pages * 2),
        "stay-least=1".to_string(),
        "stay-most=1000000".to_string(),
        "one-cache=1".to_string(),
        "all-caches=1000000".to_string(),
        "cost=0".to_string(),
        "fault=0".to_string(),
        "rate=1000000000".to_string(),
    ];
    let sets = sets.map(|set| format!("regions.{set}"));
    policy::build(&"regions".parse().expect("a name"), &sets).expect("valid sets")
}

fn new_world(mix: &Mix) -> World {
    let domains = Domains {
        name: "L2".to_string(),
        bytes: mix.pages * 4096 * 2,
        of_cpu: vec![0, 1],
    };
    World {
        page_bytes: 4096,
        colors: 1,
        cpus: 2,
        nodes: 1,
        cpu_nodes: 1,
        free_frames: vec![u64::MAX],
        now_ns: 0,
        caches: None,
        domains: Some(Arc::new(domains)),
        runnable: vec![0, 0],
    }
}

const FIRST: Touch = Touch {
    page: Page { space: 0, number: 0 },
    thread: 0,
    cpu: 0,
    write: false,
};

/// A thread, the cpu that it is on, and which pages are closed to which cpus.
struct Scene {
    policy: Box<dyn Policy>,
    world: World,
    closed: Vec<u128>,
    cpu: u32,
    actions: Vec<Action>,
    heard: Vec<(u64, Heard)>,
    touches: usize,
}

impl Scene {
    fn new(mix: &Mix) -> Scene {
        let mut scene = Scene {
            policy: new_policy(mix),
            world: new_world(mix),
            closed: vec![0; mix.pages as usize * 2],
            cpu: 0,
            actions: Vec::new(),
            heard: Vec::new(),
            touches: 0,
        };
        scene.policy.place(&FIRST, &scene.world);
        scene
    }

    fn observe(&mut self, observation: Observation) {
        self.policy.observe(&observation, &self.world, &mut self.actions);
        self.heard.push((self.world.now_ns, Heard::Observation(observation)));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for action in self.actions.drain(..) {
            match action {
                Action::Close { page, cpus } => self.closed[page.number as usize] |= cpus,
                Action::Open { page, cpus } => self.closed[page.number as usize] &= !cpus,
                Action::MoveThread { cpu, .. } => self.cpu = cpu,
                _ => {}
            }
        }
    }

    fn touch(&mut self, number: u64) {
        if self.closed[number as usize] >> self.cpu & 1 == 0 {
            return;
        }
        self.touches += 1;
        self.observe(Observation::Touched(Touched {
            page: Page { space: 0, number },
            index: number as u32,
            thread: 0,
            cpu: self.cpu,
            write: false,
            nature: Nature::Data,
        }));
    }

    fn look(&mut self) {
        let accessed = |number| Accessed {
            page: Page { space: 0, number },
            index: number as u32,
            nature: Nature::Data,
        };
        let accessed: Vec<Accessed> = (0..self.closed.len() as u64).map(accessed).collect();
        self.policy.observe_accessed(&accessed, &self.world, &mut self.actions);
        self.heard.push((self.world.now_ns, Heard::Looked(accessed)));
        self.carry_out();
    }

    /// Time goes on by as many references as there are us, with looks and ticks as a world has them.
    fn run(&mut self, mix: &Mix, us: std::ops::Range<u64>) {
        for now in us {
            self.world.now_ns = now * 1000;
            if now > 0 && now % (mix.pages * 25) == 0 {
                self.look();
            }
            if now % (mix.pages * 10) == 0 {
                let cpu = self.cpu;
                let ran = Some(Ran { thread: 0, space: 0 });
                self.observe(Observation::Tick(Tick { cpu, ran }));
            }
            let region = now / (mix.pages * ROUNDS) % 2;
            self.touch(region * mix.pages + now * 7 % mix.pages);
        }
    }
}

/// Touches a second, over about `time` of processor time, and pages that are opened and closed at each.
fn rate(mix: &Mix, time: Duration) -> (f64, f64) {
    let mut scene = Scene::new(mix);
    // Until regions are found.
    let warm = 1000 * mix.pages;
    scene.run(mix, 0..warm);
    let report = scene.policy.regions().expect("regions are reported");
    assert!(
        report.merges > 0 && report.phases > 0,
        "{}: nothing was found",
        mix.name
    );
    let (found, before) = (scene.heard.len(), scene.touches);
    let mut now = warm;
    while scene.touches - before < TOUCHES {
        match mix.share {
            // No tick, and so no phase: the thread follows from touch to touch.
            0..1000 => (0..4096).for_each(|at| scene.touch((now + at) % 2 * mix.pages + (now + at) * 7 % mix.pages)),
            _ => scene.run(mix, now..now + 4096),
        }
        now += 4096;
        scene.world.now_ns = now * 1000;
    }
    let touches = scene.touches - before;
    let (mut played, mut pages, mut used) = (0, 0, Duration::ZERO);
    while used < time {
        let (changed, took) = replayed(mix, &scene.heard, found);
        (played, pages, used) = (played + touches, pages + changed, used + took);
    }
    (played as f64 / used.as_secs_f64(), pages as f64 / played as f64)
}

/// The number of pages that a new policy opens and closes for the events after regions were found, and the processor
/// time that it takes.
fn replayed(mix: &Mix, heard: &[(u64, Heard)], found: usize) -> (usize, Duration) {
    let (mut policy, mut world, mut actions) = (new_policy(mix), new_world(mix), Vec::new());
    policy.place(&FIRST, &world);
    let mut play = |heard: &[(u64, Heard)]| {
        let mut changed = 0;
        for (now_ns, heard) in heard {
            world.now_ns = *now_ns;
            match heard {
                Heard::Observation(observation) => policy.observe(observation, &world, &mut actions),
                Heard::Looked(accessed) => policy.observe_accessed(accessed, &world, &mut actions),
            }
            changed += actions.len();
            actions.clear();
        }
        changed
    };
    play(&heard[..found]);
    let began = processor_time();
    let changed = play(&heard[found..]);
    (changed, processor_time() - began)
}

/// This thread's processor time, which does not depend on the machine's other work.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.expect("nanoseconds come first"))
}
