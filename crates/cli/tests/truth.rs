//! `domicile truth`: pairs before and after a known change, on sizes that take no time.

use crate::house::{self, Room};

use serde_json::Value;

/// Returns whether there is everything that a small pair needs.
fn can_run() -> bool {
    harness::tool("cc") && harness::tool("valgrind")
}

/// A list of pairs of `walk.c`: the last argument of each side is the size of the matrix.
fn pairs(room: &Room, sizes: &[(&str, u32, u32)]) -> String {
    let programs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../truth/programs");
    std::os::unix::fs::symlink(programs, room.path("programs")).unwrap();
    let text: String = sizes
        .iter()
        .map(|(name, before, after)| {
            format!(
                "[[pair]]\nname = \"{name}\"\nkind = \"walk order\"\nwhose = \"ours\"\nof = \"C\"\nsource = \"walk.c\"\n\
                 before = [\"{{program}}\", \"columns\", \"{before}\"]\nafter = [\"{{program}}\", \"rows\", \"{after}\"]\n\n"
            )
        })
        .collect();
    room.file("pairs.toml", &text)
}

#[test]
fn ten_pairs_are_listed() {
    let (list, _) = house::output(&["truth", "--list"], 0);
    assert!(
        list.contains("10 pairs") && list.contains("false-sharing-plain"),
        "{list}"
    );
    // The user who runs the command sees them, so none is held back.
    let (_, said) = house::output(&["truth", "--list", "--half", "held"], 2);
    assert!(said.contains("no pair is left"), "{said}");
    let all = concat!(env!("CARGO_MANIFEST_DIR"), "/../../truth/pairs.toml");
    let (held, _) = house::output(&["truth", all, "--list", "--half", "held"], 0);
    assert!(
        held.contains("lmdb-key-order") && !held.contains("walk-order-c"),
        "{held}"
    );
}

#[test]
fn small_pairs_are_measured_and_predicted() {
    if !can_run() {
        return;
    }
    let room = Room::new();
    let list = pairs(&room, &[("small", 300, 300), ("smaller", 150, 150)]);
    let (out, keep) = (room.path("out.json"), room.path("keep"));
    let arguments = [
        "truth",
        &list,
        "--rounds",
        "2",
        "--machine",
        "clovertown-x5355",
        "-o",
        &out,
        "--keep",
        &keep,
    ];
    let (text, _) = house::output(&arguments, 0);
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("small "))
        .unwrap();
    assert!(row.contains("walk order"), "{row}");
    assert!(text.contains("of 2, within 2") && text.contains("of 4 runs"), "{text}");
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(result["about"]["machine"], "clovertown-x5355");
    for (at, size) in [300, 150].into_iter().enumerate() {
        let pair = &result["pairs"][at];
        assert_eq!(pair["measured"]["rounds"].as_array().unwrap().len(), 2);
        // The window is that of the work: each of four passes reads each element once, and little else.
        let references = pair["predicted"]["before_references"].as_u64().unwrap();
        assert!((4 * size * size..5 * size * size).contains(&references), "{references}");
        let of = |what: &str| pair["predicted"][what].as_f64().unwrap();
        assert!((of("before_ns") / of("after_ns") - of("ratio")).abs() < 1e-6);
    }
    // An existing recording is used; one that cannot be read is made again.
    let kept = |name: &str| room.folder().join("keep").join(name);
    std::fs::copy(kept("smaller-before.dtr"), kept("small-before.dtr")).unwrap();
    std::fs::write(kept("small-after.dtr"), "no recording").unwrap();
    let one = ["--only", "small", "--rounds", "1", "--machine", "clovertown-x5355"];
    // By its path from here: commands run elsewhere.
    let above = std::env::current_dir().unwrap().components().count() - 1;
    let keep = format!("{}{}", "../".repeat(above), keep.trim_start_matches('/'));
    let again = house::json(&[&["truth", &list, "--keep", &keep, "--json", "--again", &out], &one[..]].concat());
    assert_eq!(
        again[0]["pairs"][0]["again"][0],
        result["pairs"][0]["measured"]["ratio"]
    );
    let references = |side: &str| again[0]["pairs"][0]["predicted"][side].as_u64().unwrap();
    assert!((4 * 150 * 150..5 * 150 * 150).contains(&references("before_references")));
    assert!((4 * 300 * 300..5 * 300 * 300).contains(&references("after_references")));
    // Times that were measured before, predicted on another machine.
    let taken = [
        "--only",
        "small",
        "--measured",
        &out,
        "--machine",
        "westmere-x5660",
        "--json",
    ];
    let taken = house::json(&[&["truth", &list, "--keep", &keep], &taken[..]].concat());
    assert_eq!(taken[0]["about"]["machine"], "westmere-x5660");
    assert_ne!(taken[0]["pairs"][0]["predicted"], result["pairs"][0]["predicted"]);
    assert_eq!(taken[0]["about"]["rounds"], result["about"]["rounds"]);
    assert_eq!(taken[0]["pairs"][0]["measured"], result["pairs"][0]["measured"]);
    let clock = [
        "--clock-only",
        "--as-probed",
        "--rounds",
        "1",
        "--again",
        &out,
        "--again",
        &out,
    ];
    let (text, _) = house::output(&[&["truth", &list], &clock[..]].concat(), 0);
    let sentence = text
        .lines()
        .find(|line| line.contains("The clock beside itself"))
        .unwrap();
    assert!(
        sentence.contains("of 4 repeats") || text.contains("of 4 repeats, within 2"),
        "{text}"
    );
    // The program of a pair is no result.
    let (_, said) = house::output(&["truth", &list, "--clock-only", "--as-probed", "--again", &list], 2);
    assert!(said.contains("is no result of `domicile truth -o FILE`"), "{said}");
}

