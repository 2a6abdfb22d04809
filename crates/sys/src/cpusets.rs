//! The cpus that a process's cpuset leaves it (`/proc/PID/cpuset`), by version 2 of control groups and by version 1; and the
//! cpuset of a group of version 2, which can be given cpus.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cpus::{CpuSet, cpus, parse_list};
use crate::{Problem, Root, SysError};

/// The file of a group's own choice of cpus.
const CHOSEN: &str = "cpuset.cpus";
/// The file of the cpus that a group has.
const HAS: &str = "cpuset.cpus.effective";

/// The cpuset of a control group of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Tells it from a later group of the same name.
    pub id: u64,
    /// The cpus that were chosen for it, as a list; empty if it has all that are left to it.
    pub cpus: String,
    /// The cpus that the group above leaves it.
    pub above: CpuSet,
    /// The reason why others had better not choose its cpus.
    pub obstacle: Option<&'static str>,
}

/// The control group that a process is in: its folder, in the first hierarchy of version 2 that is mounted.
pub fn group_of(root: &Root, process: u32) -> Option<PathBuf> {
    let groups = root.text(&format!("proc/{process}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = root.text("proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (above, at) = (place.next()?, place.next()?);
        // A group outside of the mount, as of a container, has no folder.
        let below = Path::new(group).strip_prefix(above).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(at).join(below))
    })
}

/// Reads the cpuset of a group; `folder` is its folder.
///
/// Errors: absent if the group is gone, or has no cpuset: the group above it does not hand the controller on.
pub fn group(root: &Root, folder: &Path) -> Result<Group, SysError> {
    let text = |name: &str| root.text(&below(folder, name));
    let cpus = text(CHOSEN)?;
    let online = self::cpus(root)?.online;
    // The group at the top of a mount has no group above that can be seen.
    let above = folder.parent().and_then(|above| root.text(&below(above, HAS)).ok());
    let above = match above.as_deref().and_then(parse_list) {
        Some(above) => online.into_iter().filter(|cpu| above.contains(cpu)).collect(),
        None => online,
    };
    let mut entries = std::fs::read_dir(root.path(&below(folder, "")))
        .into_iter()
        .flatten()
        .flatten();
    let obstacle = match () {
        () if text("cgroup.type").is_ok_and(|kind| kind != "domain") => Some("it is a part of a threaded group"),
        () if text("cpuset.cpus.partition").is_ok_and(|kind| kind != "member") => {
            Some("its cpus are its own partition")
        }
        () if entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) => Some("it has groups below it"),
        () => None,
    };
    let id = std::fs::metadata(root.path(&below(folder, CHOSEN))).map(|file| file.ino());
    let id = id.map_err(|error| SysError {
        path: folder.join(CHOSEN),
        problem: Problem::Failed(error),
    })?;
    Ok(Group {
        id,
        cpus,
        above,
        obstacle,
    })
}

/// Chooses cpus for a group, as a list; an empty one gives it all that the group above leaves it.
///
/// Errors: absent if the group is gone or has no cpuset; closed where this process may not choose; refused for an empty list
/// where processes are in the group (ENOSPC, as in Linux 6.12).
pub fn choose(root: &Root, folder: &Path, cpus: &str) -> Result<(), SysError> {
    // An empty buffer would not be a write.
    root.write(&below(folder, CHOSEN), &format!("{cpus}\n"))
}

fn below(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    path.to_string_lossy().trim_start_matches('/').to_string()
}

/// The cpus of a process's cpuset, those only that are online.
///
/// All of them if no group can be seen that has a list of cpus. Errors: absent if the process is gone.
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
    fn a_group_is_read_and_chosen_for() {
        let (folder, root) = tree(&[
            ONLINE,
            ("proc/5/cgroup", "3:cpu:/x\n0::/a/b\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/a/cpuset.cpus.effective", "2-9\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus", "\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.partition", "member\n"),
            ("sys/fs/cgroup/a/b/cgroup.type", "domain\n"),
        ]);
        let b = group_of(&root, 5).unwrap();
        assert_eq!(
            (b.as_path(), group_of(&root, 7)),
            (Path::new("/sys/fs/cgroup/a/b"), None)
        );
        let empty = group(&root, &b).unwrap();
        assert_eq!((empty.cpus.as_str(), empty.obstacle), ("", None));
        assert_eq!(empty.above, [2, 3, 4, 5, 6, 7]);
        let file = folder.path().join("sys/fs/cgroup/a/b/cpuset.cpus");
        for cpus in ["2-3", ""] {
            choose(&root, &b, cpus).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{cpus}\n"));
            assert_eq!(group(&root, &b).unwrap().cpus, cpus);
        }
        // Each of these is a reason not to choose.
        std::fs::create_dir(folder.path().join("sys/fs/cgroup/a/b/c")).unwrap();
        assert_eq!(group(&root, &b).unwrap().obstacle, Some("it has groups below it"));
        std::fs::write(folder.path().join("sys/fs/cgroup/a/b/cpuset.cpus.partition"), "root\n").unwrap();
        assert_eq!(
            group(&root, &b).unwrap().obstacle,
            Some("its cpus are its own partition")
        );
        std::fs::write(folder.path().join("sys/fs/cgroup/a/b/cgroup.type"), "threaded\n").unwrap();
        assert_eq!(
            group(&root, &b).unwrap().obstacle,
            Some("it is a part of a threaded group")
        );
        // Without the controller there is no such file.
        let none = group(&root, b.parent().unwrap()).unwrap_err();
        assert!(matches!(none.problem, Problem::Absent));
        let none = choose(&root, b.parent().unwrap(), "1").unwrap_err();
        assert!(matches!(none.problem, Problem::Absent));
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
