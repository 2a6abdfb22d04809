//! Items over traces: a program whose misses can be worked out by hand, under policies, as curves, and what is concluded.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use reproduce::{Keeping, Options, Paper, Reproduction, Section, Source};
use trace::import::{self, Format};
use trace::{Header, Writer};

const INVENTED: Source = Source {
    name: "invented26",
    about: include_str!("followed/paper.toml"),
    items: &[
        ("table1", include_str!("followed/table1.toml")),
        ("figure2", include_str!("followed/figure2.toml")),
        ("figure3", include_str!("followed/figure3.toml")),
        ("table4", include_str!("followed/table4.toml")),
    ],
};

/// The same where a scheduler moves the workload's threads.
const SCHEDULED: Source = Source {
    name: "scheduled26",
    about: include_str!("followed/scheduled.toml"),
    items: &[("table1", include_str!("followed/table1.toml"))],
};

const ROUNDS: u64 = 200;

/// So many threads. In each round a thread reads a line of page 0 and that line of three pages of its own, which all
/// share a set of two ways: every reference misses.
fn record(folder: &Path, threads: u64) {
    let page = |number: u64| (number * 64 + 64) * 4096;
    let mut text = String::new();
    for round in 0..ROUNDS {
        let line = round % 64 * 64;
        for thread in 0..threads {
            for number in [0, 1, 2, 3].map(|own| if own == 0 { 0 } else { own + 3 * thread }) {
                text += &format!("{thread} r {:x} 4\n", page(number) + line);
            }
        }
    }
    let path = folder.join("walk-small-fetches.dtr");
    let mut writer = Writer::create(&path, &Header::default()).unwrap();
    import::read(Format::Text, Cursor::new(text.into_bytes()), "text", &mut writer).unwrap();
    writer.finish().unwrap();
}

fn options(folder: &Path) -> Options {
    Options {
        programs: None,
        keeping: Keeping {
            folder: folder.join("kept"),
            traces: false,
            afresh: false,
        },
        cache_bytes: None,
        rounds: None,
        full: false,
        n: None,
        only: Vec::new(),
        cpus: Vec::new(),
        live: false,
        traces: Some(folder.to_path_buf()),
    }
}

fn sections(paper: &Paper, options: &Options) -> Vec<Section> {
    let mut reproduction = Reproduction::new(paper, options, &|_| ()).unwrap();
    let items = paper.items.iter();
    items.map(|item| reproduction.item(item).unwrap()).collect()
}

fn row(section: &Section, name: &str) -> Vec<f64> {
    let lines = section.lines.iter().filter(|line| line.row == name);
    lines.map(|line| line.value.unwrap()).collect()
}

#[test]
fn bars_and_curves_come_from_one_stream() {
    let room = tempfile::tempdir().unwrap();
    record(room.path(), 2);
    let paper = INVENTED.read().unwrap();
    let options = options(room.path());
    let all = sections(&paper, &options);
    let [table, chains, hot, absent] = &all[..] else {
        panic!("four items")
    };

    // Of 1600 misses the 200 of cpu 1 on page 0 are remote; 128 of them are until it has a copy; without room there is none.
    assert_eq!(row(table, "walk, FT"), [87.5, 0.0, 7.0]);
    assert_eq!(row(table, "walk, Base"), [92.0, 1.0, 8.0]);
    assert_eq!(row(table, "walk, short"), [87.5, 0.0, 7.0]);
    assert_eq!(table.lines[0].paper_value, Some(50.0));
    let machine = table.lines.iter().find(|line| line.row == "walk, machine").unwrap();
    assert_eq!((machine.paper_value, machine.value), (Some(60.0), None));
    let note = |start: &str| table.notes.iter().any(|note| note.starts_with(start));
    // 72 misses are 64.8 us nearer, the copy takes 350.
    assert!(
        note("did not hold in the one run: copies pay: walk: Base 1"),
        "{:?}",
        table.notes
    );
    assert!(
        note("held in the one run: it falls gently: walk: local: short 87.5, Base 92.0 percent"),
        "{:?}",
        table.notes
    );

    // Seven pages, each read 200 times by one cpu or by each of two.
    assert_eq!(row(chains, "walk"), [100.0, 0.0]);
    // One page of seven has 400 of 1600 misses, the others have 200.
    assert_eq!(row(hot, "walk, cache misses"), [25.0, 37.5, 100.0]);

    assert_eq!(hot.failures.len(), 1);
    assert!(
        hot.failures[0].contains("make traces TRACES_FLAGS=\"--size small --fetches lost\""),
        "{:?}",
        hot.failures
    );
    assert_eq!((absent.lines[0].paper_value, absent.lines[0].value), (Some(7.0), None));
    let text = anstream::adapter::strip_str(&reproduce::text(absent, 100)).to_string();
    assert!(
        text.ends_with("  no numbers where there are none from here: nobody knows\n"),
        "{text}"
    );

    // It is kept: without caches or policies the same comes out.
    let kept: Vec<_> = fs::read_dir(room.path().join("kept")).unwrap().collect();
    assert_eq!(kept.len(), 1);
    let path = kept[0].as_ref().unwrap().path();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"replications\":1"), "{text}");
    fs::write(&path, text.replace("\"replications\":1", "\"replications\":77")).unwrap();
    assert_eq!(row(&sections(&paper, &options)[0], "walk, Base"), [92.0, 77.0, 8.0]);
}

/// Twelve threads on eight cpus leave their pages where a workload of the paper has a schedule.
#[test]
fn a_workload_is_scheduled_as_the_paper_says() {
    let room = tempfile::tempdir().unwrap();
    record(room.path(), 12);
    let mut options = options(room.path());
    // What is kept is of one program, whose papers do not change.
    options.keeping.afresh = true;
    let first_touch = |source: Source| {
        let sections = sections(&source.read().unwrap(), &options);
        let notes = sections[0].notes.clone();
        let described = notes.iter().find(|note| note.starts_with("walk: ")).cloned();
        (row(&sections[0], "walk, FT")[0], described.unwrap())
    };
    let (stays, said) = first_touch(INVENTED);
    assert!(said.contains("threads stay on their cpus"), "{said}");
    let (scheduled, said) = first_touch(SCHEDULED);
    assert!(
        said.contains(
            "a small scheduler of the simulator, no real one (priority,slice=20us,affinity=0,decay=1s), moved threads "
        ),
        "{said}"
    );
    assert!(scheduled < stays, "{scheduled} of {stays}");
}
