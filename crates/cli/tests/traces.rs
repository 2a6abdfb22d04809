//! Traces: imported, described, printed; unreadable and damaged ones.

use crate::house;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use house::{Room, json, output};

const SHARED: &str = "# two threads\n0 r 1000 4\n0 w 2000 8\n1 m 1ffe 4\nb 2\n1 r 1000 4\n";

#[test]
fn what_was_imported_is_described() {
    let room = Room::new();
    let trace = room.trace("shared.trace", SHARED);
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert_eq!(info["references"], 4);
    assert_eq!(
        (&info["reads"], &info["writes"], &info["modifies"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(info["barriers"], 2);
    let (text, _) = output(&["trace", "info", &trace], 0);
    assert!(text.contains("4: 2 reads, 1 writes, 1 modifies, 0 fetches"), "{text}");
}

#[test]
fn what_is_printed_can_be_imported_again() {
    let room = Room::new();
    let trace = room.trace("shared.trace", SHARED);
    let (text, _) = output(&["trace", "cat", &trace], 0);
    let plain: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(plain, ["0 r 1000 4", "0 w 2000 8", "1 m 1ffe 4", "b 2", "1 r 1000 4"]);
    let again = room.trace("again.trace", &text);
    assert_eq!(output(&["trace", "cat", &again], 0).0, text);
    let (first, _) = output(&["trace", "cat", &trace, "--limit", "1"], 0);
    assert_eq!(first, "0 r 1000 4\n");
    let lines = json(&["trace", "cat", &trace, "--json"]);
    assert_eq!(lines[2]["op"], "modify");
    assert_eq!(lines[2]["addr"], "0x1ffe");
    assert_eq!(lines.iter().filter(|line| line["event"] == "barrier").count(), 2);
}

#[test]
fn prefetches_are_printed_and_imported() {
    let room = Room::new();
    let trace = room.trace("hints.trace", "7 r 1000 4\n7 p 2040 1\n");
    assert_eq!(output(&["trace", "cat", &trace], 0).0, "7 r 1000 4\n7 p 2040 1\n");
    assert_eq!(json(&["trace", "cat", &trace, "--json"])[1]["op"], "prefetch");
    let (text, _) = output(&["trace", "info", &trace], 0);
    assert!(
        text.contains("2: 1 reads, 0 writes, 0 modifies, 0 fetches, 1 prefetches"),
        "{text}"
    );
}

#[test]
fn an_import_reports_what_it_did() {
    let room = Room::new();
    let source = room.file("a.din", "0 1000\n1 2000\n2 400000\n");
    let trace = room.path("a.trace");
    let done = &json(&["import", "--format", "din", &source, "-o", &trace, "--json"])[0];
    assert_eq!(done["references"], 3);
    assert_eq!(done["format"], "din");
    assert_eq!(done["bytes"], std::fs::metadata(&trace).unwrap().len());
}

#[test]
fn bad_files_fail_with_what_where_and_what_next() {
    let room = Room::new();
    let text = room.file("bad.txt", "0 r 1000 4\n0 x 2000 4\n");
    let trace = room.path("bad.trace");
    let (_, said) = output(&["import", "--format", "text", &text, "-o", &trace], 1);
    assert!(
        said.contains("bad.txt") && said.contains("line 2") && said.contains("r, w, m, i or p"),
        "{said}"
    );
    assert!(!std::path::Path::new(&trace).exists(), "half a trace was left behind");
    let missing = room.path("no.trace");
    for verb in [
        &["trace", "info"] as &[&str],
        &["trace", "cat"],
        &["simulate", "--machine", "simos-r4400"],
        &["advise", "--machine", "simos-r4400"],
        &["report"],
        &["import", "--format", "din", "-o", &trace],
    ] {
        let said = output(&[verb, &[missing.as_str()]].concat(), 1).1;
        assert!(
            said.starts_with("domicile: ") && said.contains("no.trace"),
            "{verb:?}: {said}"
        );
        let said = output(&[verb, &[room.folder().to_str().unwrap()]].concat(), 1).1;
        assert!(said.starts_with("domicile: "), "{verb:?} of a folder: {said}");
    }
    let (_, said) = output(&["trace", "info", &text], 1);
    assert!(
        said.contains("not a Domicile trace") && said.contains("domicile import"),
        "{said}"
    );
    let (_, said) = output(&["import", "--format", "text", &text, "-o", "/no/such/folder/x"], 1);
    assert!(said.contains("/no/such/folder/x"), "{said}");
}

/// A long walk over memory: several chunks.
fn walk(room: &Room) -> String {
    let lines: String = (0..200_000u64)
        .map(|i| format!("0 r {:x} 8\n", i * 2654435761 % (1 << 30)))
        .collect();
    room.trace("walk.trace", &lines)
}

#[test]
fn damaged_traces_are_reported_and_never_crash() {
    let room = Room::new();
    let whole = std::fs::read(walk(&room)).unwrap();
    let damaged = room.path("damaged.trace");
    let verbs: [&[&str]; 3] = [
        &["trace", "info"],
        &["trace", "cat"],
        &["simulate", "--machine", "simos-r4400"],
    ];
    for (name, at) in [("early", 40), ("middle", whole.len() / 2), ("late", whole.len() - 30)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&damaged, &bytes).unwrap();
        let info = house::domicile(&["trace", "info", &damaged]).output().unwrap();
        let said = String::from_utf8(info.stderr).unwrap();
        let out = String::from_utf8(info.stdout).unwrap();
        let reported = info.status.code() == Some(1) && said.contains("byte") || out.contains("damage");
        assert!(
            reported,
            "a bit flipped {name} went unnoticed: {:?}\n{out}{said}",
            info.status
        );
    }
    for length in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&damaged, &whole[..length]).unwrap();
        for verb in verbs {
            let output = house::domicile(&[verb, &[damaged.as_str()]].concat()).output().unwrap();
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{verb:?} of {length} bytes: {:?}",
                output.status
            );
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(!said.contains("panicked"), "{said}");
        }
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let room = Room::new();
    let trace = walk(&room);
    let mut cat = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args(["trace", "cat", &trace])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, cat.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "0 r 0 8\n");
    let ended = cat.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// A file of drmemtrace: of this type, a thread that reads two lines over and over, with these records in the middle.
