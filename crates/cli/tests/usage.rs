//! Wrong command lines: exit code 2, and a message that shows the right form.

use crate::house;

use house::{Room, output};

#[test]
fn an_unknown_verb_tells_the_verbs() {
    let (out, said) = output(&["frobnicate"], 2);
    assert!(out.is_empty());
    assert!(
        said.starts_with("domicile: unrecognized subcommand 'frobnicate'"),
        "{said}"
    );
    assert!(
        said.contains("machine, probe, doctor, policy, record, import, trace, simulate, advise, report, compare, sweep, run, reproduce, truth, daemon, completions, man"),
        "{said}"
    );
}

#[test]
fn no_arguments_print_the_help() {
    let (_, said) = output(&[], 2);
    assert!(said.contains("Usage: domicile"), "{said}");
    let (help, _) = output(&["--help"], 0);
    assert!(help.contains("Exit status:"), "{help}");
    assert!(output(&["--version"], 0).0.starts_with("domicile "));
}

#[test]
fn unknown_machines_and_policies_are_bad_usage() {
    let room = Room::new();
    let trace = room.trace("t.trace", "0 r 0 4\n");
    let on = |machine: &str, more: &[&str]| {
        let mut arguments = vec!["simulate", &trace, "--machine", machine];
        arguments.extend(more);
        output(&arguments, 2).1
    };
    assert!(on("simos-r440", &[]).contains("did you mean `simos-r4400`"));
    assert!(on("zen3", &[]).contains("did you mean `zen3-milan`"));
    assert!(on("simos-r4400", &["--policy", "pagecoloring"]).contains("there is no policy `pagecoloring`"));
    assert!(on("simos-r4400", &["--policy", "random+bin-hopping"]).contains("both choose a page's color"));
    assert!(on("simos-r4400", &["--set", "random.seed"]).contains("policy.parameter=value"));
    assert!(on("simos-r4400", &["--set", "random.seed=x", "--policy", "random"]).contains("allowed is a whole number"));
    assert!(on("simos-r4400", &["--set", "random.sed=1", "--policy", "random"]).contains("no parameter `sed`"));
    assert!(on("simos-r4400", &["--set", "random.seed=1"]).contains("not simulated here; add `--policy random`"));
    assert!(on("simos-r4400", &["--cpus", "0"]).contains("--cpus"));
    assert!(on("simos-r4400", &["--cpus", "100000"]).contains("cpus"));
    assert!(on("simos-r4400", &["--by", "word"]).contains("structure"));
    assert!(on("simos-r4400", &["--order", "random"]).contains("recorded"));
    assert!(output(&["simulate", &trace], 2).1.contains("--machine"));
    assert!(
        output(&["machine", "show", "vax"], 2)
            .1
            .contains("domicile machine list")
    );
}

#[test]
fn missing_and_superfluous_arguments_are_bad_usage() {
    for arguments in [
        &["import", "x"] as &[&str],
        &["import", "--format", "elf", "x", "-o", "y"],
        &["record", "-o", "x.trace"],
        &["record", "-o", "x.trace", "true"],
        &["record", "-o", "x.trace", "--windows", "2", "--", "true"],
        &["record", "--", "true"],
        &["advise"],
        &["advise", "x.trace", "--", "true"],
        &["trace", "cat"],
        &["trace", "cat", "x", "--limit", "many"],
        &["completions", "csh2"],
        &["report"],
        &["machine"],
        &["policy", "list", "--verbose"],
    ] {
        let (out, said) = output(arguments, 2);
        assert!(out.is_empty() && !said.is_empty(), "{arguments:?}");
    }
}
