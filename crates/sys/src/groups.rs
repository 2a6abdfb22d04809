//! The memory that the control groups of this process leave it: the most that a service or a container may have.
//!
//! A group's limit holds for it and all groups below it, so each group from the process's own up to the highest that can
//! be seen is asked, by version 2 (`memory.max`, `memory.high`) and by version 1 (`memory.limit_in_bytes`), as
//! they are mounted.

use std::path::{Component, Path, PathBuf};

use crate::pressure::Memory;
use crate::{Root, SysError};

/// A limit beyond this is none: version 1 says so by the highest number of whole pages.
const NONE: u64 = 1 << 60;

/// The limits of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In bytes.
    pub total: u64,
    /// The part of these in use, including files that nobody has used for a while.
    pub used: u64,
    version: Version,
    group: PathBuf,
}

impl Limit {
    /// The memory left in the group. Memory of files that nobody has used for a while counts as left, as for
    /// [`Memory::read`]. The kernel is slow to sum this up: call it only when it matters.
    pub fn memory(&self, root: &Root) -> Memory {
        let unused = self.version.unused(root, &self.group);
        Memory {
            total: self.total,
            available: self.total.saturating_sub(self.used.saturating_sub(unused)),
        }
    }
}

/// The limit of each group that has one.
///
/// Ensures: empty if no group has a limit, or none can be seen.
pub fn limits(root: &Root) -> Result<Vec<Limit>, SysError> {
    let groups = root.text("proc/self/cgroup")?;
    let mounts = root.text("proc/self/mountinfo")?;
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let version = match number {
            "0" => Version::Two,
            _ if controllers.split(',').any(|name| name == "memory") => Version::One,
            _ => continue,
        };
        if let Some(mount) = mounts.lines().find_map(|line| Mount::of(line, version)) {
            // The mounted directory may itself be a group, as in a container: paths begin there.
            let below = Path::new(path).strip_prefix(&mount.group).unwrap_or(Path::new(""));
            let plain = |part: &Component| matches!(part, Component::Normal(_));
            let below: Vec<Component> = below.components().filter(plain).collect();
            for depth in 0..=below.len() {
                let group = below[..depth]
                    .iter()
                    .fold(mount.at.clone(), |path, part| path.join(part));
                limits.extend(version.limit(root, group));
            }
        }
    }
    Ok(limits)
}

/// The memory left in each group; empty if groups cannot be read, as no limit is then known.
pub fn left(root: &Root) -> Vec<Memory> {
    let limits = limits(root).unwrap_or_default();
    limits.iter().map(|limit| limit.memory(root)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

struct Mount {
    /// The group that is there.
    group: String,
    at: PathBuf,
}

impl Mount {
    /// A line of `/proc/self/mountinfo`, if it is the mount of this version's memory groups.
    fn of(line: &str, version: Version) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (group, at) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let fine = match version {
            Version::Two => kind.next()? == "cgroup2",
            Version::One => kind.next()? == "cgroup" && kind.nth(1)?.split(',').any(|option| option == "memory"),
        };
        fine.then(|| Mount {
            group: group.to_string(),
            at: at.trim_start_matches('/').into(),
        })
    }
}

impl Version {
    fn limit(self, root: &Root, group: PathBuf) -> Option<Limit> {
        let number = |name: &str| {
            let number = root.number(group.join(name).to_str()?).ok();
            number.filter(|number| *number < NONE)
        };
        let (total, used) = match self {
            Version::Two => {
                let limits = [number("memory.max"), number("memory.high")];
                (limits.into_iter().flatten().min()?, number("memory.current")?)
            }
            Version::One => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?),
        };
        Some(Limit {
            total,
            used,
            version: self,
            group,
        })
    }

    /// Bytes of files that nobody has used for a while.
    fn unused(self, root: &Root, group: &Path) -> u64 {
        let name = match self {
            Version::Two => "inactive_file",
            Version::One => "total_inactive_file",
        };
        let details = group.join("memory.stat").to_str().map(|path| root.text(path));
        let details = details.and_then(Result::ok).unwrap_or_default();
        let mut lines = details.lines();
        let unused = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        unused.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

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

    const TWO: &str = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
    const BOTH: &str = "30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                        31 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                        32 29 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn every_group_above_counts() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "0::/system.slice/domicile.service\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/system.slice/memory.high", "max\n"),
            ("sys/fs/cgroup/system.slice/memory.current", "1020000000\n"),
            (
                "sys/fs/cgroup/system.slice/memory.stat",
                "anon 5\ninactive_file 20000000\n",
            ),
            ("sys/fs/cgroup/system.slice/domicile.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/domicile.service/memory.high", "134217728\n"),
            (
                "sys/fs/cgroup/system.slice/domicile.service/memory.current",
                "134300000\n",
            ),
        ]);
        let memory = |total, available| Memory { total, available };
        let found = left(&root);
        assert_eq!(found, [memory(1 << 30, 73_741_824), memory(128 * MIB, 0)]);
    }

    #[test]
    fn version_one_and_no_limit() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/a/b\n0::/\n"),
            ("proc/self/mountinfo", BOTH),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "134217728\n"),
            ("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "33554432\n"),
            (
                "sys/fs/cgroup/memory/a/b/memory.stat",
                "inactive_file 1\ntotal_inactive_file 1048576\n",
            ),
        ]);
        let found = left(&root);
        let wanted = Memory {
            total: 128 * MIB,
            available: 97 * MIB,
        };
        assert_eq!(found, [wanted]);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_highest() {
        for (mounted, path) in [
            ("/docker/77", "/docker/77/below"),
            ("/", "/below"),
            ("/docker/77", "/../../x"),
        ] {
            let (_folder, root) = tree(&[
                ("proc/self/cgroup", &format!("0::{path}\n")),
                (
                    "proc/self/mountinfo",
                    &TWO.replace(" / /sys", &format!(" {mounted} /sys")),
                ),
                ("sys/fs/cgroup/memory.max", "1000000\n"),
                ("sys/fs/cgroup/memory.current", "400000\n"),
                ("sys/fs/cgroup/below/memory.max", "300000\n"),
                ("sys/fs/cgroup/below/memory.current", "100000\n"),
            ]);
            let found: Vec<u64> = left(&root).iter().map(|memory| memory.available).collect();
            match path.contains("below") {
                true => assert_eq!(found, [600_000, 200_000]),
                false => assert_eq!(found, [600_000]),
            }
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        for memory in left(&Root::default()) {
            assert!(memory.available <= memory.total && memory.total < NONE);
        }
    }
}
