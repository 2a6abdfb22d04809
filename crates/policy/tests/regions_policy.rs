//! Policy `regions` as a world calls it: its answers to touches, ticks and looks, on two caches of two cpus each.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use policy::{Accessed, Action, Domains, Nature, Observation, Page, Policy, Ran, Tick, Touch, Touched, World};
use results::RegionsVerdict;

/// A world of one thread that touches a page each us. Pages have their numbers as indices.
struct Scene {
    policy: Box<dyn Policy>,
    world: World,
    /// Cpus that each page is closed to.
    closed: BTreeMap<u64, u128>,
    cpu: u32,
    /// Pages that were torn down when a phase began.
    torn: Vec<Vec<u64>>,
    moves: u64,
    worked_ns: u64,
}

/// Pages of two localities.
const TWO: [Range<u64>; 2] = [0..8, 8..16];

impl Scene {
    /// A phase of 100 us begins each ms, after a look.
    fn new(sets: &[&str]) -> Scene {
        let usual = [
            "period=1000",
            "share=100",
            "scan=1000",
            "idle=20",
            "eager=0",
            "stay-least=1",
            "stay-most=1000000",
            "one-cache=1",
            "all-caches=1000000",
            "fault=0",
            // This world charges nothing.
            "entry=0",
            "flush=0",
        ];
        let sets: Vec<String> = usual.iter().chain(sets).map(|set| format!("regions.{set}")).collect();
        let domains = Domains {
            name: "L2".to_string(),
            bytes: 16 * 4096,
            of_cpu: vec![0, 0, 1, 1],
        };
        let mut scene = Scene {
            policy: policy::build(&"regions".parse().expect("a name"), &sets).expect("the sets are valid"),
            world: World {
                page_bytes: 4096,
                colors: 1,
                cpus: 4,
                nodes: 1,
                cpu_nodes: 1,
                free_frames: vec![u64::MAX],
                now_ns: 0,
                caches: None,
                domains: Some(Arc::new(domains)),
                runnable: vec![1, 0, 0, 0],
            },
            closed: BTreeMap::new(),
            cpu: 0,
            torn: Vec::new(),
            moves: 0,
            worked_ns: 0,
        };
        scene.place(0, 0, 0);
        scene
    }

    /// A thread touches a page for the first time.
    fn place(&mut self, number: u64, thread: u32, cpu: u32) {
        let touch = Touch {
            page: Page { space: 0, number },
            thread,
            cpu,
            write: false,
        };
        self.policy.place(&touch, &self.world);
    }

    /// Two localities that are spread: the thread is on cpu 0, and its cache has pages 0 to 7 or 8 to 15, which is returned first.
    fn spread(sets: &[&str]) -> (Scene, Range<u64>, Range<u64>) {
        let mut scene = Scene::new(sets);
        scene.run(&TWO, 0..1101, 130);
        assert_eq!(scene.report().processes[0].verdict, RegionsVerdict::Pays);
        let [a, b] = TWO;
        match scene.is_closed(a.start, 0) {
            true => (scene, b, a),
            false => (scene, a, b),
        }
    }

    fn is_closed(&self, page: u64, cpu: u32) -> bool {
        self.closed.get(&page).is_some_and(|closed| closed >> cpu & 1 == 1)
    }

    fn open_at(&self, cpu: u32) -> Vec<u64> {
        (0..16).filter(|&page| !self.is_closed(page, cpu)).collect()
    }

    fn report(&self) -> results::Regions {
        self.policy.regions().expect("regions are reported")
    }

    /// Carries out the policy's actions except moves of threads, whose destinations it returns.
    fn carry_out(&mut self, actions: Vec<Action>) -> Vec<u32> {
        let mut moves = Vec::new();
        for action in actions {
            match action {
                Action::Close { page, cpus } => *self.closed.entry(page.number).or_default() |= cpus,
                Action::Open { page, cpus } => *self.closed.entry(page.number).or_default() &= !cpus,
                Action::MoveThread { cpu, .. } => moves.push(cpu),
                Action::Work { ns } => self.worked_ns += ns,
                other => panic!("{other:?}"),
            }
        }
        moves
    }

