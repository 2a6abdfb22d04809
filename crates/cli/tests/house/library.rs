//! Shared libraries of other packages, which cargo builds for no test by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the shared library of a package: cargo builds none for tests by itself.
pub fn built(package: &str) -> PathBuf {
    {
        let command = Path::new(env!("CARGO_BIN_EXE_domicile"));
        let folder = command.parent().unwrap();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--locked", "--quiet", "-p", package]);
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        cargo
            .arg("--target-dir")
            .arg(folder.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success(), "{package} cannot be built");
        folder.to_path_buf()
    }
}
