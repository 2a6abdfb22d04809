//! Tests that need a separate process.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than a test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);
/// The test whose process this is.
const ALONE: &str = "DOMICILE_TEST_ALONE";

/// Runs the calling test again in a separate process, and fails if it fails there or hangs. True: this is that process.
///
/// `test` is its name in the test harness: modules and function. `environment` is added to this process's own.
pub fn alone(test: &str, environment: &[(&str, &std::ffi::OsStr)]) -> bool {
    if std::env::var(ALONE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("the test program has a name"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, test)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program starts again");
    let mut stdout = child.stdout.take().expect("it is piped");
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stdout, &mut said).map(|_| said)
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if begun.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait()).expect("it is our child");
            panic!("{test} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = said.join().expect("reading does not panic").unwrap_or_default();
    // An unknown test name would pass, with no test run.
    assert!(
        status.success() && said.contains("test result: ok. 1 passed"),
        "{test} in a process of its own: {status}\n{said}"
    );
    false
}

#[cfg(test)]
mod tests {
    use super::alone;

    #[test]
    fn a_test_runs_once_in_a_process_of_its_own() {
        let parent = std::process::id().to_string();
        let environment = [("DOMICILE_TEST_PARENT", parent.as_ref())];
        if alone("alone::tests::a_test_runs_once_in_a_process_of_its_own", &environment) {
            assert_ne!(
                std::env::var("DOMICILE_TEST_PARENT").unwrap(),
                std::process::id().to_string()
            );
        }
    }

    #[test]
    #[should_panic(expected = "in a process of its own")]
    fn a_name_that_no_test_has_is_a_failure() {
        alone("alone::tests::none_such", &[]);
    }
}
