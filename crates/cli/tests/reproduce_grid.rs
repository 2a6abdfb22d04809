//! `reproduce bugnion96` on a small program that only says that it is the paper's.

use crate::house;

use std::fs;
use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

/// tomcatv as each compiler would make it: one small program in C, which names the phases.
fn programs(room: &Room) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = room.folder().join("programs/count");
    fs::create_dir_all(&folder).unwrap();
    let first = folder.join("tomcatv-cdpc");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-I"])
        .arg(root.join("../../capture/valgrind"))
        .arg(root.join("tests/programs/steps.c"))
        .arg("-o")
        .arg(&first)
        .status()
        .unwrap();
    assert!(compiled.success());
    for version in ["prefetch", "unaligned"] {
        harness::copy_program(&first, &folder.join(format!("tomcatv-{version}")));
    }
    room.path("programs")
}

fn reproduce(room: &Room, folder: &str, item: &str, cpus: &str, rest: &[&str]) -> Vec<Value> {
    let kept = room.path("kept");
    let cell = ["--program", "tomcatv", "--cpus", cpus];
    let mut arguments = vec![
        "reproduce",
        "bugnion96",
        item,
        "--programs",
        folder,
        "--kept",
        &kept,
        "--json",
    ];
    arguments.extend(cell);
    arguments.extend(rest);
    json(&arguments)[0].as_array().unwrap().clone()
}

fn line<'l>(lines: &'l [Value], row: &str, column: &str) -> &'l Value {
    let found = lines.iter().find(|line| line["row"] == row && line["column"] == column);
    found.unwrap_or_else(|| panic!("no line for {row}, {column} in {lines:#?}"))
}

#[test]
fn bars_and_what_they_gain_stand_beside_the_papers_gain() {
    let room = Room::new();
    let folder = programs(&room);
    let drawing = room.path("figure8.svg");
    let lines = reproduce(&room, &folder, "figure8", "4", &["--plot", &drawing]);
    // Four bars, and the gains of three of them over the first.
    assert_eq!(lines.len(), 4 + 3);
    let row = "tomcatv, 4 cpus";
    let bar = line(&lines, row, "page coloring");
    assert!(bar["value"].as_f64().unwrap() > 0.0);
    assert_eq!(
        bar["run"],
        "OMP_NUM_THREADS=4 tomcatv-cdpc --warm 1 --iterations 1 --threads 4"
    );
    let both = line(&lines, row, "CDPC, prefetching over page coloring");
    assert_eq!(both["paper_value"], 1.88);
    // 96 KB fit, wherever their pages are.
    assert!((both["value"].as_f64().unwrap() - 1.0).abs() < 0.2, "{both}");
    let svg = fs::read_to_string(drawing).unwrap();
    assert!(svg.contains("CDPC, prefetching") && svg.contains("execution") && svg.trim_end().ends_with("</svg>"));
    // A cell is kept for each build; figure 6 finds one of them.
    let kept = || fs::read_dir(room.path("kept")).unwrap().count();
    assert_eq!(kept(), 2);
    reproduce(&room, &folder, "figure6", "4", &[]);
    assert_eq!(kept(), 2);
}

#[test]
fn time_is_broken_down() {
    let room = Room::new();
    let folder = programs(&room);
    let lines = reproduce(&room, &folder, "figure2", "1", &[]);
    let of = |column: &str| line(&lines, "tomcatv, 1 cpu", column)["value"].as_f64().unwrap();
    let parts = [
        "execution",
        "memory stall",
        "load imbalance",
        "sequential",
        "synchronization",
        "TLB",
    ];
    let sum: f64 = parts.iter().map(|part| of(part)).sum();
    assert!((sum - 100.0).abs() < 0.1, "{sum}");
    let classes = [
        "on-chip misses",
        "replacement",
        "true sharing",
        "false sharing",
        "upgrades",
    ];
    let sum: f64 = classes.iter().map(|class| of(&format!("MCPI, {class}"))).sum();
    assert!((sum - of("MCPI")).abs() < 1e-6 && sum > 0.0, "{sum}");
    // One cpu, and arrays that are in its cache after the first step.
    assert_eq!((of("load imbalance"), of("MCPI, true sharing")), (0.0, 0.0));
}

#[test]
fn pages_are_mapped() {
    let room = Room::new();
    let folder = programs(&room);
    let drawing = room.path("figure3.svg");
    let lines = reproduce(&room, &folder, "figure3", "16", &["--plot", &drawing]);
    let row = "tomcatv, 16 cpus";
    let pages = line(&lines, row, "pages")["value"].as_f64().unwrap();
    // Three arrays of eight pages, whose ends may share one.
    assert!((24.0..=27.0).contains(&pages), "{pages}");
    assert_eq!(line(&lines, row, "a color twice, page-coloring")["value"], 0.0);
    assert!(fs::read_to_string(drawing).unwrap().contains("pages by address"));
}

#[test]
fn what_the_paper_does_not_have_is_refused() {
    let refused = |arguments: &[&str]| output(&[&["reproduce"], arguments].concat(), 2).1;
    let said = refused(&["bugnion96", "figure6", "--size", "7"]);
    assert!(said.contains("--size") && said.contains("philbin96"), "{said}");
    let said = refused(&["ding11", "figure6", "--cpus", "4"]);
    assert!(said.contains("--cpus is for bugnion96"), "{said}");
    let said = refused(&["bugnion96", "figure4"]);
    assert!(said.contains("figure2, figure3, figure5"), "{said}");
    let said = refused(&["bugnion96", "--plot", "x.svg"]);
    assert!(said.contains("one figure is drawn at a time"), "{said}");
    let said = refused(&["bugnion96", "figure6", "--program", "gcc"]);
    assert!(said.contains("`gcc`") && said.contains("tomcatv"), "{said}");
    let said = refused(&["bugnion96", "figure3", "--cpus", "4"]);
    assert!(said.contains("figure3") && said.contains("16"), "{said}");
}
