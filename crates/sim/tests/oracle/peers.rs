//! Other people's tools, and how they are run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prints a test's message although it passes.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A python that has pycachesim: that of `tests/oracles/pycachesim.sh`, or what `DOMICILE_PYCACHESIM` names.
pub fn python_with_pycachesim() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/oracles/pycachesim/bin/python");
    let named = std::env::var_os("DOMICILE_PYCACHESIM").map(PathBuf::from);
    named.or(Some(installed)).filter(|python| {
        let import = Command::new(python)
            .args(["-c", "import cachesim"])
            .stderr(Stdio::null())
            .status();
        import.is_ok_and(|status| status.success())
    })
}

/// A program under one of Valgrind's tools, the same way each time: the same environment, no randomised addresses.
///
/// Containers may refuse to switch the randomisation off. Valgrind's own layout (program, heap, stack, libraries) is
/// the same either way.
pub fn valgrind(folder: &Path, arguments: &[&str], program: &[&str]) -> Result<(), String> {
    let fixed = Command::new("setarch")
        .args(["-R", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let words: &[&str] = if fixed {
        &["setarch", "-R", "valgrind"]
    } else {
        &["valgrind"]
    };
    let run = Command::new(words[0])
        .args(&words[1..])
        .args(arguments)
        .args(program)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", words[0]))?;
    if run.status.success() {
        return Ok(());
    }
    Err(format!("{} {}", run.status, String::from_utf8_lossy(&run.stderr)))
}
