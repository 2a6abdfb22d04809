//! When it gains to run a thread where its data is cached, measured on a machine by `memlat` (Lee12, section 3.1): a thread that
//! stays where it is, and the same thread when it follows two regions of memory to two caches.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use machine::{Gains, Machine};
use policy::{
    Action, Bounds, Combined, Domains, Following, Interest, Kind, Name, Observation, Page, Placement, Policy, Touch,
    World,
};
use trace::{Dependence, Event, Op, Ref};

use crate::candidate::Candidate;
use crate::cdpc::Prepared;
use crate::config::{Config, Window};
use crate::domains::domains;
use crate::error::SimError;
use crate::input::{Input, Item, Streams};
use crate::outcome::Simulated;
use crate::run::one_run;

/// In which order `memlat` reads the lines of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// One cycle through all of them, in an order without a pattern: the worst case of least recently used.
    Cyclic,
    /// Any of them each time.
    Random,
}

/// `memlat` with two regions of `bytes` each, `stay` reads in one before the other has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memlat {
    pub walk: Walk,
    pub bytes: u64,
    pub stay: u64,
    /// The same program recorded again lies elsewhere, begins later, and reads in another order.
    pub recording: u64,
}

/// The time of `memlat` on a machine for one stay in one of two regions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// A thread that stays on its cpu.
    pub confined_ns: f64,
    /// A thread that goes to the cache of each region.
    pub followed_ns: f64,
}

impl Point {
    /// The speedup of following.
    pub fn gain(&self) -> f64 {
        self.confined_ns / self.followed_ns
    }

    /// Returns whether following saves a hundredth: less is no gain.
    pub fn gains(&self) -> bool {
        self.gain() > 1.01
    }
}

/// The cost of a move if the machine does not say it, and the part of it that is the fault (as the defaults of policy
/// `regions`).
pub const SWITCH_NS: u64 = 6357;
const FAULT_NS: u64 = 1500;
/// The phase that is counted, after caches were filled.
const COUNTED: &str = "counted";
/// Regions lie so far apart that an address says whose it is.
const APART: u64 = 1 << 32;

