//! The memory that this process can still have: the machine's, within the limits of its control groups.

use crate::pressure::Memory;
use crate::{Root, groups};

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// The most that there could be: the machine's, or that of the tightest of the process's groups.
    pub total: u64,
    /// The memory available now without swapping and without killing any process.
    pub free: u64,
}

impl Headroom {
    /// The headroom of the calling process. A limit that cannot be read counts as none. If the kernel reports nothing
    /// at all, the headroom is a gigabyte, a cautious guess.
    pub fn read(root: &Root) -> Headroom {
        let mut room = match Memory::read(root) {
            Ok(memory) => Headroom {
                total: memory.total,
                free: memory.available,
            },
            Err(_) => Headroom {
                total: 4 << 30,
                free: 1 << 30,
            },
        };
        let all = room.total;
        // A limit no lower than the available memory needs no further look.
        for limit in groups::limits(root).unwrap_or_default() {
            if limit.total >= all {
                continue;
            }
            room.total = room.total.min(limit.total);
            if limit.total.saturating_sub(limit.used) < room.free {
                room.free = room.free.min(limit.memory(root).available);
            }
        }
        room
    }

    /// The most memory that may be filled at once without a sure need: half of the free memory, and never the
    /// last eighth of all.
    pub fn to_fill(&self) -> u64 {
        (self.free / 2).min(self.free.saturating_sub(self.total / 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let memory = (
            "proc/meminfo",
            "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable: 4096 kB\n",
        );
        let mounts = (
            "proc/self/mountinfo",
            "31 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        for (path, text) in files.iter().chain([&memory, &mounts]) {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    const KIB: u64 = 1 << 10;

    #[test]
    fn without_groups_it_is_what_the_machine_has() {
        let (_folder, root) = tree(&[("proc/self/cgroup", "0::/\n")]);
        let room = Headroom::read(&root);
        let wanted = Headroom {
            total: 8192 * KIB,
            free: 4096 * KIB,
        };
        assert_eq!((room, room.to_fill()), (wanted, 2048 * KIB));
    }

    #[test]
    fn the_tightest_group_above_decides() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "0::/a/b/c\n"),
            ("sys/fs/cgroup/a/memory.max", "2097152\n"),
            ("sys/fs/cgroup/a/memory.current", "1048576\n"),
            (
                "sys/fs/cgroup/a/memory.stat",
                "anon 524288\ninactive_file 524288\nactive_file 0\n",
            ),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "4194304\n"),
            ("sys/fs/cgroup/a/b/memory.current", "1048576\n"),
            // The limit is as above, and this group uses little of it.
            ("sys/fs/cgroup/a/b/c/memory.max", "2097152\n"),
            ("sys/fs/cgroup/a/b/c/memory.current", "4096\n"),
        ]);
        let room = Headroom::read(&root);
        let wanted = Headroom {
            total: 2048 * KIB,
            free: 1536 * KIB,
        };
        assert_eq!((room, room.to_fill()), (wanted, 768 * KIB));
    }

    #[test]
    fn groups_of_the_first_version_count_and_full_ones_leave_nothing() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/m\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1048576\n"),
            ("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1000000\n"),
            (
                "sys/fs/cgroup/memory/m/memory.stat",
                "cache 1\ntotal_inactive_file 4096\n",
            ),
        ]);
        let room = Headroom::read(&root);
        assert_eq!((room.total, room.free), (1 << 20, (1 << 20) - 1_000_000 + 4096));
        // Less than an eighth is left.
        assert_eq!(room.to_fill(), 0);
    }
}
