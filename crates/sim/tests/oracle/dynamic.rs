//! Policies that act while the program runs: small cases worked out by hand, and a restless policy under
//! which everything must still add up.

use machine::Machine;
use policy::{Action, Interest, Miss, Observation, Page, Placement, Policy, Touch, World};
use proptest::prelude::*;
use serde_json::Value;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::conservation;
use crate::oracle::detail;
use crate::oracle::engine;
use crate::oracle::exactness;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::random::SplitMix64;
use crate::reference::{Item, Program};

/// Two cpus on two nodes, a cache of one line that costs nothing; local 100 ns, remote 300 ns.
fn two_nodes() -> Machine {
    let text = "name = \"two-nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 2\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
                cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
                [memory]\nnodes = 2\nlocal_ns = 100.0\nremote_ns = 300.0\ndirty_remote_ns = 500.0\n";
    machine::from_toml(text, "two-nodes.toml").expect("the machine is valid")
}

/// Puts every page on node 0 and answers each remote miss with one action.
struct OnRemoteMiss(fn(&Miss) -> Action);

impl Policy for OnRemoteMiss {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement {
            color: Some(0),
            node: Some(0),
        }
    }

    fn interest(&self) -> Interest {
        Interest {
            cache_misses: 1,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, _world: &World, actions: &mut Vec<Action>) {
        if let Observation::Miss(miss) = observation
            && miss.served_by != miss.cpu
        {
            actions.push(self.0(miss));
        }
    }
}

fn number(outcome: &Value, group: &str, field: &str) -> u64 {
    outcome[group][field].as_u64().expect("a number")
}

fn run(program: &Program, action: fn(&Miss) -> Action) -> Value {
    let setup = Setup {
        recorded: true,
        ..Setup::default()
    };
    let policy = Box::new(OnRemoteMiss(action));
    engine::simulate_policy(&two_nodes(), program, policy, &setup, sim::Detail::default()).expect("the engine runs")
}

/// The page follows cpu 1 after its first miss: one remote miss, then local ones.
#[test]
fn a_page_moves_to_the_node_that_misses_on_it() {
    let mut program = Program::new(2);
    for line in 0..10 {
        program.read(1, line * 64);
    }
    let outcome = run(&program, |miss| Action::Move {
        page: miss.page,
        to: Placement {
            color: None,
            node: Some(1),
        },
    });
    assert_eq!(number(&outcome, "memory", "remote"), 1);
    assert_eq!(number(&outcome, "memory", "local"), 9);
    assert_eq!(number(&outcome, "memory", "migrations"), 1);
    assert_eq!(
        number(&outcome, "memory", "pages_max"),
        2,
        "old and new frame are held together while copying"
    );
    assert_eq!(number(&outcome, "time_ns", "local_stall"), 900);
    assert_eq!(number(&outcome, "time_ns", "remote_stall"), 300);
    let cost = sim::VERGHESE96.move_page_ns as u64;
    assert_eq!(number(&outcome, "time_ns", "policy_overhead"), cost);
}

/// Both cpus read a page: after one remote miss each has a copy of its own, until one of them writes.
#[test]
fn a_page_that_is_read_by_both_is_copied_and_collapses_when_written() {
    let mut program = Program::new(2);
    for line in 0..5 {
        program.read(0, line * 64);
        program.read(1, line * 64);
    }
    let copy = |miss: &Miss| Action::Copy {
        page: miss.page,
        node: miss.cpu,
    };
    let outcome = run(&program, copy);
    assert_eq!(number(&outcome, "memory", "remote"), 1);
    assert_eq!(number(&outcome, "memory", "local"), 9);
    assert_eq!(number(&outcome, "memory", "replications"), 1);
    assert_eq!(number(&outcome, "memory", "pages_max"), 2);

    program.write(0, 64 * 20);
    program.read(0, 64 * 21);
    let outcome = run(&program, copy);
    assert_eq!(number(&outcome, "memory", "collapses"), 1);
    assert_eq!(number(&outcome, "memory", "local"), 11, "cpu 0 keeps its own copy");
}

/// Two pages of one color take turns in one line, until one is moved to another color.
#[test]
fn recoloring_ends_a_conflict() {
    let mut machine = two_nodes();
    machine.cpus = 1;
    machine.memory.nodes = 1;
    machine.caches[0].bytes = 8192;
    struct Recolor(u64);
    impl Policy for Recolor {
        fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
            Placement {
                color: Some(0),
                node: Some(0),
            }
        }
        fn interest(&self) -> Interest {
            Interest {
                cache_misses: 1,
                ..Interest::NONE
            }
        }
        fn observe(&mut self, observation: &Observation, _world: &World, actions: &mut Vec<Action>) {
            let Observation::Miss(miss) = observation else { return };
            self.0 += 1;
            if self.0 == 10 {
                let to = Placement {
                    color: Some(1),
                    node: None,
                };
                actions.push(Action::Move { page: miss.page, to });
            }
        }
    }
    let mut program = Program::new(1);
    for _ in 0..20 {
        program.read(0, 0);
        program.read(0, 4096);
    }
    let outcome = engine::simulate_policy(
        &machine,
        &program,
        Box::new(Recolor(0)),
        &Setup::default(),
        sim::Detail::default(),
    );
    let outcome = outcome.expect("the engine runs");
    // Ten misses up to the move; then the moved page misses once (cold) and the other once more.
    let cache = &outcome["caches"][0];
    assert_eq!(cache["misses"], 12);
    assert_eq!(cache["cold"], 3);
    assert_eq!(number(&outcome, "memory", "recolorings"), 1);
    assert_eq!(number(&outcome, "memory", "migrations"), 0);
}

