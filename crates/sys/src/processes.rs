//! The processes there are, and whose they are.

use std::fs;
use std::io;
use std::path::Path;

use crate::cpus::{CpuSet, parse_list};
use crate::{Problem, Root, SysError};

/// The processes of a user, by any of the user numbers that a process has; those that come or go meanwhile may be
/// among them or not.
pub fn of_user(user: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok()) else {
            continue;
        };
        // A process that is gone has no status.
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
            continue;
        };
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let mut users = users.into_iter().flat_map(str::split_whitespace);
        if users.any(|one| one.parse() == Ok(user)) {
            found.push(process);
        }
    }
    Ok(found)
}

/// The most bytes that the stack of this process's first thread may have (`RLIMIT_STACK`); `None` if there is no limit.
pub fn stack_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Stack).current
}

/// The user by whose rights this process acts; 0 is root.
pub fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The nodes whose memory a process may have (`Mems_allowed_list`: cpusets).
///
/// Errors: absent if the process is gone.
pub fn allowed_nodes(root: &Root, process: u32) -> Result<CpuSet, SysError> {
    let path = format!("proc/{process}/status");
    let text = root.text(&path)?;
    let list = text.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    let nodes = list.and_then(parse_list);
    nodes.ok_or_else(|| root.malformed(&path, &text, "a line Mems_allowed_list:"))
}

/// All processes that are there, each with the one that started it or has taken it over, ascending.
pub fn parents(root: &Root) -> Result<Vec<(u32, u32)>, SysError> {
    let all = root.numbered("proc", "")?.into_iter();
    Ok(all.filter_map(|child| Some((child, parent(root, child)?))).collect())
}

/// A process with all its descendants that are there, ascending. Empty if it is gone.
pub fn family(root: &Root, process: u32) -> Result<Vec<u32>, SysError> {
    let parents = parents(root)?;
    let mut found = Vec::new();
    if parents.iter().any(|(child, _)| *child == process) {
        found.push(process);
    }
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        next += 1;
        for (child, parent) in &parents {
            if *parent == one && !found.contains(child) {
                found.push(*child);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// A process with all that it started, at any remove, as each says of itself: quicker than [`family`], and without those whose own
/// parent has ended. Empty if it is gone.
pub fn descendants(root: &Root, process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        let threads = root.numbered(&format!("proc/{one}/task"), "").unwrap_or_default();
        let children = |thread: &u32| root.text(&format!("proc/{one}/task/{thread}/children"));
        let lists: Vec<String> = threads.iter().filter_map(|thread| children(thread).ok()).collect();
        if next == 0 && lists.is_empty() {
            // The process is gone, or the kernel keeps no such lists.
            return family(root, process).unwrap_or_default();
        }
        next += 1;
        let children = lists.iter().flat_map(|list| list.split_whitespace());
        for child in children.filter_map(|child| child.parse().ok()) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found.sort_unstable();
    found
}

/// The process that started a process, or that has taken it over; `None` if it is gone.
pub fn parent(root: &Root, process: u32) -> Option<u32> {
    let text = root.text(&format!("proc/{process}/stat")).ok()?;
    // The name before it may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The processes of a control group and of those below it, ascending; `group` is its folder.
///
/// Errors: there is no such group, or its processes are listed nowhere.
pub fn of_group(root: &Root, group: &Path) -> Result<Vec<u32>, SysError> {
    const DEPTH: usize = 32;
    let mut found = Vec::new();
    let mut below = vec![(group.to_path_buf(), 0)];
    while let Some((folder, depth)) = below.pop() {
        let path = folder.join("cgroup.procs");
        let named = path.to_string_lossy();
        match root.text(named.trim_start_matches('/')) {
            Ok(text) => found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok())),
            Err(error) if depth == 0 => return Err(error),
            // A group below may go at any moment.
            Err(_) => continue,
        }
        if depth == DEPTH {
            return Err(SysError {
                path: folder,
                problem: Problem::TooDeep,
            });
        }
        let entries = fs::read_dir(root.path(folder.to_string_lossy().trim_start_matches('/')));
        for entry in entries.into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push((folder.join(entry.file_name()), depth + 1));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn a_family_is_all_that_descends_from_a_process() {
        let (_folder, root) = tree(&[
            ("proc/10/stat", "10 (sh (1) S) S 1 10"),
            ("proc/11/stat", "11 (make) S 10 10"),
            ("proc/9/stat", "9 (cc) R 11 10"),
            ("proc/12/stat", "12 (other) S 1 12"),
            ("proc/self/stat", "12 (other) S 1 12"),
        ]);
        assert_eq!(family(&root, 10).unwrap(), [9, 10, 11]);
        assert_eq!(family(&root, 12).unwrap(), [12]);
        assert!(family(&root, 13).unwrap().is_empty());
        // Without lists of children, and with them.
        assert_eq!(descendants(&root, 10), [9, 10, 11]);
        assert!(descendants(&root, 13).is_empty());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let family = family(&Root::default(), std::process::id()).unwrap();
        let listed = descendants(&Root::default(), std::process::id());
        assert!(listed.contains(&child.id()) && listed.contains(&std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.contains(&child.id()) && family.contains(&std::process::id()));
    }

    #[test]
    fn a_group_has_the_processes_of_those_below_it() {
        let (_folder, root) = tree(&[
            ("sys/fs/cgroup/jobs/cgroup.procs", "5\n3\n"),
            ("sys/fs/cgroup/jobs/one/cgroup.procs", "7\n"),
            ("sys/fs/cgroup/jobs/one/two/cgroup.procs", "7\n8\n"),
        ]);
        assert_eq!(of_group(&root, Path::new("/sys/fs/cgroup/jobs")).unwrap(), [3, 5, 7, 8]);
        assert!(of_group(&root, Path::new("/sys/fs/cgroup/none")).is_err());
    }

    #[test]
    fn a_process_may_have_memory_of_some_nodes() {
        let (_folder, root) = tree(&[("proc/5/status", "Name:\tx\nMems_allowed:\t5\nMems_allowed_list:\t0,2\n")]);
        assert_eq!(allowed_nodes(&root, 5).unwrap(), [0, 2]);
        assert!(allowed_nodes(&root, 6).is_err());
        assert!(!allowed_nodes(&Root::default(), std::process::id()).unwrap().is_empty());
    }

    #[test]
    fn this_process_is_among_them() {
        let mine = rustix::process::getuid().as_raw();
        assert!(of_user(mine).unwrap().contains(&std::process::id()));
        // A number that nobody is given.
        assert!(of_user(u32::MAX).unwrap().is_empty());
    }
}
