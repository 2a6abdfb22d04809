//! Decisions of the placement policies, as a reader of the papers would expect them.

use policy::cdpc::{Source, Wanted};
use policy::{Page, Policy, PolicyError, Touch, World};

fn build(name: &str, sets: &[String]) -> Result<Box<dyn Policy>, PolicyError> {
    policy::build(&name.parse()?, sets)
}

fn world() -> World {
    World {
        page_bytes: 4096,
        colors: 4,
        cpus: 8,
        nodes: 4,
        cpu_nodes: 4,
        free_frames: vec![u64::MAX; 4],
        now_ns: 0,
        caches: None,
        domains: None,
        runnable: Vec::new(),
    }
}

fn touch(number: u64, cpu: u32) -> Touch {
    Touch {
        page: Page { space: 0, number },
        thread: cpu,
        cpu,
        write: false,
    }
}

fn colors(name: &str, sets: &[&str], pages: &[u64]) -> Vec<u32> {
    let sets: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
    let mut policy = build(name, &sets).unwrap();
    pages
        .iter()
        .map(|&page| policy.place(&touch(page, 0), &world()).color.unwrap())
        .collect()
}

fn nodes(name: &str, cpus: &[u32]) -> Vec<u32> {
    let mut policy = build(name, &[]).unwrap();
    let place = |(page, &cpu): (usize, &u32)| policy.place(&touch(page as u64, cpu), &world()).node.unwrap();
    cpus.iter().enumerate().map(place).collect()
}

#[test]
fn page_coloring_maps_consecutive_pages_to_consecutive_colors() {
    assert_eq!(colors("page-coloring", &[], &[0, 1, 2, 3, 4, 9]), [0, 1, 2, 3, 0, 1]);
    assert_eq!(colors("page-coloring", &["page-coloring.offset=3"], &[0, 1]), [3, 0]);
}

#[test]
fn bin_hopping_cycles_in_the_order_of_faults_whatever_the_address() {
    assert_eq!(colors("bin-hopping", &[], &[0, 4, 8, 12, 16]), [0, 1, 2, 3, 0]);
    assert_eq!(colors("bin-hopping", &["bin-hopping.start=2"], &[7, 7000]), [2, 3]);
}

/// Eight cpus that fault in turn, and one that faults alone.
#[test]
fn the_race_of_bin_hopping_is_among_cpus_that_fault_together() {
    let draw = |race: u64, cpus: &dyn Fn(u64) -> u32| -> Vec<u32> {
        let mut policy = build("bin-hopping", &[format!("bin-hopping.race={race}")]).unwrap();
        let mut world = world();
        world.colors = 64;
        let place = |page| policy.place(&touch(page, cpus(page)), &world).color.unwrap();
        (0..640).map(place).collect()
    };
    let together = |page| (page % 8) as u32;
    let in_turn: Vec<u32> = (0..640).map(|page| page % 64).collect();
    assert_eq!(draw(0, &together), in_turn);
    assert_eq!(draw(7, &|_| 3), in_turn);
    let first = draw(7, &together);
    assert_eq!(first, draw(7, &together));
    assert_ne!(first, draw(8, &together));
    assert_ne!(first, in_turn);
    for color in 0..64 {
        let given = first.iter().filter(|&&given| given == color).count();
        // At most seven turns are open at the end.
        assert!((9..=11).contains(&given), "color {color} was given {given} times");
    }
}

#[test]
fn hints_prevail_and_the_rest_falls_to_a_kernels_way() {
    let hints: policy::cdpc::PageColors = [(7, 3), (8, 9)]
        .map(|(number, color)| (Page { space: 0, number }, color))
        .into_iter()
        .collect();
    let hints = std::sync::Arc::new(hints);
    let colors = |sets: &[&str], pages: &[u64]| -> Vec<u32> {
        let sets: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
        let mut policy = build("first-touch+cdpc", &sets).unwrap();
        policy.take_hints(&hints);
        let place = |&page| policy.place(&touch(page, 0), &world()).color.unwrap();
        pages.iter().map(place).collect()
    };
    assert_eq!(colors(&["cdpc.rest=page-coloring"], &[7, 8, 9, 10]), [3, 1, 1, 2]);
    // Fewer hints than colors.
    assert_eq!(colors(&[], &[9, 7, 8, 13, 100]), [0, 3, 1, 1, 2]);
    assert_eq!(colors(&["cdpc.rest=bin-hopping"], &[9, 7, 8, 13, 100]), [0, 3, 1, 1, 2]);
    let colors_of_world = u64::from(world().colors);
    let many = (0..colors_of_world).map(|number| (Page { space: 0, number }, 5));
    let mut policy = build("cdpc", &[]).unwrap();
    policy.take_hints(&std::sync::Arc::new(many.collect()));
    let placed = [colors_of_world + 3, 2].map(|page| policy.place(&touch(page, 0), &world()).color);
    assert_eq!(placed, [Some(3), Some(5 % world().colors)]);
    // Another address space has no hints.
    let mut policy = build("cdpc", &["cdpc.rest=page-coloring".to_string()]).unwrap();
    policy.take_hints(&hints);
    let mut other = touch(7, 0);
    other.page.space = 1;
    assert_eq!(policy.place(&other, &world()).color, Some(3));
    other.page.number = 8;
    assert_eq!(policy.place(&other, &world()).color, Some(0));
    for (from, source) in [
        ("auto", Source::Auto),
        ("summaries", Source::Summaries),
        ("trace", Source::Trace),
    ] {
        let policy = build("cdpc+round-robin", &[format!("cdpc.from={from}")]).unwrap();
        let from = source;
        assert_eq!(
            policy.hints_wanted(),
            Some(Wanted {
                from,
                weigh: true,
                fit: true
            })
        );
    }
    let plain = build("cdpc", &["cdpc.weigh=no".to_string()]).unwrap();
    assert!(plain.hints_wanted().is_some_and(|wanted| !wanted.weigh && wanted.fit));
    let five = build("cdpc", &["cdpc.fit=no".to_string()]).unwrap();
    assert!(five.hints_wanted().is_some_and(|wanted| wanted.weigh && !wanted.fit));
    assert_eq!(build("random", &[]).unwrap().hints_wanted(), None);
}

