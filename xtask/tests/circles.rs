//! No circle: no top-level module of a crate uses itself over others. `ARCHITECTURE.md` has the order of the modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where modules lie, and those of them that are in circles. Names may only be taken out.
const ROOMS: [(&str, &[&str]); 12] = [
    ("live/src", &[]),
    ("live/src/daemon", &[]),
    ("live/src/slots", &[]),
    ("capi/src", &[]),
    ("capi/src/slots", &[]),
    ("sys/src", &[]),
    ("summaries/src", &[]),
    ("replicas/src", &[]),
    ("threads/src", &[]),
    ("machine/src", &[]),
    ("protocol/src", &[]),
    (
        "preload/src",
        &[
            "aside", "cdpc", "end", "entry", "files", "fork", "padding", "placing", "start",
        ],
    ),
];

/// Which modules each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_module_uses_itself_over_others() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for (folder, known) in ROOMS {
        let uses = uses_in(&crates.join(folder));
        assert!(uses.len() > 1, "{folder}: no modules were read");
        assert_eq!(in_circles(&uses), known, "modules of {folder} in circles");
    }
}

#[test]
fn circles_are_found() {
    let root = "mod a;\nmod b;\nmod c;\npub use c::{One, Two as Three};\n";
    let names = names_of_root(root);
    assert_eq!(names.get("Three").map(String::as_str), Some("c"));
    let mut uses = Uses::new();
    for (module, text) in [
        ("a", "use crate::b::Thing;\n"),
        ("b", "// use crate::a;\nuse crate::{Three, std};\n"),
        (
            "c",
            "fn f() { crate::a::g() }\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n",
        ),
        ("d", "use crate::a::x;\n#[cfg(test)]\nmod tests;\n"),
    ] {
        uses.insert(module.to_string(), used(text, "crate::", &names));
    }
    assert_eq!(in_circles(&uses), ["a", "b", "c"]);
    uses.get_mut("c").expect("it is there").clear();
    assert!(in_circles(&uses).is_empty());
}

/// The modules from which a way leads back to themselves.
fn in_circles(uses: &Uses) -> Vec<&str> {
    let comes_back = |from: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            for to in uses.get(at).into_iter().flatten() {
                if to == from {
                    return true;
                }
                if seen.insert(to.as_str()) {
                    next.push(to);
                }
            }
        }
        false
    };
    uses.keys()
        .map(String::as_str)
        .filter(|from| comes_back(from))
        .collect()
}

/// The modules of a folder: of a crate, which name each other by `crate::`, or of a module, by `super::`.
fn uses_in(source: &Path) -> Uses {
    let of_crate = source.join("lib.rs");
    let (root, prefix) = match of_crate.exists() {
        true => (of_crate, "crate::"),
        false => (source.with_extension("rs"), "super::"),
    };
    let root = fs::read_to_string(root).expect("the root of the modules can be read");
    let names = names_of_root(&code(&root));
    let modules = names.values().cloned().collect::<BTreeSet<_>>();
    let mut uses = Uses::new();
    for module in modules {
        let mut found = BTreeSet::new();
        let file = source.join(format!("{module}.rs"));
        let mut texts: Vec<String> = fs::read_to_string(file).into_iter().collect();
        // Deeper down `super::` is another module.
        if prefix == "crate::" {
            read_below(&source.join(&module), &mut texts);
        }
        assert!(!texts.is_empty(), "{module} of {} was not found", source.display());
        for text in texts {
            found.extend(used(&text, prefix, &names));
        }
        found.remove(&module);
        uses.insert(module, found);
    }
    uses
}

/// All sources of a folder but tests.
fn read_below(folder: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, texts);
        } else if path.extension().is_some_and(|end| end == "rs")
            && path.file_stem().is_some_and(|stem| stem != "tests")
        {
            texts.push(fs::read_to_string(&path).expect("a source can be read"));
        }
    }
}

/// Which module stands behind each name of the crate's root: its modules, but those for tests, and what it exports of them.
fn names_of_root(root: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut tests = false;
    for line in root.lines().map(str::trim) {
        if let Some(module) = line
            .strip_prefix("pub ")
            .unwrap_or(line)
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
            && !tests
        {
            names.insert(module.to_string(), module.to_string());
        }
        tests = line.starts_with("#[cfg(") && line.contains("test");
    }
    for exported in root.split("pub use ").skip(1) {
        let exported = exported.split(';').next().unwrap_or_default();
        let Some((module, items)) = exported.split_once("::") else {
            continue;
        };
        if !names.contains_key(module) {
            continue;
        }
        for item in items.split([',', '{', '}']) {
            let name = item.rsplit([' ', ':']).find(|word| !word.is_empty());
            if let Some(name) = name.map(str::trim) {
                names.insert(name.to_string(), module.to_string());
            }
        }
    }
    names
}

/// The modules that a source names behind a prefix: `crate::name`, or in `crate::{...}`.
fn used(text: &str, prefix: &str, names: &BTreeMap<String, String>) -> BTreeSet<String> {
    let text = code(text);
    let mut found = BTreeSet::new();
    for rest in text.split(prefix).skip(1) {
        for path in paths(rest) {
            if let Some(module) = names.get(path) {
                found.insert(module.clone());
            }
        }
    }
    found
}

/// The first words of the paths at the start of a text: one, or those in braces.
fn paths(text: &str) -> Vec<&str> {
    let word = |text: &str| {
        text.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len())
    };
    let Some(group) = text.strip_prefix('{') else {
        return vec![&text[..word(text)]];
    };
    let (mut depth, mut begin, mut parts) = (1, 0, Vec::new());
    for (at, c) in group.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 || depth == 1 && c == ',' {
            parts.push(group[begin..at].trim_start());
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    parts.into_iter().map(|part| &part[..word(part)]).collect()
}

/// A source without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}