/// Asks for everything, and answers with arbitrary actions on the pages that it has seen.
#[derive(Clone)]
struct Restless {
    random: u64,
    interest: Interest,
    pages: Vec<Page>,
    threads: u32,
}

impl Restless {
    fn roll(&mut self, sides: u32) -> u32 {
        let mut random = SplitMix64(self.random);
        let rolled = random.below(sides);
        self.random = random.0;
        rolled
    }
}

impl Policy for Restless {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        self.pages.push(touch.page);
        Placement {
            color: Some(self.roll(world.colors)),
            node: Some(self.roll(world.nodes)),
        }
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn observe(&mut self, _observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        for _ in 0..self.roll(3) {
            let which = self.roll(self.pages.len() as u32);
            let page = self.pages[which as usize];
            let node = self.roll(world.nodes);
            let cpu = self.roll(world.cpus);
            actions.push(match self.roll(8) {
                0 => Action::Move {
                    page,
                    to: Placement {
                        color: Some(self.roll(world.colors)),
                        node: None,
                    },
                },
                1 => Action::Move {
                    page,
                    to: Placement {
                        color: None,
                        node: Some(node),
                    },
                },
                2 => Action::Copy { page, node },
                3 => Action::Collapse {
                    page,
                    node: Some(node).filter(|node| node % 2 == 0),
                },
                4 => Action::Close { page, cpus: 1 << cpu },
                5 => Action::Open { page, cpus: !0 },
                6 => Action::Allow {
                    thread: self.roll(self.threads),
                    cpus: u128::from(self.roll(1 << world.cpus.min(8))),
                },
                _ => Action::MoveThread {
                    thread: self.roll(self.threads),
                    cpu,
                },
            });
        }
    }
}

/// Sends threads to cpus, of which some do not exist, and keeps them on sets of cpus, again and again.
#[derive(Clone)]
struct Sender {
    random: u64,
    tick_ns: u64,
    threads: u32,
}

impl Policy for Sender {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement::default()
    }

    fn interest(&self) -> Interest {
        Interest {
            tick_ns: self.tick_ns,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, _observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        let mut random = SplitMix64(self.random);
        for _ in 0..random.below(5) {
            let thread = random.below(self.threads + 1);
            actions.push(match random.below(3) {
                0 => Action::MoveThread {
                    thread,
                    cpu: random.below(world.cpus + 1),
                },
                _ => Action::Allow {
                    thread,
                    cpus: u128::from(random.below(1 << (world.cpus + 1))),
                },
            });
        }
        self.random = random.0;
    }
}

proptest! {
    #![proptest_config(exactness::cases(150))]

    /// Count for count and nanosecond for nanosecond, wherever threads are sent.
    #[test]
    fn both_simulators_agree_on_threads_that_are_sent(
        machine in machines(vec![1, 2, 4, 6]),
        program in programs(8, 1500),
        random: u64,
        tick_ns in 100..5000u64,
        slice_ns in 1..20_000u64,
        classes: bool,
    ) {
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let policy = Sender { random, tick_ns, threads: program.spaces.len() as u32 };
        let setup = Setup { slice_ns, classes, ..Setup::default() };
        both::agree_with(&machine, &program, &policy, &setup)?;
    }
}

proptest! {
    #![proptest_config(conservation::cases(150))]

    /// Whatever a policy does, every reference is carried out, everything adds up, and a second run gives the same.
    #[test]
    fn everything_adds_up_under_a_restless_policy(
        machine in machines(vec![1, 2, 4]),
        program in programs(6, 1500),
        random: u64,
        (cache_misses, tlb_misses, touches, tick_ns, pressure_frames) in (0..4u32, 0..4u32, any::<bool>(), 0..500u64, 0..20u64),
        recorded: bool,
        classes: bool,
    ) {
        let interest = Interest { cache_misses, tlb_misses, touches, tick_ns, pressure_frames, ..Interest::NONE };
        let policy = Restless { random, interest, pages: Vec::new(), threads: program.spaces.len() as u32 };
        let setup = Setup { recorded, classes, slice_ns: 300, ..Setup::default() };
        let run = || engine::simulate_policy(&machine, &program, Box::new(policy.clone()), &setup, sim::Detail::default());
        if let Ok(outcome) = run() {
            conservation::check(&machine, &program, &outcome, classes)?;
            prop_assert_eq!(outcome.to_string(), run().map_err(TestCaseError::fail)?.to_string());
            let close = engine::simulate_policy(&machine, &program, Box::new(policy.clone()), &setup, detail::ALL);
            detail::adds_up(&machine, &outcome, close.map_err(TestCaseError::fail)?, false)?;
        }
    }
}