    /// Thread 0 touches a page on a cpu. Returns where it is moved to.
    fn touch(&mut self, page: u64, cpu: u32, now_us: u64) -> Option<u32> {
        self.world.now_ns = now_us * 1000;
        if !self.is_closed(page, cpu) {
            return None;
        }
        let touched = Touched {
            page: Page { space: 0, number: page },
            index: page as u32,
            thread: 0,
            cpu,
            write: false,
            nature: Nature::Data,
        };
        let mut actions = Vec::new();
        let touched = Observation::Touched(touched);
        self.policy.observe(&touched, &self.world, &mut actions);
        self.carry_out(actions).pop()
    }

    fn tick(&mut self, now_us: u64) {
        self.tick_of(0, self.cpu, now_us);
    }

    /// A tick of a cpu on which a thread ran.
    fn tick_of(&mut self, thread: u32, cpu: u32, now_us: u64) {
        self.world.now_ns = now_us * 1000;
        let torn_down = self.report().torn_down;
        let mut actions = Vec::new();
        let ran = Some(Ran { thread, space: 0 });
        let tick = Observation::Tick(Tick { cpu, ran });
        self.policy.observe(&tick, &self.world, &mut actions);
        assert!(self.carry_out(actions).is_empty());
        if self.report().torn_down > torn_down {
            // Seeds are closed to the phase's cpu only.
            let seeds = self.closed.iter().filter(|(_, closed)| **closed == 1 << self.cpu);
            self.torn.push(seeds.map(|(page, _)| *page).collect());
        }
    }

    fn look(&mut self, pages: impl Iterator<Item = u64>, now_us: u64) {
        self.world.now_ns = now_us * 1000;
        let accessed = |number| Accessed {
            page: Page { space: 0, number },
            index: number as u32,
            nature: Nature::Data,
        };
        let accessed: Vec<Accessed> = pages.map(accessed).collect();
        let mut actions = Vec::new();
        self.policy.observe_accessed(&accessed, &self.world, &mut actions);
        assert!(self.carry_out(actions).is_empty());
    }

    /// The thread goes through each locality in turn for `stay_us` at a time, and runs where the policy wants it.
    fn run(&mut self, localities: &[Range<u64>], us: Range<u64>, stay_us: u64) {
        for now in us {
            let locality = &localities[(now / stay_us) as usize % localities.len()];
            let pages = locality.end - locality.start;
            if let Some(cpu) = self.touch(locality.start + now % pages, self.cpu, now) {
                self.cpu = cpu;
                self.moves += 1;
            }
            if now > 0 && now % 1000 == 0 {
                self.look(localities.iter().cloned().flatten(), now);
            }
            if now > 0 && now % 100 == 0 {
                self.tick(now);
            }
        }
    }
}

#[test]
fn two_localities_get_a_cache_each_and_the_thread_follows() {
    let (mut scene, here, there) = Scene::spread(&[]);
    let report = scene.report();
    let regions: Vec<(Option<u32>, u64)> = report
        .regions
        .iter()
        .map(|region| (region.cache, region.pages))
        .collect();
    assert!(
        regions.contains(&(Some(0), 8)) && regions.contains(&(Some(1), 8)),
        "{regions:?}"
    );
    assert_eq!(
        report.moments.last().map(|moment| &moment.load_bytes[..]),
        Some(&[8 * 4096; 2][..])
    );
    assert_eq!(scene.touch(there.start, 0, 1102), Some(2));
    assert_eq!(scene.touch(there.start, 2, 1103), None);
    scene.world.runnable = vec![0, 0, 1, 0];
    assert_eq!(scene.touch(here.start, 2, 1104), Some(0));
    assert_eq!(scene.report().switches, 2);
}

/// Figure 4: the tables of two caches differ in local pages only, and have together the entries of the guest's table. A
/// move changes neither.
#[test]
fn each_cache_has_a_table_of_its_own() {
    let (mut scene, here, there) = Scene::spread(&[]);
    for cpu in 0..4 {
        let mine = if cpu < 2 { &here } else { &there };
        assert_eq!(scene.open_at(cpu), mine.clone().collect::<Vec<u64>>(), "cpu {cpu}");
    }
    let before = scene.closed.clone();
    assert_eq!(scene.touch(there.start, 0, 1102), Some(2));
    assert_eq!(scene.closed, before);
}

