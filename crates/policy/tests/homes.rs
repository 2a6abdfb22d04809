//! Policies that choose homes by misses, moment by moment: the counts, the waits, and the resets.

use crate::scene;

use policy::{Action, Interest, Miss, MissLevel, Observation, Page, Placement, Pressure, Tick, Touch, Touched};

use scene::Scene;

const A: Page = Page { space: 0, number: 1 };
const B: Page = Page { space: 0, number: 2 };

impl Scene {
    /// Four cpus on four nodes.
    fn new(name: &str, sets: &[&str]) -> Scene {
        Scene::of(4, name, sets)
    }

    /// Reads that miss; nothing comes of any but the last.
    fn misses(&mut self, count: u32, page: Page, cpu: u32, served_by: u32) -> Vec<Action> {
        for _ in 1..count {
            assert_eq!(self.miss(page, cpu, served_by, false), []);
        }
        self.miss(page, cpu, served_by, false)
    }

    fn write_replicated(&mut self, page: Page, cpu: u32) -> Vec<Action> {
        let write = true;
        self.see(Observation::ReplicaWritten(Touched {
            page,
            index: page.number as u32,
            thread: cpu,
            cpu,
            write,
            nature: Default::default(),
        }))
    }
}

fn to(page: Page, node: u32) -> Action {
    let to = Placement {
        color: None,
        node: Some(node),
    };
    Action::Move { page, to }
}

fn copy(page: Page, node: u32) -> Action {
    Action::Copy { page, node }
}

/// Thresholds of the paper, acting at once.
fn at_once() -> Scene {
    Scene::new("migrate-replicate", &["batch=1"])
}

#[test]
fn the_defaults_are_those_of_the_paper() {
    let scene = Scene::new("migrate-replicate", &[]);
    let interest = scene.policy.interest();
    assert_eq!(
        interest,
        Interest {
            cache_misses: 1,
            tick_ns: 500_000,
            pressure_frames: 16,
            ..Interest::NONE
        }
    );
    let mut scene = at_once();
    assert_eq!(scene.misses(128, A, 1, 0), [to(A, 1)]);
    // 32 misses of the page's cpu are not more than the hold, 33 are.
    for (held, expected) in [(32, to(B, 1)), (33, copy(B, 1))] {
        let mut scene = at_once();
        assert_eq!(scene.misses(held, B, 0, 0), []);
        assert_eq!(scene.misses(128, B, 1, 0), [expected]);
    }
}

/// Cpu 2 has no copy: however often it misses, the page is not shared in the paper's sense.
#[test]
fn only_cpus_with_a_local_copy_make_a_page_shared() {
    let mut scene = at_once();
    assert_eq!(scene.misses(127, A, 2, 0), []);
    assert_eq!(scene.misses(128, A, 1, 0), [to(A, 1)]);
    // Now cpu 1 has, and cpu 2 gets a copy at its next miss.
    assert_eq!(scene.miss(A, 2, 1, false), [copy(A, 2)]);
}

#[test]
fn a_page_that_goes_to_and_fro_is_frozen_until_the_reset() {
    let mut scene = Scene::new("migrate", &["batch=1", "hold=200", "reset=1000"]);
    assert_eq!(scene.misses(128, A, 1, 0), [to(A, 1)]);
    assert_eq!(scene.misses(150, A, 2, 1), []);
    scene.world.now_ns = 999_999;
    assert_eq!(scene.miss(A, 2, 1, false), []);
    // All counts restart: misses, too.
    scene.world.now_ns = 1_000_000;
    assert_eq!(scene.misses(128, A, 2, 1), [to(A, 2)]);
    // A cpu whose clock is behind does not turn the counts back.
    scene.world.now_ns = 999_999;
    assert_eq!(scene.misses(200, A, 3, 2), []);
}

#[test]
fn a_second_write_keeps_a_page_from_copies_until_the_reset() {
    let mut scene = at_once();
    assert_eq!(scene.misses(40, A, 0, 0), []);
    scene.miss(A, 0, 0, true);
    assert_eq!(scene.misses(128, A, 1, 0), [copy(A, 1)]);
    scene.miss(A, 0, 0, true);
    assert_eq!(scene.misses(200, A, 2, 0), []);
    scene.world.now_ns = 100_000_000;
    assert_eq!(scene.misses(40, A, 0, 0), []);
    assert_eq!(scene.misses(128, A, 2, 0), [copy(A, 2)]);
}

