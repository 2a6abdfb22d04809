//! Programs that cannot be started with a plan, and errors in plans: reported before anything runs.

use std::process::Command;

use crate::slow::run::workshop::{Workshop, plainly};

const SLOT: &str = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n";

/// The message of `domicile run` about a program that it does not start.
fn refusal(shop: &Workshop, plan: &str, command: &[&str]) -> String {
    let run = shop.run(plan, &[], command);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said());
    assert_eq!(run.printed(), "");
    run.said()
}

fn data(what: &str) -> String {
    format!("{SLOT}[[data]]\n{what}\nslot = \"a\"\n")
}

#[test]
fn names_that_mean_nothing_are_reported_all_at_once() {
    let shop = Workshop::new();
    let Some(program) = shop.program("arrays.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plan = data("symbol = \"zerso\"") + "[[data]]\nsite = \"heap: frist\"\nslot = \"a\"\n";
    let said = refusal(&shop, &plan, &[program]);
    assert!(
        said.contains("zerso: no such static data") && said.contains("did you mean zeros?"),
        "{said}"
    );
    assert!(
        said.contains("heap: frist: no such code") && said.contains("did you mean first?"),
        "{said}"
    );
    let moved = refusal(&shop, &data("site = \"heap: first (arrays.c:99)\""), &[program]);
    assert!(moved.contains("at lines 14 to 14 of arrays.c"), "{moved}");

    let run = shop.run(&plan, &["--skip-missing"], &[program]);
    run.is_as(&plainly(&[program]));
    assert!(run.said().contains("note: zerso"), "{}", run.said());
}

#[test]
fn bad_plans_are_reported() {
    let shop = Workshop::new();
    for (plan, about) in [
        ("[[slot]]\nname = 3\n", "plan.toml"),
        ("[[data]]\nsymbol = \"x\"\nslot = \"nowhere\"\n", "nowhere"),
        ("not toml at all", "plan.toml"),
    ] {
        let said = refusal(&shop, plan, &["true"]);
        assert!(said.contains(about), "{said}");
    }
}

#[test]
fn programs_that_no_library_can_be_loaded_into() {
    let shop = Workshop::new();
    if let Some(program) = shop.program("forks.c", &["-static"]) {
        let said = refusal(&shop, &data("symbol = \"table\""), &[program.to_str().unwrap()]);
        assert!(said.contains("statically linked"), "{said}");
    }
    let text = shop.file("text", "hello\n");
    plainly(&["chmod", "+x", text.to_str().unwrap()]);
    let said = refusal(&shop, SLOT, &[text.to_str().unwrap()]);
    assert!(said.contains("neither an ELF program nor a script"), "{said}");
    let said = refusal(&shop, SLOT, &["/no/such/program"]);
    assert!(said.contains("there is no such program"), "{said}");
    let said = refusal(&shop, SLOT, &["/"]);
    assert!(said.contains("a folder, and no program"), "{said}");
    let plain = shop.file("plain", "hello\n");
    let said = refusal(&shop, SLOT, &[plain.to_str().unwrap()]);
    assert!(said.contains("not executable"), "{said}");
}

#[test]
fn a_script_stands_for_its_interpreter() {
    let shop = Workshop::new();
    let script = shop.path("script");
    harness::write_program(&script, "#!/usr/bin/env sh\necho it ran\n");
    let run = shop.run(SLOT, &[], &[script.to_str().unwrap()]);
    assert_eq!(run.printed(), "it ran\n", "{}", run.said());
    assert!(
        run.said().contains("names are those of its interpreter"),
        "{}",
        run.said()
    );
    assert_eq!(run.report["processes"].as_array().unwrap().len(), 1, "{:#}", run.report);
    // The message about a missing name also tells whose names were looked up.
    let said = refusal(&shop, &data("symbol = \"nowhere_at_all\""), &[script.to_str().unwrap()]);
    assert!(said.contains("names are those of its interpreter"), "{said}");
}

#[test]
fn without_colors_nothing_is_started() {
    let shop = Workshop::new();
    let plan = shop.file("slots.toml", SLOT);
    let output = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args(["run", "--slots", plan.to_str().unwrap(), "--", "echo", "started"])
        .env("DOMICILE_COLORS", "force:3:4:65536")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "it was started");
    assert!(
        said.contains("DOMICILE_COLORS") && said.contains("was not started"),
        "{said}"
    );
}

#[test]
fn wrong_colors_on_the_command_line_are_bad_usage() {
    let shop = Workshop::new();
    let plan = shop.file("slots.toml", SLOT);
    for (colors, about) in [
        ("12:4", "not three numbers"),
        ("force:12:4:65536", "not three numbers"),
        ("12:x:65536", "no number"),
        ("3:4:65536", "from bit 12"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_domicile"))
            .args(["run", "--force-colors", colors, "--slots", plan.to_str().unwrap(), "--"])
            .args(["echo", "started"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty(), "it was started");
        assert!(
            said.contains(&format!("`--force-colors {colors}`")) && said.contains(about),
            "{said}"
        );
        assert!(!said.contains("DOMICILE_COLORS"), "{said}");
    }
}

#[test]
fn a_report_that_its_file_cannot_take_is_printed() {
    let shop = Workshop::new();
    let plan = shop.file("slots.toml", SLOT);
    let output = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args([
            "run",
            "--force-colors",
            "12:4:65536",
            "--skip-missing",
            "--slots",
            plan.to_str().unwrap(),
        ])
        .args(["--report", "/dev/full", "--", "sh", "-c", "exit 7"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("cannot write the report to /dev/full"), "{said}");
    assert!(
        said.contains("domicile: the colors are forced"),
        "the report is lost: {said}"
    );
}

#[test]
fn a_report_that_cannot_be_written_is_refused_beforehand() {
    let shop = Workshop::new();
    let plan = shop.file("slots.toml", SLOT);
    let output = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args(["run", "--force-colors", "12:4:65536", "--slots", plan.to_str().unwrap()])
        .args(["--report", "/no/such/folder/report", "--", "echo", "started"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "it was started");
    assert!(
        said.contains("cannot write the report to /no/such/folder/report"),
        "{said}"
    );
}

#[test]
fn more_private_cache_than_there_is_leaves_the_program_as_it_was() {
    let shop = Workshop::new();
    let Some(program) = shop.program("arrays.c", &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plan = data("symbol = \"zeros\"").replace("256 KiB", "64 MiB");
    let run = shop.run(&plan, &[], &[program]);
    run.is_as(&plainly(&[program]));
    let process = run.report["processes"][0].to_string();
    assert!(process.contains("slot a") || process.contains("colors"), "{process}");
}

#[test]
fn the_end_of_the_program_is_ours() {
    let shop = Workshop::new();
    let run = shop.run(SLOT, &[], &["sh", "-c", "echo here; kill -TERM $$"]);
    assert_eq!(
        (run.printed().as_str(), run.output.status.code()),
        ("here\n", Some(128 + 15))
    );
    let text = Command::new(env!("CARGO_BIN_EXE_domicile"))
        .args(["run", "--slots"])
        .output()
        .unwrap();
    assert_eq!(text.status.code(), Some(2));
}
