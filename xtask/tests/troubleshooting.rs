//! The messages that the book's page of troubles quotes are those that the product prints.

use std::fs;
use std::path::{Path, PathBuf};

/// What is neither ours to print nor in Rust.
const OTHERS: [&str; 2] = [
    "its index is read from memory",
    "libdomicile.so: cannot open shared object file",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// A file's text with its strings in one piece: without the ends of lines that a backslash hides, and `"` as itself.
fn text(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    let mut pieces = source.split("\\\n");
    let mut text = pieces.next().unwrap_or_default().to_string();
    pieces.for_each(|piece| text.push_str(piece.trim_start()));
    text.replace("\\\"", "\"")
}

/// The words between what differs from message to message.
fn fixed(message: &str) -> impl Iterator<Item = &str> {
    message.split('…').filter(|piece| !piece.trim().is_empty())
}

#[test]
fn quoted_messages_are_those_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let texts: Vec<String> = files.iter().map(|path| text(path)).collect();
    let page = fs::read_to_string(root.join("docs/src/troubleshooting.md")).unwrap();
    let quoted: Vec<&str> = (page.lines())
        .filter_map(|line| line.strip_prefix("### "))
        .filter_map(|line| {
            let with_code = line.strip_prefix("`` ").and_then(|rest| rest.strip_suffix(" ``"));
            with_code.or_else(|| line.strip_prefix('`')?.strip_suffix('`'))
        })
        .filter(|message| !OTHERS.contains(message))
        .collect();
    assert!(quoted.len() > 50, "{} messages: the page was not read", quoted.len());
    let unknown: Vec<&str> = (quoted.into_iter())
        .filter(|message| {
            !texts
                .iter()
                .any(|text| fixed(message).all(|piece| text.contains(piece)))
        })
        .collect();
    assert!(unknown.is_empty(), "no source prints: {unknown:#?}");
}