#[test]
fn a_write_to_copies_collapses_them_and_counts_once() {
    let mut scene = at_once();
    assert_eq!(scene.misses(40, A, 0, 0), []);
    assert_eq!(scene.misses(128, A, 1, 0), [copy(A, 1)]);
    let collapse = Action::Collapse { page: A, node: Some(1) };
    assert_eq!(scene.write_replicated(A, 1), [collapse]);
    // The same write misses. The page is on node 1 now, so cpu 0, with 40 misses, needs 88 more.
    assert_eq!(scene.miss(A, 1, 1, true), []);
    assert_eq!(scene.misses(88, A, 0, 1), [copy(A, 0)]);
    // The second write, which finds copies and hits.
    assert_eq!(scene.write_replicated(A, 1), [collapse]);
    assert_eq!(scene.misses(50, A, 0, 1), []);
}

/// A cpu that has no copy writes: the first copy is kept.
#[test]
fn a_writer_without_a_copy_leaves_the_first() {
    let mut scene = at_once();
    assert_eq!(scene.misses(40, A, 0, 0), []);
    assert_eq!(scene.misses(128, A, 1, 0), [copy(A, 1)]);
    let collapse = Action::Collapse { page: A, node: Some(3) };
    assert_eq!(scene.write_replicated(A, 3), [collapse]);
    // Cpu 1 has no copy now. After as many misses more it gets one again, because cpu 0 holds the page.
    assert_eq!(scene.misses(128, A, 1, 0), [copy(A, 1)]);
}

#[test]
fn hot_pages_wait_for_four_others() {
    let mut scene = Scene::new("migrate", &["trigger=2"]);
    let page = |number| Page { space: 0, number };
    for number in 0..4 {
        assert_eq!(scene.misses(3, page(number), 1, 0), []);
    }
    // A page that another cpu wants waits by itself.
    assert_eq!(scene.misses(2, page(9), 2, 0), []);
    let all: Vec<Action> = (0..5).map(|number| to(page(number), 1)).collect();
    assert_eq!(scene.misses(2, page(4), 1, 0), all);
}

#[test]
fn hot_pages_wait_for_half_a_millisecond() {
    let tick = |cpu| Observation::Tick(Tick { cpu, ran: None });
    let mut scene = Scene::new("migrate", &["trigger=2"]);
    scene.world.now_ns = 1000;
    assert_eq!(scene.misses(2, A, 1, 0), []);
    scene.world.now_ns = 500_999;
    assert_eq!(scene.see(tick(1)), []);
    scene.world.now_ns = 501_000;
    assert_eq!(scene.see(tick(2)), [], "another cpu's");
    assert_eq!(scene.see(tick(1)), [to(A, 1)]);
    assert_eq!(scene.see(tick(1)), []);
    // A miss on any page serves as well.
    assert_eq!(scene.misses(2, B, 1, 0), []);
    scene.world.now_ns = 1_001_000;
    assert_eq!(scene.miss(A, 1, 1, false), [to(B, 1)]);
}

/// By the counts at the interrupt, not at the trigger: a reset in between, and the page is not hot.
#[test]
fn what_waits_is_decided_when_it_is_its_turn() {
    let mut scene = Scene::new("migrate", &["trigger=2", "reset=100"]);
    assert_eq!(scene.misses(2, A, 1, 0), []);
    scene.world.now_ns = 500_000;
    assert_eq!(scene.see(Observation::Tick(Tick { cpu: 1, ran: None })), []);
}

#[test]
fn of_one_in_ten_misses_thirteen_are_hot() {
    let mut scene = Scene::new("migrate-replicate", &["batch=1", "sample=10"]);
    assert_eq!(scene.policy.interest().cache_misses, 10);
    // The hold is 3.
    assert_eq!(scene.misses(3, A, 0, 0), []);
    assert_eq!(scene.misses(13, A, 1, 0), [to(A, 1)]);
    assert_eq!(scene.misses(4, B, 0, 0), []);
    assert_eq!(scene.misses(13, B, 1, 0), [copy(B, 1)]);
}

