//! Other people's readers in Python, which `readers.sh` installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use profiles::{Export, Format, Value, export};
use results::Document;
use serde_json::Value as Json;

/// The one file of a form.
pub fn bytes(document: &Document, format: Format, value: Value) -> Vec<u8> {
    let Export { files } = export(document, format, value).expect("the result has what it takes");
    let [(None, bytes)] = &files[..] else {
        panic!("{format} is one file without a name");
    };
    bytes.clone()
}

pub fn text(document: &Document, format: Format, value: Value) -> String {
    String::from_utf8(bytes(document, format, value)).expect("it is text")
}

/// What a command says, which must succeed.
pub fn said(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {errors}", output.status);
    String::from_utf8(output.stdout).expect("it says text")
}

/// A python that has the readers: that of `readers.sh`, or what `DOMICILE_READERS` names.
fn python() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/oracles/readers/bin/python");
    let named = std::env::var_os("DOMICILE_READERS").map(PathBuf::from);
    named.or(Some(installed)).filter(|python| {
        let import = Command::new(python)
            .args(["-c", "import duckdb, polars, perfetto, google.protobuf"])
            .stderr(Stdio::null())
            .status();
        import.is_ok_and(|status| status.success())
    })
}

/// What a script of `readers/` read from a path; `None`, after saying so, where the readers are not installed.
#[track_caller]
pub fn read(script: &str, path: &Path) -> Option<Json> {
    let Some(python) = python() else {
        harness::not_installed("the readers are not there (crates/profiles/tests/readers.sh installs them)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers").join(script);
    let said = said(Command::new(python).arg(script).arg(path));
    Some(serde_json::from_str(&said).expect("it prints JSON"))
}