/// If its thread would wait for a cpu of the cache while its own cpu would have nothing to run, a region is opened to
/// all until caches are given again.
#[test]
fn a_region_is_opened_where_a_cpu_would_have_nothing_to_run() {
    // The next phase tears down the larger one.
    let two = [0..8, 8..14];
    let mut scene = Scene::new(&[]);
    scene.run(&two, 0..1101, 130);
    let cpu = if scene.is_closed(8, 0) { 0 } else { 2 };
    scene.world.runnable = vec![1; 4];
    assert_eq!(scene.touch(8, cpu, 1102), None);
    assert_eq!((scene.report().opened, scene.report().switches), (1, 0));
    let open = |scene: &Scene| (8..14).filter(|&page| !scene.is_closed(page, cpu)).count();
    assert_eq!(open(&scene), 6);
    scene.world.runnable = vec![0; 4];
    scene.run(&two, 1103..1999, 35);
    assert_eq!(open(&scene), 6);
    scene.run(&two, 1999..2101, 35);
    assert_eq!(open(&scene), 0);
}

#[test]
fn where_another_thread_waits_a_thread_goes_all_the_same() {
    let (mut scene, _, there) = Scene::spread(&[]);
    scene.world.runnable = vec![2, 0, 1, 1];
    assert_eq!(scene.touch(there.start, 0, 1102), Some(2));
    assert_eq!(scene.report().opened, 0);
}

#[test]
fn a_thread_goes_to_the_cpu_where_fewest_run() {
    let (mut scene, _, there) = Scene::spread(&[]);
    scene.world.runnable = vec![1, 0, 3, 0];
    assert_eq!(scene.touch(there.start, 0, 1102), Some(3));
}

/// Section 3.3: if a region causes too many moves, and one page more than half of them, that page leaves it.
#[test]
fn a_page_that_alone_causes_the_moves_leaves_its_region() {
    for (others, excluded, open) in [(0, 1, 9), (25, 0, 8)] {
        let (mut scene, _, there) = Scene::spread(&["rate=10"]);
        for at in 0..50 {
            let page = there.start + u64::from(at < others);
            assert_eq!(scene.touch(page, 0, 1102 + at), Some(2));
        }
        scene.look(0..16, 2000);
        assert_eq!((scene.report().excluded, scene.open_at(0).len()), (excluded, open));
        assert_eq!(scene.is_closed(there.start, 0), excluded == 0);
        assert!(scene.is_closed(there.start + 1, 0));
    }
    // 50 moves in 1.2 ms are 41666.7 a second.
    for (rate, excluded) in [("rate=41666", 1), ("rate=41667", 0)] {
        let (mut scene, _, there) = Scene::spread(&[rate]);
        (0..50).for_each(|at| assert!(scene.touch(there.start, 0, 1102 + at).is_some()));
        scene.look(0..16, 2200);
        assert_eq!(scene.report().excluded, excluded);
    }
}

/// Table 2, step 5: each phase begins by tearing down the largest region, and never the same twice in a row. A thread
/// that touches its pages again gets it again, in the cache that it had.
#[test]
fn the_largest_is_torn_down_and_never_twice_in_a_row() {
    let localities = [0..8, 8..14];
    let mut scene = Scene::new(&[]);
    scene.run(&localities, 0..1101, 130);
    let before = [0, 8].map(|page| scene.is_closed(page, 0));
    scene.run(&localities, 1101..5101, 35);
    let pages: Vec<Vec<u64>> = [0..8, 8..14, 0..8, 8..14]
        .map(|pages: Range<u64>| pages.collect())
        .to_vec();
    assert_eq!(scene.torn, pages);
    assert_eq!([0, 8].map(|page| scene.is_closed(page, 0)), before);
    assert!(scene.moves > 50, "{}", scene.moves);
}

/// A region that is torn down is built again in its cache, though another one has been empty since its region fell out of use.
#[test]
fn what_is_built_again_has_its_cache_again() {
    let three = [0..8, 8..15, 15..21];
    let mut scene = Scene::new(&[]);
    scene.world.domains = Some(Arc::new(Domains {
        name: "L2".to_string(),
        bytes: 16 * 4096,
        of_cpu: vec![0, 1, 2, 2],
    }));
    scene.run(&three, 0..1101, 34);
    let before = scene.closed.clone();
    assert_eq!([0, 8, 15].map(|page| before[&page]), [0b1110, 0b1101, 0b0011]);
    scene.run(&three[1..], 1101..15_101, 34);
    assert!(
        scene.torn.iter().filter(|pages| pages.contains(&8)).count() > 2,
        "{:?}",
        scene.torn
    );
    assert_eq!(
        [8, 15].map(|page| scene.closed[&page]),
        [8, 15].map(|page| before[&page])
    );
}

