//! Messages of tests that cannot run here, and the rules when that is a failure.
//!
//! No test returns early without a message. It reports what it lacks, by one of these calls, and then returns:
//!
//! | call | for | is a failure |
//! | --- | --- | --- |
//! | [`not_installed`], [`tool`] | packages of `setup/debian test` | `DOMICILE_PEERS=required`, as in `make test` |
//! | [`not_allowed`] | privileges of root | as root |
//! | [`not_in_this_kernel`] | privileges of root, from some kernel on | as root, on such a kernel |
//! | [`not_here`] | features that not every machine has | never |
//!
//! If it is no failure the skip is counted: a line `program::test`, tab, reason goes to the file that
//! `DOMICILE_SKIPPED` names, which `make test` sums up at its end (`setup/skipped`). Root in a container may lack
//! privileges that root has elsewhere: `DOMICILE_PEERS=optional` turns every failure into a skip.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// The properties of this machine that decide which lacks are allowed.
#[derive(Clone, Debug, Default)]
struct Here {
    /// The value of `DOMICILE_PEERS`.
    peers: String,
    root: bool,
    kernel: (u32, u32),
}

/// The thing that a test lacks.
#[derive(Clone, Copy, Debug)]
enum Lack {
    Installed,
    Allowed,
    InKernel((u32, u32)),
    Here,
}

/// A test lacks a package of `setup/debian test`.
#[track_caller]
pub fn not_installed(why: impl Display) {
    skip(Lack::Installed, &why);
}

/// A test lacks a privilege of root: frame numbers, `userfaultfd` with the kernel's own accesses, another user's name.
#[track_caller]
pub fn not_allowed(why: impl Display) {
    skip(Lack::Allowed, &why);
}

/// A test lacks a privilege of root that kernels have from `since` on: `(6, 8)` for `UFFDIO_MOVE`.
#[track_caller]
pub fn not_in_this_kernel(since: (u32, u32), why: impl Display) {
    skip(Lack::InKernel(since), &why);
}

/// A test lacks a feature that some machines do not have, for any user: protection keys, counters, a second node.
#[track_caller]
pub fn not_here(why: impl Display) {
    skip(Lack::Here, &why);
}

/// Returns true if this command exists. Prints nothing: for tests that can use another.
pub fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Returns true if this command of `setup/debian test` exists; reports it if not.
#[track_caller]
pub fn tool(name: &str) -> bool {
    let found = is_there(name);
    if !found {
        not_installed(format_args!("there is no {name}"));
    }
    found
}

/// Returns true if the tests run as root. Prints nothing: for tests that try more as root.
pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[track_caller]
fn skip(lack: Lack, why: &dyn Display) {
    let program = std::env::current_exe().unwrap_or_default();
    let thread = std::thread::current();
    let test = name(&program, thread.name());
    match verdict(lack, &here()) {
        Err(rule) => panic!("{test} cannot run: {why}, but {rule}"),
        Ok(()) => {
            // Bypasses the test harness, which captures the output of a passing test.
            let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
            if let Some(list) = std::env::var_os("DOMICILE_SKIPPED") {
                record(&test, &why.to_string(), Path::new(&list));
            }
        }
    }
}

fn here() -> Here {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    Here {
        peers: std::env::var("DOMICILE_PEERS").unwrap_or_default(),
        root: root(),
        kernel: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
    }
}

/// Accepts a lack as a skip; else returns the rule that forbids it.
fn verdict(lack: Lack, here: &Here) -> Result<(), String> {
    let by_root = "the tests are root's, and root may (DOMICILE_PEERS=optional where this root may not)";
    match lack {
        _ if here.peers == "optional" => Ok(()),
        Lack::Installed if here.peers == "required" => {
            Err("DOMICILE_PEERS=required: run setup/debian test".to_string())
        }
        Lack::Allowed if here.root => Err(by_root.to_string()),
        Lack::InKernel((major, minor)) if here.root && here.kernel >= (major, minor) => {
            Err(format!("the kernel is Linux {major}.{minor} or later and {by_root}"))
        }
        _ => Ok(()),
    }
}

/// `program::test`: the file without its hash, and the thread's name in the test harness.
fn name(program: &Path, thread: Option<&str>) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    // All crates have a program of this name, so the crate's name replaces it.
    let package = std::env::var("CARGO_PKG_NAME")
        .ok()
        .filter(|_| program == "integration");
    let program = package.as_deref().unwrap_or(program);
    format!("{program}::{}", thread.unwrap_or("a thread of it"))
}

/// A line of the list of skips.
fn record(test: &str, why: &str, list: &Path) {
    let why = why.replace(['\n', '\t'], " ");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
    // A single write: tests run in parallel.
    let written = file.and_then(|mut file| file.write_all(format!("{test}\t{why}\n").as_bytes()));
    if let Err(error) = written {
        panic!("{}: a skip cannot be counted: {error}", list.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(peers: &str, root: bool, kernel: (u32, u32)) -> Here {
        Here {
            peers: peers.to_string(),
            root,
            kernel,
        }
    }

    #[test]
    fn what_is_installed_is_required_where_peers_are() {
        assert!(verdict(Lack::Installed, &here("", true, (6, 1))).is_ok());
        let said = verdict(Lack::Installed, &here("required", false, (6, 1))).unwrap_err();
        assert!(said.contains("setup/debian test"), "{said}");
    }

    #[test]
    fn what_root_may_is_required_of_root_alone() {
        assert!(verdict(Lack::Allowed, &here("required", false, (6, 8))).is_ok());
        assert!(verdict(Lack::Allowed, &here("", true, (6, 8))).is_err());
        assert!(verdict(Lack::Allowed, &here("optional", true, (6, 8))).is_ok());
    }

    #[test]
    fn what_the_kernel_is_too_old_for_is_required_of_nobody() {
        let since = Lack::InKernel((6, 8));
        assert!(verdict(since, &here("required", true, (6, 1))).is_ok());
        assert!(verdict(since, &here("required", true, (5, 19))).is_ok());
        assert!(verdict(since, &here("required", true, (6, 8))).is_err());
        assert!(verdict(since, &here("required", true, (7, 0))).is_err());
        assert!(verdict(since, &here("required", false, (7, 0))).is_ok());
    }

    #[test]
    fn what_a_machine_does_not_have_is_never_a_failure() {
        assert!(verdict(Lack::Here, &here("required", true, (6, 8))).is_ok());
    }

    #[test]
    fn a_skip_is_a_line_of_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let test = name(Path::new("/target/debug/deps/engine-0123abcd"), Some("places::one"));
        record(&test, "no frames:\n\tof anybody", &list);
        record("engine::two", "why", &list);
        assert_eq!(
            std::fs::read_to_string(&list).unwrap(),
            "engine::places::one\tno frames:  of anybody\nengine::two\twhy\n"
        );
        assert!(super::here().kernel > (3, 0));
    }
}
