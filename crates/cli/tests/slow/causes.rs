//! Small programs, each with one defect: `advise` names the structure, the line and the cause, and proposes a change.
//! A program without one gets no change proposed.

use crate::house;

use std::fs;
use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

/// A program of the folder `causes`, compiled and recorded.
struct Recorded {
    /// Its source's name, and the number of the line that says `here`.
    place: String,
    trace: String,
}

fn recorded(room: &Room, source: &str, arguments: &[&str]) -> Recorded {
    compiled(room, source, &[], arguments)
}

fn compiled(room: &Room, source: &str, further: &[&str], arguments: &[&str]) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/causes").join(source);
    let text = fs::read_to_string(&path).expect("the source is there");
    let program = room.path("program");
    let (compiler, options): (&str, &[&str]) = match path.extension().and_then(|end| end.to_str()) {
        Some("c") => ("gcc", &["-O2", "-g", "-pthread"]),
        Some("cc") => ("g++", &["-O2", "-g"]),
        Some("f90") => ("gfortran", &["-O2", "-g"]),
        _ => ("rustc", &["-O", "-g"]),
    };
    let status = Command::new(compiler)
        .args(options)
        .args(further)
        .arg("-o")
        .arg(&program)
        .arg(&path)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{compiler} {source}");
    let trace = room.path("program.trace");
    output(&[&["record", "-o", &trace, "--", &program], arguments].concat(), 0);
    let line = text.lines().position(|line| line.contains(" here"));
    Recorded {
        place: format!("{source}:{}", line.map_or(0, |line| line + 1)),
        trace,
    }
}

fn advice(of: &Recorded, machine: &str) -> Value {
    json(&["advise", "--machine", machine, "--json", &of.trace]).remove(0)
}

fn causes(advice: &Value) -> &[Value] {
    advice["causes"].as_array().map_or(&[], Vec::as_slice)
}

