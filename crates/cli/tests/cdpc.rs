//! Policy `cdpc` from end to end: a trace of a parallel program, with and without its compiler's descriptions.

use crate::house;

use house::sweep::{LINE, PAGE, PAGES, ROUNDS, THREADS, record, summary};
use house::{Room, json, output};
use serde_json::{Value, json as object};

fn on<'a>(verb: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    let machine = ["--machine", "simos-r4400", "--cpus", "4", trace];
    [verb, &machine].concat()
}

fn rival<'a>(cdpc: &'a Value, policy: &str) -> &'a Value {
    let against = cdpc["against"].as_array().unwrap();
    against.iter().find(|rival| rival["policy"] == policy).unwrap()
}

#[test]
fn of_an_unmodified_program_advice_says_what_it_would_gain_and_how() {
    let room = Room::new();
    let trace = record(&room, &[]);
    let advice = &json(&on(&["advise", "--json"], &trace))[0];
    let cdpc = &advice["cdpc"];
    assert_eq!(cdpc["told"]["from"], "trace");
    let reported = [
        ("arrays", 2),
        ("segments", 8),
        ("sets", 4),
        ("pages", 2 * PAGES),
        ("pages_of_one_cpu", 64),
    ];
    for (field, expected) in reported {
        assert_eq!(cdpc["told"][field], expected, "{field} in {cdpc}");
    }
    assert_eq!(cdpc["told"]["asked"], cdpc["told"]["honoured"]);
    let page_coloring = rival(cdpc, "page-coloring");
    // Under page coloring x and y evict each other's lines; in the rounds with hints the other threads miss
    // only the lines that thread 0 filled, once.
    assert!(page_coloring["gain"].as_f64().unwrap() > 0.2, "{cdpc}");
    let least = u64::from(ROUNDS) * 2 * PAGES * PAGE / LINE;
    let misses = |when: &str| page_coloring["misses"][when].as_u64().unwrap();
    assert!(misses("before") > misses("after") + least / 2, "{cdpc}");
    assert!(cdpc["against"].as_array().unwrap().len() == 3);
    assert!(cdpc["next"].as_str().unwrap().contains("domicile-cc"));
    assert!(
        advice["verdict"]
            .as_str()
            .unwrap()
            .contains("Compiler-directed page coloring would save")
    );
    let result = room.path("advice.json");
    let (text, _) = output(&on(&["advise", "--details", "-o", &result], &trace), 0);
    for part in [
        "Compiler-directed page coloring of L2",
        "hints for 256 pages of 2 arrays",
        "x_",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let html = room.path("advice.html");
    output(&["report", &result, "--html", &html], 0);
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.contains(">Compiler-directed page coloring of L2</a></h2>"));
}

#[test]
fn what_the_compiler_described_is_used_and_what_is_malformed_reported() {
    let room = Room::new();
    let trace = record(&room, &[summary().to_string(), "{}".to_string()]);
    let advice = &json(&on(&["advise", "--json"], &trace))[0];
    let cdpc = &advice["cdpc"];
    assert_eq!(
        (&cdpc["told"]["from"], &cdpc["told"]["loops"]),
        (&"summaries".into(), &1.into())
    );
    assert_eq!(cdpc["told"]["malformed_summaries"], 1);
    assert_eq!(cdpc["told"]["pages"], 2 * PAGES);
    assert!(cdpc["next"].as_str().unwrap().contains("domicile run --policy cdpc"));
    assert!(!cdpc["next"].as_str().unwrap().contains("domicile-cc"));
    let notes = advice["notes"].to_string();
    assert!(notes.contains("1 summary left out"), "{notes}");
    let (text, _) = output(&on(&["simulate", "--policy", "cdpc"], &trace), 0);
    assert!(
        text.contains("from what the compiler said of 1 parallel loop"),
        "{text}"
    );
}

#[test]
fn hints_and_pages_are_written_for_pictures() {
    let room = Room::new();
    let trace = record(&room, &[summary().to_string()]);
    let (hints, map) = (room.path("hints.json"), room.path("map.json"));
    let options = [
        "simulate",
        "--json",
        "--policy",
        "page-coloring",
        "--policy",
        "cdpc",
        "--set",
        "cdpc.weigh=no",
        "--explain-hints",
        &hints,
    ];
    json(&on(&[&options[..], &["--page-map", &map]].concat(), &trace));
    let read = |file: &str| -> Value { serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap() };
    let hints = read(&hints);
    assert_eq!(hints["program"], "sweep");
    let process = &hints["policies"][0]["processes"][0];
    let order = process["order"].as_array().unwrap();
    assert_eq!(order.len() as u64, 2 * PAGES);
    let cpus: Vec<_> = process["sets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| &set["cpus"])
        .collect();
    assert_eq!(cpus.len(), 4);
    assert!((0..4).all(|cpu| cpus.contains(&&object!([cpu]))), "{cpus:?}");
    assert_eq!(process["arrays"][1]["name"], "y");
    let map = read(&map);
    assert_eq!(map["policies"], object!(["page-coloring", "cdpc"]));
    let pages = map["pages"].as_array().unwrap();
    assert_eq!(pages.len() as u64, 2 * PAGES);
    for page in pages {
        let number = page["page"].as_u64().unwrap();
        let array = page["array"].as_u64().unwrap() as usize;
        let array = &map["arrays"][array];
        let index = number - array["start"].as_u64().unwrap() / PAGE;
        let owner = index / (PAGES / u64::from(THREADS));
        // Thread 0 has filled all of it.
        let all = if owner == 0 { object!([0]) } else { object!([0, owner]) };
        assert_eq!((&page["cpus"], &page["parallel"]), (&all, &object!([owner])));
        let position = page["positions"][1].as_u64().unwrap();
        assert_eq!(order[position as usize], number);
        assert_eq!(page["colors"], object!([number % 256, position % 256]));
        assert_eq!(page["positions"][0], Value::Null);
    }
    let (_, said) = output(&on(&["simulate", "--explain-hints", "x.json"], &trace), 2);
    assert!(said.contains("--policy cdpc"), "{said}");
    let nowhere = room.path("no/such/folder.json");
    let (_, said) = output(&on(&["simulate", "--page-map", &nowhere], &trace), 1);
    assert!(
        said.contains("page access map") && said.contains("folder.json"),
        "{said}"
    );
}

#[test]
fn summaries_that_are_asked_for_and_missing_are_an_error() {
    let room = Room::new();
    let trace = record(&room, &[]);
    let (_, said) = output(
        &on(
            &["simulate", "--policy", "cdpc", "--set", "cdpc.from=summaries"],
            &trace,
        ),
        1,
    );
    assert!(said.contains("domicile-cc"), "{said}");
    let (_, said) = output(
        &on(&["simulate", "--policy", "cdpc", "--set", "cdpc.from=nowhere"], &trace),
        2,
    );
    assert!(said.contains("auto, summaries, trace"), "{said}");
}
