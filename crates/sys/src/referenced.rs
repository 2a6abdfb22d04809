//! The memory that a process touches in a while: `/proc/PID/clear_refs` and `Referenced:` of `smaps_rollup` (Linux
//! 4.14).
//!
//! Clearing takes the accessed bit from each page of a process, and leaves translations in the TLBs: a page whose
//! translation stays there is not marked again when it is touched, and looks idle. The kernel takes the bits for its
//! own decisions about memory, too; frequent looks make a process seem a little less in use to it. Pages of program
//! text and of libraries count like all others. Both calls walk all pages of the process.

use crate::{Root, SysError};

/// Clears the bits of all pages of a process.
///
/// Errors: absent if it is gone; denied if it is another user's.
pub fn clear(root: &Root, process: u32) -> Result<(), SysError> {
    root.write(&format!("proc/{process}/clear_refs"), "1")
}

/// Bytes of the pages that were touched since the bits were cleared.
///
/// Errors: absent if it is gone, or the kernel has no such file; denied if it is another user's.
pub fn bytes(root: &Root, process: u32) -> Result<u64, SysError> {
    let path = format!("proc/{process}/smaps_rollup");
    let text = root.text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Referenced:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let bytes = kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024));
    bytes.ok_or_else(|| root.malformed(&path, &text, "a line Referenced: in kB"))
}

/// Finds out by this process if the kernel keeps such bits.
pub fn probe(root: &Root) -> Result<(), SysError> {
    let mine = std::process::id();
    clear(root, mine)?;
    bytes(root, mine).map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::memory::{Area, PAGE, Size};

    use super::*;

    #[test]
    fn a_line_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("proc/5");
        std::fs::create_dir_all(&process).unwrap();
        let root = Root::new(folder.path());
        assert!(bytes(&root, 5).is_err());
        std::fs::write(process.join("smaps_rollup"), "Rss:   9 kB\nReferenced:       1048 kB\n").unwrap();
        assert_eq!(bytes(&root, 5).unwrap(), 1048 * 1024);
        std::fs::write(process.join("smaps_rollup"), "Referenced: many\n").unwrap();
        assert!(bytes(&root, 5).is_err());
    }

    #[test]
    fn what_is_touched_counts_until_it_is_cleared() {
        let root = Root::default();
        if let Err(error) = probe(&root) {
            return harness::not_here(error);
        }
        let (mine, pages) = (std::process::id(), 4096);
        let area = Area::map(pages * PAGE, Size::Small).unwrap();
        // Other tests of this program clear the bits of the same process.
        let most = (0..20).map(|_| {
            clear(&root, mine).unwrap();
            (0..pages).for_each(|page| area.set_word(page, 0, 1));
            bytes(&root, mine).unwrap()
        });
        assert!(most.max().unwrap() >= (pages * PAGE) as u64 / 2);
    }
}
