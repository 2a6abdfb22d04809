//! Ways that stand in for colors: if the index of the last level is hashed, ways work and colors do not.

use sys::Root;
use sys::resctrl::{Resctrl, resctrl};

use super::{Ways, WaysError};

/// The ways to take where the probe found no colors.
pub struct Instead {
    pub ways: Ways,
    /// The level of the outermost caches whose ways can be shared out.
    pub level: u32,
    /// Why there are no colors.
    pub why: String,
}

impl Instead {
    /// The ways of the system below `root`, as a substitute for colors that are missing for the reason `why`. `None` if
    /// resctrl is not mounted, shares out no cache, or lets this user make no groups.
    ///
    /// Errors: the tree is there, and differs from the kernel's documentation.
    pub fn of(why: &str, root: &Root) -> Result<Option<Instead>, WaysError> {
        let Resctrl::Mounted {
            at,
            caches,
            writable: true,
        } = resctrl(root)
        else {
            return Ok(None);
        };
        let levels = caches.iter().filter_map(|(name, _)| level(name));
        let Some(level) = levels.max() else {
            return Ok(None);
        };
        let at = root.path(at.to_string_lossy().trim_start_matches('/'));
        Ok(Some(Instead {
            ways: Ways::open(&at, root.clone(), level)?,
            level,
            why: why.to_string(),
        }))
    }

    /// The choice and the reason for it, for people.
    pub fn note(&self) -> String {
        format!(
            "there are no page colors ({}), so private slots are ways of the L{} cache, by resctrl: they keep the threads in them apart \
             from others, and not one piece of data from another; shared slots take nothing. This has run on made-up trees and on no \
             hardware",
            self.why, self.level
        )
    }
}

/// `L3` and, where code and data have masks of their own, `L3CODE` and `L3DATA`.
fn level(cache: &str) -> Option<u32> {
    let number = cache.strip_prefix('L')?;
    number.trim_end_matches(char::is_alphabetic).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{INTEL, machine};
    use super::*;

    const MOUNTED: &str = "proc /proc proc rw 0 0\nresctrl /sys/fs/resctrl resctrl rw,relatime 0 0\n";

    #[test]
    fn ways_of_the_outermost_cache_stand_in_where_the_tree_is_mounted() {
        let folder = machine(&INTEL);
        let root = Root::new(folder.path());
        // There is a tree, and no mount of it.
        assert!(Instead::of("hashed", &root).unwrap().is_none());
        std::fs::write(folder.path().join("proc/mounts"), MOUNTED).unwrap();
        // A cache nearer to the core can be shared out as well.
        let nearer = folder.path().join("sys/fs/resctrl/info/L2");
        std::fs::create_dir_all(&nearer).unwrap();
        std::fs::write(nearer.join("num_closids"), "8\n").unwrap();
        let instead = Instead::of("hashed", &root).unwrap().unwrap();
        assert_eq!(instead.level, 3);
        assert_eq!(instead.ways.shape(), (20, 3 << 19));
        assert_eq!(instead.ways.sharers(&[0, 1, 3]).unwrap(), [vec![0, 1], vec![3]]);
        let note = instead.note();
        assert!(
            note.contains("(hashed)") && note.contains("L3") && note.contains("no hardware"),
            "{note}"
        );
    }

    #[test]
    fn a_tree_that_only_measures_stands_in_for_nothing_and_a_damaged_one_is_reported() {
        let folder = machine(&INTEL);
        let root = Root::new(folder.path());
        std::fs::write(folder.path().join("proc/mounts"), MOUNTED).unwrap();
        let mask = folder.path().join("sys/fs/resctrl/info/L3/cbm_mask");
        std::fs::write(mask, "many\n").unwrap();
        assert!(matches!(Instead::of("", &root), Err(WaysError::Malformed { .. })));
        std::fs::remove_dir_all(folder.path().join("sys/fs/resctrl/info/L3")).unwrap();
        assert!(Instead::of("", &root).unwrap().is_none());
    }

    #[test]
    fn code_and_data_are_of_one_level() {
        assert_eq!(
            ["L3", "L3CODE", "L2DATA", "MB"].map(level),
            [Some(3), Some(3), Some(2), None]
        );
    }
}
