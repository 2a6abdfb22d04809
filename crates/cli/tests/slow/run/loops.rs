//! `--policy`: programs that describe their parallel loops compute the same results as without us, and their pages lie
//! in the frames that the hints ask for.

use std::collections::HashMap;

use policy::cdpc::{self, Access, Communication, Direction, Loop, Machine, Schedule, Summary};
use serde_json::Value;

use crate::slow::run::workshop::{Run, Workshop, plainly};

const ROW: u64 = 513 * 8;
const BYTES: u64 = 300 * ROW;
const FLAGS: [&str; 1] = ["-O1"];

/// The description by `loops.c` of arrays that begin here.
fn rows(place: &str, starts: &[u64]) -> Loop {
    let summary = |(at, &start): (usize, &u64)| Summary {
        name: "a".into(),
        start,
        bytes: BYTES,
        offset: 0,
        unit: ROW as i64,
        span: ROW,
        inner: Vec::new(),
        communication: match at {
            0 => Communication::None,
            _ => Communication::Shift(-(ROW as i64)),
        },
        access: Access::ReadWrite,
    };
    Loop {
        place: place.into(),
        threads: 4,
        iterations: 300,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries: starts.iter().enumerate().map(summary).collect(),
    }
}

/// The colors that a program found its pages in: start and colors, by array.
fn seen(shop: &Workshop) -> HashMap<String, (u64, Vec<i32>)> {
    let text = std::fs::read_to_string(shop.path("colors")).unwrap();
    let one = |line: &str| {
        let (head, colors) = line.split_once(':').unwrap();
        let (name, start) = head.split_once(' ').unwrap();
        let colors = colors.split_whitespace().map(|color| color.parse().unwrap());
        (name.to_string(), (start.parse().unwrap(), colors.collect()))
    };
    text.lines().map(one).collect()
}

/// Compares a program's observations with the hints for these loops, weighed as the simulator weighs them. (The kernel
/// may have moved a few frames since; a user who cannot see frames cannot compare.)
fn agrees(seen: &HashMap<String, (u64, Vec<i32>)>, loops: &[Loop]) {
    let machine = Machine {
        page_bytes: 4096,
        colors: 16,
        cpus: 4,
        fit: true,
    };
    let hints = cdpc::weighed(loops, &machine, 16).unwrap();
    let (mut right, mut known) = (0, 0);
    for hint in &hints.pages[..hints.used] {
        for (start, colors) in seen.values() {
            let color = hint
                .page
                .checked_sub(start / 4096)
                .and_then(|at| colors.get(at as usize));
            if let Some(&color) = color.filter(|&&color| color >= 0) {
                known += 1;
                right += i32::from(color == hint.color as i32);
            }
        }
    }
    assert!(
        right >= known - known / 50,
        "{right} of {known} pages lie where the hints say"
    );
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value:#}"))
}

/// Nearly all hints are honoured, where frames can be seen; the numbers add up.
fn honoured(run: &Run) -> &Value {
    let cdpc = run.cdpc();
    let parts = ["honoured", "elsewhere", "absent", "unknown", "out_of_sight"];
    let sum: u64 = parts.iter().map(|part| number(cdpc, part)).sum();
    let pages = number(cdpc, "pages");
    assert_eq!(sum, pages, "{cdpc:#}");
    assert!(
        number(cdpc, "elsewhere") + number(cdpc, "absent") <= pages / 50,
        "{cdpc:#}"
    );
    cdpc
}

fn with_colors<'a>(program: &'a str, what: &'a str, colors: &'a str) -> [&'a str; 3] {
    [program, what, colors]
}

