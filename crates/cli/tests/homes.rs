//! `simulate` under policies that move pages: a made-up program whose misses and moves can be worked out by hand.

use crate::house;

use house::{Room, json, output};
use serde_json::Value;

const PAGE: u64 = 4096;
/// Pages so far apart share a color in the 512 KB, two-way L2 cache of `flash-cc-numa`, and sets in its L1.
const COLORS: u64 = 64;
const CPUS: u64 = 8;
const ROUNDS: u64 = 200;
const OWN_PAGES: u64 = 3;

/// A page of the one color that everything has here.
fn page(number: u64) -> u64 {
    (number * COLORS + COLORS) * PAGE
}

const READ_BY_ALL: u64 = 0;
const USED_BY_ONE: u64 = 1;
const WRITTEN_BY_ALL: u64 = 2;

/// A thread accesses a line of a page, then that line of three pages of its own: of four lines that take turns in a set
/// of two ways each one misses, and does so still when the page has moved and its line is gone.
fn round(thread: u64, op: char, of: u64, round: u64) -> String {
    let line = round % 64 * 64;
    let mut text = format!("{thread} {op} {:x} 4\n", page(of) + line);
    for own in 0..OWN_PAGES {
        text += &format!("{thread} r {:x} 4\n", page(3 + OWN_PAGES * thread + own) + line);
    }
    text
}

/// Cpu 0 touches all three pages first, so they begin on node 0.
fn program() -> String {
    let mut text = String::new();
    for i in 0..ROUNDS {
        (0..CPUS).for_each(|thread| text += &round(thread, 'r', READ_BY_ALL, i));
    }
    text += &format!("0 r {:x} 4\n", page(USED_BY_ONE));
    (0..ROUNDS).for_each(|i| text += &round(5, 'r', USED_BY_ONE, i));
    for i in 0..ROUNDS {
        (0..CPUS).for_each(|thread| text += &round(thread, 'w', WRITTEN_BY_ALL, i));
    }
    text
}

/// Misses on pages of one's own, all of them local.
const OWN: u64 = OWN_PAGES * (CPUS * ROUNDS + ROUNDS + CPUS * ROUNDS);

/// Local and remote misses, pages moved, copied, collapsed.
fn counts(outcome: &Value) -> [u64; 5] {
    let memory = &outcome["memory"];
    ["local", "remote", "migrations", "replications", "collapses"].map(|name| memory[name].as_u64().unwrap())
}

#[test]
fn a_read_page_is_copied_a_page_of_one_cpu_moves_and_a_written_one_stays() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let mut arguments = vec![
        "simulate",
        &trace,
        "--machine",
        "flash-cc-numa",
        "--order",
        "recorded",
        "--json",
    ];
    for policy in ["first-touch", "migrate", "replicate", "migrate-replicate"] {
        arguments.extend(["--policy", policy]);
    }
    // Hot pages do not wait for others.
    for set in ["migrate.batch=1", "replicate.batch=1", "migrate-replicate.batch=1"] {
        arguments.extend(["--set", set]);
    }
    let outcomes = json(&arguments);
    let other = CPUS - 1;
    // The page that all read: 128 remote misses of each other cpu, then it has a copy.
    let (read_stays, read_copied) = ([ROUNDS, other * ROUNDS], [ROUNDS + other * (ROUNDS - 128), other * 128]);
    // The page of cpu 5: 128 remote misses, then it has moved. Cpu 0 touched it once.
    let (used_stays, used_moved) = ([1, ROUNDS], [1 + ROUNDS - 128, 128]);
    let written = [ROUNDS, other * ROUNDS];
    let sum = |read: [u64; 2], used: [u64; 2]| [0, 1].map(|i| read[i] + used[i] + written[i] + [OWN, 0][i]);
    let expected = [
        (sum(read_stays, used_stays), 0, 0),
        (sum(read_stays, used_moved), 1, 0),
        (sum(read_copied, used_stays), 0, other),
        (sum(read_copied, used_moved), 1, other),
    ];
    for (outcome, ([local, remote], moved, copied)) in outcomes.iter().zip(expected) {
        assert_eq!(
            counts(outcome),
            [local, remote, moved, copied, 0],
            "{}",
            outcome["policy"]
        );
        // Table 8's averages: 478.8 us for a page that moves, 440.9 us for a copy.
        assert_eq!(
            outcome["time_ns"]["policy_overhead"],
            moved * 478_800 + copied * 440_900
        );
        assert_eq!(outcome["memory"]["pages"], 3 + OWN_PAGES * CPUS);
    }
    assert_eq!(outcomes.len(), 4);
    // A page that moves has two frames meanwhile; the page that all threads write has not been touched
    // by then.
    assert_eq!(outcomes[3]["memory"]["pages_max"], 3 + OWN_PAGES * CPUS + other);
}

