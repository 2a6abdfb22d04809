//! Every count and every table comes out as before: commands whose results were saved, run again and compared.
//!
//! Version 0.1.0 at commit ce75b97 printed the results in `saved/results`, with its debug build as `DOMICILE_BEFORE`:
//!
//! ```text
//! DOMICILE_BEFORE=/path/to/domicile cargo test --locked -p domicile --test saved -- --test-threads 1
//! ```
//!
//! This runs that command in place of the one that was built, and saves its output instead of comparing. The saved
//! results are also given to `report`, as a user's own would be. JSON is compared value by value, text exactly. The
//! layout of an advice or a page is not compared, as both have grown since; the tests of `report` check it.
//! `saved/room.trace` was recorded by the same version (`domicile record -o room.trace -- ./room`, of `saved/room.c`,
//! compiled with `gcc -O1 -g -pthread`).

#[path = "saved/compare.rs"]
mod compare;
use crate::house;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compare::same;
use house::{Room, domicile, programs, sweep};

/// A command's output, by its name in `saved/results`.
enum Left<'a> {
    Json(&'a str),
    Text(&'a str),
    /// The JSON that it wrote to this file.
    JsonFile(&'a str, &'a str),
    TextFile(&'a str, &'a str),
}
use Left::{Json, JsonFile, Text, TextFile};

/// Each command, by its words; files are those of [`prepare`].
const SIMULATED: &[(&str, Left)] = &[
    (
        "simulate room.trace --machine simos-r4400 --cpus 2 --json --policy page-coloring --policy bin-hopping --policy random \
         --policy cdpc --policy slots",
        Json("simulate-colors"),
    ),
    (
        "simulate room.trace --machine simos-r4400 --cpus 2 --policy page-coloring --policy bin-hopping --policy slots --details",
        Text("simulate-colors-text"),
    ),
    (
        "simulate room.trace --machine flash-cc-numa --cpus 4 --json --by thread,structure,page --policy first-touch+random \
         --policy round-robin+page-coloring",
        Json("simulate-detail"),
    ),
    (
        "simulate room.trace --machine flash-cc-numa --cpus 4 --by thread,structure,page --policy first-touch+random --details",
        Text("simulate-detail-text"),
    ),
    (
        "simulate room.trace --machine alphaserver-8400 --cpus 2 --json --order recorded --policy bin-hopping --set \
         random.seed=7 --policy random",
        Json("simulate-recorded"),
    ),
    (
        "simulate room.trace --machine bare.toml --no-classes --json",
        Json("simulate-bare"),
    ),
    (
        "simulate room.trace --machine bare.toml --no-classes --details",
        Text("simulate-bare-text"),
    ),
    (
        "simulate room.trace --machine westmere-x5660 --json --policy order --policy page-coloring",
        Json("simulate-order"),
    ),
    (
        "simulate room.trace --machine simos-r4400 --cpus 2 --policy slots --slots plan.toml --json",
        Json("simulate-plan"),
    ),
    (
        "simulate sweep.trace --machine simos-r4400 --cpus 4 --policy cdpc --policy page-coloring --json",
        Json("simulate-cdpc-trace"),
    ),
    (
        "simulate said.trace --machine simos-r4400 --cpus 4 --policy cdpc --policy page-coloring --json --explain-hints \
         hints.json",
        Json("simulate-cdpc-said"),
    ),
    (
        "simulate said.trace --machine simos-r4400 --cpus 4 --policy cdpc --explain-hints hints.json --details",
        Text("simulate-cdpc-text"),
    ),
    (
        "simulate said.trace --machine simos-r4400 --cpus 4 --policy cdpc --explain-hints hints.json",
        JsonFile("hints.json", "explained-hints"),
    ),
    (
        "simulate said.trace --machine simos-r4400 --cpus 4 --policy cdpc --policy random --page-map map.json",
        JsonFile("map.json", "page-map"),
    ),
    (
        "simulate thrash.trace --machine simos-r4400 --cpus 1 --json",
        Json("simulate-thrash"),
    ),
];

const ADVISED: &[(&str, Left)] = &[
    (
        "advise room.trace --machine simos-r4400 --cpus 2 --json",
        Json("advise-room"),
    ),
    (
        "advise room.trace --machine simos-r4400 --cpus 2",
        JsonFile("domicile-advice.json", "advise-room-file"),
    ),
    (
        "advise room.trace --machine flash-cc-numa --cpus 4 --json",
        Json("advise-nodes"),
    ),
    (
        "advise sweep.trace --machine simos-r4400 --cpus 4 --json",
        Json("advise-sweep"),
    ),
    (
        "advise reused.trace --machine simos-r4400 --cpus 1 --json",
        Json("advise-reused"),
    ),
    (
        "advise reused.trace --machine simos-r4400 --cpus 1 --write-slots slots.toml",
        TextFile("slots.toml", "advise-slots"),
    ),
];

/// Reports of results that the version before had saved.
const SHOWN: &[(&str, Left)] = &[
    ("report advise-room.json --json", Json("report-room")),
    ("report simulate-colors.json --details", Text("report-colors-text")),
    ("report simulate-colors.json --json", Json("report-colors")),
    ("report simulate-detail.json --details", Text("report-detail-text")),
    ("report simulate-bare.json --details", Text("report-bare-text")),
    ("report simulate-bare.json --json", Json("report-bare")),
];

const REPRODUCED: &[(&str, Left)] = &[
    (
        "reproduce philbin96 table6 --programs programs --kept kept --size 7 --cache 2097152 --rounds 1 --json",
        Json("reproduce-times"),
    ),
    (
        "reproduce philbin96 table6 --programs programs --kept kept --size 7 --cache 2097152 --rounds 1",
        Text("reproduce-times-text"),
    ),
];

/// One cache for data without a TLB: unknown values of a run are null.
const BARE: &str = "name = \"bare\"\nclock_mhz = 100\npage_bytes = 4096\ncpus = 2\n[[cache]]\nname = \"L1\"\nlevel = 1\n\
                    kind = \"unified\"\nbytes = 4096\nways = 1\nline_bytes = 64\nhit_ns = 0.0\n[memory]\nlocal_ns = 100.0\n";

/// Cache slots for the data of `room.c`.
const PLAN: &str = "[[slot]]\nname = \"kept\"\nkind = \"private\"\nbytes = \"64 KiB\"\n\n[[data]]\nsymbol = \"table\"\nslot = \"kept\"\n";

/// The programs of a table, which only say that they took a time.
const TIMED: [(&str, f64); 3] = [("sor-untiled", 6.0), ("sor-tiled", 2.0), ("sor-threaded", 3.0)];

/// The options that give pages without a hint the colors they got then.
const AS_BEFORE: [&str; 2] = ["--set", "cdpc.rest=page-coloring"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/saved")
}

/// The version before, where results are to be saved.
fn before() -> Option<PathBuf> {
    std::env::var_os("DOMICILE_BEFORE").map(PathBuf::from)
}

/// Puts the files that commands take into a folder.
fn prepare(room: &Room) {
    fs::copy(fixtures().join("room.trace"), room.path("room.trace")).unwrap();
    room.file("bare.toml", BARE);
    room.file("plan.toml", PLAN);
    room.file("thrash.txt", &"0 r 100000 4\n0 r 300000 4\n".repeat(2000));
    // A trace keeps the name of what it was imported from: without the folder.
    let mut import = domicile(&["import", "--format", "text", "thrash.txt", "-o", "thrash.trace"]);
    import.current_dir(room.folder()).assert().success();
    fs::rename(sweep::record(room, &[]), room.path("plain.trace")).unwrap();
    let said = [sweep::summary().to_string(), "{}".to_string()];
    fs::rename(sweep::record(room, &said), room.path("said.trace")).unwrap();
    fs::rename(room.path("plain.trace"), room.path("sweep.trace")).unwrap();
    sweep::reused(&room.path("reused.trace"));
    programs(room, &TIMED);
}

fn saved(name: &str) -> PathBuf {
    fixtures().join("results").join(format!("{name}.zst"))
}

fn read(name: &str) -> String {
    let packed = fs::read(saved(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap()
}

/// Runs commands, and compares their output with the saved one, or saves it.
fn compare_all(commands: &[(&str, Left)]) {
    let room = Room::new();
    prepare(&room);
    for (words, left) in commands {
        for word in words.split(' ').filter_map(|word| word.strip_suffix(".json")) {
            // The commands' own results, named so.
            if saved(word).exists() {
                room.file(&format!("{word}.json"), &read(word));
            }
        }
        // Files of earlier commands are not overwritten.
        for file in [
            "domicile-advice.json",
            "slots.toml",
            "hints.json",
            "pages.json",
            "map.json",
        ] {
            let _ = fs::remove_file(room.path(file));
        }
        let program = before().unwrap_or_else(|| env!("CARGO_BIN_EXE_domicile").into());
        let mut arguments: Vec<&str> = words.split_whitespace().collect();
        if words.contains("--policy cdpc")
            || words.starts_with("advise") && !words.contains("--policy") && !words.contains("bare")
        {
            arguments.extend(AS_BEFORE);
        }
        if words.starts_with("advise") {
            arguments.push("--every-policy");
        }
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(room.folder())
            .env_remove("NO_COLOR")
            .env("CLICOLOR_FORCE", "1")
            .env("COLUMNS", "110")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "domicile {words}\n{said}");
        let text = match left {
            Json(_) | Text(_) => String::from_utf8(output.stdout).unwrap(),
            JsonFile(file, _) | TextFile(file, _) => fs::read_to_string(room.path(file)).unwrap(),
        };
        assert!(text.len() > 100, "domicile {words} left next to nothing");
        let (Json(name) | Text(name) | JsonFile(_, name) | TextFile(_, name)) = left;
        if before().is_some() {
            let packed = zstd::encode_all(text.as_bytes(), 19).unwrap();
            fs::create_dir_all(fixtures().join("results")).unwrap();
            fs::write(saved(name), packed).unwrap();
            continue;
        }
        let json = matches!(left, Json(_) | JsonFile(..));
        if let Err(difference) = same(&read(name), &text, json) {
            panic!("domicile {words}\nis not what {name} was: {difference}");
        }
    }
}

#[test]
fn simulations_count_as_before() {
    compare_all(SIMULATED);
}

#[test]
fn advice_is_given_as_before() {
    compare_all(ADVISED);
}

#[test]
fn results_of_the_version_before_are_shown_as_it_did() {
    compare_all(SHOWN);
}

#[test]
fn tables_of_papers_are_printed_as_before() {
    compare_all(REPRODUCED);
}
