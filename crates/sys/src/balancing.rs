//! The kernel's own balancing of pages among nodes (`/proc/sys/kernel/numa_balancing`).

use crate::{Root, SysError};

/// The moves that the kernel makes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balancing {
    /// Moves pages to the nodes of the threads that touch them, and threads to their pages.
    pub among_nodes: bool,
    /// Moves hot pages from slow memory to fast memory (Linux 5.18).
    pub among_tiers: bool,
}

/// Reads the current settings.
///
/// Errors: absent if the kernel cannot balance.
pub fn state(root: &Root) -> Result<Balancing, SysError> {
    const PATH: &str = "proc/sys/kernel/numa_balancing";
    let bits = root.number(PATH)?;
    Ok(Balancing {
        among_nodes: bits & 1 != 0,
        among_tiers: bits & 2 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert!(state(&root).is_err());
        std::fs::create_dir_all(folder.path().join("proc/sys/kernel")).unwrap();
        for (text, among_nodes, among_tiers) in [
            ("0\n", false, false),
            ("1\n", true, false),
            ("2\n", false, true),
            ("3\n", true, true),
        ] {
            std::fs::write(folder.path().join("proc/sys/kernel/numa_balancing"), text).unwrap();
            let expected = Balancing {
                among_nodes,
                among_tiers,
            };
            assert_eq!(state(&root).unwrap(), expected);
        }
    }
}