/// A page that is alone waits 500 us for others; then what happens is the same.
#[test]
fn hot_pages_wait_for_others_and_no_longer_than_they_should() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let mut outcomes = Vec::new();
    for wait in ["1", "500", "1000000"] {
        let set = format!("migrate-replicate.wait={wait}");
        outcomes.extend(json(&[
            "simulate",
            &trace,
            "--machine",
            "flash-cc-numa",
            "--policy",
            "migrate-replicate",
            "--set",
            &set,
            "--order",
            "recorded",
            "--json",
        ]));
    }
    let [soon, usual, never] = [0, 1, 2].map(|number: usize| counts(&outcomes[number]));
    assert_eq!(soon[2..], [1, CPUS - 1, 0]);
    assert_eq!(never[2..], [0, 0, 0], "five pages never come together");
    assert!(
        soon[1] < usual[1] && usual[1] <= never[1],
        "{soon:?} {usual:?} {never:?}"
    );
}

/// The caches once, the policies over their misses: the moves and copies are those of the whole simulation, since each
/// reference misses.
#[test]
fn over_misses_the_same_pages_move() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let policies = ["first-touch", "post-facto", "migrate", "migrate-replicate"];
    let mut arguments = vec![
        "simulate",
        trace.as_str(),
        "--machine",
        "flash-cc-numa",
        "--order",
        "recorded",
        "--json",
    ];
    policies
        .iter()
        .for_each(|policy| arguments.extend(["--policy", policy]));
    let batch = ["--set", "migrate.batch=1", "--set", "migrate-replicate.batch=1"];
    arguments.extend(batch);
    let whole = json(&arguments);
    arguments.extend(["--fast", "--page-ns", "350us"]);
    let fast = json(&arguments);
    assert_eq!((whole.len(), fast.len()), (4, 4));
    for (whole, fast) in whole.iter().zip(&fast) {
        assert_eq!(counts(whole)[2..4], counts(fast)[2..4], "{}", whole["policy"]);
        assert!(whole.get("replayed_misses").is_none() && fast["replayed_misses"].as_u64() > Some(OWN));
        let moved: u64 = counts(fast)[2..].iter().sum();
        assert_eq!(fast["time_ns"]["policy_overhead"].as_u64(), Some(moved * 350_000));
    }
}

