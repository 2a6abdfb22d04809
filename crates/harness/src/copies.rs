//! Programs that a test copies and then runs.

use std::path::Path;
use std::process::Command;

/// Copies a program, with its permissions, so that it can be run at once.
///
/// A child process writes the copy. A descriptor of ours for writing would be inherited by whatever another test forks
/// meanwhile, and the kernel does not run a file that anybody has open for writing (`ETXTBSY`, "Text file busy").
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("--").arg(from).arg(to).status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{} cannot be copied to {}",
        from.display(),
        to.display()
    );
}
