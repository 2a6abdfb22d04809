//! A further paper is its files and one registration: an invented one, which no line of the program knows of, is counted,
//! timed, drawn and printed like the others.

use std::fs;
use std::path::Path;

use reproduce::{Keeping, Line, Options, Reproduction, Section, Source};

const INVENTED: Source = Source {
    name: "invented26",
    about: include_str!("echoes/paper.toml"),
    items: &[
        ("table1", include_str!("echoes/table1.toml")),
        ("table2", include_str!("echoes/table2.toml")),
        ("figure3", include_str!("echoes/figure3.toml")),
    ],
};

/// Programs that only say that they took so many seconds.
fn programs(folder: &Path) {
    for build in ["count", "time"] {
        fs::create_dir_all(folder.join(build)).unwrap();
        for (version, seconds) in [("plain", 3.0), ("threaded", 1.5)] {
            let script = format!(
                "#!/bin/sh\necho '{{\"program\":\"echo\",\"version\":\"{version}\",\"n\":'$2',\"seconds\":{seconds},\
                 \"cpu_seconds\":{seconds},\"checksum\":1.0}}'\n"
            );
            let path = folder.join(build).join(format!("echo-{version}"));
            harness::write_program(&path, &script);
        }
    }
}

fn value(section: &Section, row: &str, column: &str) -> Option<f64> {
    let is = |line: &&Line| line.row == row && line.column == column;
    section.lines.iter().find(is).and_then(|line| line.value)
}

#[test]
fn an_invented_paper_is_reproduced_by_its_registration_alone() {
    let room = tempfile::tempdir().unwrap();
    programs(room.path());
    let paper = INVENTED.read().unwrap();
    let options = Options {
        programs: Some(room.path().to_path_buf()),
        keeping: Keeping {
            folder: room.path().join("kept"),
            traces: false,
            afresh: false,
        },
        cache_bytes: Some(4 << 20),
        rounds: Some(1),
        full: false,
        n: None,
        only: Vec::new(),
        cpus: Vec::new(),
        live: false,
        traces: None,
    };
    let mut reproduction = Reproduction::new(&paper, &options, &|_| ()).unwrap();
    let sections: Vec<Section> = paper
        .items
        .iter()
        .map(|item| reproduction.item(item).unwrap())
        .collect();
    let [counts, times, figure] = &sections[..] else {
        panic!("three items")
    };

    let references = value(counts, "references", "Plain").unwrap();
    let misses = value(counts, "L2 misses", "Plain").unwrap();
    assert!(references > misses && misses > 0.0, "{references} {misses}");
    assert_eq!(value(counts, "references", "Loud"), None);
    let text = anstream::adapter::strip_str(&reproduce::text(counts, 100)).to_string();
    assert!(text.starts_with("Table 1: Misses of an echo (section 1)\n"), "{text}");
    assert!(text.contains("no number for Loud: nobody may shout"), "{text}");

    assert_eq!(value(times, "Loud", "then"), Some(1.5));
    assert_eq!(value(times, "Loud", "then speedup over Plain"), Some(2.0));
    // The cache is twice the invented machine's, and so is the size.
    let loud = times.lines.iter().find(|line| line.row == "Loud").unwrap();
    assert_eq!(loud.run.as_deref(), Some("echo-threaded --n 16"));

    assert_eq!(value(figure, "Echo", "1M"), Some(1.5));
    assert!(reproduce::plot(figure).unwrap().contains("Echo"));
    assert!(figure.lines.iter().all(|line| line.paper == "invented26"));
}

/// What a paper says of itself and what its items are cannot contradict each other.
#[test]
fn a_paper_that_contradicts_its_items_is_refused() {
    let with = |from: &str, to: &'static str| {
        let about: &'static str = INVENTED.about.replacen(from, to, 1).leak();
        assert_ne!(about, INVENTED.about);
        Source { about, ..INVENTED }.read().unwrap_err().to_string()
    };
    assert!(with("drawn = [\"figure3\"]", "drawn = []").contains("`drawn`"));
    assert!(with("\"size\", \"cache\"", "\"size\"").contains("--cache"));
    assert!(with("\"cache\"", "\"cache\", \"cpus\"").contains("--cpus"));
    assert!(with("year", "sizes = \"small\"\nyear").contains("`sizes`"));
    assert!(with("authors", "autors").starts_with("papers/invented26/paper.toml: "));
}
