//! Policy `kernel-balancing`: when pages are closed, and the effects of faults.

use policy::{Action, Observation, Page, Placement, Policy, Tick, Touch, Touched, World};

/// A policy in a world of four cpus on two nodes.
struct Scene {
    policy: Box<dyn Policy>,
    world: World,
}

const US: u64 = 1000;
const NONE: [u64; 0] = [];

impl Scene {
    fn new(sets: &[&str]) -> Scene {
        let sets: Vec<String> = sets.iter().map(|set| format!("kernel-balancing.{set}")).collect();
        Scene {
            policy: policy::build(&"kernel-balancing".parse().unwrap(), &sets).unwrap(),
            world: World {
                page_bytes: 4096,
                colors: 1,
                cpus: 4,
                nodes: 2,
                cpu_nodes: 2,
                free_frames: vec![100; 2],
                now_ns: 0,
                caches: None,
                domains: None,
                runnable: Vec::new(),
            },
        }
    }

    /// Two pages at a time, each 10 us, in a row from the first on.
    fn fast() -> Scene {
        Scene::new(&["delay=5", "scan-min=10", "scan-max=10", "scan-size=8192", "scan-rate=0"])
    }

    fn place(&mut self, pages: std::ops::Range<u64>) {
        for number in pages {
            let touch = Touch {
                page: page(number),
                thread: 0,
                cpu: 0,
                write: true,
            };
            assert_eq!(self.policy.place(&touch, &self.world).node, Some(0));
        }
    }

    fn see(&mut self, observation: Observation) -> Vec<Action> {
        let mut actions = Vec::new();
        self.policy.observe(&observation, &self.world, &mut actions);
        actions
    }

    /// The pages that are closed at a time.
    fn closed_at(&mut self, us: u64) -> Vec<u64> {
        self.world.now_ns = us * US;
        let actions = self.see(Observation::Tick(Tick { cpu: 0, ran: None }));
        let closed = actions.into_iter().map(|action| match action {
            Action::Close { page, cpus: 0b1111 } => page.number,
            other => panic!("{other:?}"),
        });
        closed.collect()
    }

    /// The node that a page goes to when a thread faults on it; it is opened in any case.
    fn fault(&mut self, number: u64, thread: u32, cpu: u32) -> Option<u32> {
        let actions = self.see(Observation::Touched(Touched {
            page: page(number),
            index: number as u32,
            thread,
            cpu,
            write: false,
            nature: Default::default(),
        }));
        let opened = Action::Open {
            page: page(number),
            cpus: 0b1111,
        };
        assert_eq!(actions[0], opened);
        actions.get(1).map(|action| match action {
            Action::Move {
                page: moved,
                to: Placement {
                    color: None,
                    node: Some(node),
                },
            } if *moved == page(number) => *node,
            other => panic!("{other:?}"),
        })
    }

    /// Passes over all pages go by, until only the usual rules hold.
    fn grow_old(&mut self) {
        for pass in 0..5 {
            let pages = self.closed_at(1_000 * (pass + 1));
            pages.into_iter().for_each(|number| {
                self.fault(number, 0, 0);
            });
        }
    }
}

fn page(number: u64) -> Page {
    Page { space: 0, number }
}

#[test]
fn the_defaults_are_those_of_the_kernel() {
    let mut scene = Scene::new(&[]);
    let interest = scene.policy.interest();
    assert!(interest.touches && interest.cache_misses == 0 && interest.tlb_misses == 0);
    assert_eq!((interest.tick_ns, interest.touch_fault_ns), (4_000_000, 1500));
    scene.place(0..3);
    assert_eq!(scene.closed_at(999_999), NONE);
    assert_eq!(scene.closed_at(1_000_000), [0, 1, 2]);
    assert_eq!(scene.closed_at(1_999_999), NONE);
    // Pages that are still closed are not closed again.
    scene.fault(1, 0, 0);
    assert_eq!(scene.closed_at(2_000_000), [1]);
}

#[test]
fn pages_are_closed_in_turn_and_a_pass_ends_at_the_last() {
    let mut scene = Scene::fast();
    scene.place(0..5);
    assert_eq!(scene.closed_at(4), NONE);
    assert_eq!(scene.closed_at(5), [0, 1]);
    // Three scans are a pass: each third of the time.
    assert_eq!(scene.closed_at(7), NONE);
    assert_eq!(scene.closed_at(9), [2, 3]);
    (0..5).for_each(|page| {
        scene.fault(page, 0, 0);
    });
    assert_eq!(scene.closed_at(20), [4]);
    assert_eq!(scene.closed_at(40), [0, 1]);
}

