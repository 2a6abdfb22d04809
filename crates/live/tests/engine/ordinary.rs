//! The tests of the engine and of forks once more as an ordinary user.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Set in the second run, which must not run itself again.
const SECOND: &str = "DOMICILE_TEST_ORDINARY_USER";

#[test]
fn all_of_this_as_an_ordinary_user() {
    // If an ordinary user runs the tests, no second run is needed.
    if !harness::root() || std::env::var_os(SECOND).is_some() {
        return;
    }
    // An ordinary user must be able to read the copy.
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = directory.path().join("again");
    harness::copy_program(&std::env::current_exe().unwrap(), &binary);
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    // An ordinary user's frames are those of huge pages, and the page cache of a build may leave no room for one:
    // memory that is nearly full cannot be compacted.
    for file in ["drop_caches", "compact_memory"] {
        let _ = std::fs::write(format!("/proc/sys/vm/{file}"), "1");
    }
    let run = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["--test-threads=2", "engine::", "forks::"])
        .env(SECOND, "1")
        // Root may run the tests that are skipped here, and has run them.
        .env_remove("DOMICILE_SKIPPED")
        .current_dir("/")
        .output();
    let Ok(run) = run else {
        harness::not_installed("there is no setpriv");
        return;
    };
    let text = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{text}\n{errors}");
    assert!(text.contains(" 0 failed; 0 ignored"), "{text}");
}
