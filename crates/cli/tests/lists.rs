//! Verbs that list things: machines, policies, completions, manual pages.

use crate::house;

use house::{Room, domicile, json, output};

#[test]
fn all_machines_of_the_design_are_listed_and_shown() {
    let list = &json(&["machine", "list", "--json"])[0];
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|machine| machine["name"].as_str().unwrap())
        .collect();
    for name in [
        "sgi-power-indigo2-r8000",
        "sgi-indigo2-impact-r10000",
        "simos-r4400",
        "simos-r4400-2way",
        "simos-r4400-4mb",
        "alphaserver-8400",
        "alphaserver-8400-core",
        "flash-cc-numa",
        "flash-cc-now",
        "clovertown-x5355",
        "clovertown-x5365",
        "westmere-x5660",
        "zen3-milan",
        "icelake-sp",
        "zen4-genoa",
        "zen4-genoa-cxl",
        "sapphire-rapids",
        "sapphire-rapids-snc4",
        "zen5-turin",
        "granite-rapids",
        "cascade-lake-4s",
        "ryzen-9950x",
        "core-ultra-285k",
        "graviton4",
    ] {
        assert!(names.contains(&name), "{name} is not listed");
        assert_eq!(json(&["machine", "show", name, "--json"])[0]["name"], name);
    }
    let (text, _) = output(&["machine", "list"], 0);
    assert!(names.iter().all(|name| text.contains(name)) && text.contains("host"));
}

#[test]
fn a_machine_that_is_shown_can_be_used_as_a_file() {
    let room = Room::new();
    let (text, _) = output(&["machine", "show", "simos-r4400"], 0);
    let file = room.file("mine.toml", &text.replace("\"simos-r4400\"", "\"mine\""));
    let shown = &json(&["--json", "machine", "show", &file])[0];
    assert_eq!(shown["name"], "mine");
    let mut preset = json(&["machine", "show", "simos-r4400", "--json"]).remove(0);
    preset["name"] = "mine".into();
    assert_eq!(*shown, preset);
}

#[test]
fn policies_are_listed_with_their_parameters() {
    let list = &json(&["policy", "list", "--json"])[0];
    let random = list
        .as_array()
        .unwrap()
        .iter()
        .find(|policy| policy["name"] == "random")
        .unwrap();
    assert_eq!(random["kind"], "color");
    assert_eq!(random["params"][0]["name"], "seed");
    let order = list
        .as_array()
        .unwrap()
        .iter()
        .find(|policy| policy["name"] == "order")
        .unwrap();
    assert_eq!(order["kind"], "order");
    let names: Vec<_> = order["params"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["block", "hints", "fold", "tour", "workers", "gap"]);
    assert_eq!(order["params"][3]["names"][2], "hilbert");
    let (text, _) = output(&["policy", "list"], 0);
    for name in [
        "page-coloring",
        "bin-hopping",
        "random",
        "first-touch",
        "round-robin",
        "interleave",
        "summary-homes",
        "kernel-balancing",
        "migrate-replicate",
        ".trigger",
        "cache-misses, tlb-misses",
        ".seed",
        "regions",
        ".share",
        "order",
        ".tour",
        "first-fork, nearest, hilbert",
    ] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
}

#[test]
fn completions_and_manual_pages_name_all_verbs() {
    let room = Room::new();
    let (script, _) = output(&["completions", "bash"], 0);
    assert_eq!(json(&["completions", "bash", "--json"])[0]["script"], script.as_str());
    let folder = room.folder();
    let files = &json(&["man", folder.to_str().unwrap(), "--json"])[0]["files"];
    let (page, _) = output(&["man"], 0);
    assert_eq!(json(&["man", "--json"])[0]["page"], page.as_str());
    for verb in [
        "machine",
        "policy",
        "record",
        "import",
        "trace",
        "simulate",
        "advise",
        "report",
        "compare",
        "completions",
        "man",
    ] {
        assert!(
            script.contains(&format!("domicile__subcmd__{verb}")),
            "{verb} is not completed"
        );
        let page = std::fs::read_to_string(folder.join(format!("domicile-{verb}.1"))).unwrap();
        assert!(
            page.contains(".SH NAME") && page.contains(&format!("domicile\\-{verb}")),
            "{verb}"
        );
    }
    assert!(folder.join("domicile-machine-show.1").exists());
    assert_eq!(
        files.as_array().unwrap().len(),
        std::fs::read_dir(&folder).unwrap().count()
    );
    let (_, said) = output(&["man", &room.path("no/such/folder")], 1);
    assert!(said.contains("no/such/folder/domicile.1"), "{said}");
}

#[test]
fn colors_are_for_terminals_and_for_who_asks() {
    let escape = '\u{1b}';
    let print = |name: &str, value: &str| {
        let output = domicile(&["machine", "list"]).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!print("TERM", "xterm").contains(escape), "colors in a pipe");
    assert!(print("CLICOLOR_FORCE", "1").contains(escape));
    let both = domicile(&["machine", "list"])
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(
        !String::from_utf8(both.stdout).unwrap().contains(escape),
        "NO_COLOR was not respected"
    );
}

#[test]
fn columns_are_respected() {
    let widest = |columns: &str| {
        let output = domicile(&["machine", "list"]).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest("60") <= 60);
    assert!(widest("200") > 100);
}