fn drmemtrace(file_type: u64, data: bool, middle: &[(u16, u16, u64)]) -> Vec<u8> {
    let entry = |(kind, size, value): (u16, u16, u64)| {
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let load = |at: u64| {
        let read = (0, 8, 0x10_0000 + at % 2 * 4096);
        std::iter::once((10, 4, 0x1000)).chain(data.then_some(read))
    };
    let begin = [(25, 0, 7), (28, 9, file_type), (22, 8, 501), (24, 8, 500)];
    let loads = |upto: u64| (0..upto).flat_map(load);
    let all = begin.into_iter().chain(loads(100)).chain(middle.iter().copied());
    let all = all.chain(loads(50)).chain([(23, 0, 501), (26, 0, 0)]);
    all.flat_map(entry).collect()
}

/// Imports it from a folder. Returns the trace, and the messages.
fn drmemtrace_of(room: &Room, file: &[u8]) -> (String, String) {
    let folder = room.path("app.dir/trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(format!("{folder}/app.501.trace"), file).unwrap();
    let trace = room.path("app.dtr");
    let import = ["import", "--format", "drmemtrace", &room.path("app.dir"), "-o", &trace];
    let (_, said) = output(&import, 0);
    (trace.clone(), said)
}

#[test]
fn no_advice_is_given_on_what_a_filter_let_through() {
    for (file_type, data, says) in [
        (0x1c0, true, "filtered"),
        (0x140, true, "filtered"),
        (0x44, false, "instructions only"),
    ] {
        let room = Room::new();
        let (trace, said) = drmemtrace_of(&room, &drmemtrace(file_type, data, &[]));
        assert!(said.contains("note: ") && said.contains(says), "{said}");
        let (info, _) = output(&["trace", "info", &trace], 0);
        assert!(info.contains(says), "{info}");
        let (_, said) = output(&["simulate", &trace, "--machine", "simos-r4400"], 0);
        assert!(said.contains("note: ") && said.contains(says), "{said}");
        // Filtered fetches do not tell the number of instructions that ran.
        let outcome = &json(&["simulate", &trace, "--machine", "simos-r4400", "--json"])[0];
        let fetches_are_filtered = file_type & 0x80 != 0;
        assert_eq!(outcome["instructions"].is_null(), fetches_are_filtered, "{outcome}");
        let (told, said) = output(&["advise", &trace, "--machine", "simos-r4400", "--json"], 1);
        assert!(told.is_empty(), "{told}");
        assert!(
            said.contains("app.dtr") && said.contains("no advice can be given on this trace") && said.contains(says),
            "{said}"
        );
    }
}

#[test]
fn what_is_left_out_of_an_import_is_said_with_the_advice() {
    let room = Room::new();
    let kernel = [(28, 27, 1), (10, 4, 0x9000), (0, 8, 0x9000), (28, 28, 1), (77, 0, 0)];
    let (trace, said) = drmemtrace_of(&room, &drmemtrace(0x1040, true, &kernel));
    let advice = &json(&["advise", &trace, "--machine", "simos-r4400", "--json"])[0];
    let notes = advice["notes"].to_string();
    for says in [
        "1 instructions and 1 references that the kernel made",
        "record type 77 once",
    ] {
        assert!(said.contains(says), "{said}");
        assert!(notes.contains(says), "{notes}");
    }
    assert_eq!(advice["trace"]["instructions"], 150);
}

#[test]
fn the_filtered_part_of_an_import_warms_caches_and_does_not_count() {
    let room = Room::new();
    let (trace, said) = drmemtrace_of(&room, &drmemtrace(0x21c0, true, &[(28, 23, 0)]));
    assert!(said.contains("only warms caches"), "{said}");
    let outcome = &json(&["simulate", &trace, "--machine", "simos-r4400", "--json"])[0];
    assert_eq!(outcome["references"], 100);
    assert_eq!(outcome["windows"]["counted"][0]["references"], 100);
    // All that is counted was touched before.
    let caches = outcome["caches"].as_array().unwrap();
    assert!(caches.iter().all(|cache| cache["cold"] == 0), "{outcome}");
    let advice = &json(&["advise", &trace, "--machine", "simos-r4400", "--json"])[0];
    assert!(advice["notes"].to_string().contains("only warms caches"), "{advice}");
}
