//! Shared libraries of other packages. `setup/tests` builds them before the tests run, by one command with the test
//! programs: `cargo build --workspace --lib --bins --tests --example record`.

use std::path::{Path, PathBuf};

/// A shared library of the workspace, by the name of its file.
pub fn built(name: &str) -> PathBuf {
    let library = Path::new(env!("CARGO_BIN_EXE_domicile")).with_file_name(name);
    assert!(
        library.is_file(),
        "{} is not there: setup/tests builds it before the tests",
        library.display()
    );
    library
}
