//! What is generated: the headers that are committed are those that the source makes today; what is not committed is made
//! here, and read.

use std::process::Command;

use clap_complete::Shell;
use serde_json::Value;

#[test]
fn nothing_generated_has_drifted() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("check")
        .output()
        .expect("xtask starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The verbs that a user sees, with those below them: `trace info` is `trace-info`.
fn verbs(command: &clap::Command, above: &str, found: &mut Vec<String>) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("{above}-{}", verb.get_name());
        verbs(verb, &name, found);
        found.push(name);
    }
}

#[test]
fn each_verb_has_a_manual_page_that_says_how_it_is_called() {
    let pages = cli::pages();
    let mut wanted = vec!["domicile".to_string()];
    verbs(&cli::command(), "domicile", &mut wanted);
    assert!(wanted.len() > 20 && pages.len() == wanted.len(), "{wanted:?}");
    for verb in wanted {
        let page = pages.iter().find(|(name, _)| *name == format!("{verb}.1"));
        let (_, text) = page.unwrap_or_else(|| panic!("{verb} has no page"));
        for part in [".TH ", ".SH NAME", ".SH SYNOPSIS"] {
            assert!(text.contains(part), "{verb}: `{part}` is missing");
        }
    }
}

#[test]
fn completions_know_every_verb_and_bash_reads_them() {
    let mut names = Vec::new();
    verbs(&cli::command(), "domicile", &mut names);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::command(), "domicile", &mut script);
        let script = String::from_utf8(script).expect("it is text");
        for name in &names {
            let verb = name.rsplit('-').next().unwrap_or_default();
            assert!(script.contains(verb), "{shell}: {verb} is missing");
        }
        if shell == Shell::Bash {
            let folder = std::env::temp_dir().join(format!("domicile-completions-{}", std::process::id()));
            std::fs::write(&folder, &script).expect("it can be written");
            let read = Command::new("bash")
                .arg("-n")
                .arg(&folder)
                .output()
                .expect("bash starts");
            std::fs::remove_file(&folder).expect("it is ours");
            assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        }
    }
}

/// Each type that the schema names has a heading on the page, and each link on the page leads to one.
#[test]
fn the_page_of_results_has_every_type_of_the_schema() {
    let schema = results::schema::schema();
    let text = serde_json::to_string(&schema).expect("it is JSON");
    let read: Value = serde_json::from_str(&text).expect("it is read as it was written");
    assert_eq!(read, schema);
    let types = schema["$defs"].as_object().expect("types");
    assert!(
        types.len() > 50 && types.contains_key("Outcome"),
        "{} types",
        types.len()
    );
    let page = results::schema::page();
    for name in types.keys() {
        assert!(page.contains(&format!("\n## {name}\n")), "{name} has no heading");
    }
    for link in page.split("](#").skip(1) {
        let anchor = link.split(')').next().unwrap_or_default();
        assert!(
            types.keys().any(|name| name.to_lowercase() == anchor),
            "#{anchor} leads nowhere"
        );
    }
    for reference in text.split("\"#/$defs/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(types.contains_key(name), "{name} is referred to and not there");
    }
}
