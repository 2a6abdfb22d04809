//! Generates files that are derived from the source, and reports when a committed one is out of date.
//!
//! `cargo xtask generate` writes C's headers to `crates/capi/include/domicile` and the sums of the truth table into
//! README.md, which are committed, and the page and the JSON schema of results to `docs/src`, which are not.
//! `cargo xtask check` fails if a committed file differs from the one that would be written. `cargo xtask readme` runs
//! the demonstration and records programs, and writes the results into README.md and the page on recording;
//! `cargo xtask book` runs the commands whose output pages of the book show, of all pages or of those that are named
//! (`cargo xtask book advice tutorial`). `cargo xtask truth FILE [AGAIN]...` writes the table of predictions and
//! measurements into the book, from the output of `domicile truth --json`, beside further measurements (AGAIN). Manual
//! pages and completions come from the command itself (`domicile man`, `domicile completions`).
#![forbid(unsafe_code)]

mod book;
mod headers;
mod readme;
mod truth;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace");
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("generate") => generate(root),
        Some("check") => check(root),
        Some("truth") => match &std::env::args().skip(2).collect::<Vec<_>>()[..] {
            [file, again @ ..] => truth::write(root, Path::new(file), again),
            [] => Err("truth needs the file that `domicile truth --json` printed".to_string()),
        },
        Some("readme") => write_readme(root),
        Some("book") => write_book(root, &std::env::args().skip(2).collect::<Vec<_>>()),
        _ => {
            eprintln!("usage: cargo xtask generate | check | truth FILE [AGAIN]... | readme | book [PAGE]...");
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

/// The files that are not committed: the types of results, for people and as a JSON schema.
fn results() -> Result<BTreeMap<PathBuf, String>, String> {
    let schema = serde_json::to_string_pretty(&results::schema::schema()).map_err(|error| error.to_string())?;
    Ok(BTreeMap::from([
        ("docs/src/results.md".into(), results::schema::page()),
        ("docs/src/results.schema.json".into(), schema + "\n"),
    ]))
}

/// The headers that are there.
fn present(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut files = BTreeMap::new();
    let folder = headers::FOLDER;
    let entries = std::fs::read_dir(root.join(folder)).map_err(|error| format!("cannot list {folder}: {error}"))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("cannot list {folder}: {error}"))?.path();
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        files.insert(path.strip_prefix(root).unwrap_or(&path).to_path_buf(), text);
    }
    Ok(files)
}

fn generate(root: &Path) -> Result<String, String> {
    let mut wanted = headers::headers(root)?;
    for path in present(root)?.keys().filter(|path| !wanted.contains_key(*path)) {
        std::fs::remove_file(root.join(path)).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    wanted.insert(readme::FILE.into(), readme::with_truth(root)?);
    wanted.extend(results()?);
    for (path, text) in &wanted {
        std::fs::write(root.join(path), text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let names: Vec<_> = wanted.keys().map(|path| path.display().to_string()).collect();
    Ok(format!("written: {}", names.join(", ")))
}

fn write_readme(root: &Path) -> Result<String, String> {
    let written = readme::with_runs(root)?;
    for (file, text) in &written {
        std::fs::write(root.join(file), text).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    Ok(format!("written: {}", written.map(|(file, _)| file).join(", ")))
}

fn write_book(root: &Path, only: &[String]) -> Result<String, String> {
    let command = root.join(readme::domicile());
    let folder = command.parent().unwrap_or(root);
    let pages = book::pages(root, folder, only)?;
    for (file, text) in &pages {
        std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(format!("written: {} pages", pages.len()))
}

fn check(root: &Path) -> Result<String, String> {
    let (mut wanted, mut present) = (headers::headers(root)?, present(root)?);
    wanted.insert(readme::FILE.into(), readme::with_truth(root)?);
    let now = std::fs::read_to_string(root.join(readme::FILE));
    present.insert(
        readme::FILE.into(),
        now.map_err(|error| format!("cannot read {}: {error}", readme::FILE))?,
    );
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