#[test]
fn a_pair_that_prints_other_results_is_named_and_the_others_go_on() {
    if !can_run() {
        return;
    }
    let room = Room::new();
    let list = pairs(&room, &[("unlike", 150, 160), ("like", 150, 150)]);
    let (text, said) = house::output(&["truth", &list, "--rounds", "1", "--clock-only", "--as-probed"], 1);
    assert!(
        said.contains("domicile: unlike: before and after print other results"),
        "{said}"
    );
    assert!(text.contains("like ") && !text.contains("unlike"), "{text}");
    assert!(!text.contains("predicted"), "{text}");
}

#[test]
fn predictions_without_a_core_are_warned_of() {
    let room = Room::new();
    let list = pairs(&room, &[("small", 150, 150)]);
    // Nothing is kept of a probe. The times are looked for after the warning.
    let mut command = house::domicile(&["--quiet", "truth", &list, "--measured", &room.path("nothing.json")]);
    let done = command.env("XDG_CACHE_HOME", room.folder()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("`domicile probe` measures them"), "{said}");
    assert!(said.contains("nothing.json"), "{said}");
    let arguments = [
        "truth",
        &list,
        "--machine",
        "simos-r4400",
        "--measured",
        &room.path("nothing.json"),
    ];
    let said = String::from_utf8(house::domicile(&arguments).output().unwrap().stderr).unwrap();
    assert!(said.contains("simos-r4400 is described without a core"), "{said}");
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let room = Room::new();
    let (_, said) = house::output(&["truth", "--only", "nobody"], 2);
    assert!(
        said.contains("no pair is called `nobody`; there are walk-order-c, "),
        "{said}"
    );
    let (_, said) = house::output(&["truth", "--only", "walk-order-c", "--half", "held"], 2);
    assert!(said.contains("no pair is left"), "{said}");
    let list = room.file("pairs.toml", "[[pair]]\nname = 1\n");
    let (_, said) = house::output(&["truth", &list], 2);
    assert!(said.contains("pairs.toml:") && said.contains("name"), "{said}");
    let (_, said) = house::output(&["truth", &room.path("none.toml")], 1);
    assert!(said.contains("none.toml: No such file"), "{said}");
}
