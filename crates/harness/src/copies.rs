//! Programs that a test copies or writes, and then runs.
//!
//! A child process writes them. Another test that forks meanwhile would inherit our descriptor for writing, and the
//! kernel does not run a file that is open for writing (`ETXTBSY`, "Text file busy").

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program, with its permissions, so that it can be run at once.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("--").arg(from).arg(to).status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{} cannot be copied to {}",
        from.display(),
        to.display()
    );
}

/// Writes a script that anybody may run, and that can be run at once. Replaces an earlier file.
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", r#"rm -f -- "$1" && cat >"$1" && chmod 755 -- "$1""#, "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    // Dropping closes the pipe: the shell then has all of the text.
    let fed = shell.stdin.take().expect("it is piped").write_all(text.as_bytes());
    let status = shell.wait().expect("it is our child");
    assert!(
        fed.is_ok() && status.success(),
        "{} cannot be written: {status}",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_runs_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("-says it");
        for says in ["one", "two"] {
            write_program(&path, &format!("#!/bin/sh\necho {says}\n"));
            let output = Command::new(&path).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{says}\n"));
        }
    }
}
