//! The heap under stress, in C++, over forks, and in programs of Debian.

use crate::slow::run::workshop::{Workshop, plainly};

const SLOT: &str = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n";

fn plan(sites: &[&str]) -> String {
    let data = sites
        .iter()
        .map(|site| format!("[[data]]\nsite = \"{site}\"\nslot = \"a\"\n"));
    SLOT.to_string() + &data.collect::<String>()
}

#[test]
fn threads_free_and_resize_each_others_blocks() {
    let shop = Workshop::new();
    let Some(program) = shop.program("torture.cc", &["-O1", "-std=c++17"]) else {
        return;
    };
    // Everything that the program allocates.
    let sites = plan(&["heap: work", "heap: (torture.cc)"]);
    let run = shop.run(&sites, &[], &[program.to_str().unwrap(), "12000"]);
    assert_eq!(
        (run.printed().as_str(), run.output.status.code()),
        ("good\n", Some(0)),
        "{}",
        run.said()
    );
    run.placed("heap: work");
    assert!(run.data("heap: work")["names"][0]["blocks"].as_u64() > Some(50_000));
    let forked = shop.run(&sites, &[], &[program.to_str().unwrap(), "8000", "12"]);
    assert_eq!(
        (forked.printed().as_str(), forked.output.status.code()),
        ("good\n", Some(0)),
        "{}",
        forked.said()
    );
    let notes = forked.report["processes"][0]["notes"].to_string();
    assert!(notes.contains("forked 12 times"), "{notes}");
}

#[test]
fn containers_come_through_the_library() {
    for level in ["-O0", "-O2"] {
        let shop = Workshop::new();
        let Some(program) = shop.program("containers.cc", &[level, "-std=c++17", "-fno-inline-small-functions"]) else {
            return;
        };
        let program = program.to_str().unwrap();
        let colors = shop.path("colors");
        let run = shop.run(
            &plan(&["heap: grown", "heap: lines"]),
            &[],
            &[program, colors.to_str().unwrap()],
        );
        run.is_as(&plainly(&[program]));
        let colors = std::fs::read_to_string(colors).unwrap();
        run.agrees("heap: lines", "lines", &colors);
        if level == "-O0" {
            run.agrees("heap: grown", "grown", &colors);
            assert!(run.data("heap: grown")["names"][0]["blocks"].as_u64() > Some(10));
        }
    }
}

#[test]
fn children_and_programs_in_our_place_go_on_as_usual() {
    let shop = Workshop::new();
    let Some(program) = shop.program("forks.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let plan = plan(&["heap: block"]) + "[[data]]\nsymbol = \"table\"\nslot = \"a\"\n";
    let run = shop.run(&plan, &[], &[program.to_str().unwrap()]);
    run.is_as(&plainly(&[program.to_str().unwrap()]));
    assert!(run.printed().ends_with("0\nnone none\n"), "{}", run.printed());
    // It became another program: the report is from before.
    assert_eq!(run.report["processes"][0]["state"], "running");
    assert_eq!(run.data("heap: block")["names"][0]["blocks"], 1);
}

#[test]
fn programs_of_debian_are_unharmed() {
    let shop = Workshop::new();
    let numbers: String = (0..60_000u64).map(|n| format!("{}\n", n * 7919 % 60_013)).collect();
    let numbers = shop.file("numbers", &numbers);
    let sort = ["sort", "-n", numbers.to_str().unwrap()];
    let run = shop.run(&plan(&["heap: sort"]), &[], &sort);
    run.is_as(&plainly(&sort));
    assert!(run.data("heap: sort")["names"][0]["blocks"].as_u64() > Some(0));

    let query = "create table t(a, b); \
        with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x, x * x % 1000 from c; \
        create index i on t(b); select count(*), sum(t.a) from t join t u on t.b = u.a;";
    let sqlite = ["sqlite3", ":memory:", query];
    if std::process::Command::new("sqlite3").arg("--version").output().is_err() {
        return harness::not_installed("there is no sqlite3");
    }
    let run = shop.run(&plan(&["heap: libsqlite3.so.0"]), &[], &sqlite);
    run.is_as(&plainly(&sqlite));
    run.placed("heap: libsqlite3.so.0");
}

#[test]
fn programs_that_the_program_starts_are_concerned_if_asked_for() {
    let shop = Workshop::new();
    let script = "sh -c 'echo inner'; echo ${LD_PRELOAD:+loaded}";
    let processes = |options: &[&str], printed: &str| {
        let run = shop.run(SLOT, options, &["sh", "-c", script]);
        assert_eq!(run.printed(), printed, "{}", run.said());
        run.report["processes"].as_array().unwrap().len()
    };
    assert_eq!(processes(&[], "inner\n\n"), 1);
    assert_eq!(processes(&["--children"], "inner\nloaded\n"), 2);
}
