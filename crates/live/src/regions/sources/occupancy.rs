//! The part of the last cache that each process holds, as the processor counts it (resctrl: Intel CMT, AMD, Arm MPAM).
//!
//! Each process gets a group of its own for monitoring. Threads that begin later are in the group of the one that began them.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use sys::resctrl::{Resctrl, resctrl};
use sys::{Root, tasks};

use super::Source;

pub const NAME: &str = "resctrl";
/// The error of a thread that has ended.
const ESRCH: i32 = 3;

pub struct Occupancy {
    root: Root,
    /// The folder of groups for monitoring.
    groups: PathBuf,
    watched: BTreeMap<u32, PathBuf>,
}

pub fn probe(root: &Root) -> Result<Occupancy, String> {
    let at = match resctrl(root) {
        Resctrl::Absent => return Err("the kernel or the processor has none".to_string()),
        Resctrl::Unmounted => return Err("it is not mounted (mount -t resctrl resctrl /sys/fs/resctrl)".to_string()),
        Resctrl::Mounted { writable: false, .. } => return Err("this user may make no groups in it".to_string()),
        Resctrl::Mounted { at, .. } => root.path(at.to_string_lossy().trim_start_matches('/')),
    };
    let features = fs::read_to_string(at.join("info/L3_MON/mon_features")).unwrap_or_default();
    match features.lines().any(|feature| feature == "llc_occupancy") {
        true => Ok(Occupancy {
            root: root.clone(),
            groups: at.join("mon_groups"),
            watched: BTreeMap::new(),
        }),
        false => Err("the processor does not monitor the occupancy of its last cache".to_string()),
    }
}

impl Occupancy {
    /// Puts all threads of a process into its group, one a write, as the kernel wants it.
    fn gather(&self, process: u32, group: &Path) -> Result<(), String> {
        let path = group.join("tasks");
        let threads = tasks::of(&self.root, process).map_err(|_| "it has ended".to_string())?;
        let already = fs::read_to_string(&path).unwrap_or_default();
        for thread in threads {
            let number = thread.number.to_string();
            if already.lines().any(|line| line == number) {
                continue;
            }
            let opened = OpenOptions::new().append(true).create(true).open(&path);
            match opened.and_then(|mut file| writeln!(file, "{number}")) {
                // It has just ended.
                Err(error) if error.raw_os_error() == Some(ESRCH) => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

impl Source for Occupancy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limit(&self) -> &'static str {
        "it counts what the last cache holds of a process, which is less than its working set where there is no room for it"
    }

    fn begin(&mut self, process: u32) -> Result<(), String> {
        let group = self.groups.join(format!("domicile-regions-{process}"));
        match fs::create_dir(&group) {
            // A run that was killed has left it.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(format!(
                    "{}: {error}: the processor has so many groups and no more",
                    group.display()
                ));
            }
            _ => {}
        }
        self.watched.insert(process, group.clone());
        self.gather(process, &group)
    }

    fn look(&mut self, process: u32) -> Result<u64, String> {
        let Some(group) = self.watched.get(&process) else {
            return Err("it has no group".to_string());
        };
        let caches = fs::read_dir(group.join("mon_data")).map_err(|error| error.to_string())?;
        let occupancy = |cache: fs::DirEntry| {
            let text = fs::read_to_string(cache.path().join("llc_occupancy")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let found: Vec<u64> = caches.flatten().filter_map(occupancy).collect();
        match found.is_empty() {
            true => Err("the processor says nothing of its occupancy just now".to_string()),
            false => Ok(found.iter().sum()),
        }
    }

    fn end(&mut self, process: u32) {
        if let Some(group) = self.watched.remove(&process) {
            // A group that stays does no harm: the next run takes it.
            let _ = fs::remove_dir(group);
        }
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        for group in self.watched.values() {
            let _ = fs::remove_dir(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_group_that_says_what_the_caches_hold() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::new(folder.path());
        let why = |root: &Root| probe(root).err().unwrap();
        assert!(why(&root).contains("has none"));
        write("proc/filesystems", "nodev\tresctrl\n");
        assert!(why(&root).contains("not mounted"));
        write("proc/mounts", "resctrl /sys/fs/resctrl resctrl rw 0 0\n");
        write("sys/fs/resctrl/info/L3_MON/mon_features", "mbm_total_bytes\n");
        assert!(why(&root).contains("does not monitor"));
        write(
            "sys/fs/resctrl/info/L3_MON/mon_features",
            "llc_occupancy\nmbm_total_bytes\n",
        );
        write("sys/fs/resctrl/mon_groups/.kept", "");
        let stat = "5 (x) R 1 5 5 0 -1 0 0 0 0 0 5 6 0 0 20 0 2 0 42 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0";
        write("proc/5/task/5/stat", stat);
        write("proc/5/task/6/stat", stat);
        let mut source = probe(&root).unwrap();
        source.begin(5).unwrap();
        let group = "sys/fs/resctrl/mon_groups/domicile-regions-5";
        assert_eq!(
            fs::read_to_string(folder.path().join(group).join("tasks")).unwrap(),
            "5\n6\n"
        );
        assert!(source.look(5).is_err());
        write(&format!("{group}/mon_data/mon_L3_00/llc_occupancy"), "1000\n");
        write(&format!("{group}/mon_data/mon_L3_01/llc_occupancy"), "24\n");
        write(&format!("{group}/mon_data/mon_L3_02/llc_occupancy"), "Unavailable\n");
        assert_eq!(source.look(5), Ok(1024));
        // The group is there already, and threads are not put in twice.
        source.begin(5).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join(group).join("tasks")).unwrap(),
            "5\n6\n"
        );
        assert!(source.begin(7).is_err());
    }
}
