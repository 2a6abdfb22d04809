//! The Python package of `python/`, with the library as it is installed.

use std::path::Path;
use std::process::Command;

use crate::slow::installed::prefix::{Prefix, output};

#[test]
fn arrays_in_python() {
    let Some(prefix) = Prefix::installed() else { return };
    let has_numpy = |python: &&str| {
        let ran = Command::new(python).args(["-c", "import numpy"]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    // The first one in PATH may be another than Debian's, which has Debian's NumPy.
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_numpy) else {
        harness::not_installed("python3 with NumPy");
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut tests = Command::new(python);
    tests
        .args([
            "-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-t", ".",
        ])
        .current_dir(package)
        .env("DOMICILE_LIBRARY", prefix.path("lib/libdomicile.so.0"));
    let ran = output(&mut tests);
    assert!(ran.success, "{}{}", ran.stdout, ran.stderr);
    // The runner would be content with no tests at all.
    assert!(ran.stderr.contains("Ran 10 tests"), "{}", ran.stderr);
}
