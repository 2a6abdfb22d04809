//! The cpus that a process's cpuset leaves it (`/proc/PID/cpuset`), by version 2 of control groups and by version 1.

use std::path::Path;

use crate::cpus::{CpuSet, cpus, parse_list};
use crate::{Root, SysError};

/// The cpus of a process's cpuset, those only that are online.
///
/// All of them if no group can be seen that has a list of cpus. Errors: absent where the process is gone.
pub fn of(root: &Root, process: u32) -> Result<CpuSet, SysError> {
    let online = cpus(root)?.online;
    let path = format!("proc/{process}/cpuset");
    let group = match root.text(&path) {
        Ok(group) => group,
        // A kernel without cpusets has no such file; a process that is gone has none either.
        Err(_) if root.path(&format!("proc/{process}/stat")).exists() => return Ok(online),
        Err(error) => return Err(error),
    };
    let mounts = root.text("proc/self/mountinfo").unwrap_or_default();
    let listed = mounts.lines().find_map(|line| listed(root, line, &group));
    Ok(match listed {
        Some(listed) => online.into_iter().filter(|cpu| listed.contains(cpu)).collect(),
        None => online,
    })
}

/// The cpus of a group, or of the nearest one above it that has a list, by one mount.
fn listed(root: &Root, mount: &str, group: &str) -> Option<CpuSet> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (above, at) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let names = match kind.next()? {
        "cgroup2" => ["cpuset.cpus.effective", "cpuset.cpus.effective"],
        "cgroup" if kind.nth(1)?.split(',').any(|option| option == "cpuset") => {
            ["cpuset.effective_cpus", "cpuset.cpus"]
        }
        _ => return None,
    };
    // A mount may begin at a group of its own, as in a container.
    let below = Path::new(group).strip_prefix(above).unwrap_or(Path::new(""));
    let at = Path::new(at.trim_start_matches('/'));
    below.ancestors().find_map(|below| {
        let folder = at.join(below);
        let read = |name: &str| parse_list(&root.text(folder.join(name).to_str()?).ok()?);
        names.iter().find_map(|name| read(name)).filter(|cpus| !cpus.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    const ONLINE: (&str, &str) = ("sys/devices/system/cpu/online", "0-7\n");
    const TWO: &str = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const ONE: &str = "24 1 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                       25 1 0:22 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

    #[test]
    fn the_nearest_group_with_a_list_counts() {
        let (_folder, root) = tree(&[
            ONLINE,
            ("proc/5/cpuset", "/a/b\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/a/cpuset.cpus.effective", "2-9\n"),
        ]);
        assert_eq!(of(&root, 5).unwrap(), [2, 3, 4, 5, 6, 7]);
        let (_folder, root) = tree(&[
            ONLINE,
            ("proc/5/cpuset", "/a\n"),
            ("proc/self/mountinfo", ONE),
            ("sys/fs/cgroup/cpuset/a/cpuset.cpus", "1,3\n"),
        ]);
        assert_eq!(of(&root, 5).unwrap(), [1, 3]);
    }

    #[test]
    fn without_groups_all_cpus_are_there() {
        let (_folder, root) = tree(&[ONLINE, ("proc/5/stat", "5 (x) S"), ("proc/6/cpuset", "/a\n")]);
        assert_eq!(of(&root, 5).unwrap().len(), 8);
        assert_eq!(of(&root, 6).unwrap().len(), 8);
        assert!(of(&root, 7).is_err());
        assert!(!of(&Root::default(), std::process::id()).unwrap().is_empty());
    }
}
