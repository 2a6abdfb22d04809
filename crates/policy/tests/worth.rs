//! Policies that move or copy a page only where that pays, and a trigger that adapts.

use crate::scene;

use std::sync::Arc;

use policy::{Action, Cost, Following, Observation, Page, Placement, Prices, Touched};

use scene::Scene;

const A: Page = Page { space: 0, number: 1 };

impl Scene {
    /// Three cpus on three nodes. A miss takes 300 ns on the own node, 1300 on the next, 2300 between nodes 0 and 2. A move takes
    /// 100 us, a copy 50 us, a collapse 30 us. Pages are judged at every tenth miss.
    fn priced(sets: &[&str]) -> Scene {
        let sets = [&["batch=1", "trigger=10", "hold=2"], sets].concat();
        let mut scene = Scene::of(3, "migrate-replicate", &sets);
        scene.policy.take_prices(&Arc::new(Prices {
            cost: Cost {
                move_page_ns: 100_000.0,
                recolor_page_ns: 0.0,
                copy_page_ns: 50_000.0,
                collapse_ns: 30_000.0,
                touch_fault_ns: 0.0,
                move_thread_ns: 0.0,
            },
            nodes: 3,
            latency_ns: vec![300.0, 1300.0, 2300.0, 1300.0, 300.0, 1300.0, 2300.0, 1300.0, 300.0],
            following: Following::default(),
        }));
        scene
    }

    /// The number of misses of a cpu at which something is done, and the action; up to a thousand are tried.
    fn until(&mut self, cpu: u32) -> Option<(u32, Action)> {
        (1..=1000).find_map(|misses| self.miss(A, cpu, 0, false).first().map(|action| (misses, *action)))
    }
}

fn to(node: u32) -> Action {
    Action::Move {
        page: A,
        to: Placement {
            color: None,
            node: Some(node),
        },
    }
}

fn copy(node: u32) -> Action {
    Action::Copy { page: A, node }
}

#[test]
fn a_page_moves_when_its_misses_would_have_saved_the_move() {
    // The paper's rule: at the trigger, wherever the page is.
    for cpu in [1, 2] {
        assert_eq!(Scene::priced(&[]).until(cpu), Some((10, to(cpu))));
    }
    // A move of 100 us: 100 misses that each save 1 us, 50 that save 2.
    assert_eq!(Scene::priced(&["gain=100"]).until(1), Some((100, to(1))));
    assert_eq!(Scene::priced(&["gain=100"]).until(2), Some((50, to(2))));
    // Half of it is enough, or twice as much is asked for.
    assert_eq!(Scene::priced(&["gain=50"]).until(1), Some((50, to(1))));
    assert_eq!(Scene::priced(&["gain=200"]).until(1), Some((200, to(1))));
    // One in ten misses: each stands for ten, and the trigger is one counted miss.
    assert_eq!(Scene::priced(&["gain=100", "sample=10"]).until(1), Some((10, to(1))));
}

#[test]
fn what_others_lose_by_a_move_counts_against_it() {
    // The page's own cpu had two misses, which is not more than the hold: 2 us more are needed.
    let mut scene = Scene::priced(&["gain=100"]);
    (0..2).for_each(|_| assert_eq!(scene.miss(A, 0, 0, false), []));
    assert_eq!(scene.until(1), Some((110, to(1))));
    // A cpu that is far from both nodes is nearer to the new one.
    let mut scene = Scene::priced(&["gain=100"]);
    (0..9).for_each(|_| assert_eq!(scene.miss(A, 2, 0, false), []));
    assert_eq!(scene.until(1), Some((100, to(1))));
    let mut scene = Scene::priced(&["gain=100", "trigger=12"]);
    (0..11).for_each(|_| assert_eq!(scene.miss(A, 2, 0, false), []));
    // 96 us of its own and 11 us of the other cpu's.
    assert_eq!(scene.until(1), Some((96, to(1))));
}