/// The cause of this kind.
fn of_kind<'a>(advice: &'a Value, kind: &str) -> &'a Value {
    let found = causes(advice).iter().find(|cause| cause["kind"] == kind);
    found.unwrap_or_else(|| panic!("{kind} is missing: {:#}", advice["causes"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn a_matrix_walked_across_its_rows_is_to_be_walked_along_them() {
    let room = Room::new();
    let program = recorded(&room, "across.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "walks-across");
    assert_eq!(cause["structure"], "grid", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    let evidence = &cause["evidence"];
    assert_eq!(evidence["step_bytes"], 531 * 8, "{cause:#}");
    assert!(number(&evidence["used_bytes"]) < 16.0, "{cause:#}");
    assert!(number(&evidence["used_by_it_bytes"]) > 56.0, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("interchange")),
        "{cause:#}"
    );
    // The change is not only proposed: it was simulated, and begins the verdict.
    assert_eq!(
        cause["simulated"],
        serde_json::json!([{"kind": "interchange", "data": "grid", "line": cause["source"]}])
    );
    assert!(number(&cause["gain"]) > 0.1, "{cause:#}");
    assert!(
        text(&advice["verdict"]).contains("waiting for `grid` at across.c:"),
        "{}",
        advice["verdict"]
    );
    assert!(
        text(&advice["verdict"]).contains("simulated, this saves"),
        "{}",
        advice["verdict"]
    );
    // The list of things to do has the change.
    let todo = &advice["todo"][0];
    assert_eq!(
        (&todo["kind"], &todo["source"]),
        (&"walks-across".into(), &cause["source"]),
        "{todo:#}"
    );
    assert!(
        text(&advice["otherwise"]).contains("Nothing else gains 1%"),
        "{}",
        advice["otherwise"]
    );
    let kept = room.path("advice.json");
    let (said, _) = output(
        &[
            "advise",
            "--details",
            "--machine",
            "westmere-x5660",
            "-o",
            &kept,
            &program.trace,
        ],
        0,
    );
    for part in [
        "Causes and changes",
        "grid: walks-across",
        "steps of 4248 bytes",
        "interchange the loops",
    ] {
        assert!(said.contains(part), "`{part}` is missing:\n{said}");
    }
    let lines = said.lines().skip_while(|line| !line.starts_with("Causes and changes"));
    for line in lines.take_while(|line| !line.is_empty()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn columns_of_a_power_of_two_are_to_be_padded() {
    let room = Room::new();
    let program = recorded(&room, "power.f90", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "power-of-two");
    // gfortran numbers the variables of a main program.
    assert!(
        cause["structure"].as_str().is_some_and(|name| name.starts_with("a.")),
        "{cause:#}"
    );
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    let evidence = &cause["evidence"];
    assert_eq!(
        (&evidence["step_bytes"], &evidence["power_of_two"]),
        (&4096.into(), &4096.into()),
        "{cause:#}"
    );
    assert!(
        number(&evidence["sets_covered"]) * 8.0 <= number(&evidence["sets"]),
        "{cause:#}"
    );
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("4096 to 4160")),
        "{cause:#}"
    );
    assert!(number(&cause["gain"]) > 0.1, "{cause:#}");
}

#[test]
fn elements_of_which_one_field_is_used_are_to_be_split() {
    let room = Room::new();
    let program = recorded(&room, "hot.cc", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(cause["kind"], "unused-fields", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(
        cause["structure"].as_str().is_some_and(|name| name.contains("hot.cc")),
        "{cause:#}"
    );
    assert_eq!(cause["evidence"]["element_bytes"], 64, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("bytes 0 to 7")),
        "{cause:#}"
    );
    assert!(number(&cause["gain"]) > 0.1, "{cause:#}");
}

#[test]
fn a_shuffled_list_is_pointer_chasing() {
    let room = Room::new();
    let program = recorded(&room, "list.cc", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "pointer-chasing");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert_eq!(cause["evidence"]["addresses"], "chased", "{cause:#}");
    assert!(text(&cause["hint"]).contains("no prefetch helps"), "{cause:#}");
    assert!(
        cause["structure"]
            .as_str()
            .is_some_and(|name| name.contains("list.cc:14")),
        "{cause:#}"
    );
    assert_eq!(cause["evidence"]["element_bytes"], 16, "{cause:#}");
}

#[test]
fn a_word_of_each_page_is_a_case_for_huge_pages() {
    let room = Room::new();
    let program = recorded(&room, "pages.rs", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "thin-pages");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(number(&cause["evidence"]["used_of_page"]) < 0.05, "{cause:#}");
    assert!(
        cause["change"]
            .as_str()
            .is_some_and(|change| change.contains("huge pages")),
        "{cause:#}"
    );
}

#[test]
fn a_contended_lock_is_no_false_sharing() {
    let room = Room::new();
    let program = recorded(&room, "locked.c", &["lock"]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "contended-lock");
    assert_eq!(cause["structure"], "lock", "{cause:#}");
    assert!(
        causes(&advice).iter().all(|cause| cause["kind"] != "false-sharing"),
        "{:#}",
        advice["causes"]
    );
    let lines = advice["false_sharing"].as_array().map_or(&[][..], Vec::as_slice);
    for line in lines.iter().filter(|line| text(&line["structure"]) == "lock") {
        assert_eq!(line["lock"], true, "{line:#}");
    }
}

#[test]
fn fields_of_one_line_are_false_sharing_and_no_lock() {
    let room = Room::new();
    let program = recorded(&room, "locked.c", &["apart"]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(cause["kind"], "false-sharing", "{cause:#}");
    assert_eq!(cause["structure"], "apart", "{cause:#}");
    assert_eq!(cause["simulated"][0]["kind"], "separate", "{cause:#}");
    assert!(number(&cause["gain"]) > 0.1, "{cause:#}");
    let lines = advice["false_sharing"].as_array().expect("lines are fought over");
    assert!(lines.iter().all(|line| line.get("lock").is_none()), "{lines:#?}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert!(
        causes(&advice).iter().all(|cause| cause["kind"] != "contended-lock"),
        "{:#}",
        advice["causes"]
    );
}

#[test]
fn a_sum_in_order_gets_no_change_proposed() {
    let room = Room::new();
    let program = recorded(&room, "sum.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(
        (&cause["kind"], &cause["source"]),
        (&"bandwidth".into(), &program.place.as_str().into()),
        "{cause:#}"
    );
    for cause in causes(&advice) {
        assert_eq!(cause.get("change"), None, "{cause:#}");
    }
}

#[test]
fn arrays_that_begin_in_the_same_sets_are_one_cause() {
    let room = Room::new();
    let program = recorded(&room, "arrays.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "arrays-collide");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    let others = cause["other_structures"].as_array().map_or(0, Vec::len);
    assert!(others >= 2, "{cause:#}");
    assert_eq!(cause["simulated"].as_array().map_or(0, Vec::len), others, "{cause:#}");
    assert!(number(&cause["gain"]) > 0.0, "{cause:#}");
    let all = causes(&advice);
    assert_eq!(
        all.iter().filter(|cause| cause["kind"] == "arrays-collide").count(),
        1,
        "{all:#?}"
    );
}

#[test]
fn pages_of_one_color_are_for_a_policy_to_place() {
    let room = Room::new();
    let program = recorded(&room, "colors.rs", &[]);
    let trace = program.trace.as_str();
    let advice = json(&[
        "advise",
        "--machine",
        "westmere-x5660",
        "--policy",
        "first-touch+page-coloring",
        "--json",
        trace,
    ]);
    let cause = of_kind(&advice[0], "pages-collide");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert_eq!(cause["evidence"]["class"], "conflict", "{cause:#}");
}

#[test]
fn fields_that_loops_use_at_different_times_are_apart() {
    let room = Room::new();
    let program = recorded(&room, "apart.cc", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "fields-apart");
    assert!(text(&cause["source"]).starts_with("apart.cc:"), "{cause:#}");
    assert!(number(&cause["other_lines"]) >= 3.0, "{cause:#}");
    assert_eq!(cause["simulated"][0]["element_bytes"], 64, "{cause:#}");
    // The four fields that are used, an array each.
    assert_eq!(
        cause["simulated"][0]["groups"].as_array().map_or(0, Vec::len),
        4,
        "{cause:#}"
    );
    assert!(number(&cause["gain"]) > 0.2, "{cause:#}");
}

#[test]
fn rows_of_a_power_of_two_in_no_order_are_to_be_padded() {
    let room = Room::new();
    let program = recorded(&room, "rows.cc", &[]);
    let of_them = advice(&program, "westmere-x5660");
    let cause = of_kind(&of_them, "power-of-two");
    assert_eq!(cause["structure"], "table", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert_eq!(
        cause["simulated"],
        serde_json::json!([{"kind": "pad", "data": "table", "row_bytes": 4096, "pad_bytes": 64}])
    );
    assert!(number(&cause["gain"]) > 0.2, "{cause:#}");
    assert_eq!(of_them["todo"][0]["kind"], "power-of-two", "{:#}", of_them["todo"]);
    // Padded rows have no such cause.
    let room = Room::new();
    let padded = compiled(&room, "rows.cc", &["-DCOLUMNS=1040"], &[]);
    let of_them = advice(&padded, "westmere-x5660");
    assert!(causes(&of_them).iter().all(|cause| cause["kind"] != "power-of-two"));
}

#[test]
fn arrays_that_are_used_at_one_index_are_to_be_interleaved() {
    let room = Room::new();
    let program = recorded(&room, "index.c", &[]);
    let of_them = advice(&program, "westmere-x5660");
    let cause = of_kind(&of_them, "same-index");
    assert_eq!(cause["structure"], "heap: main (index.c:8)", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert_eq!(cause["simulated"][0]["kind"], "interleave", "{cause:#}");
    assert_eq!(cause["simulated"][0]["part_bytes"], 240_000, "{cause:#}");
    assert!(number(&cause["gain"]) > 0.1, "{cause:#}");
}

/// Arrays of their own are put together by simulation, and that gains as much as a program written so.
#[test]
fn arrays_of_their_own_that_are_used_at_one_index_are_to_be_interleaved() {
    let wall = |advice: &Value| number(&advice["policies"][0]["time_ns"]["wall"]);
    let room = Room::new();
    let after = advice(&compiled(&room, "apart.c", &["-DTOGETHER"], &[]), "westmere-x5660");
    for (options, named) in [(&[][..], 3), (&["-DONCE"][..], 1)] {
        let room = Room::new();
        let program = compiled(&room, "apart.c", options, &[]);
        let before = advice(&program, "westmere-x5660");
        let cause = of_kind(&before, "same-index");
        assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
        let change = &cause["simulated"][0];
        let mut names: Vec<&Value> = change["with"].as_array().unwrap().iter().collect();
        names.push(&change["data"]);
        assert_eq!(names.len(), 3, "{cause:#}");
        names.sort_by_key(|name| name.to_string());
        names.dedup();
        assert_eq!(names.len(), named, "{cause:#}");
        assert_eq!(
            cause["other_structures"].as_array().map_or(0, Vec::len),
            named - 1,
            "{cause:#}"
        );
        let gain = number(&cause["gain"]);
        let saved = 1.0 - wall(&after) / wall(&before);
        assert!(gain > 0.1, "{cause:#}");
        assert!(
            (saved - gain).abs() < 0.03,
            "{gain} predicted, {saved} where it is written so"
        );
    }
}

/// The program that follows four lists in turn takes as long as was predicted of the one that follows one after the other.
#[test]
fn lists_can_be_followed_in_turn() {
    let room = Room::new();
    let file = "zen3-milan";
    let before = advice(&recorded(&room, "chains.c", &[]), file);
    let cause = of_kind(&before, "pointer-chasing");
    let in_turn = &cause["alternatives"][0];
    assert_eq!(in_turn["simulated"][0]["kind"], "chains", "{cause:#}");
    let gain = number(&in_turn["gain"]);
    assert!(gain > 0.3, "{cause:#}");
    let instead = before["todo"][0]["instead"].to_string();
    assert!(instead.contains("follow 4 chains in turn"), "{:#}", before["todo"]);
    let other = Room::new();
    let after = advice(&compiled(&other, "chains.c", &["-DTURN"], &[]), file);
    let wall = |advice: &Value| number(&advice["policies"][0]["time_ns"]["wall"]);
    let saved = 1.0 - wall(&after) / wall(&before);
    assert!(
        (saved - gain).abs() < 0.1,
        "{gain} predicted, {saved} where it is written so"
    );
}

#[test]
fn sums_over_and_over_are_to_be_tiled() {
    let room = Room::new();
    let program = recorded(&room, "late.f90", &[]);
    let advice = advice(&program, "westmere-x5660");
    let late = of_kind(&advice, "late-reuse");
    assert_eq!(late["source"], program.place.as_str(), "{late:#}");
    assert!(number(&late["evidence"]["enough_cache_bytes"]) > 1e6, "{late:#}");
    assert!(number(&late["gain"]) > 0.1, "{late:#}");
}

#[test]
fn more_pages_than_the_tlb_reaches_are_a_case_for_huge_pages() {
    let room = Room::new();
    let program = recorded(&room, "reach.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let reach = of_kind(&advice, "tlb-reach");
    assert_eq!(reach["source"], program.place.as_str(), "{reach:#}");
    assert_eq!(reach["simulated"][0]["kind"], "huge-pages", "{reach:#}");
    assert!(number(&reach["gain"]) > 0.0, "{reach:#}");
}

#[test]
fn a_word_that_threads_count_with_is_truly_shared() {
    let room = Room::new();
    let program = recorded(&room, "shared.rs", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = &causes(&advice)[0];
    assert_eq!(cause["kind"], "true-sharing", "{cause:#}");
    assert!(text(&cause["structure"]).ends_with("COUNTED"), "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
}

#[test]
fn values_in_the_order_of_indices_are_irregular_and_can_be_prefetched() {
    let room = Room::new();
    let program = recorded(&room, "gather.c", &[]);
    let advice = advice(&program, "westmere-x5660");
    let cause = of_kind(&advice, "irregular");
    assert_eq!(cause["structure"], "values", "{cause:#}");
    assert_eq!(cause["source"], program.place.as_str(), "{cause:#}");
    assert_eq!(cause["evidence"]["addresses"], "loaded", "{cause:#}");
    assert_eq!(cause["evidence"]["loaded_at"], program.place.as_str(), "{cause:#}");
    assert!(
        text(&cause["hint"]).contains("a software prefetch some iterations ahead helps"),
        "{cause:#}"
    );
}

/// A library touches the pages; the user can change only the line that calls it. Without lines the function is
/// named.
#[test]
fn pages_that_a_library_touches_first_are_named_with_the_line_that_calls_it() {
    for (further, lines) in [(&[][..], true), (&["-g0"], false)] {
        let room = Room::new();
        let of = compiled(&room, "cleared.c", further, &[]);
        let advice = advice(&of, "flash-cc-numa");
        let structure = &advice["homes"]["structures"][0];
        assert_eq!(structure["reasons"][0]["reason"], "first-touch", "{structure:#}");
        let touch = &structure["first_touches"][0];
        let source = if lines { of.place.as_str() } else { "clear" };
        assert!(text(&touch["source"]).starts_with(source), "{touch:#}");
        assert!(text(&touch["through"]).contains("memset"), "{touch:#}");
    }
}

/// flash-cc-numa with a second level of 128 KiB and as many ways as it has pages. Collisions no longer depend on the
/// frames that pages get, and so on the order in which the recording touched pages; a round's 192 KiB never fit.
fn without_collisions(room: &Room) -> String {
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/flash-cc-numa.toml");
    let text = fs::read_to_string(preset).unwrap();
    let (first, second) = text.split_once("name = \"L2\"").unwrap();
    let second = second
        .replacen("524288", "131072", 1)
        .replacen("ways = 2", "ways = 32", 1);
    room.file("cc-numa.toml", &format!("{first}name = \"L2\"{second}"))
}

#[test]
fn data_on_other_nodes_is_named_with_the_line_that_touched_it_first() {
    let room = Room::new();
    let of = recorded(&room, "nodes.c", &[]);
    let machine = without_collisions(&room);
    let advice = advice(&of, &machine);
    let homes = &advice["homes"];
    assert!(homes["remote_share"].as_f64().unwrap() > 0.2, "{homes}");
    let structures = homes["structures"].as_array().unwrap();
    // Blocks are named by the line that allocated them: those of `apart`, `own` and `table`.
    let allocated = |line: u64| structures.iter().find(|one| one["line"] == line);
    let first: u64 = of.place.rsplit(':').next().unwrap().parse().unwrap();
    let (apart, own, table) = (allocated(first - 4), allocated(first - 3), allocated(first - 2));
    let (apart, table) = (apart.expect("apart is remote"), table.expect("the table is remote"));
    assert_eq!(apart["reasons"][0]["reason"], "first-touch", "{apart}");
    let touch = &apart["first_touches"][0];
    assert_eq!(touch["source"], of.place.as_str());
    assert_eq!((&touch["thread"], &touch["node"]), (&Value::from(0), &Value::from(0)));
    // A part of eight is node 0's own.
    let misplaced = touch["pages"].as_u64().unwrap();
    assert!((96..=112).contains(&misplaced), "{touch}");
    assert_eq!(table["reasons"][0]["reason"], "read-by-many", "{table}");
    let remote = |of: &Value| of["remote"].as_u64().unwrap();
    assert!(own.is_none_or(|own| remote(own) < remote(apart) / 20), "{own:?}");

    let remedies = homes["remedies"].as_array().unwrap();
    let remedy = |policy: &str| {
        let found = remedies.iter().find(|one| one["policy"] == policy);
        found.unwrap_or_else(|| panic!("{policy}: {homes}"))
    };
    let local = |of: &Value| of["local_percent"].as_f64().unwrap();
    let best = remedy("post-facto");
    assert!(local(best) > homes["local_percent"].as_f64().unwrap() + 10.0, "{best}");
    assert!(best["how"].as_str().unwrap().contains(&of.place), "{best}");
    assert!(
        remedy("interleave")["how"]
            .as_str()
            .unwrap()
            .contains("numactl --interleave=all")
    );
    assert!(
        remedy("kernel-balancing")["how"]
            .as_str()
            .unwrap()
            .contains("kernel.numa_balancing")
    );
    assert!(remedy("migrate")["later_gain"].is_number());
    // On one node all memory is local.
    assert_eq!(local(remedy("first-touch")), 100.0);
    assert!(
        advice["verdict"]
            .as_str()
            .unwrap()
            .contains(homes["verdict"].as_str().unwrap())
    );

    // Text has the same, and a machine with one node has none of it.
    let result = room.path("advice.json");
    let (text, _) = output(
        &["advise", "--details", "--machine", &machine, "-o", &result, &of.trace],
        0,
    );
    assert!(
        text.contains("Data on other nodes") && text.contains("Remedies (later"),
        "{text}"
    );
    assert!(self::advice(&of, "simos-r4400")["homes"].is_null());
}
