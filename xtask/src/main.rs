//! Generates what is derived from the definition of the command line and from the library's source, and
//! says when it is out of date.
//!
//! `cargo xtask generate` writes the manual pages to `docs/man`, the completions to `completions`,
//! C's headers to `crates/capi/include/domicile`, and the schema of results into the book; `cargo xtask check` fails if
//! what is there differs from what would be written.
#![forbid(unsafe_code)]

mod headers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_complete::Shell;

/// The folders that hold nothing but generated files.
const FOLDERS: [&str; 3] = ["docs/man", "completions", headers::FOLDER];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace");
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("generate") => generate(root),
        Some("check") => check(root),
        _ => {
            eprintln!("usage: cargo xtask generate | check");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

/// The generated files that stand beside others: the types of results, for people and as a JSON schema.
const RESULTS: [&str; 2] = ["docs/src/results.md", "docs/src/results.schema.json"];

/// What should be there: text by path below the root.
fn wanted(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut files = headers::headers(root)?;
    let schema = serde_json::to_string_pretty(&results::schema::schema()).map_err(|error| error.to_string())?;
    files.insert(RESULTS[0].into(), results::schema::page());
    files.insert(RESULTS[1].into(), schema + "\n");
    for (name, page) in cli::pages() {
        files.insert(Path::new(FOLDERS[0]).join(name), page);
    }
    for (shell, name) in [
        (Shell::Bash, "domicile.bash"),
        (Shell::Zsh, "_domicile"),
        (Shell::Fish, "domicile.fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::command(), "domicile", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        files.insert(Path::new(FOLDERS[1]).join(name), script);
    }
    Ok(files)
}

/// What is there.
fn present(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.map_err(|error| format!("cannot list {folder}: {error}"))?.path();
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            files.insert(path.strip_prefix(root).unwrap_or(&path).to_path_buf(), text);
        }
    }
    for file in RESULTS {
        if let Ok(text) = std::fs::read_to_string(root.join(file)) {
            files.insert(file.into(), text);
        }
    }
    Ok(files)
}

fn generate(root: &Path) -> Result<String, String> {
    let wanted = wanted(root)?;
    for path in present(root)?.keys().filter(|path| !wanted.contains_key(*path)) {
        std::fs::remove_file(root.join(path)).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    for (path, text) in &wanted {
        let file = root.join(path);
        let folder = file.parent().unwrap_or(root);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let places = [&FOLDERS[..], &RESULTS[..]].concat();
    Ok(format!("{} files written to {}", wanted.len(), places.join(", ")))
}

fn check(root: &Path) -> Result<String, String> {
    let (wanted, present) = (wanted(root)?, present(root)?);
    let mut drifted: Vec<_> = wanted
        .keys()
        .filter(|path| present.get(*path) != wanted.get(*path))
        .collect();
    drifted.extend(present.keys().filter(|path| !wanted.contains_key(*path)));
    if drifted.is_empty() {
        return Ok(format!("{} generated files are up to date", wanted.len()));
    }
    let names: Vec<_> = drifted.iter().map(|path| path.display().to_string()).collect();
    Err(format!(
        "not what the sources say: {}; run `cargo xtask generate` and commit the result",
        names.join(", ")
    ))
}
