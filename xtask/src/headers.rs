//! C's headers, from the Rust source of the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Their folder, which has nothing else.
pub const FOLDER: &str = "crates/capi/include/domicile";

/// Each header, and the files of `crates/capi/src` that define its contents, in its order.
const HEADERS: [(&str, &[&str]); 3] = [
    ("th", &["th"]),
    ("ulcc", &["ulcc"]),
    (
        "domicile",
        &[
            "error",
            "structures",
            "order",
            "fork",
            "ask",
            "companions",
            "slots/structures",
            "slots",
            "slots/application",
            "slots/slot",
            "slots/group",
            "slots/data_set",
            "slots/memory",
            "replicated",
            "ship",
            "shared_replicas",
        ],
    ),
];

/// The headers' text, by path below the root.
pub fn headers(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let library = root.join("crates/capi");
    let mut files = BTreeMap::new();
    for (name, sources) in HEADERS {
        let problem = |error: &dyn std::fmt::Display| format!("cannot generate {name}.h: {error}");
        let settings = library.join("cbindgen").join(name).with_extension("toml");
        let config = cbindgen::Config::from_file(&settings).map_err(|error| problem(&error))?;
        let mut builder = cbindgen::Builder::new().with_config(config);
        for source in sources {
            builder = builder.with_src(library.join("src").join(source).with_extension("rs"));
        }
        let mut text = Vec::new();
        builder.generate().map_err(|error| problem(&error))?.write(&mut text);
        let text = for_c(&String::from_utf8_lossy(&text));
        files.insert(Path::new(FOLDER).join(name).with_extension("h"), text);
    }
    Ok(files)
}

/// Leaves out what only Rust's readers need: the caller's duties are stated once, at the top of the header.
fn for_c(header: &str) -> String {
    let mut text = String::new();
    let mut skips = false;
    for line in header.lines() {
        skips |= line.trim() == "* # Safety";
        if line.trim() == "*/" {
            if skips && text.ends_with(" *\n") {
                text.truncate(text.len() - " *\n".len());
            }
            skips = false;
        }
        if !skips {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_ends_where_rusts_promises_begin() {
        let header = "/**\n * Runs.\n *\n * # Safety\n * No.\n */\nvoid run(void);\n";
        assert_eq!(for_c(header), "/**\n * Runs.\n */\nvoid run(void);\n");
    }
}
