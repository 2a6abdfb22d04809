//! `reproduce` on programs that only say that they are the papers'.

use crate::house;

use std::fs;

use house::{Room, json, output, programs};
use serde_json::Value;

const SOR: [(&str, f64); 3] = [("sor-untiled", 6.0), ("sor-tiled", 2.0), ("sor-threaded", 3.0)];

fn reproduce(room: &Room, folder: &str, rest: &[&str]) -> Vec<Value> {
    let kept = room.path("kept");
    let mut arguments = vec!["reproduce", "philbin96", "--programs", folder, "--kept", &kept];
    arguments.extend(["--json", "--size", "7", "--cache", "2097152", "--rounds", "1"]);
    arguments.extend(rest);
    json(&arguments)[0].as_array().unwrap().clone()
}

fn line<'l>(lines: &'l [Value], row: &str, column: &str) -> &'l Value {
    let found = lines.iter().find(|line| line["row"] == row && line["column"] == column);
    found.unwrap_or_else(|| panic!("no line for {row}, {column} in {lines:#?}"))
}

#[test]
fn times_stand_beside_the_papers() {
    let room = Room::new();
    let folder = programs(&room, &SOR);
    let lines = reproduce(&room, &folder, &["table6"]);
    let threaded = line(&lines, "Threaded", "R8000");
    assert_eq!(threaded["paper"], "philbin96");
    assert_eq!(threaded["item"], "table6");
    assert_eq!(threaded["paper_value"], 23.10);
    assert_eq!(threaded["value"], 3.0);
    assert_eq!(threaded["run"], "sor-threaded --n 7 --iterations 30 --block 1048576");
    let speedup = line(&lines, "Hand Tiled", "R10000 speedup over Untiled");
    assert_eq!(speedup["paper_value"], 12.81 / 4.27);
    assert_eq!(speedup["value"], 3.0);
    // 3 over 12.81 / 4.27, which is not quite 3.
    assert!((speedup["ratio"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{speedup}");
    // Three rows, two machines, and the speedups of two rows over the first; and two rows beyond the paper's.
    assert_eq!(lines.len(), 3 * 2 + 2 * 2 + 3);
    let ours = line(
        &lines,
        "Threaded, 4 columns abreast",
        "here speedup over Untiled, 4 columns abreast",
    );
    assert!(ours["paper_value"].is_null());
    assert_eq!(ours["value"], 2.0);
}

#[test]
fn counts_stand_beside_the_papers_and_are_kept() {
    let room = Room::new();
    let folder = programs(&room, &SOR);
    let lines = reproduce(&room, &folder, &["table7"]);
    let columns = ["Untiled", "Hand-tiled", "Threaded"];
    for column in columns {
        let of = |row| line(&lines, row, column)["value"].as_f64().unwrap();
        assert!(of("I fetches") > of("D references") && of("D references") > of("L2 misses"));
        let classes = of("L2 compulsory") + of("L2 capacity") + of("L2 conflict");
        assert!((classes - of("L2 misses")).abs() < 1e-9 && classes > 0.0);
        assert!(of("L1 rate") > 0.0 && of("L2 rate") > 0.0);
    }
    assert_eq!(line(&lines, "L2 misses", "Untiled")["paper_value"], 7545.0);
    assert_eq!(line(&lines, "bins", "Threaded")["value"], 3.0);
    // The paper's rows, two that are computed of them, and two of one column.
    assert_eq!(lines.len(), 9 * 3 + 2 * 3 + 2);
    let saved = line(&lines, "L2 misses saved", "Untiled");
    assert_eq!((&saved["value"], &saved["unit"]), (&0.0.into(), &"percent".into()));
    // Counts are kept, traces are not.
    let files = || {
        let mut files: Vec<_> = fs::read_dir(room.path("kept"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    };
    let kept = files();
    assert_eq!(kept.len(), 3);
    for file in &kept {
        assert_eq!(file.extension().unwrap(), "json");
        let text = fs::read_to_string(file).unwrap();
        let mut counts: Value = serde_json::from_str(&text).unwrap();
        counts["l2_misses"] = 5_000.into();
        fs::write(file, counts.to_string()).unwrap();
    }
    // The kept results are the printed ones, until a program changes.
    let again = reproduce(&room, &folder, &["table7"]);
    assert_eq!(line(&again, "L2 misses", "Threaded")["value"], 5.0);
    let path = room.path("programs/count/sor-tiled");
    let script = fs::read_to_string(&path).unwrap();
    harness::write_program(path.as_ref(), &(script + ": more\n"));
    let again = reproduce(&room, &folder, &["table7", "--keep-traces"]);
    assert_eq!(line(&again, "L2 misses", "Threaded")["value"], 5.0);
    assert_ne!(line(&again, "L2 misses", "Hand-tiled")["value"], 5.0);
    assert_eq!(
        files()
            .iter()
            .filter(|file| file.extension().unwrap() == "trace")
            .count(),
        1
    );
}

/// One recording has no spread, and the words say so.
#[test]
fn conclusions_are_judged_on_every_recording() {
    let room = Room::new();
    let folder = programs(&room, &SOR);
    let kept = room.path("kept");
    let of = |rounds, more: &[&str]| {
        let all = [
            "reproduce",
            "philbin96",
            "table7",
            "--programs",
            &folder,
            "--kept",
            &kept,
            "--size",
            "7",
        ];
        output(&[&all[..], &["--rounds", rounds], more].concat(), 0).0
    };
    let bins = "the rule for blocks makes 63 bins (bins; Threaded): 3.00, of 63.0 to 63.0. The array";
    assert!(of("1", &[]).contains(&format!("did not hold in the one run: {bins}")));
    assert!(of("2", &[]).contains(&format!("did not hold: {bins}")));
    let lines: Value = serde_json::from_str(&of("2", &["--json"])).unwrap();
    let lines = lines.as_array().unwrap();
    let misses = line(lines, "L2 misses", "Threaded");
    let each: Vec<f64> = misses["each"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_f64().unwrap())
        .collect();
    assert_eq!((each.len(), misses["value"].as_f64()), (2, Some(each[0])));
}

#[test]
fn the_figure_is_drawn() {
    let room = Room::new();
    let names = ["matmul-threaded", "pde-threaded", "sor-threaded", "nbody-threaded"];
    let folder = programs(&room, &names.map(|name| (name, 1.5)));
    let drawing = room.path("figure4.svg");
    let lines = reproduce(&room, &folder, &["figure4", "--plot", &drawing]);
    assert_eq!(lines.len(), 4 * 7);
    let point = line(&lines, "N-body", "128K");
    assert!(point["paper_value"].is_null() && point["ratio"].is_null());
    assert_eq!(point["value"], 1.5);
    let svg = fs::read_to_string(drawing).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Matrix multiply"));
}

/// A page's parts are written by the command that each names, and a failed command leaves its part as it
/// was.
#[test]
fn chapters_are_written() {
    let room = Room::new();
    let folder = programs(&room, &SOR);
    let page = room.path("page.md");
    let text = "Words.\n<!-- domicile reproduce philbin96 table6 -->\nstale\n<!-- end of table6 -->\nMore words.\n";
    fs::write(&page, text).unwrap();
    let arguments = [
        "reproduce",
        "philbin96",
        "--programs",
        &folder,
        "--cache",
        "2097152",
        "--rounds",
        "1",
    ];
    let write = |rest: &[&str], code| output(&[&arguments[..], &["--write-book", &page], rest].concat(), code);
    let (printed, _) = write(&["--size", "7"], 0);
    assert!(printed.contains("Table 6") && !printed.contains("Table 7"), "{printed}");
    let written = fs::read_to_string(&page).unwrap();
    assert!(
        written.starts_with("Words.\n<!-- domicile reproduce philbin96 table6 -->\n\n*`domicile reproduce"),
        "{written}"
    );
    assert!(
        written.ends_with("\n<!-- end of table6 -->\nMore words.\n") && !written.contains("stale"),
        "{written}"
    );
    assert!(
        written.contains("--cache 2097152 --rounds 1 --size 7`, 20"),
        "{written}"
    );
    let threaded = written.lines().find(|line| line.starts_with("| Threaded |")).unwrap();
    assert!(threaded.contains("| 23.10 | 3.00 | 0.13 |"), "{threaded}");
    // A part that is not there, and a page that is not.
    let (_, said) = write(&["table7"], 2);
    assert!(
        said.contains("put `<!-- domicile reproduce philbin96 table7 -->`"),
        "{said}"
    );
    let (_, said) = output(&["reproduce", "ding11", "--write-book", &page], 2);
    assert!(said.contains("has no part of ding11"), "{said}");
    let (_, said) = output(&["reproduce", "ding11", "--write-book", "/nowhere/page.md"], 1);
    assert!(said.contains("cannot read the page /nowhere/page.md"), "{said}");
    harness::write_program(room.path("programs/time/sor-tiled").as_ref(), "#!/bin/sh\nexit 3\n");
    write(&["--size", "7"], 1);
    assert_eq!(fs::read_to_string(&page).unwrap(), written);
}

#[test]
fn what_is_missing_is_reported() {
    let room = Room::new();
    let folder = programs(&room, &SOR[..2]);
    let arguments = [
        "reproduce",
        "philbin96",
        "table6",
        "--size",
        "7",
        "--cache",
        "2097152",
        "--rounds",
        "1",
    ];
    let (out, said) = output(&[&arguments[..], &["--programs", &folder]].concat(), 1);
    assert!(out.contains("Table 6: SOR performance in seconds"), "{out}");
    assert!(
        out.contains("no number for Threaded: there is no program sor-threaded"),
        "{out}"
    );
    assert!(
        said.contains("table6: Threaded") && said.contains("make -C workloads"),
        "{said}"
    );
    let (_, said) = output(&[&arguments[..], &["--programs", "/nowhere"]].concat(), 1);
    assert!(
        said.contains("/nowhere") && said.contains("make -C workloads"),
        "{said}"
    );
}

#[test]
fn a_program_that_fails_is_reported() {
    let room = Room::new();
    let folder = programs(&room, &SOR);
    harness::write_program(room.path("programs/time/sor-tiled").as_ref(), "#!/bin/sh\nexit 3\n");
    let arguments = [
        "reproduce",
        "philbin96",
        "table6",
        "--programs",
        &folder,
        "--cache",
        "2097152",
        "--rounds",
        "1",
    ];
    let (_, said) = output(&arguments, 1);
    assert!(said.contains("sor-tiled") && said.contains("3"), "{said}");
}

#[test]
fn bad_usage() {
    let (_, said) = output(&["reproduce", "philbin96", "table10"], 2);
    assert!(said.contains("table10") && said.contains("table1, table2"), "{said}");
    let (_, said) = output(&["reproduce", "philbin97"], 2);
    assert!(said.contains("philbin96"), "{said}");
    let (_, said) = output(&["reproduce", "philbin96", "table6", "--plot", "x.svg"], 2);
    assert!(said.contains("figure4"), "{said}");
}

/// Prepared programs are recorded and simulated, and the others are reported as missing.
#[test]
fn recorded_programs_are_held_against_first_touch() {
    let room = Room::new();
    let (traces, kept) = (room.path("traces"), room.path("kept"));
    let inputs = room.path("traces/inputs/single-sort-small");
    fs::create_dir_all(&inputs).unwrap();
    let text = format!("{inputs}/text");
    let lines = (0..2000).map(|number| format!("{}\n", number * 7919 % 2000));
    fs::write(&text, lines.collect::<String>()).unwrap();
    fs::write(format!("{inputs}/command"), format!("/usr/bin/sort\n{text}\n")).unwrap();
    let run = |rest: &[&str], code| {
        let mut arguments = vec![
            "reproduce",
            "lee12",
            "--traces",
            &traces,
            "--kept",
            &kept,
            "--rounds",
            "2",
        ];
        arguments.extend(rest);
        output(&arguments, code)
    };
    let (printed, _) = run(&["programs", "--json", "--program", "sort"], 0);
    let lines: Vec<Value> = serde_json::from_str(&printed).unwrap();
    for machine in ["clovertown", "westmere"] {
        let row = format!("sort, {machine}");
        let of = |column| line(&lines, &row, column)["value"].as_f64().unwrap();
        assert!(of("references") > 0.1 && of("first touch") > 0.0, "{lines:?}");
        assert!(of("above") <= 3.0, "{lines:?}");
    }
    let (_, said) = run(&["figure21", "--program", "perl"], 1);
    assert!(said.contains("is not prepared"), "{said}");
    let (_, said) = run(&["programs", "--program", "gzap"], 2);
    assert!(said.contains("programs has no program `gzap`"), "{said}");
}