#[test]
fn arrays_described_before_main_lie_where_the_hints_say() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let (program, colors) = (program.to_str().unwrap(), shop.path("colors"));
    let run = shop.directed("cdpc", &[], &with_colors(program, "static", colors.to_str().unwrap()));
    run.is_as(&plainly(&[program, "static"]));
    let cdpc = honoured(&run);
    assert_eq!(
        (number(cdpc, "loops"), number(cdpc, "arrays"), number(cdpc, "threads")),
        (2, 3, 4)
    );
    assert_eq!(
        (number(&cdpc["start"], "times"), number(&cdpc["later"], "times")),
        (1, 0),
        "{cdpc:#}"
    );
    // Constants, which can only be read, are placed too, and can be read only.
    assert!(
        number(&cdpc["start"], "colored") + number(&cdpc["start"], "kept") >= 600,
        "{cdpc:#}"
    );
    assert_eq!(cdpc["left_out"], serde_json::json!([]), "{cdpc:#}");
    let weighed = cdpc["weighed"].as_array().unwrap();
    let pages: u64 = weighed.iter().map(|set| number(set, "pages")).sum();
    assert!(pages >= number(cdpc, "pages"), "{cdpc:#}");
    for set in weighed {
        assert_eq!(set["brought"].as_array().unwrap().len(), 3, "{set:#}");
        assert!(
            ["cdpc", "page-coloring", "bin-hopping"].contains(&set["policy"].as_str().unwrap()),
            "{set:#}"
        );
    }
    let seen = seen(&shop);
    let (zeros, filled, fixed) = (seen["zeros"].0, seen["filled"].0, seen["fixed"].0);
    let mut constants = rows("constants", &[fixed]);
    constants.iterations = 4096;
    let summary = &mut constants.summaries[0];
    (summary.bytes, summary.unit, summary.span, summary.access) = (4096 * 8, 8, 8, Access::Read);
    agrees(&seen, &[rows("before main", &[zeros, filled]), constants]);
}

#[test]
fn arrays_described_at_their_first_loop_lie_where_the_hints_say() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let (program, colors) = (program.to_str().unwrap(), shop.path("colors"));
    let run = shop.directed("cdpc", &[], &with_colors(program, "alone", colors.to_str().unwrap()));
    run.is_as(&plainly(&[program, "alone"]));
    let cdpc = run.cdpc();
    assert_eq!(
        (
            number(cdpc, "loops"),
            number(&cdpc["start"], "times"),
            number(&cdpc["later"], "times")
        ),
        (3, 1, 1)
    );
    let seen = seen(&shop);
    let (one, other) = (seen["one"].0, seen["other"].0);
    // Arrays described later go on where those before end, or are dealt together with them: either way each thread's own pages
    // are in turn.
    let known: Vec<i32> = seen
        .values()
        .flat_map(|(_, colors)| colors.clone())
        .filter(|&color| color >= 0)
        .collect();
    assert!(
        one != other && (known.is_empty() || known.len() >= 600),
        "{}",
        known.len()
    );
    honoured(&run);
}

#[test]
fn a_program_that_swaps_its_arrays_is_colored_once_and_little_more() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let (program, colors) = (program.to_str().unwrap(), shop.path("colors"));
    let run = shop.directed("cdpc", &[], &with_colors(program, "heap", colors.to_str().unwrap()));
    run.is_as(&plainly(&[program, "heap"]));
    let cdpc = run.cdpc();
    // Two before main, and the two orders of the arrays; the other 38 steps change nothing.
    assert_eq!((number(cdpc, "loops"), number(cdpc, "again")), (4, 38));
    let later = &cdpc["later"];
    assert!((1..=3).contains(&number(later, "times")), "{cdpc:#}");
    assert!(number(later, "pages") <= 5000, "{cdpc:#}");
    // Freed at the end: the large blocks are unmapped.
    assert!(number(cdpc, "out_of_sight") >= 600, "{cdpc:#}");
    let seen = seen(&shop);
    let known: Vec<i32> = seen
        .values()
        .flat_map(|(_, colors)| colors.clone())
        .filter(|&color| color >= 0)
        .collect();
    for color in 0..16 {
        let pages = known.iter().filter(|&&one| one == color).count();
        assert!(
            known.is_empty() || (20..=150).contains(&pages),
            "color {color} has {pages} of {}",
            known.len()
        );
    }
}