/// Several values of parameters are runs of their own, each as if it had been asked for alone.
#[test]
fn a_sweep_runs_every_combination() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let run = |more: &[&str]| {
        let always = [
            "simulate",
            trace.as_str(),
            "--machine",
            "flash-cc-numa",
            "--fast",
            "--json",
        ];
        let sets = ["--policy", "migrate", "--set", "migrate.batch=1"];
        json(&[&always[..], &sets, more].concat())
    };
    let swept = run(&[
        "--policy",
        "first-touch",
        "--set",
        "migrate.trigger=64,150..250..100",
        "--set",
        "migrate.moves=0,1",
    ]);
    let settings: Vec<String> = swept.iter().map(|outcome| outcome["settings"].to_string()).collect();
    let of = |trigger: u64, moves: u64| format!("[\"trigger={trigger}\",\"moves={moves}\"]");
    let expected = [64, 150, 250].map(|trigger| [of(trigger, 0), of(trigger, 1)]).concat();
    assert_eq!(settings[..6], expected);
    // A policy without the parameter runs once.
    assert_eq!((settings.len(), swept[6]["policy"].as_str()), (7, Some("first-touch")));
    assert!(swept[6].get("settings").is_none());
    let moved: Vec<u64> = swept.iter().map(|outcome| counts(outcome)[2]).collect();
    assert_eq!(moved, [0, 1, 0, 1, 0, 0, 0]);
    for (trigger, outcome) in [("64", &swept[1]), ("150", &swept[3]), ("250", &swept[5])] {
        let set = format!("migrate.trigger={trigger}");
        assert_eq!(counts(&run(&["--set", &set])[0]), counts(outcome), "{trigger}");
    }
}

#[test]
fn a_sweep_of_the_whole_simulation_is_refused() {
    let room = Room::new();
    let trace = room.trace("homes", "0 r 1000 4\n");
    let always = ["simulate", &trace, "--machine", "flash-cc-numa", "--policy", "migrate"];
    let (_, said) = output(&[&always[..], &["--set", "migrate.trigger=1,2"]].concat(), 2);
    assert!(said.contains("which is for `domicile simulate --fast`"), "{said}");
    let (_, said) = output(
        &[&always[..], &["--fast", "--set", "migrate.trigger=9..1..1"]].concat(),
        2,
    );
    assert!(said.contains("a range goes up"), "{said}");
}

#[test]
fn what_misses_cannot_say_is_refused() {
    let room = Room::new();
    let trace = room.trace("homes", "0 r 1000 4\n");
    for (more, expected) in [
        (&["--by", "structure"][..], "`--by` needs the whole simulation"),
        (
            &["--policy", "bin-hopping"],
            "policy `bin-hopping` chooses no homes of pages",
        ),
        (
            &["--policy", "first-touch+cdpc"],
            "policy `cdpc` chooses no homes of pages",
        ),
        (&["--page-map", "map"], "`--page-map` needs the whole simulation"),
        // Misses before a window would be counted with those of it.
        (
            &["--from-phase", "compute"],
            "`--from-phase` needs the whole simulation",
        ),
        (&["--to-phase", "write"], "`--to-phase` needs the whole simulation"),
    ] {
        let mut arguments = vec!["simulate", trace.as_str(), "--machine", "flash-cc-numa", "--fast"];
        arguments.extend(more);
        let (_, said) = output(&arguments, 2);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn weights_that_no_page_can_follow_are_refused() {
    let room = Room::new();
    let trace = room.trace("homes", "0 r 1000 4\n");
    let of = |weights: &str| {
        let set = format!("interleave.weights={weights}");
        let arguments = [
            "simulate",
            trace.as_str(),
            "--machine",
            "flash-cc-numa",
            "--policy",
            "interleave",
            "--set",
            &set,
        ];
        output(&arguments, 2).1
    };
    let said = of("0:0:0:0:0:0:0:0:5");
    assert!(
        said.contains("weights of more nodes than flash-cc-numa has: 8"),
        "{said}"
    );
    let said = of("0:0");
    assert!(
        said.contains("allowed is one of weights of which one is above 0"),
        "{said}"
    );
}

/// Both simulations report the lost part of a trace.
#[test]
fn half_a_trace_is_not_taken_for_a_whole_one() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let bytes = std::fs::read(&trace).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() * 2 / 3]).unwrap();
    for more in [&[][..], &["--fast"], &["--quiet"]] {
        let arguments = [
            &[
                "simulate",
                trace.as_str(),
                "--machine",
                "flash-cc-numa",
                "--policy",
                "first-touch",
            ],
            more,
        ]
        .concat();
        let (_, said) = output(&arguments, 0);
        assert!(said.contains("the trace ends early"), "{more:?}: {said}");
    }
}