#[test]
fn closing_is_bounded_by_its_rate() {
    // Two pages in 8 us are 1024 bytes a us.
    let sets = [
        "delay=0",
        "scan-min=1",
        "scan-max=1",
        "scan-size=8192",
        "scan-rate=1024000000",
    ];
    let mut scene = Scene::new(&sets);
    scene.place(0..6);
    assert_eq!(scene.closed_at(0), [0, 1]);
    assert_eq!(scene.closed_at(7), NONE);
    assert_eq!(scene.closed_at(8), [2, 3]);
}

#[test]
fn a_page_moves_at_once_early_in_a_process() {
    let mut scene = Scene::fast();
    scene.place(0..1);
    scene.closed_at(5);
    assert_eq!(scene.fault(0, 2, 2), Some(1));
    // It is near now.
    scene.closed_at(100);
    assert_eq!(scene.fault(0, 2, 3), None);
    // The thread has it to itself and is on the other node.
    scene.closed_at(200);
    assert_eq!(scene.fault(0, 2, 0), Some(0));
    // Another thread has to come twice from its node.
    scene.closed_at(300);
    assert_eq!(scene.fault(0, 3, 3), None);
}

#[test]
fn later_only_the_second_fault_in_a_row_from_a_node_moves_a_page() {
    let mut scene = Scene::fast();
    scene.place(0..1);
    scene.grow_old();
    scene.closed_at(10_000);
    assert_eq!(scene.fault(0, 2, 2), None);
    scene.closed_at(20_000);
    assert_eq!(scene.fault(0, 2, 3), Some(1));
    // From one node to the other and back again: it stays.
    for round in 0..4 {
        scene.closed_at(30_000 + 10_000 * round);
        let cpu = (2 * round % 4) as u32;
        assert_eq!(scene.fault(0, 2, cpu), None, "{round}");
    }
}

#[test]
fn a_page_does_not_move_to_a_full_node_nor_faster_than_allowed() {
    let mut scene = Scene::fast();
    scene.place(0..1);
    scene.world.free_frames[1] = 0;
    scene.closed_at(5);
    assert_eq!(scene.fault(0, 2, 2), None);

    let mut scene = Scene::new(&["delay=0", "rate=2"]);
    scene.place(0..4);
    scene.closed_at(0);
    let moved: Vec<_> = (0..3).map(|page| scene.fault(page, 2, 2)).collect();
    assert_eq!(moved, [Some(1), Some(1), None]);
    scene.world.now_ns = 1_000_000_000;
    assert_eq!(scene.fault(3, 2, 2), Some(1));
}

/// When nine of ten faults are private, a period of ten slots gets two more; when few are private or local, fewer.
#[test]
fn the_period_follows_the_faults() {
    let sets = ["delay=0", "scan-min=100", "scan-max=100000", "scan-rate=0"];
    let mut scene = Scene::new(&sets);
    scene.place(0..10);
    assert_eq!(scene.closed_at(0).len(), 10);
    // A pass has ended: the first fault of the next adapts, with itself, which is local and private: three slots of 10 us.
    scene.fault(0, 0, 0);
    assert_eq!(scene.closed_at(99), NONE);
    assert_eq!(scene.closed_at(100), [0]);
    assert_eq!(scene.closed_at(229), NONE);
    assert_eq!(scene.closed_at(230), NONE);
    scene.fault(1, 0, 0);
    assert_eq!(scene.closed_at(361), [1]);

    // All remote and of one thread: nothing is near and nothing is shared, and the time doubles from then on.
    let mut scene = Scene::new(&sets);
    scene.place(0..10);
    scene.closed_at(0);
    scene.fault(0, 2, 2);
    assert_eq!(scene.closed_at(199), NONE);
    assert_eq!(scene.closed_at(200), [0]);
}

#[test]
fn in_a_process_whose_threads_share_pages_they_are_spread_as_faults_are() {
    let mut scene = Scene::new(&["delay=0", "scan-min=10", "scan-max=10", "scan-rate=0"]);
    scene.place(0..9);
    let mut time = 0;
    let mut pass = |scene: &mut Scene| {
        time += 1000;
        scene.closed_at(time)
    };
    // Eight pages are faulted on from node 1 by two threads by turns, and all live on node 0: its cpus fault on one.
    for round in 0..6u32 {
        pass(&mut scene);
        for number in 1..8 {
            scene.fault(number, 2 + round % 2, 0);
        }
        scene.fault(0, 0, 0);
    }
    // Node 1 has had no faults: it gets no page that several threads use, though one comes twice in a row from there.
    pass(&mut scene);
    assert_eq!(scene.fault(1, 2, 2), None);
    pass(&mut scene);
    assert_eq!(scene.fault(1, 3, 2), None);
    // The same thread twice is private.
    pass(&mut scene);
    assert_eq!(scene.fault(1, 3, 2), Some(1));
}