#[test]
fn random_colors_repeat_with_the_seed_and_use_every_color() {
    let pages: Vec<u64> = (0..400).collect();
    let first = colors("random", &["random.seed=5"], &pages);
    assert_eq!(first, colors("random", &["random.seed=5"], &pages));
    assert_ne!(first, colors("random", &["random.seed=6"], &pages));
    assert_eq!(
        colors("random", &["random.seed=1e3"], &pages),
        colors("random", &["random.seed=1000"], &pages)
    );
    for color in 0..4 {
        let share = first.iter().filter(|&&c| c == color).count();
        assert!(
            (60..=140).contains(&share),
            "color {color} was given {share} times of 400"
        );
    }
}

#[test]
fn first_touch_is_the_node_of_the_toucher_and_round_robin_takes_turns() {
    assert_eq!(nodes("first-touch", &[0, 1, 2, 7, 5]), [0, 0, 1, 3, 2]);
    assert_eq!(nodes("round-robin", &[0, 0, 0, 7, 7]), [0, 1, 2, 3, 0]);
}

#[test]
fn a_combination_takes_the_home_of_one_and_the_color_of_the_other() {
    for name in ["round-robin+bin-hopping", "bin-hopping+round-robin"] {
        let mut policy = build(name, &[]).unwrap();
        let placement: Vec<_> = (0..5).map(|page| policy.place(&touch(page * 4, 0), &world())).collect();
        assert_eq!(
            placement.iter().map(|p| p.node.unwrap()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 0]
        );
        assert_eq!(
            placement.iter().map(|p| p.color.unwrap()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 0]
        );
    }
}

#[test]
fn bad_names_and_parameters_are_refused_with_what_is_allowed() {
    let error = |name: &str, set: &str| build(name, &[set.to_string()]).err().unwrap();
    assert!(
        build("page-colouring", &[])
            .err()
            .unwrap()
            .to_string()
            .contains("page-coloring, bin-hopping")
    );
    assert!(matches!(
        build("random+bin-hopping", &[]).err().unwrap(),
        PolicyError::SameKind { .. }
    ));
    assert!(matches!(
        error("random", "random.sed=1"),
        PolicyError::UnknownParam { .. }
    ));
    assert!(matches!(
        error("random", "random.seed=-1"),
        PolicyError::OutOfRange { .. }
    ));
    assert!(matches!(error("random", "seed=1"), PolicyError::Form { .. }));
    assert!(matches!(error("random", "radnom.seed=1"), PolicyError::Unknown { .. }));
    assert!(
        build("random", &["bin-hopping.start=1".to_string()]).is_ok(),
        "meant for another policy of the run"
    );
}

#[test]
fn the_order_of_work_combines_with_placement_and_has_named_tours() {
    use policy::order::Tour;
    let order = |name: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
        policy::work_order(&name.parse()?, &sets)
    };
    assert_eq!(order("first-touch+page-coloring", &[]).unwrap(), None);
    let default = order("order", &[]).unwrap().unwrap();
    assert_eq!((default.block, default.hints, default.workers), (0, 0, 1));
    assert_eq!((default.fold, default.tour), (false, Tour::FirstFork));
    let sets = [
        "order.tour=hilbert",
        "order.fold=1",
        "order.block=4096",
        "random.seed=3",
    ];
    let set = order("first-touch+random+order", &sets).unwrap().unwrap();
    assert_eq!((set.fold, set.tour, set.block), (true, Tour::Hilbert, 4096));
    assert_eq!(order("order", &["order.tour=1"]).unwrap().unwrap().tour, Tour::Nearest);
    let said = order("order", &["order.tour=shortest"]).unwrap_err().to_string();
    assert!(said.contains("first-fork, nearest, hilbert"), "{said}");
    let said = order("order", &["order.hints=9"]).unwrap_err().to_string();
    assert!(said.contains("from 0 to 8"), "{said}");
    let twice = build("order+order", &[]).err().unwrap().to_string();
    assert!(twice.contains("the order of work"), "{twice}");
    // It has no opinion on pages: they go where they go without it.
    let (mut with, mut without) = (build("random+order", &[]).unwrap(), build("random", &[]).unwrap());
    for page in 0..100 {
        let touch = touch(page, 3);
        assert_eq!(with.place(&touch, &world()), without.place(&touch, &world()));
    }
}