#[test]
fn the_others_are_there_to_compare_with() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let (program, colors) = (program.to_str().unwrap(), shop.path("colors"));
    let plain = plainly(&[program, "static"]);
    for policy in ["page-coloring", "bin-hopping", "random"] {
        let run = shop.directed(policy, &[], &with_colors(program, "static", colors.to_str().unwrap()));
        run.is_as(&plain);
        let cdpc = honoured(&run);
        assert_eq!(cdpc["policy"], policy);
        if policy == "page-coloring" {
            for (start, colors) in seen(&shop).into_values() {
                let known = colors.iter().zip(start / 4096..).filter(|(color, _)| **color >= 0);
                let right = |(color, page): &(&i32, u64)| **color == (page % 16) as i32;
                let (all, right) = (known.clone().count(), known.filter(right).count());
                assert!(right >= all - all / 50, "{right} of {all}");
            }
        }
    }
}

#[test]
fn a_program_that_says_nothing_runs_unchanged_and_the_report_says_so() {
    let shop = Workshop::new();
    let Some(program) = shop.program("forks.c", &[]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plain = plainly(&[program]);
    let run = shop.directed("cdpc", &[], &[program]);
    run.is_as(&plain);
    assert_eq!(number(run.cdpc(), "loops"), 0);
    let text = shop.printed("cdpc", &[program]);
    assert!(text.contains("says nothing of parallel loops"), "{text}");
    assert!(text.contains("domicile-cc"), "{text}");
}

#[test]
fn it_is_printed_for_people_too() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let text = shop.printed("cdpc", &[program.to_str().unwrap(), "static"]);
    for said in [
        "3 arrays in 2 parallel loops by up to 4 threads",
        "honoured at the end",
        "at start",
        "of memory predicted for a pass through the loops",
    ] {
        assert!(text.contains(said) || said.contains("honoured"), "{said}: {text}");
    }
}

#[test]
fn a_program_ends_as_it_would_before_its_first_loop() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    for (what, code) in [("exit", 7), ("gone", 8)] {
        let run = shop.directed("cdpc", &[], &[program, what]);
        assert_eq!(run.output.status.code(), Some(code), "{}", run.said());
        assert_eq!(number(run.cdpc(), "loops"), 2);
    }
}

#[test]
fn a_child_of_fork_is_left_alone_and_its_parent_is_not() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let run = shop.directed("cdpc", &[], &[program, "fork"]);
    run.is_as(&plainly(&[program, "fork"]));
    assert!(run.printed().starts_with("child 1\n"), "{}", run.printed());
    let cdpc = run.cdpc();
    // The child's loop is not among them.
    assert_eq!(number(cdpc, "loops"), 4, "{cdpc:#}");
    assert!(
        run.report["processes"][0]["notes"]
            .to_string()
            .contains("forked 1 times")
    );
}

#[test]
fn pages_that_threads_are_at_work_on_keep_what_they_hold() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let run = shop.directed("cdpc", &[], &[program, "threads"]);
    assert_eq!(run.printed(), "turns 1 value 1\n", "{}", run.said());
    assert_eq!(number(run.cdpc(), "loops"), 4);
}

#[test]
fn what_cannot_be_used_is_reported_and_does_no_harm() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("loops.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plain = plainly(&[program, "wrong"]);
    assert_eq!(plain.status.code(), Some(0));
    let run = shop.directed("cdpc", &[], &[program, "wrong"]);
    run.is_as(&plain);
    let cdpc = run.cdpc();
    assert!(number(cdpc, "refused") >= 7, "{cdpc:#}");
    let notes = run.report["processes"][0]["notes"].to_string();
    for said in [
        "a null pointer",
        "version 77",
        "4294967295 summaries",
        "4294967295 threads",
        "9 is no schedule",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let left = cdpc["left_out"].to_string();
    assert!(left.contains("nothing is mapped there"), "{cdpc:#}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let shop = Workshop::new();
    for (options, said) in [
        (&["--policy", "kernel"][..], "page-coloring"),
        (&["--policy", "cdpc", "--slots", "x.toml"], "cannot be used with"),
        (&["--policy", "cdpc", "--align", "maybe"], "is no alignment"),
        (&[], "--slots <FILE>|--policy <NAME>"),
    ] {
        let text = shop.refused(options);
        assert!(text.contains(said), "{options:?}: {text}");
    }
}