/// It is spread, and from one move to the next it takes as long as a stay took: that is given up. Caches are given twice without a
/// phase; then it is tried again. The second time it rests for four.
#[test]
fn what_does_not_gain_is_given_up_and_tried_again_later() {
    let (mut scene, ..) = Scene::spread(&[]);
    // Stays of 100 us were expected.
    scene.run(&TWO, 1101..2099, 99);
    assert_eq!(scene.report().given_up, 0);
    scene.run(&TWO, 2099..3001, 99);
    let report = scene.report();
    assert_eq!(
        (report.given_up, report.processes[0].verdict),
        (1, RegionsVerdict::NoGain)
    );
    assert_eq!(scene.open_at(3).len(), 16);
    scene.run(&TWO, 3001..5001, 99);
    assert_eq!((scene.report().phases, scene.open_at(3).len()), (2, 16));
    scene.run(&TWO, 5001..5101, 99);
    let report = scene.report();
    assert_eq!((report.phases, report.processes[0].verdict), (3, RegionsVerdict::Pays));
    scene.run(&TWO, 5101..7001, 99);
    assert_eq!(scene.report().given_up, 2);
    let phases = scene.report().phases;
    scene.run(&TWO, 7001..11_001, 99);
    assert_eq!(scene.report().phases, phases);
    scene.run(&TWO, 11_001..11_101, 99);
    assert_eq!(scene.report().phases, phases + 1);
}

/// Three regions in two caches: of three changes two are moves. That the time between moves is longer than a stay was is no loss.
#[test]
fn changes_within_a_cache_are_no_moves() {
    let three = [0..8, 8..16, 16..24];
    let mut scene = Scene::new(&[]);
    scene.run(&three, 0..1101, 40);
    assert_eq!(scene.report().processes[0].verdict, RegionsVerdict::Pays);
    scene.run(&three, 1101..5101, 30);
    let process = scene.report().processes[0].clone();
    let (stay, followed) = (process.stay_ns.unwrap(), process.followed_ns.unwrap());
    assert!(stay < followed, "{stay} {followed}");
    assert_eq!((scene.report().given_up, process.verdict), (0, RegionsVerdict::Pays));
}

/// Stays of 5 ms: that there are two regions is known after two phases, how long they are used is not.
#[test]
fn a_stay_that_nobody_saw_is_unknown() {
    let mut scene = Scene::new(&[]);
    scene.run(&TWO, 0..9101, 5000);
    let process = scene.report().processes[0].clone();
    assert_eq!((process.verdict, process.stay_ns), (RegionsVerdict::StayUnknown, None));
    assert_eq!(scene.open_at(0).len(), 16);
    // Phases that watched it for three times the longest stay that would pay.
    let mut scene = Scene::new(&["stay-most=100"]);
    scene.run(&TWO, 0..9101, 5000);
    assert_eq!(scene.report().processes[0].verdict, RegionsVerdict::StaysTooLong);
}

/// While nothing is known of the stays the next `eager` phases come sooner, and no more than these.
#[test]
fn phases_come_sooner_while_stays_are_unknown() {
    let phases = |eager: &str| {
        let mut scene = Scene::new(&[eager]);
        scene.run(&TWO, 0..9101, 5000);
        scene.report().phases
    };
    let [usual, three, many] = ["eager=0", "eager=3", "eager=100"].map(phases);
    assert!(
        usual < three && three <= usual + 3 && three < many,
        "{usual} {three} {many}"
    );
}

/// Stays of 130 us and phases of 100: no phase holds a whole one.
#[test]
fn a_stay_longer_than_a_phase_is_counted() {
    let mut scene = Scene::new(&["stay-least=1000000"]);
    scene.run(&TWO, 0..60_101, 130);
    let process = scene.report().processes[0].clone();
    assert_eq!(process.verdict, RegionsVerdict::StaysTooShort);
    let stay = process.stay_ns.expect("stays were seen");
    assert!((110_000..150_000).contains(&stay), "{stay}");
}

/// All of it fits into one cache: no page is closed, and there is no phase.
#[test]
fn there_is_no_phase_where_the_working_set_says_that_nothing_is_gained() {
    let mut scene = Scene::new(&["one-cache=1000"]);
    scene.run(&TWO, 0..5101, 130);
    let report = scene.report();
    assert_eq!((report.phases, report.touches), (0, 0));
    assert_eq!(report.processes[0].verdict, RegionsVerdict::FitsOneCache);
}

