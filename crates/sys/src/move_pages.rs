//! The node of a page, and moves to another one: `move_pages(2)`, for our own pages and for another process's.
//!
//! The content of a page and its address stay. To move another process's pages takes the same rights as to read its
//! memory: the same user, or CAP_SYS_PTRACE.

use std::io;

/// Why one page was not found, or not moved: the kernel's number, `errno(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageError(i32);

impl PageError {
    /// The page was not looked at: one before it ended the call.
    pub const UNTRIED: PageError = PageError(UNTRIED);
    /// There is no page: never touched, swapped out, or unmapped.
    pub const ABSENT: PageError = PageError(libc::ENOENT);
    /// Nothing is mapped there, or the kernel's page of zeros.
    pub const UNMAPPED: PageError = PageError(libc::EFAULT);
    /// Several processes have it.
    pub const SHARED: PageError = PageError(libc::EACCES);
    /// Somebody holds it: direct I/O, a page on its way to disk.
    pub const BUSY: PageError = PageError(libc::EBUSY);
    /// The node has no memory left for it.
    pub const NO_MEMORY: PageError = PageError(libc::ENOMEM);

    pub fn from_errno(number: i32) -> PageError {
        PageError(number)
    }

    /// `None` for a page that was not looked at.
    pub fn errno(self) -> Option<i32> {
        (self != PageError::UNTRIED).then_some(self.0)
    }
}

/// No number of the kernel's; entries that it does not write keep it.
const UNTRIED: i32 = i32::MAX;

/// The outcome for each page, in the order asked for: the node that it is on.
pub type Pages = Vec<Result<u32, PageError>>;

/// The node of each page of a process; `None` is this process.
///
/// Errors: ESRCH if there is no such process; EPERM if it is another user's; EACCES, ENOSYS. Errors of single
/// pages are theirs.
pub fn nodes_of(process: Option<u32>, addresses: &[usize]) -> io::Result<Pages> {
    ask(process, addresses, None)
}

/// Moves each page to the node of the same place in `nodes`. Only pages that no other process shares are moved. A huge
/// page moves as a whole.
///
/// Pre: as many nodes as addresses. Ensures: a page reported as `Ok` is on that node, as far as the kernel tells.
///
/// Errors: as [`nodes_of`]; EACCES also where the process may not have memory of one of the nodes (cpusets), and ENODEV
/// if there is no such node: earlier pages have been moved all the same.
pub fn move_to(process: Option<u32>, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages> {
    if addresses.len() != nodes.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    ask(process, addresses, Some(nodes))
}

fn ask(process: Option<u32>, addresses: &[usize], nodes: Option<&[u32]>) -> io::Result<Pages> {
    const MOVE: libc::c_int = 2;
    let process = match process {
        None => 0,
        Some(process) => i32::try_from(process).map_err(|_| io::Error::from(rustix::io::Errno::SRCH))?,
    };
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let nodes: Option<Vec<i32>> =
        nodes.map(|nodes| nodes.iter().map(|&node| node.min(i32::MAX as u32) as i32).collect());
    let wanted = nodes.as_ref().map_or(std::ptr::null(), |nodes| nodes.as_ptr());
    let mut status = vec![UNTRIED; addresses.len()];
    // SAFETY: the arrays have as many places as the call is told, and live; the kernel writes to `status` alone. That a
    // page lies on another node changes nothing that a program can see of memory.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            addresses.len(),
            addresses.as_ptr(),
            wanted,
            status.as_mut_ptr(),
            MOVE,
        )
    };
    // Since Linux 4.17 a positive number says how many pages were left where they are.
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let page = |status: i32| match u32::try_from(status) {
        Ok(_) if status == UNTRIED => Err(PageError::UNTRIED),
        Ok(node) => Ok(node),
        Err(_) => Err(PageError(status.saturating_neg())),
    };
    Ok(status.into_iter().map(page).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Area, PAGE, Size};

    fn touched(pages: usize) -> Area {
        let area = Area::map((pages + 1) * PAGE, Size::Small).unwrap();
        (0..pages).for_each(|page| area.set_word(page, 0, 7));
        area
    }

    fn addresses(area: &Area) -> Vec<usize> {
        (0..area.pages()).map(|page| area.start() + page * PAGE).collect()
    }

    #[test]
    fn pages_are_on_a_node_once_touched_and_each_error_is_its_pages() {
        let area = touched(3);
        let node = crate::home::of_a_new_page().unwrap();
        for process in [None, Some(std::process::id())] {
            let pages = nodes_of(process, &addresses(&area)).unwrap();
            assert!(pages[..3].iter().all(Result::is_ok), "{pages:?}");
            assert!(pages[3].is_err(), "{pages:?}");
        }
        // A move to the current node does nothing, and loses nothing.
        let here = nodes_of(None, &addresses(&area)[..1]).unwrap()[0].unwrap();
        let moved = move_to(None, &addresses(&area), &[here; 4]).unwrap();
        assert_eq!(moved[..3], [Ok(here); 3], "{moved:?} {node}");
        assert!(moved[3].is_err());
        assert!((0..3).all(|page| area.word(page, 0) == 7));
    }

    #[test]
    fn who_is_gone_and_nodes_that_are_not_there_are_errors_of_the_call() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let area = touched(1);
        let gone = nodes_of(Some(child.id()), &addresses(&area)).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
        let none = nodes_of(Some(u32::MAX), &addresses(&area)).unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ESRCH));
        let nowhere = move_to(None, &addresses(&area)[..1], &[1023]).unwrap_err();
        assert!(
            matches!(nowhere.raw_os_error(), Some(libc::ENODEV | libc::EACCES)),
            "{nowhere}"
        );
        assert!(move_to(None, &addresses(&area), &[0]).is_err());
        assert!(nodes_of(None, &[]).unwrap().is_empty());
    }
}