/// Threads that go from node to node leave their pages behind, in both simulations.
#[test]
fn threads_that_move_leave_their_pages() {
    let room = Room::new();
    let trace = room.trace("homes", &program());
    let always = [
        "simulate",
        trace.as_str(),
        "--machine",
        "flash-cc-numa",
        "--policy",
        "first-touch",
        "--json",
    ];
    let local = |more: &[&str]| counts(&json(&[&always[..], more].concat())[0])[0];
    let stay = local(&[]);
    assert!(stay >= OWN);
    for fast in [&[][..], &["--fast"]] {
        let moving = local(&[fast, &["--move-threads", "10us"]].concat());
        assert!(moving < stay / 2, "{fast:?}: {moving} of {stay}");
    }
    let refused = [&always[..], &["--move-threads", "10us", "--order", "recorded"]].concat();
    let (_, said) = output(&refused, 2);
    assert!(said.contains("goes by the simulated clocks"), "{said}");
    // The same by its other name; a process a cpu is not moved by a scheduler.
    for fast in [&[][..], &["--fast"]] {
        let next = |option: &[&str]| local(&[fast, option].concat());
        assert_eq!(
            next(&["--schedule", "next,every=10us"]),
            next(&["--move-threads", "10us"])
        );
        assert_eq!(next(&["--schedule", "priority,slice=1us"]), next(&[]));
    }
    for (option, said) in [
        (
            &["--schedule", "fair"][..],
            "there are stay, next, priority and partition",
        ),
        (
            &["--schedule", "priority", "--order", "recorded"][..],
            "`--schedule` goes by the simulated clocks",
        ),
        (
            &["--schedule", "priority", "--fast", "--order", "recorded"][..],
            "leave one of them out",
        ),
        (
            &["--schedule", "priority", "--move-threads", "1ms"][..],
            "cannot be used with",
        ),
        (
            &["--schedule", "partition", "--policy", "regions"][..],
            "so does the schedule",
        ),
    ] {
        let (_, found) = output(&[&always[..], option].concat(), 2);
        assert!(found.contains(said), "{option:?}: {found}");
    }
}

/// Twelve threads on eight cpus: by priority they move and leave their pages, with more affinity less, and copies of the
/// pages bring the misses home.
#[test]
fn threads_that_are_scheduled_leave_their_pages() {
    let room = Room::new();
    let mut text = String::new();
    for i in 0..4 * ROUNDS {
        for thread in 0..12 {
            for own in 0..OWN_PAGES {
                text += &format!("{thread} r {:x} 4\n", page(OWN_PAGES * thread + own) + i % 64 * 64);
            }
        }
    }
    let trace = room.trace("twelve", &text);
    for fast in [&[][..], &["--fast"]] {
        let local = |schedule: &str, policy: &str| {
            let always = [
                "simulate",
                trace.as_str(),
                "--machine",
                "flash-cc-numa",
                "--json",
                "--page-ns",
                "1us",
            ];
            let sets = [
                "--set",
                "migrate-replicate.trigger=8",
                "--set",
                "migrate-replicate.batch=1",
            ];
            let sets = if policy == "migrate-replicate" { &sets[..] } else { &[] };
            counts(&json(&[&always[..], fast, sets, &["--schedule", schedule, "--policy", policy]].concat())[0])[0]
        };
        let all = 4 * ROUNDS * 12 * OWN_PAGES;
        assert_eq!(local("stay", "first-touch"), all);
        let near = local("priority,slice=20us,affinity=200us", "first-touch");
        let far = local("priority,slice=20us,affinity=0", "first-touch");
        assert!(far < near && near < all, "{far}, {near} of {all}");
        let follows = local("priority,slice=20us,affinity=0", "migrate-replicate");
        assert!(follows > far, "{follows}, {far} of {all}");
    }
}