/// Random numbers, the same each time (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// `memlat`: each line of both regions once, two stays that are not counted, then `stays` that are.
fn items(memlat: &Memlat, lines: u64, line_bytes: u64, page_bytes: u64, stays: u64) -> Vec<Item> {
    let Memlat {
        walk, stay, recording, ..
    } = *memlat;
    let mut random = Random(88172645463325252 ^ recording.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut next: Vec<u64> = (0..lines).collect();
    if walk == Walk::Cyclic {
        // Sattolo's shuffle makes one cycle.
        for at in (1..lines).rev() {
            next.swap(at as usize, random.below(at) as usize);
        }
    }
    let read = |region: u64, line: u64| {
        Item::Ref(Ref {
            addr: (region + 1) * APART + recording * 7 * page_bytes + line * line_bytes,
            site: 0,
            insns: 3,
            op: Op::Read,
            size: 8,
        })
    };
    let each_page = (page_bytes / line_bytes).max(1) as usize;
    // Pages that are touched before take frames.
    let before = (0..recording * 37).map(|at| read(1 << 16, at * 64));
    let mut items: Vec<Item> = before.collect();
    for step in [each_page, 1] {
        for region in 0..2 {
            items.extend((0..lines).step_by(step).map(|line| read(region, line)));
        }
    }
    let mut at = [0, 0];
    for number in 0..stays + 2 {
        if number == 2 {
            items.push(Item::Event(Event::Phase {
                name: COUNTED.to_string(),
            }));
        }
        let region = number % 2;
        for _ in 0..stay {
            let line = &mut at[region as usize];
            *line = match walk {
                Walk::Cyclic => next[*line as usize],
                Walk::Random => random.below(lines),
            };
            items.push(read(region, *line));
        }
    }
    items
}

/// Threads go to the first cpu of the cache of the region that they touch. Both regions are closed to the other cpus as soon as
/// they are touched.
struct Follow {
    domains: Domains,
    page_bytes: u64,
    switch_ns: u64,
    pages: Vec<Page>,
}

impl Follow {
    fn cache(&self, page: Page) -> u32 {
        (page.number * self.page_bytes / APART) as u32 % self.domains.count()
    }
}

impl Policy for Follow {
    fn place(&mut self, touch: &Touch, _world: &World) -> Placement {
        self.pages.push(touch.page);
        Placement::default()
    }

    fn interest(&self) -> Interest {
        Interest {
            touches: true,
            touch_fault_ns: FAULT_NS.min(self.switch_ns).max(1),
            move_thread_ns: self.switch_ns.saturating_sub(FAULT_NS).max(1),
            tick_ns: 1000,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, _world: &World, actions: &mut Vec<Action>) {
        match observation {
            Observation::Tick(_) => {
                for page in std::mem::take(&mut self.pages) {
                    let cache = self.cache(page);
                    let others = (0..self.domains.count()).filter(|&other| other != cache);
                    let cpus = others.fold(0, |cpus, other| cpus | self.domains.mask(other));
                    actions.push(Action::Close { page, cpus });
                }
            }
            Observation::Touched(touched) => {
                let cpu = self.domains.cpus(self.cache(touched.page)).next();
                actions.extend(cpu.map(|cpu| Action::MoveThread {
                    thread: touched.thread,
                    cpu,
                }));
            }
            _ => {}
        }
    }
}

/// Runs `memlat` both ways. `None`: there are no two caches.
pub fn point(machine: &Machine, memlat: &Memlat) -> Result<Option<Point>, SimError> {
    let Some(domains) = domains(machine).filter(|domains| domains.count() > 1) else {
        return Ok(None);
    };
    let line_bytes = machine.caches.iter().map(|cache| u64::from(cache.line_bytes)).max();
    let line_bytes = line_bytes.unwrap_or(64);
    let (lines, stay) = ((memlat.bytes / line_bytes).max(2), memlat.stay);
    // An even number: as many in either region.
    let stays = (100_000 / stay.max(1)).clamp(2, 256) * 2;
    let mut streams = Streams::new(vec![items(memlat, lines, line_bytes, machine.page_bytes, stays)]);
    streams.dependences = vec![Dependence {
        site: 0,
        on: vec![0],
        either: false,
    }];
    let config = Config {
        classes: false,
        threads: Some(1),
        window: Some(Window {
            from_phase: Some(COUNTED.to_string()),
            to_phase: None,
        }),
        ..Config::new(machine.clone(), Vec::new())
    };
    let run = |policy: Box<dyn Policy>| -> Result<Simulated, SimError> {
        let open = || Ok(Box::new(streams.input()) as Box<dyn Input + '_>);
        let candidate = Candidate::new(("memlat".to_string(), policy), &Prepared::default());
        one_run(&open, &config, candidate, &|_| {})
    };
    // Frames are where they are under any scheduler.
    let frames = || policy::build(&Name::default_of(Kind::Home), &[]);
    let each_ns = |run: Simulated| run.outcome.time_ns.wall as f64 / stays as f64;
    let follow = Follow {
        domains,
        page_bytes: machine.page_bytes,
        switch_ns: described(machine).switch_ns.unwrap_or(SWITCH_NS),
        pages: Vec::new(),
    };
    let follow = Combined::new(vec![Box::new(follow), frames()?]);
    let frames = frames()?;
    let (confined, followed) = rayon::join(|| run(frames), || run(Box::new(follow)));
    Ok(Some(Point {
        confined_ns: each_ns(confined?),
        followed_ns: each_ns(followed?),
    }))
}

/// Sizes are told apart by this part of a cache.
const PARTS: u64 = 32;

/// Conditions 1 to 3, by bisection: in the middle of the stays the smallest and the largest size that gain, in the middle of the sizes the
/// shortest stay. Following saves the same of every long stay, so that a hundred times as much is the longest that gains. Of both walks
/// the narrower bounds. `None`: there are no two caches.
pub fn calibrate(machine: &Machine) -> Result<Option<Gains>, SimError> {
    let Some(domains) = domains(machine).filter(|domains| domains.count() > 1) else {
        return Ok(None);
    };
    let of = |walk| gains(machine, walk, domains.bytes);
    let (cyclic, random) = rayon::join(|| of(Walk::Cyclic), || of(Walk::Random));
    let (cyclic, random) = (cyclic?, random?);
    Ok(Some(Gains {
        stay_least_ns: cyclic.stay_least_ns.max(random.stay_least_ns),
        stay_most_ns: cyclic.stay_most_ns.min(random.stay_most_ns),
        one_cache: cyclic.one_cache.max(random.one_cache),
        all_caches: cyclic.all_caches.min(random.all_caches),
    }))
}

fn gains(machine: &Machine, walk: Walk, cache: u64) -> Result<Gains, SimError> {
    // Both regions together are `parts` parts of a cache.
    let at = |parts: u64, stay: u64| -> Result<Point, SimError> {
        let memlat = Memlat {
            walk,
            bytes: cache * parts / PARTS / 2,
            stay,
            recording: 0,
        };
        let point = point(machine, &memlat)?;
        Ok(point.unwrap_or(Point {
            confined_ns: 0.0,
            followed_ns: 1.0,
        }))
    };
    let middle = PARTS * 3 / 2;
    let lines = (cache / 64).max(16);
    // The smallest size that gains lies beyond the first, and not beyond the second.
    let (mut below, mut smallest) = (PARTS / 2, middle);
    while smallest - below > 1 {
        let parts = (below + smallest) / 2;
        match at(parts, lines)?.gains() {
            true => smallest = parts,
            false => below = parts,
        }
    }
    let (mut largest, mut beyond) = (middle, PARTS * 4);
    while beyond - largest > 1 {
        let parts = (largest + beyond) / 2;
        match at(parts, lines)?.gains() {
            true => largest = parts,
            false => beyond = parts,
        }
    }
    // Stays by the quarters of powers of two.
    let stay = |quarters: u32| (2f64.powf(f64::from(quarters) / 4.0)).round() as u64;
    let (mut short, mut least) = (8, lines.ilog2() * 4);
    let mut stay_least = at(middle, stay(least))?;
    if !stay_least.gains() {
        // Even a stay in which every line is read gains nothing: no stay is long enough.
        stay_least.confined_ns = (u64::MAX >> 12) as f64;
    } else {
        while least - short > 1 {
            let quarters = (short + least) / 2;
            let point = at(middle, stay(quarters))?;
            match point.gains() {
                true => (least, stay_least) = (quarters, point),
                false => short = quarters,
            }
        }
    }
    let long = at(middle, lines * 4)?;
    Ok(Gains {
        stay_least_ns: stay_least.confined_ns.ceil() as u64,
        stay_most_ns: ((long.confined_ns - long.followed_ns).max(0.0) * 100.0) as u64,
        // Of the range between the two that were told apart, the part known not to gain is excluded.
        one_cache: (smallest - 1) * 1000 / PARTS,
        all_caches: largest * 500 / PARTS,
    })
}

/// The figures of a machine's description.
pub fn described(machine: &Machine) -> Following {
    Following {
        switch_ns: machine.regions.map(|regions| regions.switch_ns as u64),
        bounds: machine.regions.and_then(|regions| regions.gains).map(bounds),
        ..Following::default()
    }
}

fn bounds(gains: Gains) -> Bounds {
    Bounds {
        stay_least_ns: gains.stay_least_ns,
        stay_most_ns: gains.stay_most_ns,
        one_cache: gains.one_cache,
        all_caches: gains.all_caches,
    }
}

/// Caches are measured up to this size before a run.
const SMALL: u64 = 4 << 20;

/// A machine whose outermost caches are no larger than [`SMALL`], all caches and the TLB being smaller by the same factor; and the
/// factor. Sizes relative to a cache and shortest stays are the same there, longest stays are as many times shorter.
fn smaller(machine: &Machine, cache_bytes: u64) -> (Machine, u64) {
    let factor = cache_bytes.div_ceil(SMALL).next_power_of_two();
    let mut smaller = machine.clone();
    for cache in &mut smaller.caches {
        let slices = cache.hash.as_ref().map_or(1, |hash| u64::from(hash.slices));
        let set_bytes = u64::from(cache.ways) * u64::from(cache.line_bytes) * slices;
        cache.bytes = set_bytes * (cache.bytes / set_bytes / factor).max(1);
    }
    if let Some(tlb) = &mut smaller.tlb {
        let sets = tlb.entries / tlb.ways.max(1);
        if sets > 1 {
            tlb.entries = tlb.ways * (sets / factor.min(u64::from(sets)) as u32).max(1);
        } else {
            tlb.entries = (tlb.entries / factor as u32).max(tlb.wired + 1);
            tlb.ways = tlb.entries;
        }
        tlb.wired = tlb.wired.min(tlb.entries - 1);
    }
    match smaller.check() {
        Ok(()) => (smaller, factor),
        Err(_) => (machine.clone(), 1),
    }
}

/// The same before a run, in seconds on any machine: smaller caches stand in for large ones.
fn quickly(machine: &Machine) -> Result<Option<Gains>, SimError> {
    let Some(domains) = domains(machine) else {
        return Ok(None);
    };
    let (smaller, factor) = smaller(machine, domains.bytes);
    let gains = calibrate(&smaller)?;
    Ok(gains.map(|gains| Gains {
        stay_most_ns: gains.stay_most_ns.saturating_mul(factor),
        ..gains
    }))
}

/// The figures of a machine's description, with the missing ones measured: once for each machine in a process.
pub fn following(machine: &Machine) -> Result<Following, SimError> {
    static KNOWN: OnceLock<Mutex<HashMap<String, Option<Gains>>>> = OnceLock::new();
    let described = described(machine);
    if described.bounds.is_some() {
        return Ok(described);
    }
    let mut known = KNOWN
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let key = machine.to_toml();
    let gains = match known.get(&key) {
        Some(gains) => *gains,
        None => *known.entry(key).or_insert(quickly(machine)?),
    };
    Ok(Following {
        bounds: gains.map(bounds),
        just_measured: gains.is_some(),
        ..described
    })
}
