//! The end of `make test`: how many were skipped, and why.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

fn summed_up(list: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../setup/skipped");
    let ran = Command::new(script).arg(list).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn tests_are_counted_once_and_reasons_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("skipped");
    assert_eq!(summed_up(&list), "No test was skipped.\n");
    std::fs::write(
        &list,
        "b::two\tno frames\na::one\tno frames\nb::two\tno frames\nb::two\tno second node\n",
    )
    .unwrap();
    assert_eq!(
        summed_up(&list),
        "2 tests were skipped:\n  2: no frames\n      a::one\n      b::two\n  1: no second node\n      b::two\n"
    );
    std::fs::write(&list, "a::one\tno gcc\n").unwrap();
    assert_eq!(summed_up(&list), "1 test was skipped:\n  1: no gcc\n      a::one\n");
}

/// A failure names what is lacking; where it may lack, the skip is in the list that the environment names.
#[test]
fn what_is_lacking_is_said_by_the_test_that_lacks_it() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("skipped");
    let run = |peers: &str| {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "a_test_without_its_tool", "--ignored"]);
        again.env("DOMICILE_PEERS", peers).env("DOMICILE_SKIPPED", &list);
        again.output().unwrap()
    };
    let failed = run("required");
    assert!(!failed.status.success());
    let said = String::from_utf8_lossy(&failed.stdout).into_owned() + &String::from_utf8_lossy(&failed.stderr);
    assert!(
        said.contains("there is no domicile-none-such, but DOMICILE_PEERS=required"),
        "{said}"
    );
    assert!(!list.exists());
    assert!(run("").status.success());
    let counted = std::fs::read_to_string(&list).unwrap();
    assert_eq!(
        counted,
        "list::a_test_without_its_tool\tthere is no domicile-none-such\n"
    );
}

#[test]
#[ignore = "the test above runs it"]
fn a_test_without_its_tool() {
    assert!(harness::tool("sh"));
    assert!(!harness::tool("domicile-none-such"));
}
