//! `run --policy summary-homes`: on one memory node, with programs that describe nothing, and with options that exclude
//! it. Guests test the pages' homes on several nodes (crates/preload/tests/numa).

use serde_json::Value;

use crate::house::library::built;
use crate::house::{Room, domicile, output};

const ALWAYS: [&str; 3] = ["run", "--policy", "summary-homes"];

fn nodes() -> usize {
    sys::nodes::nodes(&sys::Root::default()).map_or(1, |nodes| nodes.len())
}

/// The program's own status, its text, and our messages.
fn run(options: &[&str], script: &str) -> (String, String) {
    let arguments = [&ALWAYS, options, &["--", "sh", "-c", script]].concat();
    let ended = domicile(&arguments)
        .env("DOMICILE_PRELOAD", built("libdomicile_preload.so"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(7), "{out}\n{err}");
    (out, err)
}

#[test]
fn on_one_node_the_program_runs_unchanged_and_that_is_said() {
    if nodes() > 1 {
        return harness::not_here("the machine has several memory nodes");
    }
    let room = Room::new();
    let script = "echo \"$OMP_PLACES$LD_PRELOAD\"; exit 7";
    let (printed, said) = run(&[], script);
    assert_eq!(printed, "\n", "no variable was set");
    assert_eq!(
        said,
        "domicile: summary-homes: nothing was done, and the program ran unchanged: this machine has one memory node, where all pages \
         are\n"
    );
    let report = room.path("report.json");
    run(&["--json", "--report", &report], script);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(
        (&report["exit_code"], &report["processes"]),
        (&7.into(), &serde_json::json!([]))
    );
    let on = &report["homes"];
    assert_eq!((&on["policy"], &on["kept"]), (&"summary-homes".into(), &"not".into()));
    assert!(
        on["unchanged"].as_str().unwrap().contains("one memory node"),
        "{report:#}"
    );
    assert!(
        on["seats"]
            .as_array()
            .unwrap()
            .iter()
            .all(|seat| seat["node"] == on["seats"][0]["node"])
    );
}

#[test]
fn on_several_nodes_a_program_without_loops_runs_unchanged_and_is_told_how_to_have_some() {
    if nodes() < 2 {
        return harness::not_here("the machine has one memory node");
    }
    let (_, said) = run(&[], "exit 7");
    assert!(
        said.contains("the program says nothing of parallel loops; it ran unchanged"),
        "{said}"
    );
    assert!(said.contains("domicile-cc"), "{said}");
}

#[test]
fn options_of_other_policies_are_refused() {
    for (options, said) in [
        (&["--align", "yes"][..], "leave out --align"),
        (
            &["--force-colors", "12:4:65536"],
            "leave out --align and --force-colors",
        ),
        (&["--interval", "1s"], "watches nothing"),
        (&["--text", "yes"], "--text is for policies"),
        (&["--slots", "x.toml"], "cannot be used with"),
    ] {
        let (_, text) = output(&[&ALWAYS, options, &["--", "true"]].concat(), 2);
        assert!(text.contains(said), "{options:?}: {text}");
    }
    let (_, text) = output(&[&ALWAYS[..], &["--", "/no/such/program"]].concat(), 1);
    assert!(text.contains("/no/such/program"), "{text}");
}
