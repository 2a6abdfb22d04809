//! The layers of the source: each crate uses only crates on lower floors, as the table of `ARCHITECTURE.md` has them, and
//! no module of a crate uses itself by way of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Modules with modules of their own that are looked at, too.
const NESTED: [&str; 4] = ["live/src/daemon", "live/src/slots", "capi/src/slots", "policy/src/cdpc"];

/// The modules that are in circles. Names may only be taken out.
const CIRCLES: [(&str, &[&str]); 5] = [
    ("cli/src", &["console", "failure"]),
    (
        "preload/src",
        &[
            "aside", "cdpc", "end", "entry", "files", "fork", "padding", "placing", "start",
        ],
    ),
    (
        "reproduce/src",
        &[
            "counts",
            "error",
            "grid",
            "overhead",
            "paper",
            "papers",
            "plot",
            "programs",
            "record",
            "reproduce",
            "times",
            "traces",
        ],
    ),
    (
        "sim/src",
        &[
            "causes",
            "cdpc",
            "clock",
            "coherence",
            "counted",
            "counts",
            "curves",
            "detail",
            "directory",
            "dynamic",
            "engine",
            "held",
            "homes",
            "input",
            "layout",
            "lookup",
            "miss_path",
            "misses",
            "others",
            "outcome",
            "overlap",
            "pieces",
            "prefetch",
            "sharing",
            "simulate",
            "slots",
            "software_prefetch",
            "steps",
            "tracing",
            "window",
        ],
    ),
    ("trace/src", &["cat", "reader", "stream"]),
];

/// Which modules each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The floor of each crate: `| 3 | `crates/sim` | ...`.
fn floors(architecture: &str) -> BTreeMap<String, u32> {
    let row = |line: &str| {
        let (floor, rest) = line.strip_prefix("| ")?.split_once(" | `crates/")?;
        Some((rest.split_once('`')?.0.to_string(), floor.parse().ok()?))
    };
    architecture.lines().filter_map(row).collect()
}

/// Which crates of the workspace each of them uses, by the names of their folders. What only tests use does not count.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let said = metadata.current_dir(root()).output().expect("cargo starts");
    let metadata: Value = serde_json::from_slice(&said.stdout).expect("cargo describes the workspace");
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let text = |of: &Value| of.as_str().unwrap_or_default().to_string();
    let folder = |package: &Value| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default();
        folder.to_string_lossy().into_owned()
    };
    let packages = list(&metadata["packages"]);
    let folders: BTreeMap<String, String> = packages.iter().map(|of| (text(&of["name"]), folder(of))).collect();
    let uses = |package: &Value| {
        list(&package["dependencies"])
            .iter()
            .filter(|of| of["kind"].is_null())
            .filter_map(|of| folders.get(&text(&of["name"])).cloned())
            .collect()
    };
    packages
        .iter()
        .map(|package| (folder(package), uses(package)))
        .collect()
}

/// What is wrong: a crate without a floor, or one that uses a crate that is not below it.
fn misplaced(floors: &BTreeMap<String, u32>, dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, uses) in dependencies {
        match floors.get(name) {
            None => wrong.push(format!("{name} has no floor in ARCHITECTURE.md")),
            Some(own) => wrong.extend(
                uses.iter()
                    .filter(|used| floors.get(*used).is_some_and(|floor| floor >= own))
                    .map(|used| format!("{name} uses {used}, which is not below it")),
            ),
        }
    }
    wrong
}

#[test]
fn each_crate_uses_only_crates_on_lower_floors() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it can be read");
    let mut dependencies = dependencies();
    // It generates files from what stands on all floors.
    assert!(
        dependencies
            .remove("xtask")
            .is_some_and(|uses| uses.contains("results"))
    );
    assert!(dependencies["sim"].contains("trace"), "{dependencies:?}");
    let floors = floors(&architecture);
    assert_eq!(misplaced(&floors, &dependencies), [""; 0]);
    let gone: Vec<_> = floors.keys().filter(|name| !dependencies.contains_key(*name)).collect();
    assert!(gone.is_empty(), "floors of crates that are not there: {gone:?}");
}

#[test]
fn what_is_misplaced_is_found() {
    let floors = floors("| floor | folder |\n| --- | --- |\n| 1 | `crates/high` | x |\n| 0 | `crates/low` | x |\n");
    let uses = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let dependencies = BTreeMap::from([
        ("high".to_string(), uses(&["low"])),
        ("low".to_string(), uses(&["high"])),
        ("new".to_string(), uses(&[])),
    ]);
    assert_eq!(
        misplaced(&floors, &dependencies),
        [
            "low uses high, which is not below it",
            "new has no floor in ARCHITECTURE.md"
        ]
    );
}

#[test]
fn no_module_uses_itself_over_others() {
    let crates = root().join("crates");
    let own = fs::read_dir(&crates)
        .expect("it can be listed")
        .flatten()
        .map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = own.map(|path| path.join("src")).collect();
    folders.extend(NESTED.map(|folder| crates.join(folder)));
    let (mut read, mut circles) = (0, BTreeMap::<String, Vec<String>>::new());
    for folder in folders {
        let name = folder
            .strip_prefix(&crates)
            .expect("it lies there")
            .display()
            .to_string();
        let uses = uses_in(&folder);
        read += uses.len();
        let found = in_circles(&uses);
        if !found.is_empty() {
            circles.insert(name, found.iter().map(|module| (*module).to_string()).collect());
        }
    }
    let known = CIRCLES.map(|(name, modules)| (name.to_string(), modules.iter().map(|of| (*of).to_string()).collect()));
    assert_eq!(circles, BTreeMap::from(known));
    assert!(read > 200, "only {read} modules were read");
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
                // A function may be called as a module is; a path goes by the module.
                names.entry(name.to_string()).or_insert_with(|| module.to_string());
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