#[test]
fn a_page_is_copied_when_that_pays_a_collapse_included() {
    let shared = |writes: u32, sets: &[&str]| {
        let mut scene = Scene::priced(sets);
        (0..3).for_each(|_| assert_eq!(scene.miss(A, 0, 0, false), []));
        (0..writes).for_each(|_| assert_eq!(scene.miss(A, 0, 0, true), []));
        scene.until(1)
    };
    assert_eq!(shared(0, &[]), Some((10, copy(1))));
    assert_eq!(shared(1, &[]), Some((10, copy(1))));
    assert_eq!(shared(0, &["gain=100"]), Some((50, copy(1))));
    // It was written: 30 us more.
    assert_eq!(shared(1, &["gain=100"]), Some((80, copy(1))));
}

#[test]
fn nothing_pays_where_prices_are_not_known() {
    let mut scene = Scene::priced(&[]);
    let sets = ["batch=1", "trigger=10", "gain=1"].map(|set| format!("migrate-replicate.{set}"));
    scene.policy = policy::build(&"migrate-replicate".parse().unwrap(), &sets).unwrap();
    assert!(scene.policy.wants_prices());
    assert_eq!(scene.until(1), None);
    assert!(!Scene::priced(&[]).policy.wants_prices());
    assert!(Scene::priced(&["adapt=1"]).policy.wants_prices());
}

/// The number of misses that move a page that was not heard of before, in the interval of 1 ms that begins.
fn trigger_in(scene: &mut Scene, interval: u64) -> usize {
    scene.world.now_ns = interval * 1_000_000;
    let page = Page {
        space: 0,
        number: 1000 + interval,
    };
    let misses = (1..1000).find(|_| !scene.miss(page, 1, 0, false).is_empty());
    misses.expect("the page moves")
}

#[test]
fn the_trigger_falls_while_there_is_room_and_rises_when_moves_take_too_much() {
    // A move of 100 us in 3 ms of three cpus is 3.3 percent. Of 20 percent that leaves room: halved thrice, to the eighth.
    let mut scene = Scene::priced(&["reset=1000", "trigger=16", "adapt=20"]);
    let triggers: Vec<_> = (0..6).map(|interval| trigger_in(&mut scene, interval)).collect();
    assert_eq!(triggers, [16, 8, 4, 2, 2, 2]);
    // With 4 percent it is neither too much nor less than a quarter.
    let mut scene = Scene::priced(&["reset=1000", "trigger=16", "adapt=4"]);
    let triggers: Vec<_> = (0..4).map(|interval| trigger_in(&mut scene, interval)).collect();
    assert_eq!(triggers, [16; 4]);
    // With 3 percent it is too much: doubled, up to sixteen times.
    let mut scene = Scene::priced(&["reset=1000", "trigger=16", "adapt=3"]);
    let triggers: Vec<_> = (0..6).map(|interval| trigger_in(&mut scene, interval)).collect();
    assert_eq!(triggers, [16, 32, 64, 128, 256, 256]);
    // Without it the trigger stays.
    let mut scene = Scene::priced(&["reset=1000", "trigger=16"]);
    let triggers: Vec<_> = (0..3).map(|interval| trigger_in(&mut scene, interval)).collect();
    assert_eq!(triggers, [16; 3]);
}

#[test]
fn the_trigger_rises_when_cpus_contend() {
    // Two moves at one moment of two cpus, far below the share of all time that they may take.
    let contend = |second: u32| {
        let mut scene = Scene::priced(&["reset=1000", "trigger=16", "adapt=100"]);
        for (number, cpu) in [(1, 1), (2, second), (3, 1), (4, second)] {
            let page = Page { space: 0, number };
            (0..15).for_each(|_| assert_eq!(scene.miss(page, cpu, 0, false), []));
            assert_eq!(scene.miss(page, cpu, 0, false).len(), 1);
        }
        trigger_in(&mut scene, 1)
    };
    assert_eq!(contend(1), 8);
    // Three of four found another cpu at work.
    assert_eq!(contend(2), 32);
}

/// Collapses cost too.
#[test]
fn collapses_are_of_the_share() {
    let mut scene = Scene::priced(&["reset=1000", "trigger=16", "adapt=1"]);
    scene.miss(A, 0, 0, false);
    scene.see(Observation::ReplicaWritten(Touched {
        page: A,
        index: 1,
        thread: 0,
        cpu: 0,
        write: true,
        nature: Default::default(),
    }));
    // 30 us of 3 ms are 1 percent, which is allowed.
    assert_eq!(trigger_in(&mut scene, 1), 16);
}
