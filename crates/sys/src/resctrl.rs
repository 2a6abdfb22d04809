//! Support for reserving parts of caches by ways (resctrl: Intel CAT, AMD, Arm MPAM). Intel CAT,
//! AMD, Arm MPAM).

use std::path::PathBuf;

use crate::Root;

/// The kernel's report of resctrl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resctrl {
    /// The kernel does not know it, or the processor cannot.
    Absent,
    /// It could be mounted.
    Unmounted,
    Mounted {
        at: PathBuf,
        /// Caches whose ways can be shared out, as `L3`; with the number of groups that there can be.
        caches: Vec<(String, u64)>,
        /// True if this user may make groups.
        writable: bool,
    },
}

/// Reads /proc/filesystems, /proc/mounts and the mounted tree's `info`.
pub fn resctrl(root: &Root) -> Resctrl {
    let mounts = root.text("proc/mounts").unwrap_or_default();
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        // Spaces are written in octal; nothing else of interest is.
        (kind == "resctrl").then(|| at.replace("\\040", " "))
    });
    let Some(at) = mounted else {
        let known = root.text("proc/filesystems").unwrap_or_default();
        let known = known
            .lines()
            .any(|line| line.split_whitespace().last() == Some("resctrl"));
        return if known { Resctrl::Unmounted } else { Resctrl::Absent };
    };
    let below = at.trim_start_matches('/');
    let mut caches: Vec<(String, u64)> = std::fs::read_dir(root.path(&format!("{below}/info")))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with('L') && !name.contains('_'))
        .filter_map(|name| {
            let groups = root.number(&format!("{below}/info/{name}/num_closids")).ok()?;
            Some((name, groups))
        })
        .collect();
    caches.sort();
    let place = root.path(below);
    let writable = rustix::fs::access(&place, rustix::fs::Access::WRITE_OK).is_ok();
    Resctrl::Mounted {
        at: PathBuf::from(at),
        caches,
        writable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_mounted_tree_tells_its_caches() {
        let folder = tree(&[
            ("proc/filesystems", "nodev\tsysfs\nnodev\tresctrl\n\text4\n"),
            (
                "proc/mounts",
                "proc /proc proc rw 0 0\nresctrl /sys/fs/resctrl resctrl rw,relatime 0 0\n",
            ),
            ("sys/fs/resctrl/info/L3/num_closids", "16\n"),
            ("sys/fs/resctrl/info/L2/num_closids", "8\n"),
            ("sys/fs/resctrl/info/L3_MON/num_rmids", "256\n"),
            ("sys/fs/resctrl/info/MB/num_closids", "8\n"),
        ]);
        assert_eq!(
            resctrl(&Root::new(folder.path())),
            Resctrl::Mounted {
                at: "/sys/fs/resctrl".into(),
                caches: vec![("L2".into(), 8), ("L3".into(), 16)],
                writable: true,
            }
        );
    }

    #[test]
    fn what_is_not_mounted_may_be_known() {
        let known = tree(&[("proc/filesystems", "nodev\tresctrl\n"), ("proc/mounts", "")]);
        assert_eq!(resctrl(&Root::new(known.path())), Resctrl::Unmounted);
        let unknown = tree(&[("proc/filesystems", "nodev\tsysfs\n")]);
        assert_eq!(resctrl(&Root::new(unknown.path())), Resctrl::Absent);
        assert_eq!(resctrl(&Root::new("/nowhere")), Resctrl::Absent);
    }
}
