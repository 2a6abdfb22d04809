//! `advise` and `report`: from a trace or a real program to advice.

use crate::house;

use house::{Room, domicile, json, output};
use serde_json::Value;

/// Two pages that conflict under page coloring, in a loop.
fn thrash(room: &Room) -> String {
    room.trace("thrash.trace", &"0 r 100000 4\n0 r 300000 4\n".repeat(5000))
}

fn policies(advice: &Value) -> Vec<&str> {
    let policies = advice["policies"].as_array().unwrap();
    policies
        .iter()
        .map(|outcome| outcome["policy"].as_str().unwrap())
        .collect()
}

#[test]
fn all_policies_that_can_matter_are_ranked() {
    let room = Room::new();
    let trace = thrash(&room);
    let every = |machine: &[&str]| {
        let words = [&["advise", "--json", "--every-policy", &trace, "--machine"], machine].concat();
        json(&words).remove(0)
    };
    let advice = &every(&["simos-r4400", "--cpus", "1"]);
    let mut names = policies(advice);
    assert_eq!(
        names.last(),
        Some(&"page-coloring"),
        "the one that thrashes is not the slowest: {names:?}"
    );
    names.sort_unstable();
    assert_eq!(names, ["bin-hopping", "page-coloring", "random"]);
    assert_eq!(advice["baseline"], "random");
    let walls: Vec<_> = advice["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["time_ns"]["wall"].as_f64())
        .collect();
    assert!(walls.is_sorted());
    let advice = &every(&["flash-cc-numa"]);
    // First touch, round robin and interleaving, each with three colors.
    assert_eq!(policies(advice).len(), 9);
    assert_eq!(advice["baseline"], "first-touch+random");
    // One run shows that no page is waited for on another node, and none collides: nothing else is simulated.
    let advice = &json(&["advise", "--machine", "flash-cc-numa", "--json", &trace])[0];
    assert_eq!(policies(advice), ["first-touch+random"]);
    let advice = &json(&[
        "advise",
        "--machine",
        "simos-r4400",
        "--policy",
        "page-coloring",
        "--json",
        &trace,
    ])[0];
    assert_eq!(policies(advice), ["page-coloring"]);
}

#[test]
fn the_whole_result_has_its_parts() {
    let room = Room::new();
    let trace = thrash(&room);
    let advice = &json(&["advise", "--machine", "simos-r4400", "--cpus", "1", "--json", &trace])[0];
    let parts = [
        "program",
        "arguments",
        "machine",
        "trace",
        "where",
        "structures",
        "false_sharing",
        "policies",
        "notes",
        "verdict",
    ];
    for part in parts {
        assert!(advice.get(part).is_some(), "{part}");
    }
    assert_eq!(advice["trace"]["references"], 10_000);
    assert_eq!(advice["trace"]["footprint_bytes"], 2 * 4096);
    let base = advice["policies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["policy"] == advice["baseline"])
        .unwrap();
    let shares = advice["where"]
        .as_array()
        .unwrap()
        .iter()
        .map(|share| share["ns"].as_f64().unwrap());
    let total = base["time_ns"]["total"].as_f64().unwrap();
    assert!((shares.sum::<f64>() - total).abs() < 1e-6 * total);
}

#[test]
fn what_makes_no_difference_is_said_plainly() {
    let room = Room::new();
    let machine = room.file(
        "plain.toml",
        "name = \"plain\"\nclock_mhz = 100\npage_bytes = 4096\ncpus = 1\n[[cache]]\nname = \"L1\"\nlevel = 1\n\
         kind = \"unified\"\nbytes = 4096\nways = 1\nline_bytes = 64\nhit_ns = 0.0\n[memory]\nlocal_ns = 100.0\n",
    );
    let trace = thrash(&room);
    let result = room.path("result.json");
    let (text, _) = output(
        &["advise", "--machine", &machine, &trace, "-o", &result, "--details"],
        0,
    );
    assert!(text.contains("makes no difference here"), "{text}");
    assert!(text.replace("\n ", "").contains("nothing to choose"), "{text}");
    assert!(text.contains(&format!("More: domicile report {result}")), "{text}");
}

#[test]
fn the_result_is_written_and_shown_again() {
    let room = Room::new();
    let trace = thrash(&room);
    let run = domicile(&["advise", "--machine", "simos-r4400", "--cpus", "1", &trace])
        .current_dir(room.folder())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(
        text.contains("More: domicile report domicile-advice.json --details\nPage: domicile report"),
        "{text}"
    );
    let result = room.path("domicile-advice.json");
    let (again, _) = output(&["report", &result], 0);
    assert!(text.starts_with(&again), "{again}\n--- is not the start of\n{text}");
    let page = room.path("advice.html");
    output(&["report", &result, "-o", &page], 0);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("L2 misses"));
    let (_, said) = output(&["report", &result, "-o", &page, "--html", &page], 2);
    assert!(said.contains("cannot be used with"), "{said}");
    let (at_once, full) = (room.path("at-once.html"), room.path("at-once.json"));
    let (text, _) = output(
        &[
            "advise",
            "--machine",
            "simos-r4400",
            "--cpus",
            "1",
            "-o",
            &full,
            "--html",
            &at_once,
            &trace,
        ],
        0,
    );
    assert!(text.ends_with(&format!("Page: {at_once}\n")), "{text}");
    assert_eq!(std::fs::read_to_string(&at_once).unwrap(), html);
    assert_eq!(json(&["report", &result, "--json"])[0]["baseline"], "random");
    assert_eq!(
        json(&["report", &result, "--html", &page, "--force", "--json"])[0]["page"],
        page.as_str()
    );
    let (_, said) = output(
        &[
            "advise",
            "--machine",
            "simos-r4400",
            &trace,
            "-o",
            "/no/such/folder/x.json",
        ],
        1,
    );
    assert!(said.contains("/no/such/folder/x.json"), "{said}");
    let broken = room.file("broken.json", "{\"policies\": [");
    let (_, said) = output(&["report", &broken], 1);
    assert!(said.contains("broken.json: line 1"), "{said}");
}

#[test]
fn a_program_is_recorded_and_advised() {
    let room = Room::new();
    let keep = room.path("kept.trace");
    let run = domicile(&[
        "advise",
        "--machine",
        "simos-r4400",
        "--cpus",
        "1",
        "--json",
        "--keep",
        &keep,
    ])
    .args(["--", "sh", "-c", "echo printed; exit 3"])
    .output()
    .unwrap();
    assert_eq!(run.status.code(), Some(3), "{}", String::from_utf8_lossy(&run.stderr));
    let advice: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(advice["program"], "sh");
    assert!(
        String::from_utf8_lossy(&run.stderr).contains("printed\n"),
        "the program's output went nowhere"
    );
    // A status is the program's own business.
    assert_eq!((&advice["broke"], &advice["exit"]), (&Value::Null, &3.into()));
    assert!(advice["trace"]["instructions"].as_u64() > Some(1000));
    assert!(std::path::Path::new(&keep).exists());
    let (_, said) = output(&["advise", "--json", "--", "/no/such/program"], 1);
    assert!(said.contains("/no/such/program"), "{said}");
}

#[test]
fn forgotten_dashes_are_reported() {
    let (_, said) = output(&["advise", "/bin/sh"], 1);
    assert!(said.contains("domicile advise -- /bin/sh"), "{said}");
    let (_, said) = output(&["advise", "--quiet", "sqlite3", ":memory:", "select 1"], 2);
    assert!(
        said.contains("domicile advise --quiet -- sqlite3 :memory: 'select 1'"),
        "{said}"
    );
    let (_, said) = output(&["record", "-o", "x.trace", "ls", "-l"], 2);
    assert!(said.contains("domicile record -o x.trace -- ls -l"), "{said}");
}