#[test]
fn tlb_misses_are_counted_in_the_place_of_cache_misses() {
    let mut scene = Scene::new("migrate", &["batch=1", "trigger=1", "count=tlb-misses", "sample=3"]);
    let interest = scene.policy.interest();
    assert_eq!((interest.tlb_misses, interest.cache_misses), (3, 0));
    assert_eq!(scene.miss(A, 1, 0, false), [], "another policy's wish");
    let miss = Miss {
        level: MissLevel::Tlb,
        page: A,
        index: 1,
        thread: 1,
        cpu: 1,
        served_by: 0,
        write: false,
        fetch: false,
    };
    assert_eq!(scene.see(Observation::Miss(miss)), [to(A, 1)]);
}

#[test]
fn a_node_that_is_short_of_frames_gets_no_copies_and_pages_still_move_there() {
    let mut scene = at_once();
    scene.world.free_frames[1] = 15;
    assert_eq!(scene.misses(40, A, 0, 0), []);
    assert_eq!(scene.misses(128, A, 1, 0), []);
    assert_eq!(scene.misses(128, B, 1, 0), [to(B, 1)]);
    scene.world.free_frames[1] = 16;
    assert_eq!(scene.misses(128, A, 1, 0), [copy(A, 1)]);
}

/// If there is no frame at all, nothing is asked for, and nothing counts as a move.
#[test]
fn a_full_node_gets_nothing() {
    let mut scene = at_once();
    scene.world.free_frames[1] = 0;
    assert_eq!(scene.misses(128, A, 1, 0), []);
    scene.world.free_frames[1] = 1;
    assert_eq!(scene.misses(128, A, 1, 0), [to(A, 1)]);
}

#[test]
fn under_pressure_copies_that_were_not_used_lately_are_given_up() {
    let mut scene = Scene::new("replicate", &["batch=1", "trigger=4", "hold=1", "reset=1000"]);
    for page in [B, A] {
        assert_eq!(scene.misses(2, page, 0, 0), []);
        assert_eq!(scene.misses(4, page, 1, 0), [copy(page, 1)]);
    }
    let pressure = |node| Observation::Pressure(Pressure { node, free_frames: 15 });
    scene.world.now_ns = 1_500_000;
    assert_eq!(scene.see(pressure(1)), [], "used in the interval before");
    // Cpu 1 uses one of them, cpu 0 the other.
    assert_eq!(scene.miss(A, 1, 1, false), []);
    assert_eq!(scene.miss(B, 0, 0, false), []);
    scene.world.now_ns = 2_500_000;
    assert_eq!(scene.see(pressure(0)), [], "first copies stay");
    let given_up = |page| Action::Collapse { page, node: None };
    assert_eq!(scene.see(pressure(1)), [given_up(B)]);
    scene.world.now_ns = 9_500_000;
    assert_eq!(scene.see(pressure(1)), [given_up(A)]);
    assert_eq!(scene.see(pressure(1)), []);
}

#[test]
fn pages_begin_where_first_touch_or_round_robin_puts_them() {
    let nodes = |sets: &[&str]| {
        let mut scene = Scene::new("migrate-replicate", sets);
        [A, B].map(|page| {
            let touch = Touch {
                page,
                thread: 3,
                cpu: 3,
                write: false,
            };
            scene.policy.place(&touch, &scene.world).node
        })
    };
    assert_eq!(nodes(&[]), [Some(3), Some(3)]);
    assert_eq!(nodes(&["start=round-robin"]), [Some(0), Some(1)]);
}

/// Each policy has the parameters that mean something to it, and each says where its default is from.
#[test]
fn parameters_name_their_source() {
    for (name, without) in [("migrate", ["writes", "reserve"]), ("replicate", ["moves", "moves"])] {
        let entry = policy::entry(name).unwrap();
        assert!(entry.params.iter().all(|param| !without.contains(&param.name)));
        for param in entry
            .params
            .iter()
            .filter(|param| param.name != "start" && param.name != "reserve")
        {
            assert!(param.summary.contains("(section "), "{name}.{}", param.name);
        }
    }
    assert_eq!(policy::entry("migrate-replicate").unwrap().params.len(), 13);
}
