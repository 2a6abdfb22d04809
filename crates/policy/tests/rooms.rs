//! The rooms of this crate, from the lowest up: each uses only what stands before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// As ARCHITECTURE.md has them.
const ROOMS: [&str; 16] = [
    "page",
    "best_homes",
    "random",
    "slots",
    "order",
    "cdpc",
    "domains",
    "seam",
    "settings",
    "work",
    "homes",
    "regions",
    "color",
    "combine",
    "registry",
    "name",
];

/// The code of a file, without what follows the heading of its tests and without comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// All sources below a folder, with their path in it.
fn sources(folder: &Path, files: &mut Vec<(String, String)>, root: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files, root);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root).unwrap().with_extension("");
            files.push((name.to_string_lossy().into_owned(), code(&path)));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files, &root);
    files
}

/// The words that follow `prefix` in the code: `a` and `b` of `crate::a`, or of `crate::{a, b}`.
fn followers<'a>(code: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let word = |text: &'a str| {
        let end = text
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        &text[..end]
    };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(list) => {
                let mut depth = 0;
                for part in list.split_inclusive([',', '{', '}']) {
                    if depth == 0 {
                        found.insert(word(part.trim_start()));
                    }
                    match part.chars().last() {
                        Some('{') => depth += 1,
                        Some('}') if depth == 0 => break,
                        Some('}') => depth -= 1,
                        _ => {}
                    }
                }
            }
            None => {
                found.insert(word(rest));
            }
        }
    }
    found.remove("");
    found
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let level = |room: &str| ROOMS.iter().position(|other| *other == room);
    for (file, code) in all().iter().filter(|(file, _)| file != "lib") {
        let own = level(file.split('/').next().unwrap()).unwrap_or_else(|| panic!("{file}: a room without a place"));
        for used in followers(code, "crate::") {
            // Who goes by the crate's front door goes around the order.
            let used_level = level(used).unwrap_or_else(|| panic!("{file} uses crate::{used}, which is no room"));
            assert!(used_level <= own, "{file} uses {used}, which stands above it");
        }
    }
}

/// Files of one room: each file, and those beside it that it uses by `super::`.
fn neighbours(room: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = all();
    let front = &files.iter().find(|(file, _)| file == room).unwrap().1;
    // Who exports what: `pub use hints::{Hint, Hints};` of the room's front.
    let mut exported: BTreeMap<&str, String> = BTreeMap::new();
    for statement in front.split(';').filter_map(|part| part.split_once("use ")) {
        if let Some((from, _)) = statement.1.split_once("::") {
            let prefix = format!("{from}::");
            for name in followers(statement.1, &prefix) {
                exported.insert(name, from.to_string());
            }
        }
    }
    let here: BTreeSet<&str> = files
        .iter()
        .filter_map(|(file, _)| file.strip_prefix(&format!("{room}/")))
        .collect();
    let mut uses = BTreeMap::new();
    for (file, code) in &files {
        let Some(own) = file.strip_prefix(&format!("{room}/")).filter(|own| !own.contains('/')) else {
            continue;
        };
        let target = |name: &str| match here.contains(name) {
            true => Some(name.to_string()),
            false => exported.get(name).cloned(),
        };
        let targets = followers(code, "super::").into_iter().filter_map(target);
        uses.insert(own.to_string(), targets.filter(|target| target != own).collect());
    }
    uses
}

#[test]
fn no_circle_is_left_among_the_files_of_page_coloring() {
    let mut uses = neighbours("cdpc");
    assert!(
        uses["weigh"].contains("hints") && uses["steps"].contains("segments"),
        "{uses:?}"
    );
    // Who uses nobody that is left is taken away, until nobody is left.
    while !uses.is_empty() {
        let free: Vec<String> = uses
            .iter()
            .filter(|(_, used)| used.is_empty())
            .map(|(file, _)| file.clone())
            .collect();
        assert!(!free.is_empty(), "a circle: {uses:?}");
        for file in free {
            uses.remove(&file);
            uses.values_mut().for_each(|used| {
                used.remove(&file);
            });
        }
    }
}