/// Phases and looks take no more of the time so far than `cost` says: a phase is broken off, and the next one waits.
#[test]
fn phases_take_no_more_than_their_cost() {
    // A touch in a phase takes 10 us here, and 16 pages are to be found.
    let spent = |cost: &str| {
        let mut scene = Scene::new(&["flush=10000", "read=0", cost]);
        scene.run(&TWO, 0..4101, 130);
        let report = scene.report();
        (report.spent.regioning_ns, report.phases)
    };
    let (free, phases) = spent("cost=0");
    assert!(phases > 1 && free > 4101 * 13, "{phases} {free}");
    let (bound, broken_off) = spent("cost=13");
    // This much was under way when it was reached: a touch, and the end of the phase.
    assert!(bound <= 4101 * 13 + 2 * 10_000, "{bound}");
    assert!(broken_off > 0 && bound < free);
    // 1 per mille of 4.1 ms is less than an eighth of a phase.
    assert_eq!(spent("cost=1"), (0, 0));
}

/// Phases that find the regions unchanged become rare with `steady`; a change brings them back.
#[test]
fn phases_that_find_regions_unchanged_become_rare_with_steady() {
    let phases = |sets: &[&str], then: &[Range<u64>]| {
        let (mut scene, ..) = Scene::spread(sets);
        scene.run(&TWO, 1101..40_101, 35);
        let steady = scene.report().phases;
        scene.run(then, 40_101..50_101, 35);
        assert_eq!(scene.report().processes[0].verdict, RegionsVerdict::Pays);
        (steady, scene.report().phases - steady)
    };
    // A phase each ms, or each 8 ms.
    let (often, _) = phases(&[], &TWO);
    let (seldom, after) = phases(&["steady=3"], &TWO);
    assert!(often >= 39 && (5..=10).contains(&seldom), "{often} {seldom}");
    assert!(after <= 2, "{after}");
    // A page that changes its region.
    let (_, after) = phases(&["steady=3"], &[0..9, 9..16]);
    assert!(after > 2, "{after}");
}

/// Looks are everybody's: with three more threads, each on a cpu of its own, a quarter of them counts against this one.
#[test]
fn looks_count_against_all_cpus_in_use() {
    let touches = |threads: u32| {
        // The looks alone take 16 per mille of a cpu's time.
        let mut scene = Scene::new(&["flush=0", "read=1000", "cost=13"]);
        for now in 0..40 {
            for cpu in 1..threads {
                let number = 100 + u64::from(cpu);
                scene.place(number, cpu, cpu);
                scene.tick_of(cpu, cpu, now * 1000 + 50);
            }
            scene.run(&TWO, now * 1000..(now + 1) * 1000, 130);
        }
        scene.report().touches
    };
    assert_eq!(touches(1), 0);
    assert!(touches(4) > 16);
}

/// Section 5.1: the cost of the mechanism. A look reads the bits of all pages of the regions in use; a phase begins and
/// ends with another table; a page that is closed by both caches' tables is changed in one; a move changes none.
#[test]
fn the_mechanism_takes_its_time() {
    let (mut scene, _, there) = Scene::spread(&["read=7", "flush=300", "entry=11", "switch=900"]);
    let spent = scene.report().spent;
    assert_eq!(spent.scanning_ns, 16 * 7);
    assert_eq!(spent.tables_ns, 16 * 11);
    // All pages were closed to the phase's cpu when it began, and each touch of one opened it or its region.
    let touches = scene.report().touches;
    assert!(touches >= 16);
    // Each touch changes an entry at least; a region of several pages is another table.
    let (tables, entries) = ((spent.regioning_ns - 600) / 300, 16 * 11);
    assert!(spent.regioning_ns >= 600 + entries && tables >= 1, "{spent:?}");
    assert!(
        (0..=tables).any(|tables| (spent.regioning_ns - 600 - tables * 300).is_multiple_of(11)),
        "{spent:?}"
    );
    assert_eq!(
        scene.worked_ns,
        spent.scanning_ns + spent.tables_ns + spent.regioning_ns
    );
    assert!(scene.touch(there.start, 0, 1102).is_some());
    assert_eq!(scene.report().spent.moving_ns, 900);
    assert_eq!(
        scene.worked_ns,
        spent.scanning_ns + spent.tables_ns + spent.regioning_ns
    );
}
