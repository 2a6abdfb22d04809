//! Names, and the commands that open what was written.

use profiles::{Export, Format, Value};

#[test]
fn each_name_is_that_of_one_choice() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    for value in Value::ALL {
        assert_eq!(value.to_string().parse(), Ok(value));
    }
    assert_eq!(
        "svg".parse::<Format>().unwrap_err().to_string(),
        "`svg` is no form; there are pprof, folded, perfetto, parquet, callgrind"
    );
    assert_eq!(
        "Stall".parse::<Value>().unwrap_err().to_string(),
        "`Stall` is no value; there are stall, avoided, misses"
    );
}

#[test]
fn viewers_are_commands_whose_paths_are_one_word() {
    let path = "my run/it's $x";
    let export = Export {
        files: vec![(Some("lines.parquet"), Vec::new()), (Some("pages.parquet"), Vec::new())],
    };
    for format in Format::ALL {
        let command = format.viewer(path, &export);
        let words = words_of(&command);
        let whole = words
            .iter()
            .any(|word| word.contains("my run/it's $x") || word.contains("my run/it''s $x"));
        assert!(whole, "{format}: {command}: {words:?}");
    }
    assert_eq!(Format::Callgrind.viewer("a.out", &export), "kcachegrind a.out");
    assert_eq!(
        Format::Folded.viewer("a.txt", &export),
        "inferno-flamegraph a.txt > a.txt.svg"
    );
    let command = Format::Parquet.viewer("run", &export);
    assert!(
        command.contains("FROM 'run/lines.parquet'"),
        "the first table that is there: {command}"
    );
}

/// The words that a shell makes of a command, its comment among them.
fn words_of(command: &str) -> Vec<String> {
    let script = format!(
        "set -f; for word in {}; do printf '%s\\n' \"$word\"; done",
        command.replace(['#', '>'], "")
    );
    let said = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh runs");
    String::from_utf8(said.stdout)
        .expect("it is text")
        .lines()
        .map(str::to_string)
        .collect()
}
