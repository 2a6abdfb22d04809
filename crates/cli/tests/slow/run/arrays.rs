//! Arrays, static and allocated: each in its slot, with the sums of a run without a plan.

use crate::slow::run::workshop::{Workshop, plainly};

const PLAN: &str = r#"
[[slot]]
name = "mine"
bytes = "256 KiB"
kind = "private"

[[slot]]
name = "rest"
bytes = "128 KiB"
kind = "shared"

[[data]]
symbol = "zeros"
slot = "mine"

[[data]]
symbol = "filled"
slot = "rest"

[[data]]
symbol = "fixed"
slot = "none"

[[data]]
site = "heap: first (arrays.c:14)"
slot = "mine"

[[data]]
site = "heap: second"
at_least = "64 KiB"
slot = "rest"

[[data]]
site = "heap: cleared (arrays.c)"
slot = "mine"

[[data]]
site = "resized"
slot = "rest"

[[data]]
site = "heap: my_alloc ← wrapped (arrays.c:28)"
slot = "mine"

[[data]]
site = "heap: aligned"
slot = "rest"
"#;

const NAMES: [(&str, &str); 8] = [
    ("zeros", "zeros"),
    ("filled", "filled"),
    ("fixed", "fixed"),
    ("heap: first (arrays.c:14)", "first"),
    ("heap: second", "second"),
    ("heap: cleared (arrays.c)", "cleared"),
    ("heap: my_alloc ← wrapped (arrays.c:28)", "wrapped"),
    ("heap: aligned", "aligned"),
];

#[test]
fn arrays_of_every_kind_lie_in_their_slots() {
    let shop = Workshop::new();
    let Some(program) = shop.program("arrays.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let colors = shop.path("colors");
    let run = shop.run(PLAN, &[], &[program, colors.to_str().unwrap()]);
    run.is_as(&plainly(&[program]));
    let colors = std::fs::read_to_string(colors).unwrap();
    for (name, shown) in NAMES {
        if shown != "second" && shown != "wrapped" {
            run.placed(name);
        }
        run.agrees(name, shown, &colors);
    }
    assert_eq!(
        run.placed("zeros"),
        40_000 * 8 / 4096 - u64::from(run.data("zeros")["left_out"] != 40_000 * 8 % 4096)
    );
    // Four threads and main twice.
    assert_eq!(run.data("heap: first (arrays.c:14)")["names"][0]["blocks"], 6);
    // Private and shared slots have no color in common; data without a slot has one color.
    let granted = |name: &str| -> Vec<u64> {
        let granted = run.data(name)["granted"].as_array().unwrap();
        granted.iter().filter_map(|color| color.as_u64()).collect()
    };
    let (mine, rest) = (granted("zeros"), granted("filled"));
    assert_eq!((mine.len(), rest.len(), granted("fixed").len()), (4, 2, 1));
    assert!(mine.iter().all(|color| !rest.contains(color)), "{mine:?} {rest:?}");
    assert_eq!(granted("heap: cleared (arrays.c)"), mine);
}

#[test]
fn an_ordinary_user_has_slots_too_or_the_report_says_why_not() {
    let shop = Workshop::new();
    let Some(program) = shop.program("arrays.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let by = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !plainly(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"])
        .status
        .success()
    {
        return harness::not_allowed("setpriv cannot make us somebody else");
    }
    let run = shop.run_by(&by, PLAN, &[], &[program]);
    run.is_as(&plainly(&[program]));
    let process = &run.report["processes"][0];
    if process["state"] == "failed" {
        assert!(
            process["notes"][0].as_str().is_some_and(|why| !why.is_empty()),
            "{process:#}"
        );
    } else {
        run.placed("zeros");
        run.placed("heap: first (arrays.c:14)");
    }
}

#[test]
fn mappings_of_the_program() {
    let shop = Workshop::new();
    let Some(program) = shop.program("mapped.c", &["-O0"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let colors = shop.path("colors");
    let plan = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n[[data]]\nsite = \"mmap: map (mapped.c:8)\"\nslot = \"a\"\n";
    let run = shop.run(plan, &[], &[program, colors.to_str().unwrap()]);
    run.is_as(&plainly(&[program]));
    run.agrees(
        "mmap: map (mapped.c:8)",
        "map",
        &std::fs::read_to_string(colors).unwrap(),
    );
    let share = &run.data("mmap: map (mapped.c:8)")["names"][0];
    assert_eq!(
        (share["blocks"].as_u64(), share["bytes"].as_u64()),
        (Some(2), Some(2 << 20))
    );
}

#[test]
fn fortrans_arrays() {
    let shop = Workshop::new();
    let Some(program) = shop.program("field.f90", &["-O1"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plan = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n\
        [[data]]\nsymbol = \"__fields_MOD_grid\"\nslot = \"a\"\n[[data]]\nsymbol = \"pool_\"\nslot = \"a\"\n\
        [[data]]\nsite = \"field.f90:14\"\nslot = \"a\"\n";
    let run = shop.run(plan, &[], &[program]);
    run.is_as(&plainly(&[program]));
    for name in ["__fields_MOD_grid", "pool_"] {
        run.placed(name);
    }
    // `values` was freed and is kept for another; `more` is in use, but not of this line.
    let share = &run.data("field.f90:14")["names"][0];
    assert_eq!(
        (share["blocks"].as_u64(), share["refused"].as_u64()),
        (Some(1), Some(0))
    );
}
