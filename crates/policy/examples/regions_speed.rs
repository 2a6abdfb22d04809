//! How many touches of closed pages a second policy `regions` answers on one core.
//!
//! `regions_speed [SECONDS]` prints one JSON object: touches a second of processor time, by what they are. Two regions take turns, on two
//! caches of a cpu each. A touch is one that the policy hears of: its page was closed to the cpu.

use std::sync::Arc;
use std::time::Duration;

use policy::{Accessed, Action, Domains, Nature, Observation, Page, Policy, Tick, Touch, Touched, World};

/// Each page of a region is touched so often before the other region has its turn.
const ROUNDS: u64 = 8;

struct Mix {
    name: &'static str,
    /// Pages of each region.
    pages: u64,
    /// Of 1000 parts of the time so many are regioning phases.
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
    let results: Vec<String> = mixes
        .iter()
        .map(|mix| format!("\"{}\": {:.0}", mix.name, rate(mix, Duration::from_secs_f64(seconds))))
        .collect();
    println!("{{{}}}", results.join(", "));
}

/// A thread, the cpu that it is on, and which pages are closed to which cpus.
struct Scene {
    policy: Box<dyn Policy>,
    world: World,
    closed: Vec<u128>,
    cpu: u32,
    actions: Vec<Action>,
    touches: u64,
}

impl Scene {
    fn new(mix: &Mix) -> Scene {
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
        let domains = Domains {
            name: "L2".to_string(),
            bytes: mix.pages * 4096 * 2,
            of_cpu: vec![0, 1],
        };
        let mut scene = Scene {
            policy: policy::build(&"regions".parse().expect("a name"), &sets).expect("valid sets"),
            world: World {
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
            },
            closed: vec![0; mix.pages as usize * 2],
            cpu: 0,
            actions: Vec::new(),
            touches: 0,
        };
        let touch = Touch {
            page: Page { space: 0, number: 0 },
            thread: 0,
            cpu: 0,
            write: false,
        };
        scene.policy.place(&touch, &scene.world);
        scene
    }

    fn observe(&mut self, observation: &Observation) {
        self.policy.observe(observation, &self.world, &mut self.actions);
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
        self.observe(&Observation::Touched(Touched {
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
                self.observe(&Observation::Tick(Tick { cpu }));
            }
            let region = now / (mix.pages * ROUNDS) % 2;
            self.touch(region * mix.pages + now * 7 % mix.pages);
        }
    }
}

fn rate(mix: &Mix, time: Duration) -> f64 {
    let mut scene = Scene::new(mix);
    // Until regions are found.
    let warm = 1000 * mix.pages;
    scene.run(mix, 0..warm);
    let following = mix.share < 1000;
    let report = scene.policy.regions().expect("regions are reported");
    assert!(
        report.merges > 0 && report.phases > 0,
        "{}: nothing was found",
        mix.name
    );
    let open = open_ns(mix);
    scene.touches = 0;
    let (mut now, began) = (warm, processor_time());
    loop {
        let used = processor_time() - began;
        if used >= time {
            // What touched open pages is the harness's, not the policy's.
            let others = (now - warm).saturating_sub(scene.touches) as f64 * open;
            return scene.touches as f64 / (used.as_secs_f64() - others / 1e9).max(1e-9);
        }
        match following {
            // No tick, and so no phase: the thread follows from touch to touch.
            true => (0..4096).for_each(|at| scene.touch((now + at) % 2 * mix.pages + (now + at) * 7 % mix.pages)),
            false => scene.run(mix, now..now + 4096),
        }
        now += 4096;
        scene.world.now_ns = now * 1000;
    }
}

/// Nanoseconds that a touch of an open page takes the harness.
fn open_ns(mix: &Mix) -> f64 {
    const TOUCHES: u64 = 10_000_000;
    let mut scene = Scene::new(mix);
    let began = processor_time();
    for now in 1..=TOUCHES {
        scene.world.now_ns = now * 1000;
        let region = now / (mix.pages * ROUNDS) % 2;
        scene.touch(region * mix.pages + now * 7 % mix.pages);
    }
    (processor_time() - began).as_nanos() as f64 / TOUCHES as f64
}

/// What this thread has run, whatever else the machine does.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.expect("nanoseconds come first"))
}
